/* Bodies of requests in memory: reused blocks for the common size, and one account of all
 * bytes held, so that a flood ends in 503 instead of in swap. Thread: loop. */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include <stddef.h>

#include "base/err.h"

#define HTTP_BODY_BLOCK_BYTES 32768 /* a webhook of pytorch's is 21 to 27 KB */
#define HTTP_BODY_MAX_SPARE   64

struct http_bodies {
	char *spare[HTTP_BODY_MAX_SPARE]; /* owned blocks of HTTP_BODY_BLOCK_BYTES or more */
	int n_spare;
	int n_spare_low; /* fewest since the last trim: that many were not needed */
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
/* Takes memory from http_body_take() back. */
void http_bodies_recycle(struct http_bodies *all, char *data);
/* Frees spare blocks that were not needed since the last call. */
void http_bodies_trim(struct http_bodies *all);
void http_bodies_free_spare(struct http_bodies *all);

#endif
