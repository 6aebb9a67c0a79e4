/* The accelerators without a result, or without all that are required, and why. */

#include "text/comment_internal.h"
#include "text/summary.h"

enum {
	PARAGRAPH_MAX_BYTES = 1536,
	HELD_MAX_BYTES = 1536, /* one for those that a member can release, one for the others */
	REQUIRED_MAX = 5,      /* names for one accelerator */
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

/* ---- a paragraph for each state ---- */

enum column_note {
	NOTE_SILENT,
	NOTE_INCOMPLETE,
	NOTE_RERUNNING,
	NOTE_RERUN_LATER,
	NOTE_RUNNING,
	NOTE_WAITING,
	NOTE_CANCELLED,
	N_COLUMN_NOTES
};

static int64_t count_cut_tests(const struct table_column *c)
{
	int64_t n = 0;

	for (size_t i = 0; i < c->accelerator->n_jobs; i++)
		n += c->accelerator->jobs[i].n_cut;
	return n;
}

static bool has_note(const struct table_column *c, enum column_note note)
{
	switch (note) {
	case NOTE_SILENT:
		return c->silent != NULL;
	case NOTE_INCOMPLETE:
		return count_cut_tests(c) > 0;
	case NOTE_RERUNNING:
		return c->n_rerunning > 0;
	case NOTE_RERUN_LATER:
		return c->n_reruns_later > 0;
	case NOTE_RUNNING:
		return c->state == COLUMN_RUNNING && !c->is_waiting;
	case NOTE_WAITING:
		return c->is_waiting;
	case NOTE_CANCELLED:
		return c->state == COLUMN_CANCELLED && c->dispatch;
	case N_COLUMN_NOTES:
		break;
	}
	return false;
}

static void append_reason(struct buf *out, const char *why)
{
	buf_append_str(out, ": ");
	escape_markdown_code(out, why, REASON_MAX_CHARS, MARKDOWN_TEXT);
}

static void append_n_failures(struct buf *out, size_t n)
{
	buf_append_str(out, " (");
	count_append(out, n);
	buf_appendf(out, " failure%s)", n == 1 ? "" : "s");
}

/* The title, and the details of this note. */
static void append_note(struct buf *out, const struct table_column *c, enum column_note note)
{
	static const char *const sent[N_DISPATCH_STATES] = {[DISPATCH_QUEUED] = "not asked yet",
	    [DISPATCH_SENT] = "asked, no answer yet",
	    [DISPATCH_ACKNOWLEDGED] = "accepted, not started"};
	int64_t n_cut = count_cut_tests(c);
	const char *why;

	comment_append_title(out, c->accelerator->title);
	switch (note) {
	case NOTE_SILENT:
		if (c->silent->last_error)
			append_reason(out, c->silent->last_error);
		else
			buf_append_str(out, c->silent->state == DISPATCH_EXPIRED ? ": nothing came within its deadline"
										 : ": it could not be reached");
		comment_append_contact(out, c->accelerator, ", ");
		break;
	case NOTE_INCOMPLETE:
		/* the vendor chose the number: GitHub may take seven digits for a commit and link it */
		if (n_cut > LEFT_OUT_SHOWN_MAX)
			buf_append_str(out, ": its report leaves out over 999,999 tests");
		else
			buf_appendf(
			    out, ": its report leaves out %lld test%s", (long long)n_cut, n_cut == 1 ? "" : "s");
		break;
	case NOTE_RERUNNING:
		append_n_failures(out, c->n_rerunning);
		break;
	case NOTE_RERUN_LATER:
		append_n_failures(out, c->n_reruns_later);
		break;
	case NOTE_RUNNING:
		if (sent[c->dispatch->state])
			buf_appendf(out, " (%s)", sent[c->dispatch->state]);
		break;
	case NOTE_CANCELLED:
		why = table_declined_why(c);
		if (why)
			append_reason(out, why);
		break;
	case NOTE_WAITING:
	case N_COLUMN_NOTES:
		break;
	}
}

/* One item for each column with the note: as many as fit, then how many more there are. */
static void append_paragraph(struct buf *out, const struct table *t, enum column_note note)
{
	static const struct {
		const char *heading, *separator;
	} paragraphs[N_COLUMN_NOTES] = {[NOTE_SILENT] = {"**No report:** ", "; "},
	    [NOTE_INCOMPLETE] = {"**Incomplete:** ", "; "},
	    [NOTE_RERUNNING] = {"**Re-running:** ", ", "},
	    [NOTE_RERUN_LATER] = {"**Rerun waits for a good machine:** ", ", "},
	    [NOTE_RUNNING] = {"**Still running:** ", ", "},
	    [NOTE_WAITING] = {"**Waiting for a machine:** ", ", "},
	    [NOTE_CANCELLED] = {"**Cancelled:** ", ", "}};
	struct buf item = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = 0, n_unnamed = 0, end = out->len + PARAGRAPH_MAX_BYTES;
	const char *heading = paragraphs[note].heading, *separator = paragraphs[note].separator;

	for (size_t i = 0; i < t->n_columns; i++) {
		if (!has_note(&t->columns[i], note))
			continue;
		buf_clear(&item);
		append_note(&item, &t->columns[i], note);
		if (n == NAMED_MAX || out->len + item.len > end) {
			n_unnamed++;
			continue;
		}
		buf_append_str(out, n++ ? separator : heading);
		buf_append(out, item.data, item.len);
	}
	if (n_unnamed)
		buf_appendf(out, "%s%zu more", n ? separator : heading, n_unnamed);
	if (n || n_unnamed)
		buf_append_str(out, "\n\n");
	buf_release(&item);
}

/* ---- held ---- */

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

/* "A, B, 3 more: `why`" for all columns that are held for the same reason as `column`. Returns how many. */
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
	if (why)
		append_reason(out, why);
	return n;
}

/* Columns with the same reason are listed together, because there are only a few policies. */
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

/* ---- what is required ---- */

static void append_requirement(
    struct buf *out, const char *what, const char *name, enum requirement_state state, size_t *n)
{
	if (state == REQUIREMENT_MET || state == REQUIREMENT_UNKNOWN || (*n)++ >= REQUIRED_MAX)
		return;
	buf_appendf(out, "%s%s ", *n == 1 ? ": " : ", ", what);
	escape_markdown_code(out, name, TEST_MAX_CHARS, MARKDOWN_TEXT);
	buf_append_str(out, state == REQUIREMENT_NOT_REPORTED ? " was not reported" : " did not pass");
}

/* Appends nothing if all requirements are met. */
static void append_requirements(struct buf *out, const struct table_column *c)
{
	const struct requirements *q = &c->required;
	struct buf list = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = 0;

	for (size_t i = 0; i < q->n_suites; i++)
		append_requirement(&list, "required suite", c->accelerator->required_suites[i], q->suites[i], &n);
	for (size_t i = 0; i < q->n_tests; i++)
		append_requirement(&list, "must-pass", c->accelerator->must_pass[i], q->tests[i], &n);
	if (n > REQUIRED_MAX)
		buf_appendf(&list, ", %zu more", n - REQUIRED_MAX);
	if (n) {
		comment_append_title(out, c->accelerator->title);
		buf_append(out, list.data, list.len);
	}
	buf_release(&list);
}

void comment_append_states(struct buf *out, const struct table *t, const struct comment_options *o)
{
	append_paragraph(out, t, NOTE_SILENT);
	struct buf item = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = 0, n_unnamed = 0, end = out->len + PARAGRAPH_MAX_BYTES;

	for (size_t i = 0; i < t->n_columns; i++) {
		buf_clear(&item);
		append_requirements(&item, &t->columns[i]);
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
	buf_release(&item);
	size_t before = out->len;

	append_held(out, t, true);
	if (out->len > before) {
		char *words = xasprintf("ok-to-test %.12s", t->view->head_sha);

		buf_append_str(out, ". A member of the repository releases this commit with the comment ");
		comment_append_command(out, o, words);
		buf_append_str(out, "\n\n");
		free(words);
	}
	before = out->len;
	append_held(out, t, false);
	buf_append_str(out, out->len > before ? "\n\n" : "");
	for (int note = NOTE_SILENT + 1; note < N_COLUMN_NOTES; note++)
		append_paragraph(out, t, (enum column_note)note);
}
