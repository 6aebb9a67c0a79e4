/* What stands below the table: the red cells with what a person needs to go on, then the
 * accelerators that have no result yet and why. Contacts are named as text, never mentioned: a bot
 * that edits a comment all day must not ping anybody. */
#include <string.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "base/str.h"
#include "report/comment_internal.h"

enum {
	NAMED_MAX = 20,           /* accelerators in one paragraph */
	FAILURES_PER_COLUMN = 10, /* lines of one accelerator */
	FAILURES_MAX_BYTES = 14 * 1024,
	PARAGRAPH_MAX_BYTES = 2560, /* of who has no result */
	HELD_MAX_BYTES = 2048,      /* one for those whom a member releases, one for others */
	REASON_MAX_CHARS = 160,
	MESSAGE_MAX_CHARS = 200,
	ONCALL_MAX = 5,
	LEFT_OUT_SHOWN_MAX = 999999,
};

/* "[contact](…), on call `alice`, `bob`" behind `before`; nothing when none is known. */
static void append_contact(struct buf *out, const struct accelerator_view *a, const char *before)
{
	struct buf url = BUF_INIT(COMMENT_MAX_BYTES);
	const char *separator = before;

	if (a->help_url && escape_url(&url, a->help_url, VENDOR_URL_MAX_BYTES, URL_HTTPS)) {
		buf_appendf(out, "%s[contact](%s)", separator, buf_str(&url));
		separator = ", ";
	}
	for (size_t i = 0; a->oncall && a->oncall[i] && i < ONCALL_MAX; i++) {
		buf_append_str(out, i ? ", " : separator);
		buf_append_str(out, i ? "" : "on call ");
		escape_markdown_code(out, a->oncall[i], TITLE_MAX_CHARS, MARKDOWN_TEXT);
	}
	buf_release(&url);
}

/* ---- paragraphs: who has no result, and why ---- */

static void append_silent(struct buf *out, const struct table_column *c)
{
	const char *why = c->silent->last_error;

	comment_append_title(out, c->accelerator->title);
	buf_append_str(out, ": ");
	if (why)
		escape_markdown_code(out, why, REASON_MAX_CHARS, MARKDOWN_TEXT);
	else
		buf_append_str(out, c->silent->state == DISPATCH_EXPIRED
					? "nothing came within its deadline"
					: "it could not be reached");
	append_contact(out, c->accelerator, ", ");
}

static void append_running(struct buf *out, const struct table_column *c)
{
	static const char *const words[N_DISPATCH_STATES] = {[DISPATCH_QUEUED] = "not asked yet",
	    [DISPATCH_SENT] = "asked, no answer yet",
	    [DISPATCH_ACKNOWLEDGED] = "accepted, not started"};
	const char *word = words[c->dispatch->state];

	if (c->dispatch->state == DISPATCH_QUEUED && str_eq(c->dispatch->runner_kind, "pull"))
		word = "waits for a machine";
	comment_append_title(out, c->accelerator->title);
	if (word)
		buf_appendf(out, " (%s)", word);
}

static void append_cancelled(struct buf *out, const struct table_column *c)
{
	const char *why = table_declined_why(c);

	comment_append_title(out, c->accelerator->title);
	if (why) {
		buf_append_str(out, ": ");
		escape_markdown_code(out, why, REASON_MAX_CHARS, MARKDOWN_TEXT);
	}
}

static bool is_silent(const struct table_column *c)
{
	return c->silent != NULL;
}

static bool is_running(const struct table_column *c)
{
	return c->state == COLUMN_RUNNING;
}

static bool is_cancelled(const struct table_column *c)
{
	return c->state == COLUMN_CANCELLED && c->dispatch;
}

static int64_t n_tests_cut(const struct table_column *c)
{
	int64_t n = 0;

	for (size_t i = 0; i < c->accelerator->n_jobs; i++)
		n += c->accelerator->jobs[i].n_cut;
	return n;
}

static bool is_incomplete(const struct table_column *c)
{
	return n_tests_cut(c) > 0;
}

static void append_cut(struct buf *out, const struct table_column *c)
{
	int64_t n = n_tests_cut(c);

	comment_append_title(out, c->accelerator->title);
	/* the vendor chose the number: seven digits may be read as a commit, and be linked */
	if (n > LEFT_OUT_SHOWN_MAX)
		buf_append_str(out, ": its report leaves out over 999,999 tests");
	else
		buf_appendf(
		    out, ": its report leaves out %lld test%s", (long long)n, n == 1 ? "" : "s");
}

struct paragraph {
	const char *heading;
	bool (*is_in)(const struct table_column *c);
	void (*append)(struct buf *out, const struct table_column *c);
	const char *separator;
};

/* One item a column; names as many as fit, and how many more there are. */
static void append_paragraph(struct buf *out, const struct table *t, const struct paragraph *p)
{
	struct buf item = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = 0, n_unnamed = 0, end = out->len + PARAGRAPH_MAX_BYTES;

	for (size_t i = 0; i < t->n_columns; i++) {
		if (!p->is_in(&t->columns[i]))
			continue;
		buf_clear(&item);
		p->append(&item, &t->columns[i]);
		if (n == NAMED_MAX || out->len + item.len > end) {
			n_unnamed++;
			continue;
		}
		buf_append_str(out, n++ ? p->separator : p->heading);
		buf_append(out, item.data, item.len);
	}
	if (n_unnamed)
		buf_appendf(out, "%s%zu more", n ? p->separator : p->heading, n_unnamed);
	buf_release(&item);
}

static bool is_held_alike(const struct table_column *x, const struct table_column *y)
{
	return x->held && y->held && table_is_releasable(x) == table_is_releasable(y) &&
	       str_eq(x->held->held_reason, y->held->held_reason);
}

static bool is_first_held_so(const struct table *t, size_t column)
{
	for (size_t i = 0; i < column; i++)
		if (is_held_alike(&t->columns[i], &t->columns[column]))
			return false;
	return true;
}

/* "A, B, 3 more: `why`" for all that are held as `column` is. Returns how many. */
static size_t append_held_group(struct buf *out, const struct table *t, size_t column)
{
	const char *why = t->columns[column].held->held_reason;
	size_t n = 0;

	for (size_t i = column; i < t->n_columns; i++) {
		if (!is_held_alike(&t->columns[i], &t->columns[column]) || n++ >= NAMED_MAX)
			continue;
		buf_append_str(out, i == column ? "" : ", ");
		comment_append_title(out, t->columns[i].accelerator->title);
	}
	if (n > NAMED_MAX)
		buf_appendf(out, ", %zu more", n - NAMED_MAX);
	if (why) {
		buf_append_str(out, ": ");
		escape_markdown_code(out, why, REASON_MAX_CHARS, MARKDOWN_TEXT);
	}
	return n;
}

/* Those that share a reason are named together: it is one of a few policies. */
static void append_held(struct buf *out, const struct table *t, bool is_releasable)
{
	struct buf item = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = 0, n_unnamed = 0, end = out->len + HELD_MAX_BYTES;

	for (size_t i = 0; i < t->n_columns; i++) {
		size_t n_alike;

		if (!t->columns[i].held || table_is_releasable(&t->columns[i]) != is_releasable ||
		    !is_first_held_so(t, i))
			continue;
		buf_clear(&item);
		n_alike = append_held_group(&item, t, i);
		if (out->len + item.len > end) {
			n_unnamed += n_alike;
			continue;
		}
		buf_append_str(out, n++ ? "; " : "**Held:** ");
		buf_append(out, item.data, item.len);
	}
	if (n_unnamed)
		buf_appendf(out, "%s%zu more", n ? "; " : "**Held:** ", n_unnamed);
	buf_release(&item);
}

static void append_how_to_release(struct buf *out, const struct comment_options *o)
{
	char *command = xasprintf("@%s ok-to-test", o->bot ? o->bot : "BOT");

	buf_append_str(out, ". A member of the repository releases this commit with the comment ");
	escape_markdown_code(out, command, 0, MARKDOWN_TEXT);
	if (!o->bot)
		buf_append_str(out, " (BOT is who wrote this)");
	free(command);
}

static void append_all_held(struct buf *out, const struct table *t, const struct comment_options *o)
{
	size_t before = out->len;

	append_held(out, t, true);
	if (out->len > before) {
		append_how_to_release(out, o);
		buf_append_str(out, "\n\n");
	}
	before = out->len;
	append_held(out, t, false);
	buf_append_str(out, out->len > before ? "\n\n" : "");
}

void comment_append_states(struct buf *out, const struct table *t, const struct comment_options *o)
{
	static const struct paragraph paragraphs[] = {
	    {"**No report:** ", is_silent, append_silent, "; "},
	    {"**Incomplete:** ", is_incomplete, append_cut, "; "},
	    {"**Still running:** ", is_running, append_running, ", "},
	    {"**Cancelled:** ", is_cancelled, append_cancelled, ", "},
	};

	for (size_t i = 0; i < ARRAY_LEN(paragraphs); i++) {
		size_t before = out->len;

		append_paragraph(out, t, &paragraphs[i]);
		buf_append_str(out, out->len > before ? "\n\n" : "");
		if (i == 0)
			append_all_held(out, t, o);
	}
}

/* ---- failures ---- */

static const struct job_view *find_job(const struct accelerator_view *a, int64_t id)
{
	for (size_t i = 0; i < a->n_jobs; i++)
		if (a->jobs[i].id == id)
			return &a->jobs[i];
	return NULL;
}

/* The error in one line: the vendor's message, else what the job's end says. */
static void append_error(struct buf *out, const struct verdict_view *w, const struct job_view *job)
{
	if (w->message && w->message[0]) {
		escape_markdown_code(out, w->message, MESSAGE_MAX_CHARS, MARKDOWN_TEXT);
	} else if (w->status == TEST_MISS && job && job->conclusion) {
		buf_append_str(out, "no result, the job ended as ");
		escape_markdown_code(out, job->conclusion, TITLE_MAX_CHARS, MARKDOWN_TEXT);
	} else if (w->status == TEST_MISS) {
		buf_append_str(out, "no result");
	} else {
		buf_append_str(out, w->status == TEST_ERROR ? "the test itself broke" : "failed");
		buf_append_str(out, ", no message was reported");
	}
}

static void append_failure(struct buf *out, const struct table_row *row,
    const struct table_cell *cell, const struct accelerator_view *a,
    const struct comment_options *o)
{
	const struct verdict_view *w = cell->verdict;
	const struct job_view *job = find_job(a, w->job);
	struct buf url = BUF_INIT(COMMENT_MAX_BYTES);
	char *name = table_test_name(row->suite, row->test);

	buf_appendf(out, "- %s ", table_cell_symbol(cell));
	escape_markdown_code(out, name, TEST_MAX_CHARS, MARKDOWN_TEXT);
	buf_append_str(out, ": ");
	append_error(out, w, job);
	if (comment_append_own_url(&url, o, "jobs", w->job))
		buf_appendf(out, " · [evidence](%s)", buf_str(&url));
	buf_clear(&url);
	if (job && job->url && escape_url(&url, job->url, VENDOR_URL_MAX_BYTES, URL_HTTPS))
		buf_appendf(out, " · [vendor's run](%s)", buf_str(&url));
	buf_append_str(out, w->is_late ? " · reported late\n" : "\n");
	buf_release(&url);
	free(name);
}

/* What is red, and what gave no result: a person who reads "red" looks at the change. */
static const struct failures {
	const char *heading, *more;
	enum test_status statuses[2];
} failures[] = {
    {"**Red, cause not classified yet**\n\n", "have red cells", {TEST_FAIL, TEST_ERROR}},
    {"**No result**\n\n", "have cells without a result", {TEST_MISS, TEST_MISS}},
};

/* What the paragraph below says of the whole accelerator is not said of its job as well. */
static bool is_listed(
    const struct failures *f, const struct table_column *c, const struct table_cell *cell)
{
	const struct verdict_view *w = cell->verdict;

	if (cell->kind != CELL_VERDICT ||
	    (w->status != f->statuses[0] && w->status != f->statuses[1]))
		return false;
	return w->status != TEST_MISS || !c->silent || !c->silent->last_error ||
	       !str_eq(w->message, c->silent->last_error);
}

/* The cells of column i that are of `f`; at most FAILURES_PER_COLUMN lines and up to out's length
 * `end`. False and nothing when there are none. */
static bool append_column_failures(struct buf *out, const struct table *t, size_t i,
    const struct failures *f, const struct comment_options *o, size_t end)
{
	const struct accelerator_view *a = t->columns[i].accelerator;
	struct table_cell *cells = xcalloc(t->n_columns + 1, sizeof(*cells));
	struct buf line = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = 0, n_more = 0;

	for (size_t r = 0; r < t->n_rows_in[ROW_RED]; r++) {
		table_row_cells(t, &t->rows[r], cells);
		if (!is_listed(f, &t->columns[i], &cells[i]))
			continue;
		if (n + n_more == 0) {
			comment_append_title(out, a->title);
			append_contact(out, a, " · ");
			buf_append_char(out, '\n');
		}
		buf_clear(&line);
		if (n < FAILURES_PER_COLUMN)
			append_failure(&line, &t->rows[r], &cells[i], a, o);
		if (n == FAILURES_PER_COLUMN || out->len + line.len > end) {
			n_more++;
			continue;
		}
		buf_append(out, line.data, line.len);
		n++;
	}
	if (n_more)
		buf_appendf(out, "- … and %zu more\n", n_more);
	if (n + n_more)
		buf_append_char(out, '\n');
	buf_release(&line);
	free(cells);
	return n + n_more > 0;
}

static void append_failures(struct buf *out, const struct table *t, const struct failures *f,
    const struct comment_options *o, size_t end)
{
	struct buf text = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n_columns = 0, n_unnamed = 0, room = end > out->len ? end - out->len : 0;

	for (size_t i = 0; i < t->n_columns; i++) {
		const size_t *n = t->columns[i].n_cells;

		if (!n[f->statuses[0]] && !n[f->statuses[1]])
			continue;
		if (n_columns == NAMED_MAX || text.len > room)
			n_unnamed++;
		else if (append_column_failures(&text, t, i, f, o, room))
			n_columns++;
	}
	if (n_unnamed)
		buf_appendf(&text, "%zu more accelerators %s.\n\n", n_unnamed, f->more);
	buf_append_str(out, text.len ? f->heading : "");
	buf_append(out, buf_str(&text), text.len);
	buf_release(&text);
}

void comment_append_failures(
    struct buf *out, const struct table *t, const struct comment_options *o)
{
	size_t end = out->len + FAILURES_MAX_BYTES;

	for (size_t i = 0; i < ARRAY_LEN(failures) && t->n_rows_in[ROW_RED] > 0; i++)
		append_failures(out, t, &failures[i], o, end);
}
