/* The accelerators that have no result, or not all that they should have, and why. */
#include <string.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "base/str.h"
#include "report/comment_internal.h"
#include "report/count.h"
#include "report/requirements.h"

enum {
	PARAGRAPH_MAX_BYTES = 1536, /* of who has no result */
	HELD_MAX_BYTES = 1536,      /* one for those whom a member releases, one for others */
	REQUIRED_MAX = 5,           /* names for one accelerator */
	ONCALL_MAX = 5,
	LEFT_OUT_SHOWN_MAX = 999999,
};

void comment_append_contact(struct buf *out, const struct accelerator_view *a, const char *before)
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

void comment_append_command(struct buf *out, const struct comment_options *o, const char *words)
{
	char *command = xasprintf("@%s %s", o->bot ? o->bot : "BOT", words);

	escape_markdown_code(out, command, 0, MARKDOWN_TEXT);
	if (!o->bot)
		buf_append_str(out, " (BOT is who wrote this)");
	free(command);
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
	comment_append_contact(out, c->accelerator, ", ");
}

static void append_running(struct buf *out, const struct table_column *c)
{
	static const char *const words[N_DISPATCH_STATES] = {[DISPATCH_QUEUED] = "not asked yet",
	    [DISPATCH_SENT] = "asked, no answer yet",
	    [DISPATCH_ACKNOWLEDGED] = "accepted, not started"};
	const char *word = words[c->dispatch->state];

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

static bool is_rerunning(const struct table_column *c)
{
	return c->n_rerunning > 0;
}

static void append_rerunning(struct buf *out, const struct table_column *c)
{
	comment_append_title(out, c->accelerator->title);
	buf_append_str(out, " (");
	count_append(out, c->n_rerunning);
	buf_appendf(out, " failure%s)", c->n_rerunning == 1 ? "" : "s");
}

static bool is_running(const struct table_column *c)
{
	return c->state == COLUMN_RUNNING && !c->is_waiting;
}

static bool is_waiting(const struct table_column *c)
{
	return c->is_waiting;
}

static void append_waiting(struct buf *out, const struct table_column *c)
{
	comment_append_title(out, c->accelerator->title);
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

static void append_all_held(struct buf *out, const struct table *t, const struct comment_options *o)
{
	size_t before = out->len;

	append_held(out, t, true);
	if (out->len > before) {
		char *words = xasprintf("ok-to-test %.12s", t->view->head_sha);

		buf_append_str(
		    out, ". A member of the repository releases this commit with the comment ");
		comment_append_command(out, o, words);
		buf_append_str(out, "\n\n");
		free(words);
	}
	before = out->len;
	append_held(out, t, false);
	buf_append_str(out, out->len > before ? "\n\n" : "");
}

/* ---- what is required ---- */

static void append_requirement(
    struct buf *out, const char *what, const char *name, enum requirement_state state, size_t *n)
{
	if (state == REQUIREMENT_MET || state == REQUIREMENT_UNKNOWN || (*n)++ >= REQUIRED_MAX)
		return;
	buf_appendf(out, "%s%s ", *n == 1 ? ": " : ", ", what);
	escape_markdown_code(out, name, TEST_MAX_CHARS, MARKDOWN_TEXT);
	buf_append_str(
	    out, state == REQUIREMENT_NOT_REPORTED ? " was not reported" : " did not pass");
}

/* Nothing where all is met. */
static void append_requirements(struct buf *out, const struct requirements *q)
{
	struct buf list = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = 0;

	for (size_t i = 0; i < q->n_suites; i++)
		append_requirement(
		    &list, "required suite", q->accelerator->required_suites[i], q->suites[i], &n);
	for (size_t i = 0; i < q->n_tests; i++)
		append_requirement(
		    &list, "must-pass", q->accelerator->must_pass[i], q->tests[i], &n);
	if (n > REQUIRED_MAX)
		buf_appendf(&list, ", %zu more", n - REQUIRED_MAX);
	if (n) {
		comment_append_title(out, q->accelerator->title);
		buf_append(out, list.data, list.len);
	}
	buf_release(&list);
}

static void append_all_required(struct buf *out, const struct table *t)
{
	struct requirements *list = requirements_read(t);
	struct buf item = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = 0, n_unnamed = 0, end = out->len + PARAGRAPH_MAX_BYTES;

	for (size_t i = 0; i < t->n_columns; i++) {
		buf_clear(&item);
		append_requirements(&item, &list[i]);
		if (item.len == 0)
			continue;
		if (n == NAMED_MAX || out->len + item.len > end) {
			n_unnamed++;
			continue;
		}
		buf_append_str(out, n++ ? "; " : "**Required:** ");
		buf_append(out, item.data, item.len);
	}
	if (n_unnamed)
		buf_appendf(out, "%s%zu more accelerators", n ? "; " : "**Required:** ", n_unnamed);
	buf_append_str(out, n + n_unnamed ? "\n\n" : "");
	requirements_free(list, t);
	buf_release(&item);
}

void comment_append_states(struct buf *out, const struct table *t, const struct comment_options *o)
{
	static const struct paragraph paragraphs[] = {
	    {"**No report:** ", is_silent, append_silent, "; "},
	    {"**Incomplete:** ", is_incomplete, append_cut, "; "},
	    {"**Re-running:** ", is_rerunning, append_rerunning, ", "},
	    {"**Still running:** ", is_running, append_running, ", "},
	    {"**Waiting for a machine:** ", is_waiting, append_waiting, ", "},
	    {"**Cancelled:** ", is_cancelled, append_cancelled, ", "},
	};

	for (size_t i = 0; i < ARRAY_LEN(paragraphs); i++) {
		size_t before = out->len;

		append_paragraph(out, t, &paragraphs[i]);
		buf_append_str(out, out->len > before ? "\n\n" : "");
		if (i == 0) {
			append_all_required(out, t);
			append_all_held(out, t, o);
		}
	}
}
