#include "store/percentile.h"

#include "base/alloc.h"
#include "base/varint.h"

struct times times_new(size_t max)
{
	return (struct times){.max = max};
}

void times_release(struct times *t)
{
	FREE_AND_NULL(t->ms);
	t->n = t->max = 0;
}

void times_add_ms(struct times *t, int64_t ms)
{
	if (t->n == t->max)
		return;
	if ((t->n & (t->n - 1)) == 0)
		t->ms = xrealloc(t->ms, (t->n ? 2 * t->n : 1) * sizeof(*t->ms));
	t->ms[t->n++] = ms;
}

void times_add(struct times *t, const struct rows *r, int column)
{
	if (!rows_is_null(r, column))
		times_add_ms(t, rows_int(r, column));
}

static int by_size(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* Each as what it is longer than the one before it: most take two bytes. */
void times_pack(struct times *t, struct buf *out)
{
	if (t->n)
		qsort(t->ms, t->n, sizeof(*t->ms), by_size);
	for (size_t i = 0; i < t->n; i++)
		varint_put(out, (uint64_t)(i ? t->ms[i] - t->ms[i - 1] : t->ms[i]));
}

void times_add_packed(struct times *t, const struct rows *r, int column)
{
	size_t n;
	const uint8_t *p = rows_blob(r, column, &n);
	const uint8_t *end = n ? p + n : p;
	int64_t ms = 0, more;

	while (varint_get(&p, end, &more))
		times_add_ms(t, ms += more);
}

/* By halves of the time, not by order: that costs the same whatever vendors report, and the times
 * of a month need not be sorted for two numbers. */
int64_t percentile(const struct times *t, size_t percent)
{
	size_t rank = (t->n * percent + 99) / 100;
	int64_t from = INT64_MAX, to = 0;

	if (!t->n)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		from = t->ms[i] < from ? t->ms[i] : from;
		to = t->ms[i] > to ? t->ms[i] : to;
	}
	while (from < to) {
		int64_t middle = from + (to - from) / 2;
		size_t n = 0;

		for (size_t i = 0; i < t->n; i++)
			n += t->ms[i] <= middle;
		if (n >= rank)
			to = middle;
		else
			from = middle + 1;
	}
	return to;
}
