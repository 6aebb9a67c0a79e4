/* The requests of runners: POST /github/callback (OIDC tokens), POST /api/v1/dispatches/{id}/jobs (callback tokens and
 * vendors' own), and those of machines that claim work (docs/runner-protocol.md).
 *
 * A vendor can report only for itself: a verified token names the caller, the configuration lists the
 * accelerators that the caller may report for, and the dispatch names the tested commit. The body of a request
 * cannot change any of these.
 *
 * Thread: loop, every function. */
#pragma once

#include "config/config.h"
#include "db/store.h"
#include "http/client.h"
#include "http/server.h"
#include "logs/logs.h"
#include "loop/loop.h"

/* Adds the routes; until the first runners_configure() they answer 503. callback_key signs callback tokens
 * (model/client_payload.h). Borrows all arguments, which must outlive the runners. */
struct runners *runners_new(
    struct loop *l, struct store *s, struct http_client *c, struct http_server *h, const struct secret *callback_key);
/* Adds PUT /api/v1/jobs/{id}/log and …/report; `logs` is borrowed until on_closed has run. */
void runners_accept_documents(struct runners *r, struct http_server *h, struct logs *logs);
/* Takes its own reference to the snapshot. A snapshot whose registry is not fetched yet is not used: the one before
 * stays, or none. Keys of issuers that stay are kept. */
void runners_configure(struct runners *r, struct config *c);
/* Answers all requests that are held open (machines that wait for work) and holds none from now on, so that the server
 * need not wait for them. Call it when the server closes. */
void runners_stop(struct runners *r);
/* Does runners_stop(), answers the requests that wait for an issuer's keys, stops fetching keys, and writes the last
 * uses of tokens. After the answer to the last report, on_closed runs once, not inside this call. Close the
 * server's listening sockets before, and the client and the store after. */
void runners_close(struct runners *r, void (*on_closed)(void *owner), void *owner);
/* Call it after on_closed, and after the store is closed too, because the store notifies it. NULL is fine. */
void runners_free(struct runners *r);

/* For the control socket, which adds and revokes them. Until they are read after the start, a request with one is answered
 * 503 (credentials_are_read()). */
struct credentials *runners_credentials(struct runners *r);

/* Totals for /metrics, by answer and over all routes. */
struct runners_counters {
	int64_t n_recorded, n_unchanged, n_ignored;
	int64_t n_bad_request;      /* 400, 404, 408, 413 */
	int64_t n_bad_token;        /* 401 */
	int64_t n_denied;           /* 403 */
	int64_t n_conflict;         /* 409 */
	int64_t n_over_rate;        /* 429 */
	int64_t n_busy;             /* 503 */
	int64_t n_identity_refused; /* tokens of a repository with other ids than the recorded ones */
	int64_t n_key_fetches, n_key_fetch_failures;
	int64_t n_leases_granted, n_leases_returned, n_leases_expired;
};
const struct runners_counters *runners_counters(const struct runners *r);

/* Current values for /metrics. */
struct runners_gauges {
	int n_claims_waiting;     /* machines' requests for work that are held open */
	int n_heartbeats_waiting; /* heartbeats that are held open */
	int n_machines;           /* that sent a request within RUNNERS_LATELY_MS */
	int64_t n_wrong_tokens;   /* since the start */
};
enum { RUNNERS_LATELY_MS = 2 * 60 * 1000 };
void runners_read_gauges(const struct runners *r, struct runners_gauges *ret);
