#include "report/status.h"

#include "base/alloc.h"
#include "base/escape.h"
#include "report/comment_internal.h"
#include "report/summary.h"

enum { LINES_MAX = 60 };

static const char *word_of(const struct table_column *c)
{
	static const char *const words[] = {
	    [COLUMN_RUNNING] = "at work",
	    [COLUMN_SILENT] = "no report",
	    [COLUMN_HELD] = "held",
	    [COLUMN_FINISHED] = "finished",
	    [COLUMN_CANCELLED] = "cancelled",
	};

	return c->state == COLUMN_RUNNING && c->is_waiting ? "waits for a machine"
							   : words[c->state];
}

static const char *why_of(const struct table_column *c)
{
	switch (c->state) {
	case COLUMN_HELD:
		return c->held ? c->held->held_reason : NULL;
	case COLUMN_SILENT:
		return c->silent ? c->silent->last_error : NULL;
	case COLUMN_CANCELLED:
		return c->dispatch ? c->dispatch->last_error : NULL;
	case COLUMN_RUNNING:
	case COLUMN_FINISHED:
		break;
	}
	return NULL;
}

/* "- Ascend NPU: finished, 12 passed, 1 failed" */
static void append_column(struct buf *out, const struct table_column *c)
{
	static const struct {
		enum test_status status;
		const char *word;
	} counts[] = {{TEST_PASS, "passed"}, {TEST_FAIL, "failed"}, {TEST_ERROR, "broken tests"},
	    {TEST_MISS, "without a result"}, {TEST_SKIP, "skipped"}};
	const char *why = why_of(c);

	buf_append_str(out, "- ");
	comment_append_title(out, c->accelerator->title);
	buf_appendf(out, ": %s", word_of(c));
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		if (c->n_cells[counts[i].status])
			buf_appendf(out, ", %zu %s", c->n_cells[counts[i].status], counts[i].word);
	if (c->n_rerunning)
		buf_appendf(out, ", re-running %zu", c->n_rerunning);
	if (why) {
		buf_append_str(out, ": ");
		escape_markdown_code(out, why, REASON_MAX_CHARS, MARKDOWN_TEXT);
	}
	buf_append_char(out, '\n');
}

void status_render(const struct change_view *v, const struct comment_options *o, struct buf *out)
{
	static const struct summary_style style = {
	    .bold_on = "**", .bold_off = "**", .append_title = comment_append_title};
	struct buf url = BUF_INIT(COMMENT_MAX_BYTES);
	struct table t;

	table_init(&t, v);
	summary_append(&t, &style, out);
	buf_append_str(out, "\n\nTested commit: ");
	comment_append_commit(out, v, o, v->head_sha ? v->head_sha : "");
	buf_append_str(out, "\n\n");
	for (size_t i = 0; i < t.n_columns && i < LINES_MAX; i++)
		append_column(out, &t.columns[i]);
	if (t.n_columns > LINES_MAX)
		buf_appendf(out, "- and %zu more\n", t.n_columns - LINES_MAX);
	if (v->number > 0 && comment_append_own_url(&url, o, "pulls", v->number))
		buf_appendf(out, "\n[All results](%s)\n", buf_str(&url));
	buf_release(&url);
	table_release(&t);
}
