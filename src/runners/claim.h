/* POST /api/v1/runner/claim: machines ask for work and wait for it, up to CLAIM_WAIT_MAX_S.
 *
 * A machine that waits costs its connection and a few hundred bytes: nothing is asked of the
 * store on its behalf until something is queued. One whose client left is forgotten and gets
 * nothing; if it left while it was being looked for, what was found goes to whoever asks with the
 * same claim_id, else back to the queue.
 *
 * Thread: loop, every function. */
#ifndef RUNNERS_CLAIM_H
#define RUNNERS_CLAIM_H

#include "runners/runners_internal.h"

enum { CLAIMS_PER_MACHINE_MAX = 16 }; /* that wait at the same time */

struct claims;

/* Adds the route. r is borrowed. */
struct claims *claims_new(struct runners *r, struct http_server *h);
/* r->config is another one: labels, limits, who takes part. */
void claims_configure(struct claims *c);
/* STORE_QUEUE was told. */
void claims_on_queue(struct claims *c);
/* Those whose token is not valid any more are answered 401. */
void claims_on_tokens(struct claims *c);
/* Everyone who waits is answered 503; r->is_stopping is set. */
void claims_stop(struct claims *c);
int claims_n_waiting(const struct claims *c);
/* After claims_stop() and the last look. NULL is fine. */
void claims_free(struct claims *c);

#endif
