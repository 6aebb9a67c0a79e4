#include "steps/tail.h"

void tail_init(struct tail *t, size_t max_bytes)
{
	*t = (struct tail){.max = max_bytes};
	buf_init(&t->bytes, 2 * max_bytes);
}

void tail_release(struct tail *t)
{
	buf_release(&t->bytes);
}

void tail_clear(struct tail *t)
{
	buf_clear(&t->bytes);
	t->n_dropped = 0;
}

static void drop(struct tail *t, size_t n)
{
	buf_consume(&t->bytes, n);
	t->n_dropped += n;
}

void tail_add(struct tail *t, const char *p, size_t n)
{
	if (n > t->max) {
		drop(t, t->bytes.len);
		t->n_dropped += n - t->max;
		p += n - t->max;
		n = t->max;
	}
	if (t->bytes.len + n > 2 * t->max)
		drop(t, t->bytes.len + n - t->max);
	buf_append(&t->bytes, p, n);
}

void tail_trim(struct tail *t)
{
	size_t n = t->bytes.len > t->max ? t->bytes.len - t->max : 0;

	if (n > 0 || t->n_dropped > 0)
		while (n < t->bytes.len && ((unsigned char)t->bytes.data[n] & 0xc0) == 0x80)
			n++;
	drop(t, n);
}
