/* RSA keys and RS256 (RSASSA-PKCS1-v1_5 with SHA-256, RFC 7518 section 3.3): the App's
 * private key signs, an issuer's published key verifies.
 *
 * Thread: any for signing; each public key belongs to one thread at a time. */
#ifndef BASE_RSA_H
#define BASE_RSA_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/secret.h"

enum { RSA_BITS_MIN = 2048, RSA_BITS_MAX = 16384 };

/* Whether `pem` holds a key that rsa_sign() can use. ERR_INVALID: not a private key, not RSA, or
 * of a size out of bounds. The explanation holds nothing of the key. */
int rsa_private_key_check(const struct secret *pem, struct error *e) MUST_CHECK;
/* Appends the signature's bytes. Parses the key for this one signature: GitHub's App signs some
 * six times an hour, and OpenSSL would keep working copies of a parsed key's primes outside of
 * secret memory. ERR_INVALID as above. */
int rsa_sign(const struct secret *pem, const void *p, size_t n, struct buf *signature) MUST_CHECK;

struct rsa_public_key;
/* From a JWK's modulus and exponent: big-endian bytes, as base64url gives them. ERR_INVALID
 * when they are no key that RS256 may be trusted with. */
int rsa_public_key_new(const void *modulus, size_t n_modulus, const void *exponent,
    size_t n_exponent, struct rsa_public_key **ret, struct error *e) MUST_CHECK;
void rsa_public_key_free(struct rsa_public_key *k); /* NULL is fine */
/* 0, or ERR_AUTH when it is not this key's signature of p. */
int rsa_verify(struct rsa_public_key *k, const void *p, size_t n, const void *signature,
    size_t n_signature) MUST_CHECK;

#endif
