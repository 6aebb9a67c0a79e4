/* The table tests × accelerators in Markdown, within a budget. Its rows come red first, so
 * cutting at the end leaves out what passed before anything else. */
#include <string.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "report/comment_internal.h"

enum {
	/* for the line that says what is missing and the legend, besides the link in it */
	REMARKS_ROOM_BYTES = 512,
	/* encoded: a heading of TABLE_COLUMNS_MAX columns has to leave room for rows */
	DOCS_URL_MAX_BYTES = 256,
};

static void append_header(struct buf *out, const struct table *t)
{
	buf_append_str(out, "| Test |");
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct accelerator_view *a = t->columns[i].accelerator;
		struct buf url = BUF_INIT(COMMENT_MAX_BYTES);
		bool has_link;

		if (!t->columns[i].is_shown)
			continue;
		has_link = a->docs_url &&
			   escape_url(&url, a->docs_url, DOCS_URL_MAX_BYTES, URL_HTTPS) &&
			   url.len <= DOCS_URL_MAX_BYTES;
		buf_append_str(out, has_link ? " [" : " ");
		escape_markdown_label(
		    out, a->title ? a->title : "", TITLE_MAX_CHARS, MARKDOWN_CELL);
		if (has_link)
			buf_appendf(out, "](%s)", buf_str(&url));
		buf_append_str(out, " |");
		buf_release(&url);
	}
	buf_append_str(out, "\n|:--|");
	for (size_t i = 0; i < t->n_shown; i++)
		buf_append_str(out, ":-:|");
	buf_append_char(out, '\n');
}

static int64_t job_of(const struct table_cell *cell)
{
	if (cell->verdict)
		return cell->verdict->job;
	return cell->job ? cell->job->id : 0;
}

static void append_cells(struct buf *out, const struct table *t, const struct comment_options *o,
    const struct table_cell *cells)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		const char *symbol = table_cell_symbol(&cells[i]);
		int64_t job = job_of(&cells[i]);
		struct buf url = BUF_INIT(COMMENT_MAX_BYTES);

		if (!t->columns[i].is_shown)
			continue;
		if (job > 0 && comment_append_own_url(&url, o, "jobs", job))
			buf_appendf(out, " [%s](%s) |", symbol, buf_str(&url));
		else
			buf_appendf(out, " %s |", symbol);
		buf_release(&url);
	}
	buf_append_char(out, '\n');
}

static void append_row(struct buf *out, const struct table *t, const struct comment_options *o,
    const struct table_row *row, struct table_cell *cells)
{
	char *name = table_test_name(row->suite, row->test);

	buf_append_str(out, "| ");
	escape_markdown_code(out, name, TEST_MAX_CHARS, MARKDOWN_CELL);
	buf_append_str(out, " |");
	table_row_cells(t, row, cells);
	append_cells(out, t, o, cells);
	free(name);
}

/* Nothing was reported by anybody: one row says so for all tests. */
static void append_stand_in(struct buf *out, const struct table *t, const struct comment_options *o,
    struct table_cell *cells)
{
	for (size_t i = 0; i < t->n_columns; i++)
		cells[i] = table_empty_cell(t, &t->columns[i]);
	buf_append_str(out, "| every test |");
	append_cells(out, t, o, cells);
}

struct legend {
	bool is_used[N_TEST_STATUSES];
	bool has_running, has_unread;
};

static void legend_note(struct legend *l, const struct table *t, const struct table_cell *cells)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		if (!t->columns[i].is_shown)
			continue;
		switch (cells[i].kind) {
		case CELL_VERDICT:
			l->is_used[cells[i].verdict->status] = true;
			break;
		case CELL_RUNNING:
			l->has_running = true;
			break;
		case CELL_NO_REPORT:
			l->is_used[TEST_MISS] = true;
			break;
		case CELL_NOT_READ:
			l->has_unread = true;
			break;
		case CELL_BLANK:
			break;
		}
	}
}

/* Every symbol in use; a table of nothing but ✓ speaks for itself. */
static void append_legend(struct buf *out, const struct legend *l)
{
	static const char *const words[N_TEST_STATUSES] = {[TEST_FAIL] = "✗ failed",
	    [TEST_ERROR] = "! the test itself broke",
	    [TEST_MISS] = "? no report",
	    [TEST_PASS] = "✓ passed",
	    [TEST_DONE] = "• measured only",
	    [TEST_SKIP] = "– skipped"};
	const char *separator = "";
	bool needs_none = !l->has_running && !l->has_unread;

	for (int s = 0; s < N_TEST_STATUSES; s++)
		needs_none = needs_none && (!l->is_used[s] || s == TEST_PASS);
	if (needs_none)
		return;
	for (int s = 0; s < N_TEST_STATUSES; s++) {
		if (!l->is_used[s])
			continue;
		buf_appendf(out, "%s%s", separator, words[s]);
		separator = " · ";
	}
	if (l->has_running) {
		buf_appendf(out, "%s… running", separator);
		separator = " · ";
	}
	if (l->has_unread)
		buf_appendf(out, "%s· only on the page", separator);
	buf_append_str(out, "\n\n");
}

/* What the table does not show; nothing when it shows all. */
static void append_left_out(
    struct buf *out, const struct table *t, size_t n_left_out, const char *page_url)
{
	size_t n_worse = t->n_rows_in[ROW_RED] + t->n_rows_in[ROW_OTHER];
	size_t n_shown = t->n_rows - n_left_out, n_columns = 0;

	for (size_t i = 0; i < t->n_columns; i++)
		n_columns += !t->columns[i].is_shown && t->columns[i].state <= COLUMN_SILENT;
	if (!n_left_out && !n_columns && !t->view->is_cut)
		return;
	if (n_left_out && n_shown >= n_worse)
		buf_appendf(out, "%zu more rows, all passed, are not shown. ", n_left_out);
	else if (n_left_out)
		buf_appendf(out, "%zu more rows are not shown, %zu of them red. ", n_left_out,
		    n_shown < t->n_rows_in[ROW_RED] ? t->n_rows_in[ROW_RED] - n_shown : 0);
	if (n_columns)
		buf_appendf(out, "%zu more accelerators are not shown. ", n_columns);
	if (t->view->is_cut)
		buf_appendf(
		    out, "There are %lld results in all. ", (long long)t->view->n_verdicts_total);
	if (page_url[0])
		buf_appendf(out, "[The whole table](%s)", page_url);
	buf_append_str(out, "\n\n");
}

/* How many rows were appended. */
static size_t append_rows(struct buf *out, const struct table *t, const struct comment_options *o,
    size_t max_bytes, struct legend *legend)
{
	struct table_cell *cells = xcalloc(t->n_columns + 1, sizeof(*cells));
	struct buf row = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = 0;

	if (t->n_rows == 0) {
		append_stand_in(&row, t, o, cells);
		legend_note(legend, t, cells);
		if (row.len <= max_bytes)
			buf_append(out, row.data, row.len);
	}
	for (; n < t->n_rows; n++) {
		buf_clear(&row);
		append_row(&row, t, o, &t->rows[n], cells);
		if (row.is_overflow || row.len > max_bytes)
			break;
		max_bytes -= row.len;
		buf_append(out, row.data, row.len);
		legend_note(legend, t, cells);
	}
	buf_release(&row);
	free(cells);
	return n;
}

void comment_append_table(struct buf *out, const struct table *t, const struct comment_options *o,
    size_t max_bytes, size_t *ret_n_left_out)
{
	struct buf header = BUF_INIT(COMMENT_MAX_BYTES), url = BUF_INIT(COMMENT_MAX_BYTES);
	struct legend legend = {.has_running = false};
	size_t n_fixed;

	*ret_n_left_out = t->n_rows;
	append_header(&header, t);
	if (t->view->number > 0)
		comment_append_own_url(&url, o, "pulls", t->view->number);
	n_fixed = header.len + url.len + REMARKS_ROOM_BYTES;
	if (t->n_shown > 0 && !header.is_overflow && n_fixed <= max_bytes) {
		buf_append(out, header.data, header.len);
		*ret_n_left_out = t->n_rows - append_rows(out, t, o, max_bytes - n_fixed, &legend);
		buf_append_char(out, '\n');
		append_left_out(out, t, *ret_n_left_out, buf_str(&url));
		append_legend(out, &legend);
	}
	buf_release(&header);
	buf_release(&url);
}
