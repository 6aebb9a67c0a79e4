#include "ctl/table.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/str.h"

enum { COLUMNS_MAX = 16, GAP = 2 };

struct table {
	const char *const *headings;
	size_t n_columns, n_cells;
	char **cells;
};

struct table *table_new(const char *const *headings)
{
	struct table *t = xcalloc(1, sizeof(*t));

	t->headings = headings;
	while (headings[t->n_columns] && t->n_columns < COLUMNS_MAX)
		t->n_columns++;
	return t;
}

void table_add(struct table *t, const char *text)
{
	struct buf cell = BUF_INIT(SIZE_MAX / 2);

	/* What others wrote must not move the cursor. */
	escape_line(&cell, text ? text : "", 0);
	t->cells = xrealloc(t->cells, (t->n_cells + 1) * sizeof(*t->cells));
	t->cells[t->n_cells++] = buf_take(&cell);
}

void table_add_int(struct table *t, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)n);
	table_add(t, text);
}

const char *age_text(int64_t then_ms, int64_t now_ms, char *out, size_t n)
{
	int64_t s = (now_ms - then_ms) / 1000;

	if (s < 0)
		s = 0;
	if (s < 60)
		snprintf(out, n, "%lld s ago", (long long)s);
	else if (s < 3600)
		snprintf(out, n, "%lld min ago", (long long)s / 60);
	else if (s < 48 * 3600)
		snprintf(out, n, "%lld h ago", (long long)s / 3600);
	else
		snprintf(out, n, "%lld days ago", (long long)s / 86400);
	return out;
}

void table_add_age(struct table *t, const char *rfc3339, int64_t now_ms)
{
	char text[32] = "";
	int64_t then_ms;

	if (rfc3339 && !rfc3339_parse(rfc3339, &then_ms))
		age_text(then_ms, now_ms, text, sizeof(text));
	table_add(t, text);
}

/* Columns that UTF-8 text takes: one a character is near enough for what stands here. */
static size_t text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		if (((unsigned char)*s & 0xc0) != 0x80)
			n++;
	return n;
}

static const char *colour_of(const char *cell)
{
	static const struct {
		const char *word, *colour;
	} colours[] = {
	    {"done", "\033[32m"},
	    {"planned", "\033[32m"},
	    {"running", "\033[36m"},
	    {"acknowledged", "\033[36m"},
	    {"sent", "\033[36m"},
	    {"held", "\033[33m"},
	    {"queued", "\033[33m"},
	    {"accepted", "\033[33m"},
	    {"failed", "\033[31m"},
	    {"expired", "\033[31m"},
	};

	for (size_t i = 0; i < ARRAY_LEN(colours); i++)
		if (str_eq(cell, colours[i].word))
			return colours[i].colour;
	return NULL;
}

static void print_cell(const char *text, size_t width, const char *colour)
{
	size_t n = text_width(text), bytes = strlen(text);
	bool is_cut = n > width;

	if (is_cut) {
		for (bytes = 0, n = 1; text[bytes] && n < width; n++)
			while (((unsigned char)text[++bytes] & 0xc0) == 0x80)
				;
	}
	printf("%s%.*s%s%s%*s", colour ? colour : "", (int)bytes, text, is_cut ? "…" : "",
	    colour ? "\033[0m" : "", (int)(width - n), "");
}

static void measure(const struct table *t, const struct ctl *ctl, size_t *widths)
{
	size_t used = 0, last = t->n_columns - 1;

	for (size_t c = 0; c < t->n_columns; c++)
		widths[c] = text_width(t->headings[c]);
	for (size_t i = 0; i < t->n_cells; i++)
		if (text_width(t->cells[i]) > widths[i % t->n_columns])
			widths[i % t->n_columns] = text_width(t->cells[i]);
	for (size_t c = 0; c < last; c++)
		used += widths[c] + GAP;
	/* Only a terminal cuts: a pipe gets everything. */
	if (ctl->is_terminal && used + widths[last] > (size_t)ctl->width)
		widths[last] = used + 10 < (size_t)ctl->width ? (size_t)ctl->width - used : 10;
}

void table_print(struct table *t, const struct ctl *ctl, const char *nothing)
{
	size_t widths[COLUMNS_MAX];

	if (t->n_cells == 0) {
		puts(nothing);
	} else {
		measure(t, ctl, widths);
		for (size_t i = 0; i < t->n_columns + t->n_cells; i++) {
			size_t c = i % t->n_columns;
			bool is_heading = i < t->n_columns, is_last = c + 1 == t->n_columns;
			const char *text = is_heading ? t->headings[c] : t->cells[i - t->n_columns];
			const char *colour = is_heading ? "\033[2m" : colour_of(text);
			size_t width =
			    is_last && text_width(text) < widths[c] ? text_width(text) : widths[c];

			print_cell(text, width, ctl->has_colour ? colour : NULL);
			fputs(is_last ? "\n" : "  ", stdout);
		}
	}
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}
