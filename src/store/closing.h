/* How dispatches of a pull request end or are released: a closed pull request, a draft, a lost label, and the commands
 * ok-to-test, ok-to-test cancel and cancel.
 *
 * Thread: all functions run inside a writer's transaction. */
#pragma once

#include "db/db.h"
#include "model/plan.h"

struct closing {
	struct txn *d;
	const struct plan *plan;
	/* The delivery whose body is forwarded to runs of the same pull request. Other runs, and all of them when this is
	 * NULL, get a copy of the body that they got before. */
	const char *guid;
	int64_t now_ms;
};
/* Sends `closed` to every repository that got a request for any head of the pull request and no `closed` since. Returns
 * to how many. */
int closing_send(struct closing *c);
/* Records which accelerators the pull request wants: those of plan->wants, and those that another open pull request with
 * this head wants. Only their failures run again. */
void closing_note_needed(struct closing *c, int64_t change_id);
/* Ends the unfinished dispatches of plan->drops, except those that another open pull request with this head still wants.
 * If the plan says so, a repository in which nothing is left to run gets `closed`. Returns how many repositories got it. */
int closing_drop(struct closing *c, int64_t change_id);

struct comment_place {
	const char *repository;
	int64_t number;
	int64_t comment_ms, now_ms;
};
/* ok-to-test: queues the held dispatches of that change, and begins another round for declined ones while the pull
 * request still has that head. sha NULL: the head as of comment_ms. Returns how many; 0: the change is not known, or
 * nothing of it is held. */
int change_release(struct txn *d, const struct comment_place *at, const char *sha);
/* ok-to-test cancel: for every head that the pull request had when the comment was written, held dispatches and released
 * ones that were not sent yet end as declined by that person. Later ones are held again. Dispatches that were sent keep
 * running. *ret_n: how many ended. False: nothing was held or released. */
bool change_decline(struct txn *d, const struct comment_place *at, const char *by, int *ret_n);
/* cancel: the unfinished dispatches of the pull request's head end as cancelled by that person. Webhook runners get a
 * `cancel`, and repositories in which nothing is left to run get `closed`. Held dispatches stay. Returns how many ended. */
int change_call_off(struct txn *d, const struct comment_place *at, const char *by);
