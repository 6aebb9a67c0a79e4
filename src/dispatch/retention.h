/* Once a day, what is older than the retention is dropped, a small piece at a time, so that
 * nobody waits for it. Thread: loop. */
#ifndef DISPATCH_RETENTION_H
#define DISPATCH_RETENTION_H

struct dispatch;
struct retention;

struct retention *retention_new(struct dispatch *d);
/* The wall clock is in doubt: nothing is dropped for a day. */
void retention_postpone(struct retention *r);
void retention_close(struct retention *r);

#endif
