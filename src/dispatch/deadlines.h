/* Nothing waits for ever: expires dispatches whose deadline passed, and keeps a clock that
 * jumps from expiring, or delaying, anything.
 *
 * Stored due times are wall-clock times, so that they mean something after a restart. When
 * the wall clock moves against the monotonic one by more than five seconds, every stored
 * due time is moved with it before anything else is judged by it or written. Thread: loop. */
#ifndef DISPATCH_DEADLINES_H
#define DISPATCH_DEADLINES_H

#include <stdbool.h>
#include <stdint.h>

struct dispatch;
struct deadline_watch;

struct deadline_watch *deadline_watch_new(struct dispatch *d);
/* A deadline may have come nearer. */
void deadline_watch_ring(struct deadline_watch *dl);
void deadline_watch_close(struct deadline_watch *dl);

/* ---- the clock watch, pure ---- */
#define CLOCK_JUMP_MS INT64_C(5000)
struct clock_watch {
	int64_t offset_ms; /* wall minus monotonic, at the last look */
	bool is_set;
};
/* By how much the wall clock jumped since the last look; 0: it did not. Slow drift, looked
 * at often enough, is no jump. */
int64_t clock_watch_look(struct clock_watch *w, int64_t wall_ms, int64_t mono_ms);

#endif
