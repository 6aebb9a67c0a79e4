#include "config/problems.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "base/str.h"

enum { PROBLEMS_MAX = 1000, TEXT_MAX_BYTES = 1024 };

size_t problems_n_kept(const struct problems *p)
{
	return p->n < PROBLEMS_MAX ? p->n : PROBLEMS_MAX;
}

void problems_release(struct problems *p)
{
	for (size_t i = 0; i < problems_n_kept(p); i++) {
		free(p->all[i].file);
		free(p->all[i].text);
	}
	free(p->all);
	*p = (struct problems){0};
}

void problem_add(struct problems *p, const char *file, int line, const char *fmt, ...)
{
	struct buf clean = BUF_INIT(SIZE_MAX / 2);
	struct problem *one;
	char text[TEXT_MAX_BYTES];
	va_list ap;

	p->n++;
	if (p->n > PROBLEMS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* It quotes what somebody outside wrote, and is shown on a terminal. */
	escape_line(&clean, text, 0);
	p->all = xrealloc(p->all, p->n * sizeof(*p->all));
	one = &p->all[p->n - 1];
	*one = (struct problem){.file = xstrdup(file), .line = line, .text = buf_take(&clean)};
}

static int compare_places(const void *a, const void *b)
{
	const struct problem *x = a, *y = b;
	int by_file = strcmp(x->file, y->file);

	return by_file ? by_file : (x->line > y->line) - (x->line < y->line);
}

/* Insertion by rank keeps equal places in the order in which they were found; qsort would
 * not promise that. */
static void sort(struct problem *all, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct problem one = all[i];
		size_t at = i;

		for (; at > 0 && compare_places(&all[at - 1], &one) > 0; at--)
			all[at] = all[at - 1];
		all[at] = one;
	}
}

void problems_print(struct problems *p, struct buf *out)
{
	size_t n = problems_n_kept(p);

	sort(p->all, n);
	for (size_t i = 0; i < n; i++)
		buf_appendf(out, "%s:%d: %s\n", p->all[i].file, p->all[i].line, p->all[i].text);
	if (p->n > n)
		buf_appendf(out, "%s:%d: and %zu more mistakes\n", p->all[n - 1].file,
		    p->all[n - 1].line, p->n - n);
}

const char *shown(const char *value, char out[SHOWN_BYTES])
{
	size_t room = SHOWN_BYTES - sizeof("\"…\""), whole = strlen(value);
	size_t n = utf8_cut(value, whole, room);

	snprintf(out, SHOWN_BYTES, "\"%.*s%s\"", (int)n, value, n < whole ? "…" : "");
	for (unsigned char *c = (unsigned char *)out; *c; c++)
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
		else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) /* U+0080 to U+009F */
			c[0] = c[1] = '?';
	return out;
}
