#include "ctl/table.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/str.h"

enum { COLUMNS_MAX = 16, GAP = 2, NARROWEST = 8 };

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
	    {"unhealthy", "\033[31m"},
	    {"overdue", "\033[31m"},
	    {"ok", "\033[32m"},
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

/* How a table stands on this terminal. */
struct layout {
	size_t widths[COLUMNS_MAX];
	bool is_last_below; /* the last column, which holds sentences, has lines of its own */
};

/* Takes from the widest column until what stands in one line fits. */
static void narrow(struct layout *l, size_t n_columns, size_t used, size_t room)
{
	while (used > room) {
		size_t widest = 0;

		for (size_t c = 1; c < n_columns; c++)
			if (l->widths[c] > l->widths[widest])
				widest = c;
		if (l->widths[widest] <= NARROWEST)
			return;
		l->widths[widest]--;
		used--;
	}
}

static void measure(const struct table *t, const struct ctl *ctl, struct layout *l)
{
	size_t used = 0, last = t->n_columns - 1, room = (size_t)ctl->width;

	for (size_t c = 0; c < t->n_columns; c++)
		l->widths[c] = text_width(t->headings[c]);
	for (size_t i = 0; i < t->n_cells; i++)
		if (text_width(t->cells[i]) > l->widths[i % t->n_columns])
			l->widths[i % t->n_columns] = text_width(t->cells[i]);
	for (size_t c = 0; c < last; c++)
		used += l->widths[c] + GAP;
	/* A pipe gets everything as it is; a terminal breaks no line in the middle of a column. */
	l->is_last_below = last > 0 && ctl->is_terminal && used + l->widths[last] > room;
	if (l->is_last_below)
		narrow(l, last, used - GAP, room);
}

static void print_row(const struct ctl *ctl, const struct layout *l, const char *const *cells,
    size_t n, bool is_heading)
{
	size_t n_in_line = l->is_last_below ? n - 1 : n;

	for (size_t c = 0; c < n_in_line; c++) {
		const char *colour = is_heading ? "\033[2m" : colour_of(cells[c]);
		bool is_last = c + 1 == n_in_line;
		size_t width = text_width(cells[c]);

		print_cell(cells[c], is_last && width < l->widths[c] ? width : l->widths[c],
		    ctl->has_colour ? colour : NULL);
		fputs(is_last ? "\n" : "  ", stdout);
	}
	if (l->is_last_below && !is_heading && *cells[n - 1])
		printf("    %s\n", cells[n - 1]);
}

void table_print(struct table *t, const struct ctl *ctl, const char *nothing)
{
	struct layout l;

	if (t->n_cells == 0) {
		puts(nothing);
	} else {
		measure(t, ctl, &l);
		print_row(ctl, &l, t->headings, t->n_columns, true);
		for (size_t i = 0; i < t->n_cells; i += t->n_columns)
			print_row(ctl, &l, (const char *const *)t->cells + i, t->n_columns, false);
	}
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}
