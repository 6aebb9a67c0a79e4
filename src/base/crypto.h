/* SHA-256, HMAC-SHA256 (RFC 2104), comparison in constant time, random bytes and random identifiers, by
 * OpenSSL. Thread: any. */
#pragma once

#define SHA256_BYTES 32

void sha256(const void *p, size_t n, uint8_t out[SHA256_BYTES]);
/* Of the bytes of all parts, one after the other. */
struct digest_part {
	const void *p;
	size_t n;
};
void sha256_of_parts(const struct digest_part *parts, size_t n_parts, uint8_t out[SHA256_BYTES]);

/* Of a whole file, from its beginning; blocks. ERR_IO: errno is set. */
int sha256_file(int fd, uint8_t out[SHA256_BYTES]) MUST_CHECK;

/* Incremental HMAC: a body is hashed while it arrives, and the work on the key is done once.
 * Thread: an object belongs to one thread at a time. Owns: the caller, with hmac_free(). */
struct hmac;
struct hmac *hmac_new(const void *key, size_t key_bytes);
void hmac_free(struct hmac *h);  /* NULL is fine */
void hmac_reset(struct hmac *h); /* ready for the next message, same key */
void hmac_update(struct hmac *h, const void *p, size_t n);
void hmac_final(struct hmac *h, uint8_t out[SHA256_BYTES]);
void hmac_sha256(const void *key, size_t key_bytes, const void *p, size_t n, uint8_t out[SHA256_BYTES]);

/* True if equal. The time that it takes does not depend on where they differ. */
bool equal_constant_time(const void *a, const void *b, size_t n);

/* ---- random ---- */
#define ID_BYTES   27 /* 128 bits in base32, and the end */
#define UUID_BYTES 37

/* Aborts if the random source fails. */
void random_bytes(void *out, size_t n);
double random_fraction(void); /* in [0, 1), for jitter */
/* 26 characters a-z2-7, for example a dispatch's id: the time, and 80 random bits. Not a secret. Returns out. */
char *id_new(char out[ID_BYTES]);
/* RFC 9562 version 4. Returns out. */
char *uuid_new(char out[UUID_BYTES]);
