/* Deliveries: what GitHub sent, on disk before it is answered. */
#ifndef STORE_DELIVERIES_H
#define STORE_DELIVERIES_H

#include "model/plan.h"
#include "store/store.h"

/* Intake. Strings and body belong to the caller and stay until done. */
struct put_delivery {
	struct store_op op;
	const char *guid, *event, *action, *repository;
	const char *body;
	size_t body_bytes;
	int64_t now_ms;
	bool is_duplicate; /* out: that GUID was there already; nothing was written */
};
int store_put_delivery(struct store *s, struct put_delivery *op) MUST_CHECK;

struct delivery {
	int64_t id; /* order of arrival */
	char *guid, *event, *action, *repository, *state, *error;
	int64_t received_ms, body_bytes;
	int n_attempts; /* at planning */
	char *body;     /* decompressed, NUL-terminated; NULL in lists, or after retention */
	size_t body_len;
};
void delivery_release(struct delivery *d);

/* The next accepted (unplanned) deliveries with id > after_id, bodies included, at most
 * `limit` and about 4 MiB. */
struct next_deliveries {
	struct store_query q;
	int64_t after_id;
	int limit;
	struct delivery *list; /* out; next_deliveries_release() */
	size_t n;
};
int store_next_deliveries(struct store *s, struct next_deliveries *q) MUST_CHECK;
void next_deliveries_release(struct next_deliveries *q);

/* One body by GUID, whatever its state. ERR_NOT_FOUND: none, or its body was dropped. */
struct get_delivery {
	struct store_query q;
	const char *guid;
	struct delivery delivery; /* out; release */
};
int store_get_delivery(struct store *s, struct get_delivery *q) MUST_CHECK;

/* Newest first, without bodies. */
struct list_deliveries {
	struct store_query q;
	bool only_failed;
	int limit;
	struct delivery *list; /* out */
	size_t n;
};
int store_list_deliveries(struct store *s, struct list_deliveries *q) MUST_CHECK;
void list_deliveries_release(struct list_deliveries *q);

/* Planning ends with one of these, or with store_apply_plan() (store/changes.h). */
struct mark_delivery {
	struct store_op op;
	int64_t delivery_id;
	enum { DELIVERY_MARK_IGNORED, DELIVERY_MARK_FAILED, DELIVERY_MARK_RETRY } mark;
	const char *error; /* why */
};
int store_mark_delivery(struct store *s, struct mark_delivery *op) MUST_CHECK;

/* outpostctl replay: a planned, ignored or failed delivery is planned again. What it had
 * done before is not done twice. ERR_NOT_FOUND, or ERR_CONFLICT when its body is gone. */
struct replay_delivery {
	struct store_op op;
	const char *guid;
};
int store_replay_delivery(struct store *s, struct replay_delivery *op) MUST_CHECK;

/* Small durable facts: cursors, counters of redelivery requests. value NULL deletes. */
struct put_setting {
	struct store_op op;
	const char *key, *value;
};
int store_put_setting(struct store *s, struct put_setting *op) MUST_CHECK;
struct get_setting {
	struct store_query q;
	const char *key;
	char *value; /* out; free(); NULL: unset */
};
int store_get_setting(struct store *s, struct get_setting *q) MUST_CHECK;

/* Which of these GUIDs are on disk? known[i] is set for guids[i]. */
struct known_guids {
	struct store_query q;
	const char *const *guids;
	size_t n;
	bool *known; /* caller's array */
};
int store_known_guids(struct store *s, struct known_guids *q) MUST_CHECK;

/* One more request for redelivery of `guid`; out: how many were made before this one. One
 * that was counted and then refused for the moment is taken back. */
struct count_redelivery {
	struct store_op op;
	const char *guid;
	bool is_taken_back;
	int64_t now_ms;
	int n_before; /* out */
};
int store_count_redelivery(struct store *s, struct count_redelivery *op) MUST_CHECK;

/* Drops bodies and rows past their retention, a bounded piece at a time; out: whether
 * more is left. */
struct apply_retention {
	struct store_op op;
	int64_t deliveries_before_ms, results_before_ms, failures_before_ms, days_before_ms;
	bool has_more;
};
int store_apply_retention(struct store *s, struct apply_retention *op) MUST_CHECK;

#endif
