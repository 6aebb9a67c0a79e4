#include "base/hash.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/alloc.h"

struct hmac {
	EVP_MAC_CTX *ctx;
};

/* OpenSSL fails here only when it is out of memory or broken: neither can be handled. */
static void must(int ok)
{
	if (ok != 1) {
		fputs("libcrypto: a digest operation failed\n", stderr);
		abort();
	}
}

void sha256(const void *p, size_t n, uint8_t out[SHA256_BYTES])
{
	must(EVP_Q_digest(NULL, "SHA256", NULL, p, n, out, NULL));
}

struct hmac *hmac_new(const void *key, size_t key_bytes)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	    OSSL_PARAM_construct_end(),
	};
	struct hmac *h = xcalloc(1, sizeof(*h));
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);

	must(mac != NULL);
	h->ctx = EVP_MAC_CTX_new(mac);
	EVP_MAC_free(mac);
	must(h->ctx != NULL);
	/* A NULL key would mean "keep the key"; an empty one is still a key. */
	must(EVP_MAC_init(h->ctx, key_bytes ? key : (const void *)"", key_bytes, params));
	return h;
}

void hmac_free(struct hmac *h)
{
	if (!h)
		return;
	EVP_MAC_CTX_free(h->ctx);
	free(h);
}

void hmac_reset(struct hmac *h)
{
	must(EVP_MAC_init(h->ctx, NULL, 0, NULL));
}

void hmac_update(struct hmac *h, const void *p, size_t n)
{
	must(EVP_MAC_update(h->ctx, p, n));
}

void hmac_final(struct hmac *h, uint8_t out[SHA256_BYTES])
{
	size_t n;

	must(EVP_MAC_final(h->ctx, out, &n, SHA256_BYTES));
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
