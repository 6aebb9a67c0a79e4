#include "http/body.h"

#include <malloc.h>
#include <stdbool.h>

#include "base/alloc.h"

static char *block_new(struct http_bodies *all)
{
	if (all->n_spare == 0)
		return xmalloc(HTTP_BODY_BLOCK_BYTES);
	all->n_spare--;
	if (all->n_spare < all->n_spare_low)
		all->n_spare_low = all->n_spare;
	return all->spare[all->n_spare];
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
	b->data = b->cap ? xrealloc(b->data, bytes) : block_new(all);
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

void http_bodies_recycle(struct http_bodies *all, char *data)
{
	/* Only blocks of about the common size are worth keeping. */
	size_t bytes = data ? malloc_usable_size(data) : 0;

	if (bytes >= HTTP_BODY_BLOCK_BYTES && bytes < 2 * HTTP_BODY_BLOCK_BYTES &&
	    all->n_spare < HTTP_BODY_MAX_SPARE)
		all->spare[all->n_spare++] = data;
	else
		free(data);
}

void http_body_release(struct http_bodies *all, struct http_body *b)
{
	size_t bytes;

	if (b->data)
		http_bodies_recycle(all, http_body_take(all, b, &bytes));
}

void http_bodies_trim(struct http_bodies *all)
{
	for (; all->n_spare_low > 0 && all->n_spare > 0; all->n_spare_low--)
		free(all->spare[--all->n_spare]);
	all->n_spare_low = all->n_spare;
}

void http_bodies_free_spare(struct http_bodies *all)
{
	while (all->n_spare)
		free(all->spare[--all->n_spare]);
	all->n_spare_low = 0;
}
