/* What the parts of the dispatcher share. Each part is made by dispatch_new(), reaches the
 * others only through this struct, and tells dispatch_part_closed() once nothing of it is in
 * the air any more. Thread: loop. */
#ifndef DISPATCH_DISPATCH_INTERNAL_H
#define DISPATCH_DISPATCH_INTERNAL_H

#include "dispatch/dispatch.h"

struct planner;
struct sender;
struct deadline_watch;
struct retention;
struct reconciler;
struct scheduler;

struct dispatch {
	struct dispatch_deps deps;
	struct config *config; /* what is begun now is begun with this one */
	struct dispatch_counters counters;
	struct planner *planner;
	struct sender *sender;
	struct deadline_watch *deadlines;
	struct retention *retention;
	struct reconciler *reconciler;
	struct scheduler *scheduler;
	bool is_closing;
	int n_open_parts;
	void (*on_closed)(void *owner);
	void *owner;
};

/* The part has freed itself, or will at the end of this turn. */
void dispatch_part_closed(struct dispatch *d);
/* In [0,1), for jitter. */
double dispatch_random01(void);
/* Whether a store operation that ended with `err` may go well when it is tried again. */
bool dispatch_is_passing(int err);

#endif
