/* The outbox: every outgoing effect as a durable row, tried until it is sent or given up.
 * Rows of one lane leave in their order, one at a time. */
#ifndef STORE_OUTBOX_H
#define STORE_OUTBOX_H

#include "model/experiment.h"
#include "model/source_head.h"
#include "store/store.h"

/* X(ENUM, name) */
#define OUTBOX_KINDS(X)                                                                            \
	X(GITHUB_DISPATCH, "github_dispatch") /* a change to a vendor's or the infra repository */ \
	X(GITHUB_CLOSED, "github_closed")     /* `closed` to one */                                \
	X(WEBHOOK_DISPATCH, "webhook_dispatch")                                                    \
	X(WEBHOOK_CANCEL, "webhook_cancel")                                                        \
	X(COMMENT, "comment")     /* the comment of one PR may be out of date */                   \
	X(CHECKS, "checks")       /* the check runs of one PR may be out of date */                \
	X(REACTION, "reaction")   /* to a comment; `text` is its content */                        \
	X(REPLY, "reply")         /* `text` as a comment on PR `number` */                         \
	X(RERUN, "github_rerun")  /* Re-run at the vendor's repository: `text` is JSON */          \
	X(RED_ISSUE, "red_issue") /* a red episode's issue may be out of date */                   \
	X(WEBHOOK_NOTICE, "webhook_notice") /* the same to a vendor without a repository: JSON */

enum outbox_kind {
#define X(e, name) OUTBOX_##e,
	OUTBOX_KINDS(X)
#undef X
	    N_OUTBOX_KINDS
};
const char *outbox_kind_name(enum outbox_kind k);

struct outbox_row {
	int64_t id;
	enum outbox_kind kind;
	char *target;        /* owner/name or URL; for COMMENT upstream's repository */
	int64_t number;      /* the PR; RED_ISSUE: the episode; 0 none */
	char *dispatch_id;   /* "" for COMMENT; WEBHOOK_NOTICE: an id of its own */
	char *delivery_guid; /* whose body is sent */
	char *event_type, *sent_action, *original_action;
	char **accelerators; /* NULL-terminated: those to list, or the one of a webhook */
	char *runner;        /* webhook: the runner's name */
	char *head_sha;
	struct source_head *sources; /* a periodic run: of the accelerators that have one */
	size_t n_sources;
	struct experiment_request *experiment; /* of an experiment's dispatch; NULL: none */
	char *text;                            /* what the kind says; NULL: none */
	int64_t finish_by_ms;                  /* webhook: for the token's end */
	int n_attempts;                        /* before this one */
	int64_t first_ms;                      /* when the effect came to be */
	int64_t generation; /* COMMENT, CHECKS, RED_ISSUE: counts the wishes; see outbox_done */
	bool is_uncertain;  /* an earlier try may have arrived: a crash, or a lost answer */
};
void outbox_row_release(struct outbox_row *r);

/* Takes up to `limit` rows that are due: they are `sending` and this process's until
 * outbox_done. out: when the next row of these kinds is due (0: none waits). */
struct claim_outbox {
	struct store_op op;
	unsigned kinds; /* bits 1 << OUTBOX_… */
	int limit;
	int64_t now_ms;
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
	OUTBOX_AGAIN,   /* COMMENT: arrived, and there may be more to say at next_ms */
};
/* How a claimed row ended. A COMMENT row whose generation moved on since the claim is due
 * again whatever the result; a row that was cancelled meanwhile stays cancelled. */
struct outbox_done {
	struct store_op op;
	int64_t id;
	enum outbox_result result;
	int64_t generation;
	bool is_uncertain; /* it may have arrived; of COMMENT nobody knows what GitHub shows now */
	int64_t next_ms, now_ms;
	const char *error; /* RETRY, DEAD: why */
};
int store_outbox_done(struct store *s, struct outbox_done *op) MUST_CHECK;

struct outbox_stats {
	struct store_query q;
	int64_t now_ms;
	int64_t n_due, n_waiting, n_sending, n_dead;
	int64_t oldest_unsent_ms; /* first_ms of the oldest unsent row, 0: none */
};
int store_outbox_stats(struct store *s, struct outbox_stats *q) MUST_CHECK;

#endif
