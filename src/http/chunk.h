/* Chunked bodies (RFC 9112 section 7.1), strictly: CRLF only, plain hexadecimal sizes,
 * extensions and trailers checked, bounded and dropped. Pure. */
#ifndef HTTP_CHUNK_H
#define HTTP_CHUNK_H

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

/* Zero-initialise. */
struct http_chunked {
	enum http_chunk_state state;
	int n_digits;
	int64_t left;      /* of the chunk in hand */
	size_t n_overhead; /* extension and trailer bytes so far */
};

enum http_chunk_event { HTTP_CHUNK_MORE, HTTP_CHUNK_PIECE, HTTP_CHUNK_DONE, HTTP_CHUNK_BAD };

/* Reads on in p[0..n); *ret_used bytes of it are consumed. On PIECE the last *ret_piece of
 * those are body. After DONE or BAD feed no more. */
enum http_chunk_event http_chunked_feed(struct http_chunked *c, const char *p, size_t n,
    size_t *ret_used, size_t *ret_piece, struct http_refusal *ret_refusal);

#endif
