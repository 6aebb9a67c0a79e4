/* A private key, RSA or elliptic curve, parsed from PEM: TLS serves with one, and GitHub's App
 * signs with one (base/rsa.h).
 *
 * Thread: any; the count is atomic and a key never changes. */
#ifndef BASE_PRIVATE_KEY_H
#define BASE_PRIVATE_KEY_H

#include "base/err.h"
#include "base/secret.h"

struct evp_pkey_st; /* OpenSSL's EVP_PKEY */

struct private_key;
/* From PEM, PKCS#1, SEC 1 or PKCS#8, without a password. ERR_INVALID explains why it cannot be
 * used and holds nothing of the key. */
int private_key_parse(
    const struct secret *pem, struct private_key **ret, struct error *e) MUST_CHECK;
struct private_key *private_key_ref(struct private_key *k);
void private_key_unref(struct private_key *k); /* the last one wipes it; NULL is fine */
/* Borrowed. */
struct evp_pkey_st *private_key_pkey(const struct private_key *k);

#endif
