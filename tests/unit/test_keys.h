/* Keys for tests, made when the test runs: no private key lies in the repository. */
#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "secret_of.h"

/* One RSA key of 2048 bits for the whole program, because making one takes a third of a second under the sanitizers. The caller
 * frees its reference. */
static inline EVP_PKEY *shared_rsa_key(void)
{
	static EVP_PKEY *key;

	if (!key)
		key = EVP_RSA_gen(2048);
	if (!key || !EVP_PKEY_up_ref(key))
		abort();
	return key;
}

static inline char *pem_text(BIO *bio)
{
	char *p;
	long n = BIO_get_mem_data(bio, &p);
	char *text = xstrndup(p, (size_t)n);

	BIO_free(bio);
	return text;
}

static inline char *pem_pkcs8(EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());

	PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
	return pem_text(bio);
}

static inline char *pem_pkcs1(EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());

	PEM_write_bio_PrivateKey_traditional(bio, key, NULL, NULL, 0, NULL, NULL);
	return pem_text(bio);
}

static inline char *pem_encrypted(EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());

	PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_128_cbc(), "pass", 4, NULL, NULL);
	return pem_text(bio);
}

static inline char *pem_public(EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());

	PEM_write_bio_PUBKEY(bio, key);
	return pem_text(bio);
}

/* A key for TLS and signatures, from PEM; NULL: it cannot be used, and *e has the reason. */
static inline struct private_key *private_key_of(const char *pem, struct error *e)
{
	struct secret *secret = secret_of(pem);
	struct private_key *key;

	if (private_key_parse(secret, &key, e))
		key = NULL;
	secret_unref(secret);
	return key;
}

/* A JWK's n or e ("n", "e"), big-endian. Returns the length. */
static inline size_t key_number(EVP_PKEY *key, const char *which, unsigned char *out, size_t max)
{
	BIGNUM *bn = NULL;
	int n;

	EVP_PKEY_get_bn_param(key, which, &bn);
	n = BN_num_bytes(bn);
	if ((size_t)n > max)
		abort();
	BN_bn2bin(bn, out);
	BN_free(bn);
	return (size_t)n;
}
