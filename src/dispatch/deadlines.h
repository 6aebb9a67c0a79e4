/* Work that is due by the wall clock: expires dispatches whose deadline has passed, keeps a clock that jumps from expiring
 * or delaying anything, and deletes old data.
 *
 * Stored due times are wall-clock times, so that they mean something after a restart. When the wall clock jumps
 * (loop/bell.h), every stored due time moves with it before anything else is judged by it or written.
 *
 * Thread: loop. Owns: struct dispatch, until deadline_watch_close() and retention_close(). */
#ifndef DISPATCH_DEADLINES_H
#define DISPATCH_DEADLINES_H

struct dispatch;
struct deadline_watch;

struct deadline_watch *deadline_watch_new(struct dispatch *d);
/* A deadline may have come nearer. */
void deadline_watch_ring(struct deadline_watch *dl);
/* Frees itself when the store has returned its operation, and calls dispatch_part_closed(). */
void deadline_watch_close(struct deadline_watch *dl);

/* ---- retention: deletes once a day the data that is older than the retention, in small pieces, so that other work does
 * not wait ---- */
struct retention;

struct retention *retention_new(struct dispatch *d);
/* The wall clock may be wrong: deletes nothing for a day. */
void retention_postpone(struct retention *r);
/* Frees itself when the store has returned its operation, and calls dispatch_part_closed(). */
void retention_close(struct retention *r);

#endif
