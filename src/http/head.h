/* A request's head: its request line and headers, split and checked.
 *
 * It is as strict as RFC 9110 and RFC 9112 allow: a lenient server reads a request differently from a proxy, and then
 * requests can be smuggled past the proxy. It reads only a complete head, so there is no state between two calls.
 *
 * Pure: no sockets, no clock. Thread: any. Owns: the caller owns a head, with free(). */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HTTP_MAX_HEAD_BYTES   65535 /* offsets below are 16 bits */
#define HTTP_MAX_TARGET_BYTES 8192
#define HTTP_MAX_FIELDS       100

/* Why a request is refused: the status to answer, and a fixed text without bytes of the client. */
struct http_refusal {
	int status;
	const char *why;
};

struct http_field {
	uint16_t name, value; /* offsets into text, both NUL-terminated there */
};

struct http_head {
	const char *method; /* static: one of the known methods */
	uint16_t target;    /* offset: origin-form, "/path?query", or "*" */
	uint16_t n_fields;
	uint8_t minor; /* HTTP/1.minor */
	bool keeps_alive;
	bool is_chunked;
	bool has_length;
	bool expects_continue;
	int64_t content_length; /* 0 without one */
	struct http_field *fields;
	char *text;
};

/* Looks for the end of a head that starts at p. *scanned is how far earlier calls looked (0 at first); it is updated.
 * Returns the length with the empty line; 0: it needs more bytes; ERR_PROTOCOL: *ret_refusal is set. */
int64_t http_head_find_end(const char *p, size_t n, size_t max_bytes, size_t *scanned,
    struct http_refusal *ret_refusal) MUST_CHECK;
/* Checks and splits the head p[0..n), which http_head_find_end() measured. On 0, *ret is one
 * block (free()) with a copy of the text. ERR_PROTOCOL: *ret_refusal is set. */
int http_head_parse(
    const char *p, size_t n, struct http_head **ret, struct http_refusal *ret_refusal) MUST_CHECK;
/* The first value of a header; case does not matter in the name. NULL: absent. Borrowed. */
const char *http_head_get(const struct http_head *h, const char *name);

/* Sets the refusal and returns ERR_PROTOCOL. */
int http_refuse(struct http_refusal *ret_refusal, int status, const char *why);

/* Decodes %XX in s[0..n) into out (n+1 bytes, may be s itself), NUL-terminated. With
 * HTTP_DECODE_FORM "+" is a space. Returns the length, or ERR_INVALID for a bad escape or a
 * NUL. */
enum http_decode { HTTP_DECODE_PATH, HTTP_DECODE_FORM };
int64_t http_percent_decode(const char *s, size_t n, enum http_decode how, char *out) MUST_CHECK;

#endif
