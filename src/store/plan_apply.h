/* What commands and plans share: a plan applied, a head released, declined or called off. Inside
 * a writer's transaction, deliveries apart. */
#ifndef STORE_PLAN_APPLY_H
#define STORE_PLAN_APPLY_H

#include "store/changes.h"
#include "store/db.h"

/* last_error of what a `cancel` ended: "cancelled by LOGIN". */
#define CALLED_OFF_BY "cancelled by "

/* o->plan is no PLAN_IGNORE; fills what store_apply_plan() does. */
void plan_apply(struct db *d, struct apply_plan *o);

struct comment_place {
	const char *repository;
	int64_t number;
	int64_t comment_ms, now_ms;
};
/* ok-to-test: held dispatches of that change are queued, and those that were declined begin
 * another round while the PR still has that head. sha NULL: the PR's head as of comment_ms.
 * Returns how many; 0: no such change, or nothing of it is held. */
int change_release(struct db *d, const struct comment_place *at, const char *sha);
/* ok-to-test cancel. For every head that the PR had when the comment was written: what is held,
 * and what was released but has not left yet, is cancelled with "declined by …" as its last
 * error, and what comes later is held again. What has left runs on. *ret_n: how many. False:
 * nothing was held or released. */
bool change_decline(struct db *d, const struct comment_place *at, const char *by, int *ret_n);
/* cancel: what is at work for the PR's head ends with "cancelled by …" as its last error; webhook
 * runners get a `cancel`, and repositories in which nothing is left to run get `closed`. Held ones
 * stay. Returns how many. */
int change_call_off(struct db *d, const struct comment_place *at, const char *by);

#endif
