/* What runners send back: POST /github/callback (OIDC tokens) and
 * POST /api/v1/dispatches/{id}/jobs (callback tokens).
 *
 * A vendor can report only for itself: who calls is taken from a verified token, what it
 * may report for from the configuration, and what was tested from the dispatch; nothing
 * that the body says about these is believed.
 *
 * Thread: loop, every function. */
#ifndef RUNNERS_RUNNERS_H
#define RUNNERS_RUNNERS_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "http/client.h"
#include "http/server.h"
#include "loop/loop.h"
#include "store/store.h"

struct runners;

/* Adds the routes; until the first runners_configure() they answer 503. callback_key signs
 * callback tokens (model/callback_token.h) and is copied; the rest is borrowed and outlives
 * it. */
struct runners *runners_new(struct loop *l, struct store *s, struct http_client *c,
    struct http_server *h, const void *callback_key, size_t key_bytes);
/* Takes its own reference to the snapshot. Keys of issuers that stay are kept. */
void runners_configure(struct runners *r, struct config *c);
/* Answers what waits for an issuer's keys, stops fetching them, and frees itself once the
 * last report in hand is answered; then on_closed runs, once, not inside this call. Close
 * the server's listening first, the client and the store after. */
void runners_close(struct runners *r, void (*on_closed)(void *owner), void *owner);

/* Totals for /metrics, by answer and over both routes. */
struct runners_counters {
	int64_t n_recorded, n_unchanged, n_ignored;
	int64_t n_bad_request; /* 400 */
	int64_t n_bad_token;   /* 401 */
	int64_t n_denied;      /* 403 */
	int64_t n_conflict;    /* 409 */
	int64_t n_over_rate;   /* 429 */
	int64_t n_busy;        /* 503 */
	int64_t n_key_fetches, n_key_fetch_failures;
};
const struct runners_counters *runners_counters(const struct runners *r);

#endif
