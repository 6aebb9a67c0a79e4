/* Bodies of requests in memory: reused blocks for the common size, and one account of all
 * bytes held, so that a flood ends in 503 instead of in swap. Thread: loop. */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include <stddef.h>

#include "base/err.h"

#define HTTP_BODY_BLOCK_BYTES 32768 /* a webhook of pytorch's is 21 to 27 KB */

/* The account of one server. */
struct http_bodies {
	size_t in_use_bytes;
	size_t max_bytes;
};

struct http_body {
	char *data; /* NULL while empty; room for cap and a NUL */
	size_t len, cap;
};

/* Room for at least one byte more behind len; `expected` is the whole body's size if known,
 * else 0. Memory grows with what arrived, not with what was announced. ERR_BUSY: over the
 * account. */
int http_body_grow(struct http_bodies *all, struct http_body *b, size_t expected) MUST_CHECK;
int http_body_append(
    struct http_bodies *all, struct http_body *b, const char *p, size_t n) MUST_CHECK;
void http_body_release(struct http_bodies *all, struct http_body *b);
/* Off the account; the memory is the caller's (free()), NUL-terminated, never NULL. */
char *http_body_take(struct http_bodies *all, struct http_body *b, size_t *ret_bytes);
/* ---- spare blocks: the loop thread's, shared by its servers, so that a body which outlives
 * its server still has a place to go ---- */

/* Between these a thread keeps spare blocks; calls nest. */
void http_blocks_hold(void);
void http_blocks_release(void);
/* Takes memory from http_body_take() back; NULL is fine. */
void http_block_give(char *data);
/* Frees spare blocks that were not needed since the last call. */
void http_blocks_trim(void);

#endif
