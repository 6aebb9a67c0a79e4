#include "base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/alloc.h"

enum { BLOCK_BYTES = 64 }; /* SHA-256's, FIPS 180-4 */

struct hmac {
	EVP_MD_CTX *inner, *outer; /* have the padded key behind them */
	EVP_MD_CTX *running;
};

/* OpenSSL fails here only when it is out of memory or broken: neither can be handled. */
static void must(int ok)
{
	if (ok != 1) {
		fputs("libcrypto: a digest operation failed\n", stderr);
		abort();
	}
}

static EVP_MD_CTX *keyed_digest(
    uint8_t pad[BLOCK_BYTES], const uint8_t *key, size_t key_bytes, uint8_t filler)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	for (size_t i = 0; i < BLOCK_BYTES; i++)
		pad[i] = (i < key_bytes ? key[i] : 0) ^ filler;
	must(ctx != NULL);
	must(EVP_DigestInit_ex(ctx, EVP_sha256(), NULL));
	must(EVP_DigestUpdate(ctx, pad, BLOCK_BYTES));
	return ctx;
}

void sha256(const void *p, size_t n, uint8_t out[SHA256_BYTES])
{
	must(EVP_Q_digest(NULL, "SHA256", NULL, p, n, out, NULL));
}

/* RFC 2104 by hand: OpenSSL's own object keeps a copy of the key beside the digests of its
 * two pads, and a secret is to lie in memory once. */
struct hmac *hmac_new(const void *key, size_t key_bytes)
{
	struct hmac *h = xcalloc(1, sizeof(*h));
	uint8_t short_key[SHA256_BYTES], pad[BLOCK_BYTES];

	if (key_bytes > BLOCK_BYTES) {
		sha256(key, key_bytes, short_key);
		key = short_key;
		key_bytes = sizeof(short_key);
	}
	h->inner = keyed_digest(pad, key, key_bytes, 0x36);
	h->outer = keyed_digest(pad, key, key_bytes, 0x5c);
	h->running = EVP_MD_CTX_new();
	must(h->running != NULL);
	OPENSSL_cleanse(short_key, sizeof(short_key));
	OPENSSL_cleanse(pad, sizeof(pad));
	hmac_reset(h);
	return h;
}

void hmac_free(struct hmac *h)
{
	if (!h)
		return;
	EVP_MD_CTX_free(h->inner);
	EVP_MD_CTX_free(h->outer);
	EVP_MD_CTX_free(h->running);
	free(h);
}

void hmac_reset(struct hmac *h)
{
	must(EVP_MD_CTX_copy_ex(h->running, h->inner));
}

void hmac_update(struct hmac *h, const void *p, size_t n)
{
	must(EVP_DigestUpdate(h->running, p, n));
}

void hmac_final(struct hmac *h, uint8_t out[SHA256_BYTES])
{
	must(EVP_DigestFinal_ex(h->running, out, NULL));
	must(EVP_MD_CTX_copy_ex(h->running, h->outer));
	must(EVP_DigestUpdate(h->running, out, SHA256_BYTES));
	must(EVP_DigestFinal_ex(h->running, out, NULL));
}

void hmac_sha256(
    const void *key, size_t key_bytes, const void *p, size_t n, uint8_t out[SHA256_BYTES])
{
	struct hmac *h = hmac_new(key, key_bytes);

	hmac_update(h, p, n);
	hmac_final(h, out);
	hmac_free(h);
}

bool equal_constant_time(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}
