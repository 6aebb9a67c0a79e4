/* Dispatches: one change sent to one runner. Only dispatch_enter() changes a state.
 *
 * Thread: functions with a connection run on its thread (db/db.h); store_*() functions run on the loop. */
#pragma once

#include "db/db.h"
#include "db/record_rows.h"
#include "db/store.h"
#include "model/accelerator.h"
#include "model/states.h"

#define STORED_DISPATCH_RECORD(F, S)                                                                                   \
	F(S, KEY, id, NULL, "id", "")                                                                                  \
	F(S, TEXT, accelerator, NULL, "accelerator", "Empty for the infra repository itself.")                         \
	F(S, TEXT, runner, NULL, "runner", "")                                                                         \
	F(S, INT, change_id, NULL, "change_id", "")                                                                    \
	F(S, RUNNER_KIND, kind, NULL, "kind", "")                                                                      \
	F(S, TEXT, target, NULL, "target", "")                                                                         \
	F(S, TEXT, target_key, NULL, "target_key", "")                                                                 \
	F(S, INT, round, NULL, "round", "")                                                                            \
	F(S, TIME, round_ms, NULL, "round_ms", "GitHub's time of the newest event that started a round.")              \
	F(S, BOOL, is_current, NULL, "is_current",                                                                     \
	    "Of the latest admitted round, or a held one without an admitted round.")                                  \
	F(S, DISPATCH_STATE, state, NULL, "state", "")                                                                 \
	F(S, TEXT, held_reason, NULL, "held_reason", "Why it is held, or was before ok-to-test.")                      \
	F(S, BOOL, is_held_for_good, NULL, "is_held_for_good", "")                                                     \
	F(S, INT, number, NULL, "number", "The pull request that caused it; 0 for a push.")                            \
	F(S, TEXT, delivery_guid, NULL, "delivery_guid", "")                                                           \
	F(S, TEXT, event_type, NULL, "event_type", "")                                                                 \
	F(S, TEXT, sent_action, NULL, "sent_action", "")                                                               \
	F(S, TEXT, original_action, NULL, "original_action", "")                                                       \
	F(S, INT, acknowledge_ms, NULL, "acknowledge_ms", "A duration; 0: no deadline.")                               \
	F(S, INT, start_ms, NULL, "start_ms", "Likewise.")                                                             \
	F(S, INT, finish_ms, NULL, "finish_ms", "Likewise.")                                                           \
	F(S, TIME, ack_by_ms, NULL, "ack_by_ms", "0: no deadline.")                                                    \
	F(S, TIME, start_by_ms, NULL, "start_by_ms", "Likewise.")                                                      \
	F(S, TIME, finish_by_ms, NULL, "finish_by_ms", "Likewise.")                                                    \
	F(S, TIME, not_before_ms, NULL, "not_before_ms",                                                               \
	    "When it may go; its deadlines count from here; 0: it went at once.")                                      \
	F(S, TIME, created_ms, NULL, "created_ms", "")                                                                 \
	F(S, TIME, sent_ms, NULL, "sent_ms", "")                                                                       \
	F(S, TIME, finished_ms, NULL, "finished_ms", "")                                                               \
	F(S, BOOL, is_late, NULL, "is_late", "It went on after it had expired or failed.")                             \
	F(S, TEXT, last_error, NULL, "last_error", "")                                                                 \
	F(S, ENDED_HOW, ended_how, NULL, "ended_how", "How a person ended it.")                                        \
	F(S, TEXT, ended_by, NULL, "ended_by", "That person's login; NULL: ENDED_OTHERWISE.")
RECORD_STRUCT(stored_dispatch, STORED_DISPATCH_RECORD);

struct dispatch_list {
	struct stored_dispatch *at;
	size_t n;
};

/* SELECT DISPATCH_COLUMNS FROM dispatch …, read by dispatch_list_read() or stored_dispatch_read(). */
#define DISPATCH_COLUMNS "0" RECORD_COLUMNS(STORED_DISPATCH_RECORD)
/* Of a dispatch x: "x.", or "". As in the conditions of its indexes. */
#define DISPATCH_IS_AT_WORK(x)                                                                                         \
	"(" x "state = 'queued' OR " x "state = 'sent' OR " x "state = 'acknowledged' OR " x "state = 'running')"
#define DISPATCH_IS_UNFINISHED "state IN ('held', 'queued', 'sent', 'acknowledged', 'running')"

/* The dispatches that meet the condition, which may end with ORDER BY and LIMIT. */
#define DISPATCHES_WHERE(d, condition, ...)                                                                            \
	dispatch_list_read(db_rows(d, "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE " condition, __VA_ARGS__))
struct dispatch_list dispatch_list_read(struct rows *r);
void dispatch_list_release(struct dispatch_list *l);
/* The first row, or false. Ends the rows. */
bool stored_dispatch_read(struct rows *r, struct stored_dispatch *ret);
void stored_dispatch_release(struct stored_dispatch *s);
/* A copy with its own strings. */
struct stored_dispatch stored_dispatch_copy(const struct stored_dispatch *s);

/* A new row in its first state (held or queued); a queued one gets its deadlines. A held one becomes current only where no
 * other is: it waits beside a round that has run and does not hide its results. */
void dispatch_insert(struct txn *d, struct stored_dispatch *s, int64_t now_ms);
/* The only way from one state to another. False when the step is not legal: nothing changes then. `why` becomes
 * last_error; NULL keeps it. */
bool dispatch_enter(struct txn *d, struct stored_dispatch *s, enum dispatch_state to, const char *why, int64_t now_ms);
/* A person ends it with a comment: it enters `cancelled`. False, as from dispatch_enter(). */
bool dispatch_end_by(struct txn *d, struct stored_dispatch *s, enum ended_how how, const char *login, int64_t now_ms);
/* A pull dispatch waits for a machine again: `start` counts from now, `finish` goes on. */
bool dispatch_requeue(struct txn *d, struct stored_dispatch *s, int64_t now_ms);
/* The request of a queued dispatch arrived: the dispatch enters `to`. */
void dispatch_enter_sent(struct txn *d, struct stored_dispatch *s, enum dispatch_state to, int64_t now_ms);
/* The request was sent or arrived, in whatever state the dispatch is. */
void dispatch_note_sent(struct txn *d, struct stored_dispatch *s, int64_t now_ms);
/* A newer round replaces it: it is superseded when unfinished, its jobs are no longer current, its request is dropped. */
void dispatch_retire(struct txn *d, struct stored_dispatch *s, int64_t now_ms);
/* Whether a vendor had it, or may have had it, so that its results are worth showing. */
bool dispatch_has_run(const struct view *d, const struct stored_dispatch *s);
/* Deletes a held row that is about to be inserted again as released. */
void dispatch_delete_held(struct txn *d, const struct stored_dispatch *s);
/* An unfinished one becomes superseded or cancelled; its request is dropped in any case. Returns whether its state
 * changed. */
bool dispatch_end(struct txn *d, struct stored_dispatch *s, enum dispatch_state to, int64_t now_ms);

/* Unfinished dispatches whose deadline passed by now_ms become expired, which is a MISS verdict. out: the time of the next
 * deadline (0: none). */
struct expire_dispatches {
	struct store_op op;
	int64_t now_ms;
	/* When to try to start experiments; 0 at first, later the next one of the last success. */
	int64_t experiments_ms;
	int64_t next_experiments_ms; /* out; apart, because a repeated transaction begins with the same values */
	int n_expired;
	int64_t next_due_ms;
};
int store_expire_dispatches(struct store *s, struct expire_dispatches *op) MUST_CHECK;

/* `dispatch` as x, its change as c, its experiment as e and its outbox row as o. */
#define DISPATCH_ROW_RECORD(F, S)                                                                                      \
	F(S, TEXT, id, "id", "x.id", "")                                                                               \
	F(S, TEXT, event, "event", "x.event_type", "pull_request, push, nightly or experiment.")                       \
	F(S, TEXT, side, "side", "e.side", "Of an experiment: head or base.")                                          \
	F(S, INT, number, "pr",                                                                                        \
	    "CASE WHEN e.id IS NULL THEN x.number ELSE (SELECT number FROM dispatch WHERE id = "                       \
	    "e.dispatch_id) END",                                                                                      \
	    "The pull request; of an experiment, the one it explains.")                                                \
	F(S, TEXT, head_sha, "head_sha", "c.head_sha", "")                                                             \
	F(S, TEXT, accelerator, "accelerator", "x.accelerator", "")                                                    \
	F(S, TEXT, runner, "runner", "x.runner", "")                                                                   \
	F(S, TEXT, kind, "kind", "x.kind", "")                                                                         \
	F(S, TEXT, target, "target", "x.target", "")                                                                   \
	F(S, TEXT, state, "state", "x.state", "")                                                                      \
	F(S, INT, round, "round", "x.round", "")                                                                       \
	F(S, INT, n_attempts, "attempts", "o.n_attempts", "")                                                          \
	F(S, TIME, created_ms, "created", "x.created_ms", "")                                                          \
	F(S, TIME, sent_ms, "sent", "x.sent_ms", "")                                                                   \
	F(S, TIME, finished_ms, "finished", "x.finished_ms", "")                                                       \
	F(S, TEXT, held_reason, NULL, "CASE x.state WHEN 'held' THEN x.held_reason END", "")                           \
	F(S, TEXT, void_reason, NULL, "CASE WHEN e.state = 'void' AND x.is_current = 1 THEN e.reason END",             \
	    "Of an experiment that proves nothing.")                                                                   \
	F(S, TEXT, last_error, NULL, "COALESCE(" DISPATCH_WHY ", o.last_error)",                                       \
	    "Why it ended: the person who ended it, else its error.")
RECORD_STRUCT(dispatch_row, DISPATCH_ROW_RECORD);
struct list_dispatches {
	struct store_query q;
	const char *repository;
	int64_t number;          /* 0: of any change */
	const char *accelerator; /* NULL: any */
	int limit;
	struct dispatch_row *list; /* out, newest first; list_dispatches_release() */
	size_t n;
};
int store_list_dispatches(struct store *s, struct list_dispatches *q) MUST_CHECK;
void list_dispatches_release(struct list_dispatches *q);
