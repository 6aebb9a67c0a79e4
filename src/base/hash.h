/* SHA-256, HMAC-SHA256 and comparison in constant time (OpenSSL does the work). */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

void sha256(const void *p, size_t n, uint8_t out[SHA256_BYTES]);

/* Incremental HMAC, so that a body is hashed while it arrives and a key schedule is
 * computed once. Thread: each object belongs to one thread. */
struct hmac;
struct hmac *hmac_new(const void *key, size_t key_bytes);
void hmac_free(struct hmac *h);
void hmac_reset(struct hmac *h); /* ready for the next message, same key */
void hmac_update(struct hmac *h, const void *p, size_t n);
void hmac_final(struct hmac *h, uint8_t out[SHA256_BYTES]);
void hmac_sha256(
    const void *key, size_t key_bytes, const void *p, size_t n, uint8_t out[SHA256_BYTES]);

/* True when equal; takes the same time wherever they differ. */
bool equal_constant_time(const void *a, const void *b, size_t n);

#endif
