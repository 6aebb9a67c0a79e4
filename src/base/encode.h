/* Bytes as text: hexadecimal, base64url without padding (RFC 4648 section 5),
 * lower-case base32 (section 6) and percent-encoding (RFC 3986 section 2.1); numbers as bytes. Decoders are strict.
 * Thread: any. Owns: nothing; the caller has all memory. */
#pragma once

/* out holds 2*n+1 characters. Returns out. */
char *hex_encode(const void *p, size_t n, char *out);
/* The value of a hexadecimal digit of either case, or -1. */
int hex_digit(char c);
/* Exactly 2*n digits of either case. */
int hex_decode(const char *s, size_t len, uint8_t *out, size_t n) MUST_CHECK;
void base64url_encode(const void *p, size_t n, struct buf *out);
/* Appends the decoded bytes. ERR_INVALID: another character, an impossible length, padding, or bits left
 * over that are not 0. */
int base64url_decode(const char *s, size_t len, struct buf *out) MUST_CHECK;
/* out holds (n*8+4)/5+1 characters; a-z2-7, no padding. Returns out. */
char *base32_encode(const void *p, size_t n, char *out);
/* Appends n bytes for a URL: unreserved characters and those in `kept` stay, all others become %XX. */
void percent_encode(struct buf *out, const char *s, size_t n, const char *kept);

/* A number in as few bytes as it needs: seven bits a byte, the lowest first; the top bit means that another
 * byte follows. */
void varint_put(struct buf *out, uint64_t v);
/* Reads the number at *p and moves *p behind it. False: it does not end before `end`, or it is longer than
 * eight bytes. */
bool varint_get_long(const uint8_t **p, const uint8_t *end, int64_t *ret);
/* Inline for the usual case of one byte. */
static inline bool varint_get(const uint8_t **p, const uint8_t *end, int64_t *ret)
{
	if (*p >= end || **p >= 0x80)
		return varint_get_long(p, end, ret);
	*ret = *(*p)++;
	return true;
}

/* ---- compression ----
 *
 * zstd compression; the output has a ceiling. A compressor keeps its memory from one call to the next.
 *
 * Thread: a compressor belongs to one thread at a time; decompress() runs on any.
 * Owns: the caller, with compressor_free(). */

struct compressor;
/* A level outside zstd's range is set to the nearest one. */
struct compressor *compressor_new(int level);
/* Adds a checksum of the content to each frame from now on; decompress() checks it. */
void compressor_add_checksums(struct compressor *c);
void compressor_free(struct compressor *c); /* NULL is fine */
/* Replaces the content of out. ERR_TOO_BIG: out->max is under the largest size that zstd may need. */
int compress(struct compressor *c, const void *p, size_t n, struct buf *out) MUST_CHECK;
/* Appends to out. ERR_CORRUPT: not a whole zstd frame; ERR_TOO_BIG: longer than out->max. */
int decompress(const void *p, size_t n, struct buf *out) MUST_CHECK;

/* A text that others resemble, prepared for compressing many of them at this level. Copies p. Only reads itself, so several
 * compressors may use it. */
struct compress_base *compress_base_new(const void *p, size_t n, int level);
void compress_base_free(struct compress_base *b); /* NULL is fine */
/* As compress_like(), for decompress_like() with the same text. */
int compress_with_base(
    struct compressor *c, const struct compress_base *b, const void *p, size_t n, struct buf *out) MUST_CHECK;

/* The same for bytes that resemble `base`: only the differences take room. A checksum is added. decompress_like() needs the same
 * base, replaces the content of out, and refuses a frame that does not name its length. n_base 0: no base. */
int compress_like(
    struct compressor *c, const void *base, size_t n_base, const void *p, size_t n, struct buf *out) MUST_CHECK;
int decompress_like(const void *base, size_t n_base, const void *p, size_t n, struct buf *out) MUST_CHECK;
