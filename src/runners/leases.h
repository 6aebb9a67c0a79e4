/* POST /api/v1/runner/leases/{lease}/renew and …/return: heartbeats, which wait so that a cancel
 * reaches the machine at once, and work that is handed back.
 *
 * Thread: loop, every function. */
#ifndef RUNNERS_LEASES_H
#define RUNNERS_LEASES_H

#include "runners/runners_internal.h"

struct leases;

/* Adds the routes. r is borrowed. */
struct leases *leases_new(struct runners *r, struct http_server *h);
/* STORE_LEASES was told: those who wait and whose lease ended are answered. */
void leases_on_ended(struct leases *l);
/* Those whose token is not valid any more are answered 401. */
void leases_on_tokens(struct leases *l);
/* Everyone who waits is told that the lease is active; r->is_stopping is set. */
void leases_stop(struct leases *l);
int leases_n_waiting(const struct leases *l);
/* After leases_stop() and the last operation. NULL is fine. */
void leases_free(struct leases *l);

#endif
