/* POST /github/webhook. It keeps the promise that a delivery is on disk before its 202.
 *
 * The order is fixed: check the headers and the signature, scan the body once, decide whether it is used, write it to
 * the store, answer. A body without a valid signature is never parsed.
 *
 * Thread: loop, every function. Owns: the caller, with intake_free(). */
#pragma once

#include "config/config.h"
#include "db/store.h"
#include "http/server.h"
#include "loop/loop.h"
#include "store/deliveries.h"

/* ---- X-Hub-Signature-256: proves that GitHub sent the body; checked before the body is parsed ---- */

/* "sha256=" and 64 hexadecimal digits. ERR_INVALID: absent (NULL) or of another form. */
int signature_parse(const char *header, uint8_t ret[SHA256_BYTES]) MUST_CHECK;
/* True: `signature` is the signature of the body with h's key. Resets h first; compares in constant time. */
bool signature_is_good(struct hmac *h, const void *body, size_t n, const uint8_t signature[SHA256_BYTES]);

/* Adds the route; until the first intake_configure() it answers 503. The loop, the store
 * and the server are borrowed and outlive it. */
struct intake *intake_new(struct loop *l, struct store *s, struct http_server *h);
/* Takes its own reference to the snapshot. Deliveries that have been checked are not checked again. */
void intake_configure(struct intake *in, struct config *c);
/* Called for each signed push to the repository and branch of accelerators.git, before its answer:
 * that is 200 "ignored" unless upstream's own repository is the one. */
void intake_on_registry_push(struct intake *in, void (*on_push)(void *owner), void *owner);
/* Called for each new delivery when it is on disk, after its answer, while this node has the planner's seat. on_accepted may take guid,
 * event and body (free()), and sets what it took to NULL. Without this call, and without the seat, the store's topic STORE_DELIVERIES
 * announces the delivery with its commit. */
void intake_on_accepted(struct intake *in, void (*on_accepted)(struct delivery *d, void *owner), void *owner);
/* Call it after the server and the store are closed, so that no delivery is being written. NULL is fine. */
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
