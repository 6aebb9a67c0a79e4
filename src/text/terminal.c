/* Counts widths without wcwidth(), because that depends on a locale, which a daemon and a pipe do not have. */
#include "text/terminal.h"

#include "text/summary.h"
#include "text/table.h"

enum { WIDTH_DEFAULT = 80, WIDTH_MIN = 40, TITLE_MAX = 14, TEST_MAX = 48, GAP = 2 };

static const char ALL_TESTS[] = "every test";
static const char RED[] = "\x1b[31m", GREEN[] = "\x1b[32m", YELLOW[] = "\x1b[33m";
static const char DIM[] = "\x1b[2m", BOLD[] = "\x1b[1m", OFF[] = "\x1b[0m";

struct canvas {
	struct buf *out;
	const struct table *t;
	const struct terminal_options *o;
	size_t width;
	size_t test_width; /* of the first column */
	size_t *widths;    /* of the other ones */
};

/* The width of a cleaned text: two columns for an East Asian wide character, none for a mark. */
static size_t text_width(const char *s)
{
	size_t width = 0;

	while (*s) {
		uint32_t c;

		s += utf8_decode(s, &c);
		if ((c >= 0x300 && c <= 0x36F) || (c >= 0x1AB0 && c <= 0x1AFF) || (c >= 0x20D0 && c <= 0x20FF))
			width += 0;
		else if ((c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
			 (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
			 (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) || c >= 0x20000)
			width += 2;
		else
			width += 1;
	}
	return width;
}

/* One clean line of at most max columns. free(). */
static char *fit_text(const char *text, size_t max)
{
	struct buf line = BUF_INIT(SIZE_MAX / 2);
	size_t n_chars = max;

	escape_line(&line, text, n_chars);
	while (text_width(buf_str(&line)) > max) {
		buf_clear(&line);
		escape_line(&line, text, --n_chars);
	}
	return line.data ? buf_detach(&line) : xstrdup("");
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
		return cell->word && !str_eq(cell->word, "new") ? YELLOW : RED;
	if (s == TEST_PASS)
		return GREEN;
	if (s == TEST_MISS || cell->kind == CELL_NO_REPORT)
		return YELLOW;
	return "";
}

/* The text of a cell: "✗ flaky", "✓". free(). */
static char *cell_sign(const struct table_cell *cell)
{
	return xasprintf("%s%s%s", table_cell_symbol(cell), cell->word ? " " : "", cell->word ? cell->word : "");
}

/* The cells of the i-th row. A table without rows has one line with the state of each column. */
static void line_cells(const struct table *t, size_t i, struct table_cell *cells)
{
	if (t->n_rows > 0) {
		table_row_cells(t, &t->rows[i], cells);
		return;
	}
	for (size_t k = 0; k < t->n_columns; k++)
		cells[k] = table_empty_cell(t, &t->columns[k]);
}

static size_t n_lines(const struct table *t) { return t->n_rows > 0 ? t->n_rows : 1; }

/* Makes each column as wide as its title and the widest sign in it, and the first one as wide as the widest test. */
static void set_widths(struct canvas *c)
{
	const struct table *t = c->t;
	size_t *widths = c->widths = xcalloc(t->n_columns + 1, sizeof(*widths));
	struct table_cell *cells = xcalloc(t->n_columns + 1, sizeof(*cells));

	for (size_t i = 0; i < t->n_columns; i++) {
		char *title = fit_text(t->columns[i].accelerator->title, TITLE_MAX);

		widths[i] = text_width(title);
		free(title);
	}
	for (size_t line = 0; line < n_lines(t); line++) {
		line_cells(t, line, cells);
		for (size_t i = 0; i < t->n_columns; i++) {
			char *sign = cell_sign(&cells[i]);
			size_t width = text_width(sign);

			widths[i] = width > widths[i] ? width : widths[i];
			free(sign);
		}
	}
	free(cells);
	c->test_width = strlen(ALL_TESTS);
	for (size_t r = 0; r < t->n_rows; r++) {
		char *name = table_row_name(&t->rows[r]), *text = fit_text(name, TEST_MAX);
		size_t width = text_width(text);

		c->test_width = width > c->test_width ? width : c->test_width;
		FREE_ALL(text, name);
	}
	if (c->test_width > c->width / 2)
		c->test_width = c->width / 2;
}

static void append_row(
    const struct canvas *c, const char *name, const struct table_cell *cells, size_t first, size_t end)
{
	char *text = fit_text(name, c->test_width);

	buf_append_str(c->out, text);
	append_spaces(c->out, c->test_width - text_width(text));
	for (size_t i = first; i < end; i++) {
		if (!c->t->columns[i].is_shown)
			continue;
		char *sign = cell_sign(&cells[i]);
		size_t width = c->widths[i], left = (width - text_width(sign)) / 2;

		append_spaces(c->out, GAP + left);
		append_coloured(c, cell_colour(&cells[i]), sign);
		append_spaces(c->out, width - left - text_width(sign));
		free(sign);
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
		char *title = fit_text(t->columns[i].accelerator->title, TITLE_MAX);

		if (t->columns[i].is_shown) {
			append_spaces(c->out, GAP);
			append_coloured(c, BOLD, title);
			append_spaces(c->out, c->widths[i] - text_width(title));
		}
		free(title);
	}
	buf_append_char(c->out, '\n');
	for (size_t line = 0; line < n_lines(t); line++) {
		char *name = t->n_rows > 0 ? table_row_name(&t->rows[line]) : xstrdup(ALL_TESTS);

		line_cells(t, line, cells);
		append_row(c, name, cells, first, end);
		free(name);
	}
	buf_append_char(c->out, '\n');
	free(cells);
}

/* As many accelerators side by side as fit into the width, in blocks below each other. */
static void append_blocks(const struct canvas *c)
{
	size_t first = 0;

	while (first < c->t->n_columns) {
		size_t end = first, n_shown = 0, used = c->test_width;

		for (; end < c->t->n_columns; end++) {
			const struct table_column *column = &c->t->columns[end];
			size_t width = column->is_shown ? GAP + c->widths[end] : 0;

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

static void append_link(const struct canvas *c, const char *what, int64_t job)
{
	if (job > 0)
		buf_appendf(c->out, "    %s%s/jobs/%lld\n", what, c->o->public_url, (long long)job);
}

static void append_failures(const struct canvas *c)
{
#define FAILURE_HEADING(e, name, word, heading) heading,
	static const char *const headings[] = {FAILURE_GROUPS(FAILURE_HEADING)};

	for (int g = 0; g < N_FAILURE_GROUPS; g++) {
		const struct table_failure *f = table_failures(c->t, (enum failure_group)g);

		if (c->t->n_failures_in[g] == 0)
			continue;
		append_coloured(c, BOLD, headings[g]);
		buf_append_char(c->out, '\n');
		for (size_t i = 0; i < c->t->n_failures_in[g]; i++) {
			const struct table_failure *failure = &f[i];
			const struct verdict_view *w = failure->verdict;
			size_t room = c->width - 4;
			char *full = table_row_name(failure->row), *name = fit_text(full, room - TITLE_MAX - 4);
			char *title = fit_text(c->t->columns[failure->column].accelerator->title, TITLE_MAX);
			char *message = fit_text(w->message ? w->message : "no message", room);
			char *reason = fit_text(w->reason ? w->reason : "", room);
			struct verdict_evidence e = verdict_evidence_of(w);
			char *issue = fit_text(e.issue_url ? e.issue_url : "", room);

			append_coloured(c, RED, table_status_symbol(w->status));
			buf_appendf(c->out, " %s on %s\n    %s\n", name, title, message);
			if (reason[0])
				buf_appendf(c->out, "    %s\n", reason);
			if (w->rerun)
				buf_appendf(c->out, "    %s\n", rerun_state_text(w->rerun));
			if (issue[0])
				buf_appendf(c->out, "    %s\n", issue);
			else
				append_link(c, "evidence: ", e.job);
			append_link(c, "", w->job);
			FREE_ALL(full, name, title, message, reason, issue);
		}
		buf_append_char(c->out, '\n');
	}
}

static void append_state(const struct canvas *c, const struct table_column *column, const char *state, const char *why)
{
	char *title = fit_text(column->accelerator->title, TITLE_MAX);
	char *text = fit_text(why ? why : "", c->width > 40 ? c->width - 32 : 40);

	append_coloured(c, YELLOW, state);
	buf_appendf(c->out, "  %s%s%s\n", title, text[0] ? ": " : "", text);
	FREE_ALL(title, text);
}

static void append_states(const struct canvas *c)
{
	size_t before = c->out->len;

	for (size_t i = 0; i < c->t->n_columns; i++) {
		const struct table_column *column = &c->t->columns[i];

		if (column->silent)
			append_state(c, column, "no report", column->silent->last_error);
		else if (column->held)
			append_state(c, column, "held", column->held->held_reason);
		else if (column->is_waiting)
			append_state(c, column, "waiting", "for a machine");
		if (column->n_lacking)
			append_state(c, column, "required", "not all is there");
		if (column->outcome == OUTCOME_NOT_COUNTED)
			append_state(c, column, "unhealthy", "not counted");
	}
	if (c->out->len > before)
		buf_append_char(c->out, '\n');
}

static void append_plain_title(struct buf *out, const char *title)
{
	escape_line(out, title ? title : "", TITLE_MAX * 2);
}

void terminal_render(const struct table *t, const struct terminal_options *o, struct buf *out)
{
	const struct change_view *v = t->view;
	struct summary_style style = {.bold_on = o->has_colour ? BOLD : "",
	    .bold_off = o->has_colour ? OFF : "",
	    .append_title = append_plain_title};
	int width = o->width ? o->width : WIDTH_DEFAULT;
	char time[RFC3339_BYTES];
	struct canvas c = {.out = out, .t = t, .o = o, .width = (size_t)(width < WIDTH_MIN ? WIDTH_MIN : width)};

	set_widths(&c);
	summary_append(t, &style, out);
	buf_appendf(out, "\n\n%s#%lld at %.10s", v->repository, (long long)v->number, v->head_sha);
	if (v->merge_base_sha)
		buf_appendf(out, ", merge base %.10s", v->merge_base_sha);
	buf_append_str(out, "\n\n");
	if (v->state != CHANGE_SUPERSEDED) {
		if (t->n_shown > 0)
			append_blocks(&c);
		append_failures(&c);
		append_states(&c);
	}
	append_coloured(&c, DIM, "✓ passed  ✗ failed  ! test broke  ? no report  – skipped  • measured  … running");
	buf_appendf(out, "\n%s\n", rfc3339_format(o->now_wall_ms, time));
	free(c.widths);
}
