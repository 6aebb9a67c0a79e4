/* One connection's input, cut into requests: heads, pieces of bodies, ends. Knows nothing of
 * sockets, so the fuzzer drives exactly what the server runs.
 *
 * The caller keeps what was not used and shows it again, with more behind it. */
#ifndef HTTP_INLET_H
#define HTTP_INLET_H

#include <stddef.h>
#include <stdint.h>

#include "http/chunk.h"
#include "http/head.h"

enum http_inlet_state {
	HTTP_INLET_AT_HEAD,
	HTTP_INLET_AT_LENGTH, /* a body of known length */
	HTTP_INLET_AT_CHUNKS,
	HTTP_INLET_AT_END, /* the body is over, END not told yet */
	HTTP_INLET_BROKEN,
};

struct http_inlet {
	enum http_inlet_state state;
	size_t max_head_bytes;
	size_t scanned;      /* of the head in hand */
	bool is_blank_taken; /* the one empty line that may stand before a request */
	int64_t body_left;   /* AT_LENGTH */
	struct http_chunked chunked;
};

enum http_inlet_event {
	HTTP_INLET_MORE,  /* nothing more to tell from these bytes */
	HTTP_INLET_HEAD,  /* out.head: the caller's now (free()) */
	HTTP_INLET_PIECE, /* out.piece, out.piece_bytes: inside p */
	HTTP_INLET_END,   /* the request in hand is complete; the next event is another's */
	HTTP_INLET_BAD,   /* out.refusal: answer it and close; only BAD comes from now on */
};

struct http_inlet_out {
	size_t used; /* bytes of p that are done with */
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

/* No END will be asked for: moves on to the next head if the request in hand is complete.
 * False when a body is still to come: then nothing behind it can be read. */
bool http_inlet_finish(struct http_inlet *in);

#endif
