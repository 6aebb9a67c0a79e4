/* The keys that an issuer publishes (RFC 7517), as far as RS256 tokens need them. */
#ifndef RUNNERS_JWKS_H
#define RUNNERS_JWKS_H

#include <stddef.h>

#include "base/err.h"
#include "base/rsa.h"

enum { JWKS_BYTES_MAX = 256 * 1024, JWKS_KEYS_MAX = 64 };

struct jwks {
	struct jwk {
		char *kid;
		struct rsa_public_key *key;
	} * keys;
	size_t n;
};

/* Takes the keys that may verify RS256: kty RSA, use sig (or none), alg RS256 (or none), a
 * kid, 2048 bits or more. Others are passed over: issuers publish keys for other purposes
 * beside them. ERR_INVALID: not a key set, or none of its keys is usable; ERR_TOO_BIG: more
 * than JWKS_BYTES_MAX or JWKS_KEYS_MAX. On 0 the caller releases it. */
int jwks_parse(const char *text, size_t n, struct jwks *ret, struct error *e) MUST_CHECK;
void jwks_release(struct jwks *k);
/* Borrowed; NULL: none of that name. */
struct rsa_public_key *jwks_find(const struct jwks *k, const char *kid);

#endif
