/* Requests and wishes as outbox rows, written in the transaction that causes them. */
#ifndef STORE_REQUESTS_H
#define STORE_REQUESTS_H

#include "store/stored_dispatch.h"

/* The request that belongs to a queued dispatch: one for all rows of its id. Runners that
 * ask for work themselves (pull) get none. */
void request_put(struct db *d, const struct stored_dispatch *s, int64_t now_ms);
/* Dispatch s has ended before its time. Once no row of its id needs the request any more,
 * an unsent one is dropped; a webhook runner that got one, or may have, gets a cancel. */
void request_drop(struct db *d, const struct stored_dispatch *s, int64_t now_ms);
/* The vendor reports, so it has the request, whatever the sender learnt. */
void request_is_proved(struct db *d, const char *dispatch_id, int64_t now_ms);

/* `closed` for one repository, once for one event. */
struct closed_request {
	const char *target, *target_key;
	const char *dispatch_id; /* the newest one it got */
	const char *repository;  /* upstream's */
	int64_t number, change_id, event_ms;
	const char *delivery_guid, *event_type, *original_action;
};
void request_put_closed(struct db *d, const struct closed_request *c, int64_t now_ms);

/* That the comment of a PR, and its check runs, may be out of date. UPDATE wishes only where something was said
 * or is about to be: nobody wants a comment that says that nothing is known. */
enum wish_kind { WISH_FIRST, WISH_UPDATE };
void comment_wish_pull(
    struct db *d, const char *repository, int64_t number, enum wish_kind kind, int64_t now_ms);
/* For every PR that has this change as its head. A step of cells_moved(), which alone calls it. */
void comment_wish(struct db *d, int64_t change_id, enum wish_kind kind, int64_t now_ms);

/* That an episode's issue may be out of date: RED_ISSUE, whose `number` is the episode. */
void red_issue_wish(struct db *d, int64_t episode, const char *accelerator, int64_t now_ms);
/* A signed notice of an episode to a vendor's own CI, once an event. */
struct notice_request {
	int64_t episode;
	const char *event; /* also its X-Outpost-Event: "red", "reminder", … */
	const char *accelerator, *runner, *url;
	const char *text; /* the body, JSON */
};
void request_put_notice(struct db *d, const struct notice_request *n, int64_t now_ms);

#endif
