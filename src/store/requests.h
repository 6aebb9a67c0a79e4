/* Outgoing effects as outbox rows, written in the transaction that causes them: requests to vendors, and requests to
 * update a comment, check runs or an issue.
 *
 * Thread: all functions run inside a writer's transaction. */
#pragma once

#include "store/dispatches.h"
#include "store/outbox.h"

/* The request of a queued dispatch: one for all rows with its id. Runners that claim their work (pull) get none. `offer`
 * (store/outbox.h) may claim it at once; NULL: it is due. */
void request_put(struct txn *d, const struct stored_dispatch *s, struct outbox_offer *offer, int64_t now_ms);
/* Dispatch s has ended before its time. Once no row with its id needs the request any more, an unsent request is dropped; a
 * webhook runner that got one, or may have, gets a cancel. */
void request_drop(struct txn *d, const struct stored_dispatch *s, int64_t now_ms);
/* The vendor reports, so it has the request, even if the sender got no answer. */
void request_is_proved(struct txn *d, const char *dispatch_id, int64_t now_ms);

/* `closed` for the repository q.target, once for each event of the pull request q.number of `repository` (upstream's). Sets
 * the kind, key, lane and action of q; q.dispatch_id is the newest dispatch that the target got. */
void request_put_closed(
    struct txn *d, struct outbox_request q, const char *repository, int64_t event_ms, int64_t now_ms);

/* The comment of a pull request, and its check runs, may be out of date. COMMENT_UPDATE does nothing when neither was
 * written or requested before, because a comment without results is useless. */
enum comment_request { COMMENT_CREATE, COMMENT_UPDATE };
void comment_request_pull(
    struct txn *d, const char *repository, int64_t number, enum comment_request kind, int64_t now_ms);
/* For every pull request with this change as its head. A step of cells_moved(), which alone calls it. */
void comment_request(struct txn *d, int64_t change_id, enum comment_request kind, int64_t now_ms);

/* An episode's issue may be out of date: RED_ISSUE, whose `number` is the episode. */
void red_issue_request(struct txn *d, int64_t episode, const char *accelerator, int64_t now_ms);
/* A signed notice of an episode to a vendor's own CI, once for each event. */
struct notice_request {
	int64_t episode;
	const char *event; /* also its X-Outpost-Event: "red", "reminder", … */
	const char *accelerator, *runner, *url;
	const char *text; /* the body, JSON */
};
void request_put_notice(struct txn *d, const struct notice_request *n, int64_t now_ms);
