/* One dispatch as a row. Only dispatch_enter() changes a state. */
#ifndef STORE_STORED_DISPATCH_H
#define STORE_STORED_DISPATCH_H

#include "base/id.h"
#include "model/accelerator.h"
#include "model/states.h"
#include "store/db.h"

struct stored_dispatch {
	char id[ID_BYTES];
	char *accelerator; /* "" for the infra repository itself */
	char *runner;
	int64_t change_id;
	enum runner_kind kind;
	char *target, *target_key;
	int64_t round;
	int64_t round_ms; /* GitHub's time of the newest event that started a round */
	bool is_current;  /* of the latest round that was let in, or that none came before */
	enum dispatch_state state;
	char *held_reason; /* why it is held, or was before ok-to-test */
	bool is_held_for_good;
	int64_t number; /* the PR that brought it; 0 for a push */
	char *delivery_guid, *event_type, *sent_action, *original_action;
	int64_t acknowledge_ms, start_ms, finish_ms;  /* durations; 0: none */
	int64_t ack_by_ms, start_by_ms, finish_by_ms; /* 0: none */
	int64_t not_before_ms; /* its turn, from which its deadlines count; 0: it went at once */
	int64_t created_ms, sent_ms, finished_ms;
	bool is_late; /* came back to life after it had expired or failed */
	char *last_error;
};

struct dispatch_list {
	struct stored_dispatch *at;
	size_t n;
};

/* SELECT DISPATCH_COLUMNS FROM dispatch …, read by dispatch_list_take(). */
#define DISPATCH_COLUMNS                                                                           \
	"id, accelerator, runner, change_id, kind, target, target_key, round, round_ms,"           \
	" is_current, state, held_reason, is_held_for_good, number, delivery_guid, event_type,"    \
	" sent_action, original_action, acknowledge_ms, start_ms, finish_ms, ack_by_ms,"           \
	" start_by_ms, finish_by_ms, created_ms, sent_ms, finished_ms, is_late, last_error,"       \
	" not_before_ms"
#define DISPATCH_IS_AT_WORK    "state IN ('queued', 'sent', 'acknowledged', 'running')"
#define DISPATCH_IS_UNFINISHED "state IN ('held', 'queued', 'sent', 'acknowledged', 'running')"
/* ok-to-test cancel: it was held, or released and had not left. */
#define DISPATCH_IS_DECLINED                                                                       \
	"(state = 'cancelled' AND held_reason IS NOT NULL AND last_error LIKE 'declined by %')"

struct dispatch_list dispatch_list_take(struct rows *r);
void dispatch_list_release(struct dispatch_list *l);
void stored_dispatch_release(struct stored_dispatch *s);
/* A copy with strings of its own. */
struct stored_dispatch stored_dispatch_copy(const struct stored_dispatch *s);

/* A new row in its first state (held or queued); queued ones get their deadlines. A held one becomes
 * current only where no other is: it waits beside a round that has run and hides none of it. */
void dispatch_insert(struct db *d, struct stored_dispatch *s, int64_t now_ms);
/* The only way from one state to another. False when the step is not legal: nothing
 * changes then. `why` goes to last_error when it is given. */
bool dispatch_enter(struct db *d, struct stored_dispatch *s, enum dispatch_state to,
    const char *why, int64_t now_ms);
/* A pull dispatch waits for a machine again: `start` counts anew, `finish` goes on. */
bool dispatch_requeue(struct db *d, struct stored_dispatch *s, int64_t now_ms);
/* The request left or arrived (whatever the state says). */
void dispatch_note_sent(struct db *d, struct stored_dispatch *s, int64_t now_ms);
/* A newer one takes its place: it is superseded when unfinished, its jobs are no longer
 * shown, its request is dropped. */
void dispatch_retire(struct db *d, struct stored_dispatch *s, int64_t now_ms);
/* Whether a vendor had it, or may have: then what came of it is worth showing. */
bool dispatch_has_run(struct db *d, const struct stored_dispatch *s);
/* A held one goes, because it is about to be inserted again as released. */
void dispatch_delete_held(struct db *d, const struct stored_dispatch *s);
/* superseded or cancelled when it is unfinished, with its request in any case. Returns whether its
 * state changed. */
bool dispatch_end(struct db *d, struct stored_dispatch *s, enum dispatch_state to, int64_t now_ms);

#endif
