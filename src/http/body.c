#include "http/body.h"

#include <malloc.h>
#include <stdbool.h>

#include "base/alloc.h"

#define MAX_SPARE 64

static _Thread_local struct {
	char *spare[MAX_SPARE]; /* owned blocks of HTTP_BODY_BLOCK_BYTES or more */
	int n_spare;
	int n_spare_low; /* fewest since the last trim: that many were not needed */
	int n_holders;
} blocks;

static char *block_take(void)
{
	if (blocks.n_spare == 0)
		return xmalloc(HTTP_BODY_BLOCK_BYTES);
	blocks.n_spare--;
	if (blocks.n_spare < blocks.n_spare_low)
		blocks.n_spare_low = blocks.n_spare;
	return blocks.spare[blocks.n_spare];
}

void http_block_give(char *data)
{
	/* Only blocks of about the common size are worth keeping. */
	size_t bytes = data ? malloc_usable_size(data) : 0;

	if (blocks.n_holders && bytes >= HTTP_BODY_BLOCK_BYTES &&
	    bytes < 2 * HTTP_BODY_BLOCK_BYTES && blocks.n_spare < MAX_SPARE)
		blocks.spare[blocks.n_spare++] = data;
	else
		free(data);
}

void http_blocks_trim(void)
{
	for (; blocks.n_spare_low > 0 && blocks.n_spare > 0; blocks.n_spare_low--)
		free(blocks.spare[--blocks.n_spare]);
	blocks.n_spare_low = blocks.n_spare;
}

void http_blocks_hold(void)
{
	blocks.n_holders++;
}

void http_blocks_release(void)
{
	if (--blocks.n_holders)
		return;
	while (blocks.n_spare)
		free(blocks.spare[--blocks.n_spare]);
	blocks.n_spare_low = 0;
}

int http_body_grow(struct http_bodies *all, struct http_body *b, size_t expected)
{
	size_t bytes;

	if (b->len < b->cap)
		return 0;
	if (b->cap)
		bytes = (b->cap + 1) * 2;
	else
		bytes = HTTP_BODY_BLOCK_BYTES;
	if (expected && bytes > expected + 1 && b->cap)
		bytes = expected + 1;
	if (all->in_use_bytes + (bytes - b->cap) > all->max_bytes)
		return ERR_BUSY;
	all->in_use_bytes += bytes - 1 - b->cap;
	b->data = b->cap ? xrealloc(b->data, bytes) : block_take();
	b->cap = bytes - 1;
	return 0;
}

int http_body_append(struct http_bodies *all, struct http_body *b, const char *p, size_t n)
{
	while (n) {
		size_t room;
		int rc = http_body_grow(all, b, 0);

		if (rc)
			return rc;
		room = b->cap - b->len;
		if (room > n)
			room = n;
		memcpy(b->data + b->len, p, room);
		b->len += room;
		p += room;
		n -= room;
	}
	return 0;
}

char *http_body_take(struct http_bodies *all, struct http_body *b, size_t *ret_bytes)
{
	char *data = b->data ? b->data : xstrdup("");

	data[b->len] = '\0';
	*ret_bytes = b->len;
	all->in_use_bytes -= b->cap;
	*b = (struct http_body){0};
	return data;
}

void http_body_release(struct http_bodies *all, struct http_body *b)
{
	size_t bytes;

	if (b->data)
		http_block_give(http_body_take(all, b, &bytes));
}
