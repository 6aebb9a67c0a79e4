/* Private keys from PEM (RSA or elliptic curve), which TLS serves with, and RS256 (RSASSA-PKCS1-v1_5 with
 * SHA-256, RFC 7518 section 3.3): the App's private key signs, an issuer's published key verifies.
 *
 * Thread: any for a private key, which never changes. Each public key belongs to one thread at a time. Owns: the
 * caller, with the free functions. */
#pragma once

#include "base/secret.h"

struct evp_pkey_st; /* OpenSSL's EVP_PKEY */

struct private_key;
/* From PEM, PKCS#1, SEC 1 or PKCS#8, without a password. ERR_INVALID explains why it cannot be
 * used and holds nothing of the key. */
int private_key_parse(const struct secret *pem, struct private_key **ret, struct error *e) MUST_CHECK;
void private_key_free(struct private_key *k); /* wipes it; NULL is fine */
/* Borrowed. */
struct evp_pkey_st *private_key_pkey(const struct private_key *k);

/* ---- RS256 ---- */
enum { RSA_BITS_MIN = 2048, RSA_BITS_MAX = 16384 };

/* Checks that rsa_sign() can use the key. ERR_INVALID: not a private key, not RSA, or of a size out of bounds. The
 * explanation has nothing of the key. */
int rsa_private_key_check(const struct secret *pem, struct error *e) MUST_CHECK;
/* Appends the signature's bytes. Parses the key for this one signature, because OpenSSL would keep copies of a parsed
 * key's primes outside of secret memory; the App signs about six times an hour. ERR_INVALID as above. */
int rsa_sign(const struct secret *pem, const void *p, size_t n, struct buf *signature) MUST_CHECK;

struct rsa_public_key;
/* From a JWK's modulus and exponent: big-endian bytes, as base64url gives them. ERR_INVALID: not a key that is
 * safe for RS256. Owns: the caller, with rsa_public_key_free(). */
int rsa_public_key_new(const void *modulus, size_t n_modulus, const void *exponent, size_t n_exponent,
    struct rsa_public_key **ret, struct error *e) MUST_CHECK;
void rsa_public_key_free(struct rsa_public_key *k); /* NULL is fine */
/* 0, or ERR_AUTH: not this key's signature of p[0..n). */
int rsa_verify(struct rsa_public_key *k, const void *p, size_t n, const void *signature, size_t n_signature) MUST_CHECK;

/* ---- JSON Web Signatures ----
 *
 * Compact JSON Web Signatures (RFC 7515 section 3.1): writes them for GitHub's API, and splits received ones
 * into their parts. It verifies no signature: the caller decides whether to believe a token. Thread: any. */

enum { JWT_BYTES_MAX = 16 * 1024 };

/* A token signed with RS256. *ret is text, free(). ERR_INVALID as rsa_sign(). */
int jwt_make_rs256(const json_t *claims, const struct secret *private_key_pem, char **ret) MUST_CHECK;

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

/* Splits `text` (n bytes, at most JWT_BYTES_MAX): exactly three parts of strict base64url, header and payload JSON
 * objects, `alg` a string. It refuses `crit`, because it knows no extension (RFC 7515 section 4.1.11), and ignores
 * `typ`. The text must outlive the jwt. On 0 the caller owns the jwt, with jwt_release(). ERR_INVALID, ERR_TOO_BIG. */
int jwt_parse(const char *text, size_t n, struct jwt *ret, struct error *e) MUST_CHECK;
void jwt_release(struct jwt *t);
