/* The outbox: every outgoing effect is a durable row, retried until it is sent or given up. Rows of one lane leave in
 * their order, one at a time. Only outbox_enter() changes a state.
 *
 * Thread: functions with a connection run on its thread (db/db.h); store_*() functions run on the loop. */
#pragma once

#include "db/db.h"
#include "db/nodes.h"
#include "db/record_rows.h"
#include "db/store.h"
#include "model/accelerator.h"
#include "model/experiment.h"
#include "model/record_states.h"

/* X(ENUM, name) */
#define OUTBOX_KINDS(X)                                                                                                \
	X(GITHUB_DISPATCH, "github_dispatch") /* a change to a vendor's or the infra repository */                     \
	X(GITHUB_CLOSED, "github_closed")     /* `closed` to one */                                                    \
	X(WEBHOOK_DISPATCH, "webhook_dispatch")                                                                        \
	X(WEBHOOK_CANCEL, "webhook_cancel")                                                                            \
	X(COMMENT, "comment")               /* the comment of one PR may be out of date */                             \
	X(CHECKS, "checks")                 /* the check runs of one PR may be out of date */                          \
	X(REACTION, "reaction")             /* to a comment; `text` is its content */                                  \
	X(REPLY, "reply")                   /* `text` as a comment on PR `number` */                                   \
	X(RERUN, "github_rerun")            /* Re-run at the vendor's repository: `text` is JSON */                    \
	X(RED_ISSUE, "red_issue")           /* a red episode's issue may be out of date */                             \
	X(WEBHOOK_NOTICE, "webhook_notice") /* the same to a vendor without a repository: JSON */

enum outbox_kind {
#define X(e, name) OUTBOX_##e,
	OUTBOX_KINDS(X)
#undef X
	    N_OUTBOX_KINDS
};
extern const struct words outbox_kind_words;
#define RECORD_C_OUTBOX_KIND enum outbox_kind
#define RECORD_T_OUTBOX_KIND RECORD_WORD, &outbox_kind_words
const char *outbox_kind_name(enum outbox_kind k);
/* The topic (db/store.h) of those who send this kind. */
unsigned outbox_topic(enum outbox_kind kind);

/* The conditions of the indexes, word for word: only with them SQLite uses an index. Of a row o: "o.", or "". */
#define OUTBOX_IS_UNSENT(o) "(" o "state = 'due' OR " o "state = 'waiting' OR " o "state = 'sending')"
#define OUTBOX_IS_COUNTED   "(state = 'due' OR state = 'waiting' OR state = 'sending' OR state = 'dead')"

/* A condition: the row with this id is being sent, by this node. An independent operation has it in the statement that it guards, because
 * another node may take the row over between two statements. */
#define OUTBOX_IS_SENT_BY(id_, epoch_)                                                                                 \
	"EXISTS (SELECT 1 FROM outbox WHERE id = " id_ " AND state = 'sending' AND epoch = " epoch_ ")"

struct outbox_row;
/* Places that a sender keeps free for rows that an operation is about to write. outbox_insert() claims a new row at once while
 * its kind has a place and no row of its lane is unsent, so such a row needs no transaction for its claim. */
struct outbox_offer {
	int places[N_OUTBOX_KINDS]; /* out: those left */
	struct outbox_row *rows;    /* out: the claimed rows; outbox_offer_release() */
	size_t n;
};
/* Adds what the rows name to the claimed rows (accelerators, head, sources), at the end of the operation. */
void outbox_offer_read(const struct view *d, struct outbox_offer *offer);
/* Frees the rows, and gives their places back to their kinds. */
void outbox_offer_release(struct outbox_offer *offer);

/* A new effect. Strings are borrowed; NULL stands for "", except accelerator and text, which stay NULL. */
struct outbox_request {
	enum outbox_kind kind;
	const char *key;  /* one row for each */
	const char *lane; /* rows of one lane leave in their order */
	const char *target, *target_key;
	int64_t number, change_id; /* 0: none */
	const char *dispatch_id, *runner;
	const char *delivery_guid, *event_type, *sent_action, *original_action;
	const char *accelerator, *text;
	struct outbox_offer *offer; /* NULL: none; else the row is due at once */
};
/* Inserts a row that is due from due_ms on, or that q->offer has claimed. Changes nothing when a row has this key already. */
void outbox_insert(struct txn *d, const struct outbox_request *q, int64_t due_ms);

/* `outbox` as o: the state of a row, and the columns that change with it. */
#define OUTBOX_PLACE_RECORD(F, S)                                                                                      \
	F(S, ID, id, NULL, "o.id", "0: there is no such row.")                                                         \
	F(S, OUTBOX_STATE, state, NULL, "o.state", "")                                                                 \
	F(S, INT, n_attempts, NULL, "o.n_attempts", "")                                                                \
	F(S, TIME, first_ms, NULL, "o.first_ms", "")                                                                   \
	F(S, TIME, next_ms, NULL, "o.next_ms", "")                                                                     \
	F(S, INT, generation, NULL, "o.generation", "")                                                                \
	F(S, BOOL, is_uncertain, NULL, "o.is_uncertain", "")                                                           \
	F(S, BOOL, is_dropped, NULL, "o.is_dropped", "")                                                               \
	F(S, INT, epoch, NULL, "o.epoch", "The node that is sending it; 0: none. Only outbox_enter() changes it.")
RECORD_STRUCT(outbox_place, OUTBOX_PLACE_RECORD);
struct outbox_place outbox_find(const struct view *d, const char *key);
/* Not sent and not given up. */
bool outbox_is_unsent(const struct outbox_place *at);
/* The only way from one state to another. Writes the row once, with the other members of *at, which the caller may have
 * changed since it read them in this transaction; so a step that stays in the state is how a caller writes only these. `error`
 * becomes last_error; NULL keeps it; a sent row has none. False when the step is not legal: nothing changes then. */
bool outbox_enter(struct txn *d, struct outbox_place *at, enum outbox_state to, const char *error);
/* Rows that a node was sending are due again, marked uncertain, when that node cannot be sending any more (db/nodes.h). Returns how
 * many. */
int64_t outbox_recover(struct txn *d);

/* `outbox` as o. */
#define OUTBOX_ROW_RECORD(F, S)                                                                                        \
	F(S, INT, id, NULL, "o.id", "")                                                                                \
	F(S, TEXT, target, NULL, "o.target", "owner/name or URL; of COMMENT, upstream's repository.")                  \
	F(S, INT, number, NULL, "o.number", "The pull request; of RED_ISSUE, the episode; 0: none.")                   \
	F(S, TEXT, dispatch_id, NULL, "o.dispatch_id", "Empty for COMMENT; of WEBHOOK_NOTICE, an id of its own.")      \
	F(S, TEXT, delivery_guid, NULL, "o.delivery_guid", "Whose body is sent.")                                      \
	F(S, TEXT, event_type, NULL, "o.event_type", "")                                                               \
	F(S, TEXT, sent_action, NULL, "o.sent_action", "")                                                             \
	F(S, TEXT, original_action, NULL, "o.original_action", "")                                                     \
	F(S, TEXT, runner, NULL, "o.runner", "Of a webhook: the runner's name.")                                       \
	F(S, TEXT, accelerator, NULL, "o.accelerator", "Of a row without a dispatch: whom it concerns.")               \
	F(S, TEXT, text, NULL, "o.text", "Its meaning depends on the kind.")                                           \
	F(S, INT, epoch, NULL, "o.epoch", "Of the node that has claimed it.")                                          \
	F(S, INT, n_attempts, NULL, "o.n_attempts", "Before this one.")                                                \
	F(S, TIME, first_ms, NULL, "o.first_ms", "When the effect was requested.")                                     \
	F(S, INT, generation, NULL, "o.generation",                                                                    \
	    "Of COMMENT, CHECKS, RED_ISSUE: counts the requests; see outbox_done.")                                    \
	F(S, BOOL, is_uncertain, NULL, "o.is_uncertain",                                                               \
	    "An earlier attempt may have arrived: a crash, or a lost answer.")
struct outbox_row {
	RECORD_MEMBERS(OUTBOX_ROW_RECORD)
	enum outbox_kind kind;
	char **accelerators; /* NULL-terminated: those to list, or the one of a webhook */
	char *head_sha;
	struct source_head *sources; /* a periodic run: of the accelerators that have one */
	size_t n_sources;
	struct experiment_request *experiment; /* of an experiment's dispatch; NULL: none */
	int64_t finish_by_ms;                  /* webhook: when the token ends */
};
void outbox_row_release(struct outbox_row *r);

/* Claims up to `limit` rows that are due: they are `sending` and belong to this node until outbox_done. out: when the
 * next row of these kinds is due (0: none waits). */
struct claim_outbox {
	struct store_op op;
	unsigned kinds; /* bits 1 << OUTBOX_… */
	int limit;
	int64_t now_ms;
	/* leaves out the rows with this `target`, and looks at the first few thousand that are due; NULL: none; owned,
	 * claim_outbox_release() */
	char *past;
	struct outbox_row *rows; /* out; claim_outbox_release() */
	size_t n;
	int64_t next_due_ms;
};
int store_claim_outbox(struct store *s, struct claim_outbox *op) MUST_CHECK;
void claim_outbox_release(struct claim_outbox *op);

enum outbox_result {
	OUTBOX_OK,      /* arrived: dispatches go to sent (github) or acknowledged (webhook) */
	OUTBOX_RETRY,   /* again at next_ms */
	OUTBOX_DEAD,    /* final: dispatches fail, with a MISS verdict */
	OUTBOX_NOT_YET, /* nothing was tried; again at next_ms, the attempt does not count */
	OUTBOX_AGAIN,   /* COMMENT: arrived, and there may be more to write at next_ms */
};
/* How a claimed row ended; nothing happens when the row belongs to another node by now. A COMMENT row whose generation moved on since the claim is due again whatever the result; a
 * row that was cancelled meanwhile stays cancelled. */
struct outbox_done {
	struct store_op op;
	int64_t id, epoch; /* of the claimed row */
	enum outbox_result result;
	int64_t generation;
	bool is_uncertain; /* it may have arrived; of COMMENT, the text on GitHub is not known */
	int n_writes; /* content writes on GitHub; recorded for other nodes, also when the row is not ours any more */
	int64_t next_ms, now_ms;
	const char *error; /* RETRY, DEAD: why */
};
int store_outbox_done(struct store *s, struct outbox_done *op) MUST_CHECK;

/* The content writes of all nodes in the last hour, the oldest first; those that may be under way now come last. */
#define CONTENT_WRITE_RECORD(F, S)                                                                                     \
	F(S, TIME, at_ms, NULL, "at_ms", "")                                                                           \
	F(S, INT, n, NULL, "n", "")
RECORD_STRUCT(content_write, CONTENT_WRITE_RECORD);
struct list_writes {
	struct store_query q;
	int64_t now_ms;
	struct content_write *list; /* out; list_writes_release() */
	size_t n;
};
int store_list_writes(struct store *s, struct list_writes *q) MUST_CHECK;
void list_writes_release(struct list_writes *q);

struct outbox_stats {
	int64_t n_due, n_waiting, n_sending, n_dead;
	int64_t oldest_unsent_ms; /* first_ms of the oldest unsent row, 0: none */
};
/* Thread: reader. */
struct outbox_stats outbox_stats_read(const struct view *d, int64_t now_ms);
