/* The newest regressions and their ends, on upstream's branches and in periodic runs, for the feed. Thread: the query runs
 * on a reader. */
#pragma once

#include "db/store.h"
#include "model/accelerator.h"

struct list_feed_events {
	struct store_query q;
	/* out: newest first, at most FEED_EVENTS_MAX, of accelerators above L1;
	 * list_feed_events_release() */
	struct feed_event list[2 * FEED_EVENTS_MAX];
	size_t n;
};
int store_list_feed_events(struct store *s, struct list_feed_events *q) MUST_CHECK;
void list_feed_events_release(struct list_feed_events *q);
