/* Compact JSON Web Signatures (RFC 7515 section 3.1): writes them for GitHub's API, and splits received ones
 * into their parts. It verifies no signature: the caller decides whether to believe a token. Thread: any. */
#ifndef BASE_JWT_H
#define BASE_JWT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/keys.h"

enum { JWT_BYTES_MAX = 16 * 1024 };

/* A token signed with RS256. *ret is text, free(). ERR_INVALID as rsa_sign(). */
int jwt_make_rs256(
    const json_t *claims, const struct secret *private_key_pem, char **ret) MUST_CHECK;

struct jwt {
	json_t *header;            /* an object */
	json_t *payload;           /* an object */
	const char *alg;           /* of the header, never NULL; borrowed from it */
	const char *kid;           /* the same; NULL: it has none */
	const char *signing_input; /* borrowed from the token's text */
	size_t n_signing_input;
	uint8_t signature[RSA_BITS_MAX / 8];
	size_t n_signature; /* 0: the token is not signed, which jwt_parse() allows */
};

/* Splits `text` (n bytes, at most JWT_BYTES_MAX): exactly three parts of strict base64url, header and payload
 * JSON objects, `alg` a string. It refuses `crit`, because it knows no extension (RFC 7515 section 4.1.11),
 * and ignores `typ`. The text must outlive the jwt. On 0 the caller owns the jwt, with jwt_release().
 * ERR_INVALID, ERR_TOO_BIG. */
int jwt_parse(const char *text, size_t n, struct jwt *ret, struct error *e) MUST_CHECK;
void jwt_release(struct jwt *t);

#endif
