#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

enum { BLOCK_BYTES = 64 }; /* of SHA-256: FIPS 180-4 */

struct hmac {
	EVP_MD_CTX *inner, *outer; /* each has hashed its padded key */
	EVP_MD_CTX *running;
};

/* OpenSSL fails here only if memory runs out or the library is broken; neither can be handled. */
static void digest_must_succeed(int ok)
{
	if (ok != 1) {
		fputs("libcrypto: a digest operation failed\n", stderr);
		abort();
	}
}

static EVP_MD_CTX *keyed_digest(uint8_t pad[BLOCK_BYTES], const uint8_t *key, size_t key_bytes, uint8_t filler)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	for (size_t i = 0; i < BLOCK_BYTES; i++)
		pad[i] = (i < key_bytes ? key[i] : 0) ^ filler;
	digest_must_succeed(ctx != NULL);
	digest_must_succeed(EVP_DigestInit_ex(ctx, EVP_sha256(), NULL));
	digest_must_succeed(EVP_DigestUpdate(ctx, pad, BLOCK_BYTES));
	return ctx;
}

void sha256(const void *p, size_t n, uint8_t out[SHA256_BYTES])
{
	digest_must_succeed(EVP_Q_digest(NULL, "SHA256", NULL, p, n, out, NULL));
}

void sha256_of_parts(const struct digest_part *parts, size_t n_parts, uint8_t out[SHA256_BYTES])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	digest_must_succeed(ctx != NULL);
	digest_must_succeed(EVP_DigestInit_ex(ctx, EVP_sha256(), NULL));
	for (size_t i = 0; i < n_parts; i++)
		digest_must_succeed(EVP_DigestUpdate(ctx, parts[i].p, parts[i].n));
	digest_must_succeed(EVP_DigestFinal_ex(ctx, out, NULL));
	EVP_MD_CTX_free(ctx);
}

int sha256_file(int fd, uint8_t out[SHA256_BYTES])
{
	enum { PIECE_BYTES = 256 * 1024 };
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	char *piece = xmalloc(PIECE_BYTES);
	ssize_t n;

	digest_must_succeed(ctx != NULL);
	digest_must_succeed(EVP_DigestInit_ex(ctx, EVP_sha256(), NULL));
	for (off_t at = 0; (n = pread(fd, piece, PIECE_BYTES, at)) > 0 || (n < 0 && errno == EINTR);
	     at += n > 0 ? n : 0)
		if (n > 0)
			digest_must_succeed(EVP_DigestUpdate(ctx, piece, (size_t)n));
	digest_must_succeed(EVP_DigestFinal_ex(ctx, out, NULL));
	EVP_MD_CTX_free(ctx);
	free(piece);
	return n < 0 ? ERR_IO : 0;
}

/* RFC 2104 by hand: OpenSSL's own object keeps another copy of the key, and a secret must be in memory only once. */
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
	digest_must_succeed(h->running != NULL);
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

void hmac_reset(struct hmac *h) { digest_must_succeed(EVP_MD_CTX_copy_ex(h->running, h->inner)); }

void hmac_update(struct hmac *h, const void *p, size_t n) { digest_must_succeed(EVP_DigestUpdate(h->running, p, n)); }

void hmac_final(struct hmac *h, uint8_t out[SHA256_BYTES])
{
	digest_must_succeed(EVP_DigestFinal_ex(h->running, out, NULL));
	digest_must_succeed(EVP_MD_CTX_copy_ex(h->running, h->outer));
	digest_must_succeed(EVP_DigestUpdate(h->running, out, SHA256_BYTES));
	digest_must_succeed(EVP_DigestFinal_ex(h->running, out, NULL));
}

void hmac_sha256(const void *key, size_t key_bytes, const void *p, size_t n, uint8_t out[SHA256_BYTES])
{
	struct hmac *h = hmac_new(key, key_bytes);

	hmac_update(h, p, n);
	hmac_final(h, out);
	hmac_free(h);
}

bool equal_constant_time(const void *a, const void *b, size_t n) { return CRYPTO_memcmp(a, b, n) == 0; }

/* ---- random ---- */

void random_bytes(void *out, size_t n)
{
	if (n > INT32_MAX || RAND_bytes(out, (int)n) != 1) {
		fputs("libcrypto: no random bytes\n", stderr);
		abort();
	}
}

double random_fraction(void)
{
	uint32_t n;

	random_bytes(&n, sizeof(n));
	return (double)n / ((double)UINT32_MAX + 1);
}

char *id_new(char out[ID_BYTES])
{
	uint8_t raw[16];
	uint64_t now_ms = (uint64_t)clock_wall_ms();

	random_bytes(raw, sizeof(raw));
	/* New ids are near each other, so that a commit writes one page of an index for many of them. */
	for (int i = 0; i < 6; i++)
		raw[i] = (uint8_t)(now_ms >> (40 - 8 * i));
	return base32_encode(raw, sizeof(raw), out);
}

char *uuid_new(char out[UUID_BYTES])
{
	uint8_t raw[16];
	char hex[33];

	random_bytes(raw, sizeof(raw));
	raw[6] = (uint8_t)((raw[6] & 0x0f) | 0x40);
	raw[8] = (uint8_t)((raw[8] & 0x3f) | 0x80);
	hex_encode(raw, sizeof(raw), hex);
	snprintf(out, UUID_BYTES, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
	return out;
}
