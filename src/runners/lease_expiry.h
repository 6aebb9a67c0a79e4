/* Leases run out when their time is over: watches the clock, so that the work goes to another
 * machine without anybody asking. Thread: loop. */
#ifndef RUNNERS_LEASE_EXPIRY_H
#define RUNNERS_LEASE_EXPIRY_H

#include "runners/runners_internal.h"

struct lease_expiry;

/* Looks once, at what was left by the last process. */
struct lease_expiry *lease_expiry_new(struct runners *r);
/* One was granted, and ends so soon unless it is renewed. */
void lease_expiry_note(struct lease_expiry *x, int64_t lease_ms);
/* r->is_stopping: looks no more. */
void lease_expiry_stop(struct lease_expiry *x);
void lease_expiry_free(struct lease_expiry *x); /* NULL is fine */

#endif
