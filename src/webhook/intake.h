/* POST /github/webhook: the promise that a delivery which got its 202 is on disk.
 *
 * The order is fixed: headers, signature, one pass over the body, the decision whether it
 * is used, the store, the answer. Bytes whose signature is not good are never parsed.
 *
 * Thread: loop, every function. */
#ifndef WEBHOOK_INTAKE_H
#define WEBHOOK_INTAKE_H

#include <stdint.h>

#include "config/config.h"
#include "http/server.h"
#include "loop/loop.h"
#include "store/store.h"

struct intake;

/* Adds the route; until the first intake_configure() it answers 503. The loop, the store
 * and the server are borrowed and outlive it. */
struct intake *intake_new(struct loop *l, struct store *s, struct http_server *h);
/* Takes its own reference to the snapshot. Deliveries in hand keep what they were checked with. */
void intake_configure(struct intake *in, struct config *c);
/* Called for each signed push to the repository and branch of accelerators.git, before its answer:
 * that is 200 "ignored" unless upstream's own repository is the one. */
void intake_on_registry_push(struct intake *in, void (*on_push)(void *owner), void *owner);
/* After the server and the store are closed, so that nothing is in hand. NULL is fine. */
void intake_free(struct intake *in);

/* Totals for /metrics, by answer. */
struct intake_counters {
	int64_t n_accepted, n_duplicate, n_pong, n_ignored;
	int64_t n_bad_request;   /* 400 */
	int64_t n_bad_signature; /* 401 */
	int64_t n_busy;          /* 503: a queue was full, or the write failed */
	int64_t n_gone;          /* written, but the client had left: no answer */
	int64_t n_bytes_accepted;
};
const struct intake_counters *intake_counters(const struct intake *in);

#endif
