/* Periodic runs (triggers.schedule): at its time upstream's head and that of the vendor's own
 * code are read, and what they are becomes a `nightly` change for that accelerator's runners.
 *
 * The wall clock is what counts, and it is looked at every few seconds, so a clock that is put
 * forward or back is met soon. What is due is a row before anything is asked for: a daemon that
 * dies goes on with it. Thread: loop. */
#ifndef DISPATCH_SCHEDULER_H
#define DISPATCH_SCHEDULER_H

struct dispatch;
struct scheduler;

struct scheduler *scheduler_new(struct dispatch *d);
/* Schedules may have changed, or a run was asked for. */
void scheduler_ring(struct scheduler *s);
void scheduler_close(struct scheduler *s);

#endif
