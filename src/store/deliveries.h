/* Deliveries: GitHub's webhooks, on disk before they are answered. They are planned, ignored or failed, and may be planned
 * again. Only delivery_enter() changes a state.
 *
 * Thread: functions with a connection run on its thread (db/db.h); store_*() functions run on the loop. */
#pragma once

#include "db/counters.h"
#include "db/db.h"
#include "db/record_rows.h"
#include "db/store.h"
#include "model/record_states.h"

/* Stores a delivery that Outpost made itself (a retest, a reconciled head), already planned: vendors get its body. */
void delivery_put_synthetic(struct txn *d, const char *guid, const char *event, const char *action,
    const char *repository, const char *body, size_t body_bytes, int64_t now_ms);
/* The same with the body of another delivery. False: that delivery has no body any more. */
bool delivery_copy(struct txn *d, const char *from_guid, const char *guid, int64_t now_ms);
#define DELIVERY_PLACE_RECORD(F, S)                                                                                    \
	F(S, DELIVERY_STATE, state, NULL, "state", "N_DELIVERY_STATES: there is no such delivery.")                    \
	F(S, BOOL, was_planned, NULL, "planned_ms IS NOT NULL", "Ever, also before a replay.")
RECORD_STRUCT(delivery_place, DELIVERY_PLACE_RECORD);
struct delivery_place delivery_find(const struct view *d, int64_t id);
/* Adds to the total of the deliveries in this state. */
void delivery_count(struct txn *d, enum delivery_state state, int difference);
/* The only way from one state to another; to stay in one repeats planning. error: why; NULL: none. False when there is
 * no such delivery or the step is not legal. */
bool delivery_enter(struct txn *d, int64_t id, enum delivery_state to, const char *error, int64_t now_ms);

/* Intake. Strings and body belong to the caller and stay until done. ERR_BUSY already when three quarters of the queue
 * are full: the rest is for operations that finish started work. */
struct put_delivery {
	struct store_op op;
	const char *guid, *event, *action, *repository;
	const char *body;
	size_t body_bytes;
	int64_t now_ms;
	bool
	    is_passed_on; /* the caller passes it to the planner itself, so the commit does not publish STORE_DELIVERIES */
	int64_t delivery_id; /* out; 0: that GUID was stored already; nothing was written */
};
int store_put_delivery(struct store *s, struct put_delivery *op) MUST_CHECK;

#define DELIVERY_RECORD(F, S)                                                                                          \
	F(S, INT, id, NULL, "id", "The order of arrival.")                                                             \
	F(S, GUID, guid, NULL, "guid", "")                                                                             \
	F(S, TIME, received_ms, "received", "received_ms", "")                                                         \
	F(S, TEXT, event, "event", "event", "")                                                                        \
	F(S, TEXT, action, "action", "action", "")                                                                     \
	F(S, TEXT, repository, "repository", "repository", "")                                                         \
	F(S, TEXT, state, "state", "state", "")                                                                        \
	F(S, INT, body_bytes, "bytes", "body_bytes", "")                                                               \
	F(S, TEXT, error, "error", "error", "")                                                                        \
	F(S, INT, n_attempts, NULL, "n_attempts", "At planning.")
struct delivery {
	RECORD_MEMBERS(DELIVERY_RECORD)
	char *body; /* decompressed, NUL-terminated; NULL in lists, or after retention */
	size_t body_len;
};
RECORD_DECLARE(delivery); /* its JSON: a line of `outpostctl deliveries`, without the GUID */
void delivery_release(struct delivery *d);

/* The next accepted (unplanned) deliveries with id > after_id, bodies included, at most `limit` and about 4 MiB. */
struct next_deliveries {
	struct store_query q;
	int64_t after_id;
	int limit;
	struct delivery *list; /* out; next_deliveries_release() */
	size_t n;
};
int store_next_deliveries(struct store *s, struct next_deliveries *q) MUST_CHECK;
void next_deliveries_release(struct next_deliveries *q);

/* One body by GUID, in any state. ERR_NOT_FOUND: there is none, or its body was dropped. */
struct get_delivery {
	struct store_query q;
	const char *guid;
	struct delivery delivery; /* out; delivery_release() */
};
int store_get_delivery(struct store *s, struct get_delivery *q) MUST_CHECK;

/* Newest first, without bodies. */
struct list_deliveries {
	struct store_query q;
	bool only_failed;
	int limit;
	struct delivery *list; /* out; list_deliveries_release() */
	size_t n;
};
int store_list_deliveries(struct store *s, struct list_deliveries *q) MUST_CHECK;
void list_deliveries_release(struct list_deliveries *q);

/* Planning ends with one of these, or with store_apply_plan() (store/plans.h). */
struct mark_delivery {
	struct store_op op;
	int64_t delivery_id;
	enum delivery_mark { DELIVERY_MARK_IGNORED, DELIVERY_MARK_FAILED, DELIVERY_MARK_RETRY } mark;
	const char *error; /* why */
};
int store_mark_delivery(struct store *s, struct mark_delivery *op) MUST_CHECK;

/* outpostctl replay: a planned, ignored or failed delivery is planned again; its earlier effects are not repeated.
 * ERR_NOT_FOUND, or ERR_CONFLICT when its body was dropped. */
struct replay_delivery {
	struct store_op op;
	const char *guid;
};
int store_replay_delivery(struct store *s, struct replay_delivery *op) MUST_CHECK;

/* ---- deliveries that GitHub could not make ---- */

/* Records the failed attempts, except of deliveries that are stored or recorded already, and drops the record of those that have arrived. */
struct note_deliveries {
	struct store_op op;
	struct failed_delivery { /* the lists: borrowed until done */
		int64_t id, failed_ms;
		const char *guid;
	} * failed;
	const char **arrived;
	size_t n_failed, n_arrived;
	int64_t now_ms;
};
int store_note_deliveries(struct store *s, struct note_deliveries *op) MUST_CHECK;

/* The recorded deliveries that failed after since_ms, are not stored, and are due: the n-th request is n * n pauses before the next. The
 * oldest first. */
#define REDELIVERY_RECORD(F, S)                                                                                        \
	F(S, GUID, guid, NULL, "guid", "")                                                                             \
	F(S, INT, attempt_id, NULL, "attempt_id", "GitHub's number of the failed attempt.")
RECORD_STRUCT(redelivery, REDELIVERY_RECORD);
struct list_redeliveries {
	struct store_query q;
	int64_t now_ms, since_ms, pause_ms;
	int limit;
	struct redelivery *list; /* out; list_redeliveries_release() */
	size_t n;
};
int store_list_redeliveries(struct store *s, struct list_redeliveries *q) MUST_CHECK;
void list_redeliveries_release(struct list_redeliveries *q);

/* Counts one more request for redelivery of `guid`. is_over: GitHub refused it for good, so the record is dropped. */
struct count_redelivery {
	struct store_op op;
	const char *guid;
	bool is_over;
	int64_t now_ms;
	int n_before; /* out: how many were made before this one */
};
int store_count_redelivery(struct store *s, struct count_redelivery *op) MUST_CHECK;
