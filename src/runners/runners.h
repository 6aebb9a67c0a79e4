/* What runners ask and send back: POST /github/callback (OIDC tokens), POST
 * /api/v1/dispatches/{id}/jobs (callback tokens and vendors' own), and what machines that take
 * work say (docs/runner-protocol.md).
 *
 * A vendor can report only for itself: who calls is taken from a verified token, what it
 * may report for from the configuration, and what was tested from the dispatch; nothing
 * that the body says about these is believed.
 *
 * Thread: loop, every function. */
#ifndef RUNNERS_RUNNERS_H
#define RUNNERS_RUNNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "http/client.h"
#include "http/server.h"
#include "logs/logs.h"
#include "loop/loop.h"
#include "store/store.h"

struct credentials;
struct runners;

/* Adds the routes; until the first runners_configure() they answer 503. callback_key signs
 * callback tokens (model/callback_token.h). Everything is borrowed and outlives it. */
struct runners *runners_new(struct loop *l, struct store *s, struct http_client *c,
    struct http_server *h, const struct secret *callback_key);
/* Adds PUT /api/v1/jobs/{id}/log and …/report; `logs` is borrowed until on_closed has run. */
void runners_take_documents(struct runners *r, struct http_server *h, struct logs *logs);
/* Takes its own reference to the snapshot, unless its registry is still to be fetched: then the
 * one before stays, or none. Keys of issuers that stay are kept. */
void runners_configure(struct runners *r, struct config *c);
/* Answers everyone who is held open (machines that wait for work) and holds nobody from now on,
 * so that the server need not wait for them. Call it when the server closes. */
void runners_stop(struct runners *r);
/* runners_stop(), answers what waits for an issuer's keys, stops fetching them, and writes down
 * when tokens were last used; once the last report in hand is answered, on_closed runs, once, not
 * inside this call. Close the server's listening first, the client and the store after. */
void runners_close(struct runners *r, void (*on_closed)(void *owner), void *owner);
/* After it is closed and the store as well, which has it among its subscribers. NULL is fine. */
void runners_free(struct runners *r);

/* Once after the start vendors' tokens are read; until then whoever bears one gets 503. */
bool runners_are_tokens_read(const struct runners *r);
/* For the control socket, which adds and revokes them. */
struct credentials *runners_credentials(struct runners *r);

/* Totals for /metrics, by answer and over all routes. */
struct runners_counters {
	int64_t n_recorded, n_unchanged, n_ignored;
	int64_t n_bad_request; /* 400, 404, 408, 413 */
	int64_t n_bad_token;   /* 401 */
	int64_t n_denied;      /* 403 */
	int64_t n_conflict;    /* 409 */
	int64_t n_over_rate;   /* 429 */
	int64_t n_busy;        /* 503 */
	int64_t
	    n_identity_refused; /* tokens of another repository than the one known by its name */
	int64_t n_key_fetches, n_key_fetch_failures;
	int64_t n_leases_granted, n_leases_returned, n_leases_expired;
};
const struct runners_counters *runners_counters(const struct runners *r);

/* What is so now. */
struct runners_gauges {
	int n_claims_waiting;     /* machines' requests for work that are held open */
	int n_heartbeats_waiting; /* heartbeats that are */
	int n_machines;           /* that were heard of within RUNNERS_LATELY_MS */
	int64_t n_wrong_tokens;   /* in all since the start */
};
enum { RUNNERS_LATELY_MS = 2 * 60 * 1000 };
void runners_read_gauges(const struct runners *r, struct runners_gauges *ret);

#endif
