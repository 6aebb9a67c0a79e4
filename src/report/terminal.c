/* The table for a terminal. Widths are counted here and not by wcwidth(), which depends on a
 * locale that neither a daemon nor a pipe has. */
#include "report/terminal.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/str.h"
#include "report/summary.h"
#include "report/table.h"

enum { WIDTH_DEFAULT = 80, WIDTH_MIN = 40, TITLE_MAX = 14, TEST_MAX = 48, GAP = 2 };

static const char RED[] = "\x1b[31m", GREEN[] = "\x1b[32m", YELLOW[] = "\x1b[33m";
static const char DIM[] = "\x1b[2m", BOLD[] = "\x1b[1m", OFF[] = "\x1b[0m";

struct canvas {
	struct buf *out;
	const struct table *t;
	const struct terminal_options *o;
	size_t width;
	size_t test_width; /* of the first column */
};

/* Columns that a cleaned text takes: East Asian wide ones two, marks none. */
static size_t text_width(const char *s)
{
	size_t width = 0;

	while (*s) {
		const unsigned char *u = (const unsigned char *)s;
		size_t n = u[0] < 0x80 ? 1 : u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2;
		uint32_t c = n == 1 ? u[0] : u[0] & (0xFFu >> (n + 1));

		for (size_t i = 1; i < n; i++)
			c = c << 6 | (u[i] & 0x3F);
		if ((c >= 0x300 && c <= 0x36F) || (c >= 0x1AB0 && c <= 0x1AFF) ||
		    (c >= 0x20D0 && c <= 0x20FF))
			width += 0;
		else if ((c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
			 (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
			 (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
			 (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
			 c >= 0x20000)
			width += 2;
		else
			width += 1;
		s += n;
	}
	return width;
}

/* One clean line of at most max columns. free(). */
static char *fit(const char *text, size_t max)
{
	struct buf line = BUF_INIT(SIZE_MAX / 2);
	size_t n_chars = max;

	escape_line(&line, text, n_chars);
	while (text_width(buf_str(&line)) > max) {
		buf_clear(&line);
		escape_line(&line, text, --n_chars);
	}
	return line.data ? buf_take(&line) : xstrdup("");
}

static void append_coloured(const struct canvas *c, const char *colour, const char *text)
{
	buf_append_str(c->out, c->o->has_colour ? colour : "");
	buf_append_str(c->out, text);
	buf_append_str(c->out, c->o->has_colour && colour[0] ? OFF : "");
}

static void append_spaces(struct buf *out, size_t n)
{
	while (n-- > 0)
		buf_append_char(out, ' ');
}

static const char *cell_colour(const struct table_cell *cell)
{
	enum test_status s = cell->kind == CELL_VERDICT ? cell->verdict->status : N_TEST_STATUSES;

	if (s == TEST_FAIL || s == TEST_ERROR)
		return RED;
	if (s == TEST_PASS)
		return GREEN;
	if (s == TEST_MISS || cell->kind == CELL_NO_REPORT)
		return YELLOW;
	return "";
}

static size_t title_width(const struct table_column *column)
{
	char *title = fit(column->accelerator->title, TITLE_MAX);
	size_t width = text_width(title);

	free(title);
	return width ? width : 1;
}

static void append_row(const struct canvas *c, const char *name, const struct table_cell *cells,
    size_t first, size_t end)
{
	char *text = fit(name, c->test_width);

	buf_append_str(c->out, text);
	append_spaces(c->out, c->test_width - text_width(text));
	for (size_t i = first; i < end; i++) {
		const char *symbol = table_cell_symbol(&cells[i]);
		size_t left, width = title_width(&c->t->columns[i]);

		if (!c->t->columns[i].is_shown)
			continue;
		left = (width - text_width(symbol)) / 2;
		append_spaces(c->out, GAP + left);
		append_coloured(c, cell_colour(&cells[i]), symbol);
		append_spaces(c->out, width - left - text_width(symbol));
	}
	buf_append_char(c->out, '\n');
	free(text);
}

static void append_block(const struct canvas *c, size_t first, size_t end)
{
	const struct table *t = c->t;
	struct table_cell *cells = xcalloc(t->n_columns + 1, sizeof(*cells));

	append_coloured(c, DIM, "Test");
	append_spaces(c->out, c->test_width - strlen("Test"));
	for (size_t i = first; i < end; i++) {
		char *title = fit(t->columns[i].accelerator->title, TITLE_MAX);

		if (t->columns[i].is_shown) {
			append_spaces(c->out, GAP);
			append_coloured(c, BOLD, title);
		}
		free(title);
	}
	buf_append_char(c->out, '\n');
	for (size_t r = 0; r < t->n_rows; r++) {
		char *name = table_test_name(t->rows[r].suite, t->rows[r].test);

		table_row_cells(t, &t->rows[r], cells);
		append_row(c, name, cells, first, end);
		free(name);
	}
	if (t->n_rows == 0) {
		for (size_t i = 0; i < t->n_columns; i++)
			cells[i] = table_empty_cell(t, &t->columns[i]);
		append_row(c, "every test", cells, first, end);
	}
	buf_append_char(c->out, '\n');
	free(cells);
}

/* As many accelerators side by side as the width takes, block below block. */
static void append_blocks(const struct canvas *c)
{
	size_t first = 0;

	while (first < c->t->n_columns) {
		size_t end = first, n_shown = 0, used = c->test_width;

		for (; end < c->t->n_columns; end++) {
			const struct table_column *column = &c->t->columns[end];
			size_t width = column->is_shown ? GAP + title_width(column) : 0;

			if (n_shown > 0 && used + width > c->width)
				break;
			used += width;
			n_shown += column->is_shown;
		}
		if (n_shown > 0)
			append_block(c, first, end);
		first = end;
	}
}

static void append_failures(const struct canvas *c)
{
	const struct table *t = c->t;
	struct table_cell *cells = xcalloc(t->n_columns + 1, sizeof(*cells));
	size_t room = c->width > 4 ? c->width - 4 : c->width;

	for (size_t r = 0; r < t->n_rows_in[ROW_RED]; r++) {
		table_row_cells(t, &t->rows[r], cells);
		for (size_t i = 0; i < t->n_columns; i++) {
			const struct verdict_view *w = cells[i].verdict;
			char *name, *title, *line, *message;

			if (!w || !test_status_is_red(w->status))
				continue;
			name = table_test_name(t->rows[r].suite, t->rows[r].test);
			title = fit(t->columns[i].accelerator->title, TITLE_MAX);
			line = fit(name, room - TITLE_MAX - 4);
			message = fit(w->message ? w->message : "no message", room);
			append_coloured(c, RED, table_cell_symbol(&cells[i]));
			buf_appendf(c->out, " %s on %s\n    %s\n", line, title, message);
			if (w->job > 0)
				buf_appendf(c->out, "    %s/jobs/%lld\n", c->o->public_url,
				    (long long)w->job);
			free(name);
			free(title);
			free(line);
			free(message);
		}
	}
	if (t->n_rows_in[ROW_RED])
		buf_append_char(c->out, '\n');
	free(cells);
}

static void append_waiting(const struct canvas *c)
{
	size_t before = c->out->len;

	for (size_t i = 0; i < c->t->n_columns; i++) {
		const struct table_column *column = &c->t->columns[i];
		const struct dispatch_view *d = column->silent ? column->silent : column->held;
		char *title, *why;

		if (!d)
			continue;
		title = fit(column->accelerator->title, TITLE_MAX);
		why = column->silent ? d->last_error : d->held_reason;
		why = fit(why ? why : "", c->width > 40 ? c->width - 32 : 40);
		append_coloured(c, YELLOW, column->silent ? "no report" : "held");
		buf_appendf(c->out, "  %s%s%s\n", title, why[0] ? ": " : "", why);
		free(title);
		free(why);
	}
	if (c->out->len > before)
		buf_append_char(c->out, '\n');
}

static void append_plain_title(struct buf *out, const char *title)
{
	escape_line(out, title ? title : "", TITLE_MAX * 2);
}

static size_t widest_test(const struct table *t)
{
	size_t widest = strlen("every test");

	for (size_t r = 0; r < t->n_rows; r++) {
		char *name = table_test_name(t->rows[r].suite, t->rows[r].test);
		char *text = fit(name, TEST_MAX);
		size_t width = text_width(text);

		widest = width > widest ? width : widest;
		free(text);
		free(name);
	}
	return widest;
}

void terminal_render(const struct change_view *v, const struct terminal_options *o, struct buf *out)
{
	struct summary_style style = {.bold_on = o->has_colour ? BOLD : "",
	    .bold_off = o->has_colour ? OFF : "",
	    .append_title = append_plain_title};
	int width = o->width ? o->width : WIDTH_DEFAULT;
	char time[RFC3339_BYTES];
	struct canvas c;
	struct table t;

	table_init(&t, v);
	c = (struct canvas){.out = out, .t = &t, .o = o, .test_width = widest_test(&t)};
	c.width = (size_t)(width < WIDTH_MIN ? WIDTH_MIN : width);
	if (c.test_width > c.width / 2)
		c.test_width = c.width / 2;
	summary_append(&t, &style, out);
	buf_appendf(out, "\n\n%s#%lld at %.10s", v->repository, (long long)v->number, v->head_sha);
	if (v->merge_base_sha)
		buf_appendf(out, ", merge base %.10s", v->merge_base_sha);
	buf_append_str(out, "\n\n");
	if (t.n_shown > 0)
		append_blocks(&c);
	append_failures(&c);
	append_waiting(&c);
	append_coloured(&c, DIM,
	    "✓ passed  ✗ failed  ! test broke  ? no report  – skipped  • measured  … running");
	buf_appendf(out, "\n%s\n", rfc3339_format(o->now_wall_ms, time));
	table_release(&t);
}
