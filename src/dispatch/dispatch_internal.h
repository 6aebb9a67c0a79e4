/* The struct that the parts of the dispatcher share. dispatch_new() makes each part. A part reaches the others only
 * through this struct, and calls dispatch_part_closed() when its last operation has ended.
 *
 * Thread: loop. Owns: dispatch_new() and dispatch_free(). */
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
	struct config *config; /* for work that begins now */
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

/* The part has freed itself, or frees itself at the end of this turn. */
void dispatch_part_closed(struct dispatch *d);

#endif
