/* Bodies of requests in memory: reused blocks for the common size, and one account of all
 * bytes held, so that a flood ends in 503 instead of in swap. One client group may hold a part
 * of it, and a reserve is for small bodies of known length, as webhooks are. Thread: loop. */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include <stddef.h>

#include "base/err.h"
#include "http/client_group.h"

#define HTTP_BODY_BLOCK_BYTES 32768 /* a webhook of pytorch's is 21 to 27 KB */

/* The account of one server. */
struct http_bodies {
	size_t in_use_bytes;
	size_t max_bytes;
	size_t max_bytes_of_one;           /* of one client group */
	size_t reserve_bytes;              /* of max_bytes: only for small bodies */
	struct http_group_amounts *of_one; /* bytes in use by client group */
};

#define HTTP_BODY_SMALL_BYTES ((size_t)256 << 10) /* known to be at most this: small */

struct http_body {
	char *data; /* NULL while empty; room for cap and a NUL */
	size_t len, cap;
	struct http_bodies *account; /* NULL: cap is on none */
	struct http_client_group group;
	size_t expected; /* the whole body's size, 0: unknown */
};

/* An empty body on the account. `expected` is its size if known, else 0. */
void http_body_init(struct http_body *b, struct http_bodies *account,
    const struct http_client_group *group, size_t expected);
/* Room for at least one byte more behind len. Memory grows with what arrived, not with what was
 * announced. ERR_BUSY: nothing changed, the account has no room; *ret_is_share says whether the
 * group's part is used up, or else the whole. */
int http_body_grow(struct http_body *b, bool *ret_is_share) MUST_CHECK;
void http_body_release(struct http_body *b);
/* The memory stays, and counts for nobody any more. */
void http_body_leave_account(struct http_body *b);
/* Off the account; the memory is the caller's (free()), NUL-terminated, never NULL. */
char *http_body_take(struct http_body *b, size_t *ret_bytes);
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
