/* The issuers' published keys, fetched when a token first needs them and kept. A token can
 * ask for a fetch only by naming an unknown key, and not more often than the intervals
 * below, so a stream of bad tokens is no stream of requests to the issuer. While an issuer
 * is down its old keys stay good.
 *
 * Thread: loop. */
#ifndef RUNNERS_ISSUER_KEYS_H
#define RUNNERS_ISSUER_KEYS_H

#include "config/config.h"
#include "http/client.h"
#include "loop/loop.h"
#include "runners/jwks.h"
#include "runners/runners.h"

enum {
	ISSUER_KEYS_REFRESH_MS = 60 * 60 * 1000, /* in the background, once in use */
	ISSUER_KEYS_INTERVAL_MS = 60 * 1000,     /* after a fetch, for an unknown key */
	ISSUER_KEYS_RETRY_MS = 5 * 1000,         /* after a fetch that failed */
};

struct issuer_keys;

/* Loop and client are borrowed; counts into *counters. */
struct issuer_keys *issuer_keys_new(
    struct loop *l, struct http_client *c, struct runners_counters *counters);
/* Follows the snapshot's issuers; an issuer whose name and URL stay keeps its keys. */
void issuer_keys_configure(struct issuer_keys *k, const struct config *c);
/* Borrowed until the loop's next turn; NULL: unknown. An oidc_find_key_fn. */
struct rsa_public_key *issuer_keys_find(const char *issuer, const char *kid, void *keys);

struct key_wait {
	void (*done)(struct key_wait *w); /* the fetch ended, well or not: look again */
	struct key_wait *next;
};
/* A key of `issuer` was not found. 0: a fetch is under way, done runs once, on the loop,
 * never inside this call. ERR_NOT_FOUND: fetched lately, there is no such key. ERR_BUSY:
 * the issuer could not be asked lately, or too many wait. ERR_CLOSING. Else w stays unused. */
int issuer_keys_await(struct issuer_keys *k, const char *issuer, struct key_wait *w) MUST_CHECK;
/* Ends every fetch (the waiters' done runs), then frees itself and calls on_closed, once,
 * not inside this call. */
void issuer_keys_close(struct issuer_keys *k, void (*on_closed)(void *owner), void *owner);

#endif
