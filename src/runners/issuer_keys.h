/* The issuers' published keys, fetched when a token first needs them and kept. Only a token with an unknown key causes
 * a fetch, and not more often than the intervals below, so many bad tokens do not cause many requests to the
 * issuer. While an issuer is down its old keys stay in use.
 *
 * Thread: loop; jwks_ functions: any, pure. */
#pragma once

#include "runners/runners.h"

/* ---- the keys that an issuer publishes (RFC 7517), as far as RS256 tokens need them ---- */

enum { JWKS_BYTES_MAX = 256 * 1024, JWKS_KEYS_MAX = 64 };

struct jwks {
	struct jwk {
		char *kid;
		struct rsa_public_key *key;
	} * keys;
	size_t n;
};

/* Reads the keys that may verify RS256: kty RSA, use sig (or none), alg RS256 (or none), a kid, 2048 bits or more.
 * Skips other keys, because issuers publish keys for other purposes too. ERR_INVALID: not a key set, or none of
 * its keys is usable; ERR_TOO_BIG: more than JWKS_BYTES_MAX or JWKS_KEYS_MAX. On 0 the caller releases it. */
int jwks_parse(const char *text, size_t n, struct jwks *ret, struct error *e) MUST_CHECK;
void jwks_release(struct jwks *k);
/* The key of that name, borrowed; NULL: none. */
struct rsa_public_key *jwks_find(const struct jwks *k, const char *kid);

enum {
	ISSUER_KEYS_REFRESH_MS = 60 * 60 * 1000, /* in the background, once in use */
	ISSUER_KEYS_INTERVAL_MS = 60 * 1000,     /* after a fetch, for an unknown key */
	ISSUER_KEYS_RETRY_MS = 5 * 1000,         /* after a fetch that failed */
};

/* Loop and client are borrowed; counts into *counters. */
struct issuer_keys *issuer_keys_new(struct loop *l, struct http_client *c, struct runners_counters *counters);
/* Follows the snapshot's issuers; an issuer whose name and URL stay keeps its keys. */
void issuer_keys_configure(struct issuer_keys *k, const struct config *c);
/* Borrowed until the loop's next turn; NULL: unknown. An oidc_find_key_fn. */
struct rsa_public_key *issuer_keys_find(const char *issuer, const char *kid, void *keys);

struct key_wait {
	void (*done)(struct key_wait *w); /* the fetch succeeded or failed: look again */
	struct key_wait *next;
};
/* A key of `issuer` was not found. 0: a fetch is under way, and done runs once, on the loop, never inside this call.
 * An error: w stays unused. ERR_NOT_FOUND: the keys were fetched lately, and the key is not among them.
 * ERR_BUSY: a fetch failed lately, or too many requests wait. ERR_CLOSING. */
int issuer_keys_await(struct issuer_keys *k, const char *issuer, struct key_wait *w) MUST_CHECK;
/* Ends every fetch, after which each done runs. Then frees itself and calls on_closed once, not inside this call. */
void issuer_keys_close(struct issuer_keys *k, void (*on_closed)(void *owner), void *owner);
