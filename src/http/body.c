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

void http_body_init(struct http_body *b, struct http_bodies *account,
    const struct http_client_group *group, size_t expected)
{
	*b = (struct http_body){.account = account, .group = *group, .expected = expected};
}

/* What the memory becomes when it has to grow, with the NUL. */
static size_t next_bytes(const struct http_body *b)
{
	size_t bytes = b->cap ? (b->cap + 1) * 2 : HTTP_BODY_BLOCK_BYTES;

	if (b->expected && b->cap && bytes > b->expected + 1)
		bytes = b->expected + 1;
	return bytes;
}

static bool is_small(const struct http_body *b)
{
	return b->expected && b->expected <= HTTP_BODY_SMALL_BYTES;
}

int http_body_grow(struct http_body *b, bool *ret_is_share)
{
	struct http_bodies *all = b->account;
	size_t bytes, more;

	if (b->len < b->cap)
		return 0;
	bytes = next_bytes(b);
	more = bytes - 1 - b->cap;
	*ret_is_share = http_group_amount(all->of_one, &b->group) + (int64_t)more >
			(int64_t)all->max_bytes_of_one;
	if (*ret_is_share ||
	    all->in_use_bytes + more + (is_small(b) ? 0 : all->reserve_bytes) > all->max_bytes)
		return ERR_BUSY;
	all->in_use_bytes += more;
	http_group_amount_add(all->of_one, &b->group, (int64_t)more);
	b->data = b->cap ? xrealloc(b->data, bytes) : block_take();
	b->cap = bytes - 1;
	return 0;
}

void http_body_leave_account(struct http_body *b)
{
	if (!b->account)
		return;
	b->account->in_use_bytes -= b->cap;
	http_group_amount_add(b->account->of_one, &b->group, -(int64_t)b->cap);
	b->account = NULL;
}

char *http_body_take(struct http_body *b, size_t *ret_bytes)
{
	char *data = b->data ? b->data : xstrdup("");

	http_body_leave_account(b);
	data[b->len] = '\0';
	*ret_bytes = b->len;
	*b = (struct http_body){0};
	return data;
}

void http_body_release(struct http_body *b)
{
	size_t bytes;

	if (b->data)
		http_block_give(http_body_take(b, &bytes));
}
