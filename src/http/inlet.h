/* Splits one connection's input into requests: heads, pieces of bodies, ends. It does not use sockets, so the fuzzer
 * tests the server's own code.
 *
 * The caller keeps unused bytes and passes them again, followed by more bytes. Pure. Thread: one at a time. Owns: the
 * caller owns the inlet and the heads that it returns. */
#pragma once

/* ---- heads: head.c ----
 *
 * A request's head: its request line and headers, split and checked.
 *
 * It is as strict as RFC 9110 and RFC 9112 allow: a lenient server reads a request differently from a proxy, and then
 * requests can be smuggled past the proxy. It reads only a complete head, so there is no state between two calls.
 *
 * Pure: no sockets, no clock. Thread: any. Owns: the caller owns a head, with free(). */

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
int64_t http_head_find_end(
    const char *p, size_t n, size_t max_bytes, size_t *scanned, struct http_refusal *ret_refusal) MUST_CHECK;
/* Checks and splits the head p[0..n), which http_head_find_end() measured. On 0, *ret is one
 * block (free()) with a copy of the text. ERR_PROTOCOL: *ret_refusal is set. */
int http_head_parse(const char *p, size_t n, struct http_head **ret, struct http_refusal *ret_refusal) MUST_CHECK;
/* The first value of a header; case does not matter in the name. NULL: absent. Borrowed. */
const char *http_head_get(const struct http_head *h, const char *name);

/* Sets the refusal and returns ERR_PROTOCOL. */
int http_refuse(struct http_refusal *ret_refusal, int status, const char *why);

/* Decodes %XX in s[0..n) into out (n+1 bytes, may be s itself), NUL-terminated. With HTTP_DECODE_FORM "+" is a space.
 * Returns the length, or ERR_INVALID for a bad escape or a NUL. */
enum http_decode { HTTP_DECODE_PATH, HTTP_DECODE_FORM };
int64_t http_percent_decode(const char *s, size_t n, enum http_decode how, char *out) MUST_CHECK;

enum http_chunk_state {
	HTTP_CHUNK_SIZE,
	HTTP_CHUNK_EXTENSION,
	HTTP_CHUNK_SIZE_LF,
	HTTP_CHUNK_DATA,
	HTTP_CHUNK_DATA_CR,
	HTTP_CHUNK_DATA_LF,
	HTTP_CHUNK_TRAILER_START,
	HTTP_CHUNK_TRAILER,
	HTTP_CHUNK_TRAILER_LF,
	HTTP_CHUNK_LAST_LF,
	HTTP_CHUNK_END,
};

struct http_chunked {
	enum http_chunk_state state;
	int n_digits;
	int64_t left;      /* of the current chunk */
	size_t n_overhead; /* extension and trailer bytes so far */
};

enum http_inlet_state {
	HTTP_INLET_AT_HEAD,
	HTTP_INLET_AT_LENGTH, /* a body of known length */
	HTTP_INLET_AT_CHUNKS,
	HTTP_INLET_AT_END, /* the body is complete, and END comes next */
	HTTP_INLET_BROKEN,
};

struct http_inlet {
	enum http_inlet_state state;
	size_t max_head_bytes;
	size_t scanned;      /* of the current head */
	bool is_blank_taken; /* the one empty line that may come before a request */
	int64_t body_left;   /* AT_LENGTH */
	struct http_chunked chunked;
};

enum http_inlet_event {
	HTTP_INLET_MORE,  /* it needs more bytes */
	HTTP_INLET_HEAD,  /* out.head; the caller owns it, with free() */
	HTTP_INLET_PIECE, /* out.piece, out.piece_bytes: inside p */
	HTTP_INLET_END,   /* the current request is complete */
	HTTP_INLET_BAD,   /* out.refusal: answer it and close; every later event is BAD */
};

struct http_inlet_out {
	size_t used; /* bytes of p that are consumed */
	struct http_head *head;
	const char *piece;
	size_t piece_bytes;
	struct http_refusal refusal;
};

/* max_head_bytes is at most HTTP_MAX_HEAD_BYTES. */
void http_inlet_init(struct http_inlet *in, size_t max_head_bytes);
/* The next event in p[0..n). END may come with n == 0. */
enum http_inlet_event http_inlet_feed(struct http_inlet *in, const char *p, size_t n, struct http_inlet_out *out);

/* Skips END: goes on with the next head if the current request is complete. False: its body is not complete, so
 * nothing behind it can be read. */
bool http_inlet_finish(struct http_inlet *in);
