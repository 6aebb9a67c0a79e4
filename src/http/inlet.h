/* Splits one connection's input into requests: heads, pieces of bodies, ends. It does not use sockets, so the fuzzer
 * tests the server's own code.
 *
 * The caller keeps unused bytes and passes them again, followed by more bytes. Pure. Thread: one at a time. Owns: the
 * caller owns the inlet and the heads that it returns. */
#ifndef HTTP_INLET_H
#define HTTP_INLET_H

#include <stddef.h>
#include <stdint.h>

#include "http/head.h"

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
enum http_inlet_event http_inlet_feed(
    struct http_inlet *in, const char *p, size_t n, struct http_inlet_out *out);

/* Skips END: goes on with the next head if the current request is complete. False: its body is not complete, so
 * nothing behind it can be read. */
bool http_inlet_finish(struct http_inlet *in);

#endif
