/* The table tests × accelerators in Markdown, within a budget, and the legend of its signs. Red rows come
 * first, so a cut at the end leaves out passed tests before anything else. */
#include "text/comment_internal.h"
#include "text/summary.h"

enum {
	/* for the line about missing rows and the legend, without the link in it */
	REMARKS_ROOM_BYTES = 512,
	/* encoded: a heading of TABLE_COLUMNS_MAX columns has to leave space for rows */
	DOCS_URL_MAX_BYTES = 256,
	/* more rows are on the page: people read the comment in ten seconds */
	RED_ROWS_MAX = 100,
	OTHER_ROWS_MAX = 30,
	PASSED_ROWS_MAX = 50,
	PASSED_ROWS_BESIDE_RED_MAX = 15, /* failures are explained below the table */
};

static void append_header(struct buf *out, const struct table *t, bool wants_links)
{
	buf_append_str(out, "| Test |");
	for (size_t i = 0; i < t->n_shown; i++) {
		const struct accelerator_view *a = t->columns[t->shown[i]].accelerator;
		struct buf url = BUF_INIT(COMMENT_MAX_BYTES);
		bool has_link = wants_links && a->docs_url &&
				escape_url(&url, a->docs_url, DOCS_URL_MAX_BYTES, URL_HTTPS) &&
				url.len <= DOCS_URL_MAX_BYTES;

		buf_append_str(out, has_link ? " [" : " ");
		escape_markdown_label(out, a->title ? a->title : "", TITLE_MAX_CHARS, MARKDOWN_CELL);
		if (has_link)
			buf_appendf(out, "](%s)", buf_str(&url));
		buf_append_str(out, a->is_unhealthy ? " (unhealthy, not counted) |" : " |");
		buf_release(&url);
	}
	buf_append_str(out, "\n|:--|");
	for (size_t i = 0; i < t->n_shown; i++)
		buf_append_str(out, ":-:|");
	buf_append_char(out, '\n');
}

static void append_cells(
    struct buf *out, const struct table *t, const struct comment_options *o, const struct table_cell *cells)
{
	for (size_t i = 0; i < t->n_shown; i++) {
		const struct table_cell *cell = &cells[t->shown[i]];
		int64_t job = cell->verdict ? cell->verdict->job : cell->job ? cell->job->id : 0;
		struct buf url = BUF_INIT(COMMENT_MAX_BYTES);
		bool has_link = own_url_append(&url, o->public_url, "jobs", job);

		buf_append_str(out, has_link ? " [" : " ");
		/* "✗ **new**", "✗ base", "✓" */
		buf_append_str(out, table_cell_symbol(cell));
		if (cell->word)
			buf_appendf(out, str_eq(cell->word, "new") ? " **%s**" : " %s", cell->word);
		if (has_link)
			buf_appendf(out, "](%s)", buf_str(&url));
		buf_append_str(out, " |");
		buf_release(&url);
	}
	buf_append_char(out, '\n');
}

struct shown {
	size_t n_left_out, n_red_left_out, n_passed_left_out;
};

/* Rows of a cut view that were not read. */
static size_t n_unread_rows(const struct table *t)
{
	size_t n = (size_t)t->view->n_tests_total;

	return t->view->is_cut && n > t->n_rows ? n - t->n_rows : 0;
}

static void append_rows_left_out(struct buf *out, const struct table *t, const struct shown *s)
{
	size_t n_unread = n_unread_rows(t), n = s->n_left_out + n_unread;
	bool are_known = !n_unread || !t->has_unread_other;
	size_t n_passed = s->n_passed_left_out + (are_known ? n_unread : 0);

	if (!n)
		return;
	count_append(out, n);
	buf_append_str(out, n == 1 ? " more row" : " more rows");
	if (n == n_passed) {
		buf_appendf(out, ", all passed, %s not shown. ", n == 1 ? "is" : "are");
		return;
	}
	buf_append_str(out, t->has_unread_red ? " not shown, at least " : " not shown, ");
	count_append(out, s->n_red_left_out);
	buf_append_str(out, " of them red");
	if (are_known) {
		buf_append_str(out, " and ");
		count_append(out, n_passed);
		buf_append_str(out, " passed");
	}
	buf_append_str(out, ". ");
}

/* Counts the rows and columns that the table does not show, if any. */
static void append_left_out(struct buf *out, const struct table *t, const struct shown *s, const char *page_url)
{
	size_t n_columns = 0;

	for (size_t i = 0; i < t->n_columns; i++)
		n_columns += !t->columns[i].is_shown && t->columns[i].state <= COLUMN_SILENT;
	if (!s->n_left_out && !n_columns && !t->view->is_cut)
		return;
	append_rows_left_out(out, t, s);
	if (n_columns)
		buf_appendf(out, "%zu more accelerators are not shown. ", n_columns);
	if (t->view->is_cut) {
		buf_append_str(out, "There are ");
		count_append(out, (size_t)t->view->n_verdicts_total);
		buf_append_str(out, " results in all. ");
	}
	if (page_url[0])
		buf_appendf(out, "[The whole table](%s)", page_url);
	buf_append_str(out, "\n\n");
}

static size_t max_rows(const struct table *t, enum row_class class)
{
	if (class == ROW_PASSED)
		return t->n_failures ? PASSED_ROWS_BESIDE_RED_MAX : PASSED_ROWS_MAX;
	return class == ROW_OTHER ? OTHER_ROWS_MAX : RED_ROWS_MAX;
}

void comment_append_table(
    struct buf *out, const struct table *t, const struct comment_options *o, size_t max_bytes, size_t *ret_n_left_out)
{
	struct buf header = BUF_INIT(COMMENT_MAX_BYTES), url = BUF_INIT(COMMENT_MAX_BYTES);
	struct shown shown = {.n_left_out = 0};

	append_header(&header, t, true);
	if (header.is_overflow || header.len > max_bytes / 2) {
		buf_release(&header);
		append_header(&header, t, false);
	}
	own_url_append(&url, o->public_url, "pulls", t->view->number);
	size_t n_fixed = header.len + url.len + REMARKS_ROOM_BYTES;
	*ret_n_left_out = t->n_rows;
	if (t->n_shown > 0 && !header.is_overflow && n_fixed <= max_bytes) {
		buf_append(out, header.data, header.len);
		/* The rows that fit, the worst first. */
		size_t max = max_bytes - n_fixed;
		struct table_cell *cells = xcalloc(t->n_columns + 1, sizeof(*cells));
		struct buf row = BUF_INIT(COMMENT_MAX_BYTES);
		size_t n_in[N_ROW_CLASSES] = {0};
		bool is_full = false;

		if (t->n_rows == 0) {
			/* nothing was reported: one row for all tests */
			for (size_t i = 0; i < t->n_columns; i++)
				cells[i] = table_empty_cell(t, &t->columns[i]);
			buf_append_str(&row, "| every test |");
			append_cells(&row, t, o, cells);
			if (row.len <= max)
				buf_append(out, row.data, row.len);
		}
		for (size_t i = 0; i < t->n_rows; i++) {
			enum row_class class = t->rows[i].class;

			if (!is_full && n_in[class]++ < max_rows(t, class)) {
				buf_clear(&row);
				const struct table_row *r = &t->rows[i];
				char *name = table_row_name(r);

				buf_append_str(&row, "| ");
				escape_markdown_code(&row, name, TEST_MAX_CHARS, MARKDOWN_CELL);
				buf_append_str(&row, " |");
				table_row_cells(t, r, cells);
				append_cells(&row, t, o, cells);
				free(name);
				is_full = row.is_overflow || row.len > max;
				if (!is_full) {
					max -= row.len;
					buf_append(out, row.data, row.len);
					continue;
				}
			}
			shown.n_left_out++;
			shown.n_red_left_out += class <= ROW_RED;
			shown.n_passed_left_out += class == ROW_PASSED;
		}
		buf_release(&row);
		free(cells);
		buf_append_char(out, '\n');
		append_left_out(out, t, &shown, buf_str(&url));
		*ret_n_left_out = shown.n_left_out;
	}
	buf_release(&header);
	buf_release(&url);
}

/* ---- the legend ---- */

struct sign_use {
	bool statuses[N_TEST_STATUSES], words[N_FAILURE_GROUPS];
	bool running, no_report, not_supported, not_read;
};

void comment_append_legend(struct buf *out, const struct table *t)
{
	struct sign_use u = {.running = false};
	const char *separator = "";
	bool needs_none = true;

	for (size_t i = 0; i < t->n_columns; i++) {
		const struct table_column *c = &t->columns[i];
		struct table_cell empty = table_empty_cell(t, c);

		if (!c->is_shown)
			continue;
		for (int s = 0; s < N_TEST_STATUSES; s++)
			u.statuses[s] |= c->n_cells[s] > 0;
		for (int g = 0; g < N_FAILURE_GROUPS; g++)
			u.words[g] |= c->n_failures[g] > 0;
		u.running |= empty.kind == CELL_RUNNING || c->n_running_jobs;
		u.no_report |= empty.kind == CELL_NO_REPORT;
		u.not_read |= empty.kind == CELL_NOT_READ;
		u.not_supported |= strv_len((const char *const *)c->accelerator->skip) > 0;
	}
	const struct {
		bool is_used;
		const char *words;
	} signs[] = {
	    {u.statuses[TEST_PASS], "✓ passed"},
	    {u.statuses[TEST_FAIL], "✗ failed"},
	    {u.statuses[TEST_ERROR], "! the test itself broke"},
	    {u.words[FAILURE_NEW], "new: passed on the base"},
	    {u.words[FAILURE_KNOWN], "known: has an issue"},
	    {u.words[FAILURE_BASE], "base: red there, too"},
	    {u.words[FAILURE_FLAKY], "flaky: passed again"},
	    {u.words[FAILURE_NOT_COUNTED], "not counted: the accelerator is unhealthy"},
	    {u.statuses[TEST_MISS] || u.no_report, "? no report"},
	    {u.statuses[TEST_DONE], "• measured only"},
	    {u.statuses[TEST_SKIP] || u.not_supported, "– skipped or not supported"},
	    {u.running, "… running or waiting"},
	    {u.not_read, "· only on the page"},
	};

	for (size_t i = 1; i < ARRAY_LEN(signs); i++)
		needs_none = needs_none && !signs[i].is_used;
	if (t->n_shown == 0 || needs_none)
		return;
	for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
		if (!signs[i].is_used)
			continue;
		buf_appendf(out, "%s%s", separator, signs[i].words);
		separator = " · ";
	}
	buf_append_str(out, "\n\n");
}
