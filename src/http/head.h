/* A request's head: its request line and headers, split and checked.
 *
 * Strict where RFC 9110 and RFC 9112 let a server refuse, because leniency lets requests be
 * smuggled past a proxy that reads them differently. Only a complete head is read, so there is
 * no state between two calls. Pure: no sockets, no clock. */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HTTP_MAX_HEAD_BYTES   65535 /* offsets below are 16 bits */
#define HTTP_MAX_TARGET_BYTES 8192
#define HTTP_MAX_FIELDS       100

/* Why a request is refused: the status to answer and a fixed text without client's bytes. */
struct http_refusal {
	int status;
	const char *why;
};

struct http_field {
	uint16_t name, value; /* offsets into text, both NUL-terminated there */
};

struct http_head {
	const char *method; /* a text of our own, one of the methods that are known */
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

/* Looks for the end of a head that starts at p. *scanned is how far earlier calls came (0 at
 * first) and is moved on. Returns its length with the empty line, 0 when more is needed, or
 * ERR_PROTOCOL with *ret_refusal set: a line that does not end in CRLF, or too much. */
int64_t http_head_find_end(const char *p, size_t n, size_t max_bytes, size_t *scanned,
    struct http_refusal *ret_refusal) MUST_CHECK;
/* Checks and splits the head p[0..n), which http_head_find_end() measured. On 0, *ret is one
 * block (free()) with a copy of the text. ERR_PROTOCOL: *ret_refusal is set. */
int http_head_parse(
    const char *p, size_t n, struct http_head **ret, struct http_refusal *ret_refusal) MUST_CHECK;
/* First value of a header, names without case; NULL when absent. Borrowed. */
const char *http_head_get(const struct http_head *h, const char *name);

/* ---- the steps, each in its file ---- */

/* lines.c: splits h->text[0..n), in place, into method, target, version and at most max_fields
 * fields, each ended with NUL, and refuses every line that RFC 9112 does not allow. h->method
 * points into the text after it. */
int http_lines_split(
    struct http_head *h, size_t n, size_t max_fields, struct http_refusal *ret_refusal) MUST_CHECK;
/* framing.c: what the headers say together: length, coding, host, expectation, repeats. */
int http_framing_check(struct http_head *h, struct http_refusal *ret_refusal) MUST_CHECK;
/* target.c: *target becomes the origin-form of the request target (in place) or "*". */
int http_target_check(
    char **target, const char *method, struct http_refusal *ret_refusal) MUST_CHECK;
/* Only characters that a Host may have (RFC 3986 section 3.2, without userinfo), or none. */
bool http_host_is_plain(const char *s, size_t n);
/* Sets the refusal and returns ERR_PROTOCOL. */
int http_refuse(struct http_refusal *ret_refusal, int status, const char *why);

/* Decodes %XX in s[0..n) into out (n+1 bytes, may be s itself), NUL-terminated. With
 * HTTP_DECODE_FORM "+" is a space. Returns the length, or ERR_INVALID for a bad escape or a
 * NUL. */
enum http_decode { HTTP_DECODE_PATH, HTTP_DECODE_FORM };
int64_t http_percent_decode(const char *s, size_t n, enum http_decode how, char *out) MUST_CHECK;

#endif
