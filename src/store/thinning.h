/* Runners that want only the newest push in each interval (triggers.push.every). The first push
 * after a quiet time goes at once; then the newest at most once an interval, and one that still
 * waits makes way for what comes. Durable: the waiting one is a dispatch in state queued with
 * not_before_ms. */
#ifndef STORE_THINNING_H
#define STORE_THINNING_H

#include "store/stored_dispatch.h"

struct push_slot {
	const char *repository_key, *ref, *head_sha;
	int64_t every_ms, now_ms;
};

/* Finds the time at which the dispatch may go (row->not_before_ms), and ends the one that waited
 * for it until now: superseded. False: a newer push of the branch has the place already, so this
 * one is not to run. Inside a writer's transaction, before the row is written. */
bool thinning_take_slot(struct db *d, struct stored_dispatch *row, const struct push_slot *slot);

#endif
