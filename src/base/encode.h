/* Bytes as text: hexadecimal, base64 (RFC 4648 section 4), base64url without padding
 * (section 5) and lower-case base32 (section 6). Decoders are strict. */
#ifndef BASE_ENCODE_H
#define BASE_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* out holds 2*n+1 characters. Returns out. */
char *hex_encode(const void *p, size_t n, char *out);
/* Exactly 2*n digits of either case. */
int hex_decode(const char *s, size_t len, uint8_t *out, size_t n) MUST_CHECK;
void base64_encode(const void *p, size_t n, struct buf *out);
void base64url_encode(const void *p, size_t n, struct buf *out);
/* Appends the decoded bytes. ERR_INVALID on any other character or length; both
 * alphabets' padding rules are kept: none is allowed. */
int base64url_decode(const char *s, size_t len, struct buf *out) MUST_CHECK;
/* out holds (n*8+4)/5+1 characters; a-z2-7, no padding. Returns out. */
char *base32_encode(const void *p, size_t n, char *out);

#endif
