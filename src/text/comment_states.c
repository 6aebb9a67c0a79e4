/* The accelerators without a result, or without all required results, and the reasons. */
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
		buf_append_str(out, " (BOT is the author of this comment)");
	free(command);
}

/* ---- a paragraph for each state ---- */

enum column_note {
	NOTE_SILENT,
	NOTE_REQUIRED,
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

/* The i-th of the suites and then the tests. True: it is not met. */
static bool is_unmet(const struct requirements *q, size_t i, enum requirement_state *ret)
{
	*ret = i < q->n_suites ? q->suites[i] : q->tests[i - q->n_suites];
	return *ret != REQUIREMENT_MET && *ret != REQUIREMENT_UNKNOWN;
}

static size_t count_unmet(const struct requirements *q)
{
	enum requirement_state s;
	size_t n = 0;

	for (size_t i = 0; i < q->n_suites + q->n_tests; i++)
		n += is_unmet(q, i, &s);
	return n;
}

static bool has_note(const struct table_column *c, enum column_note note)
{
	switch (note) {
	case NOTE_SILENT:
		return c->silent != NULL;
	case NOTE_REQUIRED:
		return count_unmet(&c->required) > 0;
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

static void append_requirements(struct buf *out, const struct table_column *c)
{
	const struct requirements *q = &c->required;
	enum requirement_state state;
	size_t n = 0;

	for (size_t i = 0; i < q->n_suites + q->n_tests; i++) {
		bool is_suite = i < q->n_suites;

		if (!is_unmet(q, i, &state) || n++ >= REQUIRED_MAX)
			continue;
		buf_appendf(out, "%s%s ", n == 1 ? ": " : ", ", is_suite ? "required suite" : "must-pass");
		escape_markdown_code(out,
		    is_suite ? c->accelerator->required_suites[i] : c->accelerator->must_pass[i - q->n_suites],
		    TEST_MAX_CHARS, MARKDOWN_TEXT);
		buf_append_str(out, state == REQUIREMENT_NOT_REPORTED ? " was not reported" : " did not pass");
	}
	if (n > REQUIRED_MAX)
		buf_appendf(out, ", %zu more", n - REQUIRED_MAX);
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
	case NOTE_REQUIRED:
		append_requirements(out, c);
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

/* A paragraph of items: a heading, as many items as fit, and the number of the others. */
struct item_list {
	struct buf *out;
	const char *heading, *separator;
	size_t end, n, n_unnamed;
};

/* Appends the item, which is about n columns, and empties it. */
static void item_list_add(struct item_list *l, struct buf *item, size_t n)
{
	if (l->n == NAMED_MAX || l->out->len + item->len > l->end) {
		l->n_unnamed += n;
	} else {
		buf_append_str(l->out, l->n++ ? l->separator : l->heading);
		buf_append(l->out, item->data, item->len);
	}
	buf_clear(item);
}

static void item_list_end(struct item_list *l, const char *text)
{
	if (l->n_unnamed)
		buf_appendf(l->out, "%s%zu more", l->n ? l->separator : l->heading, l->n_unnamed);
	if (l->n || l->n_unnamed)
		buf_append_str(l->out, text);
}

/* One item for each column with the note. */
static void append_paragraph(struct buf *out, const struct table *t, enum column_note note)
{
	static const struct {
		const char *heading, *separator;
	} paragraphs[N_COLUMN_NOTES] = {[NOTE_SILENT] = {"**No report:** ", "; "},
	    [NOTE_REQUIRED] = {"**Required:** ", "; "},
	    [NOTE_INCOMPLETE] = {"**Incomplete:** ", "; "},
	    [NOTE_RERUNNING] = {"**Re-running:** ", ", "},
	    [NOTE_RERUN_LATER] = {"**Rerun waits for a good machine:** ", ", "},
	    [NOTE_RUNNING] = {"**Still running:** ", ", "},
	    [NOTE_WAITING] = {"**Waiting for a machine:** ", ", "},
	    [NOTE_CANCELLED] = {"**Cancelled:** ", ", "}};
	struct item_list l = {.out = out,
	    .heading = paragraphs[note].heading,
	    .separator = paragraphs[note].separator,
	    .end = out->len + PARAGRAPH_MAX_BYTES};
	struct buf item = BUF_INIT(COMMENT_MAX_BYTES);

	for (size_t i = 0; i < t->n_columns; i++) {
		if (!has_note(&t->columns[i], note))
			continue;
		append_note(&item, &t->columns[i], note);
		item_list_add(&l, &item, 1);
	}
	item_list_end(&l, "\n\n");
	buf_release(&item);
}

/* ---- held ---- */

static bool is_held_alike(const struct table_column *x, const struct table_column *y)
{
	return x->held && y->held && table_is_releasable(x) == table_is_releasable(y) &&
	       str_eq(x->held->held_reason, y->held->held_reason);
}

static bool is_first_held_alike(const struct table *t, size_t column)
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

/* Lists columns with the same reason together, because there are only a few policies. `end` follows the list. */
static void append_held(struct buf *out, const struct table *t, bool is_releasable, const char *end)
{
	struct item_list l = {.out = out, .heading = "**Held:** ", .separator = "; ", .end = out->len + HELD_MAX_BYTES};
	struct buf item = BUF_INIT(COMMENT_MAX_BYTES);

	for (size_t i = 0; i < t->n_columns; i++) {
		const struct table_column *c = &t->columns[i];

		if (!c->held || table_is_releasable(c) != is_releasable || !is_first_held_alike(t, i))
			continue;
		size_t n = append_held_group(&item, t, i);
		item_list_add(&l, &item, n);
	}
	item_list_end(&l, end);
	buf_release(&item);
}

void comment_append_states(struct buf *out, const struct table *t, const struct comment_options *o)
{
	struct buf release = BUF_INIT(COMMENT_MAX_BYTES);
	char *words = xasprintf("ok-to-test %.12s", t->view->head_sha);

	buf_append_str(&release, ". A member of the repository releases this commit with the comment ");
	comment_append_command(&release, o, words);
	buf_append_str(&release, "\n\n");
	append_paragraph(out, t, NOTE_SILENT);
	append_paragraph(out, t, NOTE_REQUIRED);
	append_held(out, t, true, buf_str(&release));
	append_held(out, t, false, "\n\n");
	for (int note = NOTE_REQUIRED + 1; note < N_COLUMN_NOTES; note++)
		append_paragraph(out, t, (enum column_note)note);
	free(words);
	buf_release(&release);
}
