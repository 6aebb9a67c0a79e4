#include "steps/masks.h"

#include <stdint.h>

#include "base/alloc.h"
#include "steps/clean_text.h"

struct mask {
	char *text;
	size_t n;
};

struct masks {
	struct mask *list;
	size_t n;
	bool begins_with[256];
};

struct masks *masks_new(void)
{
	return xcalloc(1, sizeof(struct masks));
}

void masks_free(struct masks *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++) {
		explicit_bzero(m->list[i].text, m->list[i].n);
		free(m->list[i].text);
	}
	free(m->list);
	free(m);
}

static void add_one(struct masks *m, const char *p, size_t n)
{
	struct clean_text clean = {.n_held = 0};
	struct buf text = BUF_INIT(SIZE_MAX / 2);

	if (n < MASK_MIN_BYTES)
		return;
	/* as it will look when it comes here */
	clean_text_feed(&clean, p, n, &text);
	clean_text_end(&clean, &text);
	m->list = xrealloc(m->list, (m->n + 1) * sizeof(*m->list));
	m->list[m->n].n = text.len;
	m->list[m->n].text = buf_take(&text);
	m->begins_with[(unsigned char)m->list[m->n].text[0]] = true;
	m->n++;
}

void masks_add(struct masks *m, const char *value)
{
	size_t n = strlen(value);

	while (n > 0 && (value[n - 1] == '\n' || value[n - 1] == '\r'))
		n--;
	add_one(m, value, n);
	if (!memchr(value, '\n', n))
		return;
	for (const char *line = value, *end = value + n; line < end;) {
		size_t length = strcspn(line, "\r\n");

		if (length > (size_t)(end - line))
			length = (size_t)(end - line);
		add_one(m, line, length);
		line += length + 1;
	}
}

enum here { HERE_NOTHING, HERE_SECRET, HERE_PERHAPS };

/* What begins at p. *ret_n: the longest secret that is there whole, or 0. */
static enum here look(const struct masks *m, const char *p, size_t n, size_t *ret_n)
{
	enum here here = HERE_NOTHING;

	*ret_n = 0;
	if (!m->begins_with[(unsigned char)*p])
		return here;
	for (size_t i = 0; i < m->n; i++) {
		const struct mask *mask = &m->list[i];
		size_t both = mask->n < n ? mask->n : n;

		if (memcmp(mask->text, p, both) != 0)
			continue;
		if (mask->n > n)
			here = HERE_PERHAPS;
		else if (mask->n > *ret_n)
			*ret_n = mask->n;
	}
	return here == HERE_PERHAPS ? here : *ret_n ? HERE_SECRET : here;
}

enum more { MORE_TO_COME, NO_MORE };

/* How many bytes from p on can begin no secret. */
static size_t harmless(const struct masks *m, const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && !m->begins_with[(unsigned char)p[i]])
		i++;
	return i;
}

/* The bytes that could still turn out to belong to a secret stay held. */
static void work(struct mask_stream *s, enum more more, struct buf *out)
{
	const char *p = s->held.data;
	size_t n = s->held.len, i = 0, masked_to = s->n_masked;

	for (; i < n; i++) {
		size_t length, run = i < masked_to ? 0 : harmless(s->masks, p + i, n - i);
		enum here here;

		if (run > 0) {
			buf_append(out, p + i, run);
			s->is_inside = false;
			i += run;
		}
		if (i == n)
			break;
		here = look(s->masks, p + i, n - i, &length);
		if (here == HERE_PERHAPS && more == MORE_TO_COME)
			break;
		/* the beginning of one that the end cut off tells much of it */
		if (here == HERE_PERHAPS && n - i >= MASK_MIN_BYTES)
			length = n - i;
		if (length && i + length > masked_to)
			masked_to = i + length;
		if (i >= masked_to) {
			buf_append_char(out, p[i]);
			s->is_inside = false;
		} else if (!s->is_inside) {
			buf_append_str(out, "***");
			s->is_inside = true;
		}
	}
	s->n_masked = masked_to > i ? masked_to - i : 0;
	buf_consume(&s->held, i);
}

void mask_stream_init(struct mask_stream *s, const struct masks *m)
{
	*s = (struct mask_stream){.masks = m};
	buf_init(&s->held, SIZE_MAX / 2);
}

void mask_stream_release(struct mask_stream *s)
{
	buf_release(&s->held);
}

void mask_stream_feed(struct mask_stream *s, const char *p, size_t n, struct buf *out)
{
	buf_append(&s->held, p, n);
	work(s, MORE_TO_COME, out);
}

void mask_stream_end(struct mask_stream *s, struct buf *out)
{
	work(s, NO_MORE, out);
	s->n_masked = 0;
	s->is_inside = false;
}

char *masks_text(const struct masks *m, const char *text)
{
	struct buf out = BUF_INIT(SIZE_MAX / 2);
	struct mask_stream s;

	mask_stream_init(&s, m);
	mask_stream_feed(&s, text, strlen(text), &out);
	mask_stream_end(&s, &out);
	mask_stream_release(&s);
	return out.data ? buf_take(&out) : xstrdup("");
}
