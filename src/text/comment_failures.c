/* The red cells with all that a person needs to continue. Failures that the change may have caused stand open,
 * accelerator by accelerator; all others are folded, with their evidence. The differences from the base follow, because
 * a test that is gone or newly skipped hides failures, and no cell of the table shows it. */
#include "text/comment_internal.h"
#include "text/summary.h"

enum {
	FAILURES_PER_COLUMN = 10, /* lines of one accelerator */
	OPEN_MAX_BYTES = 12 * 1024,
	FOLDED_MAX_BYTES = 5 * 1024, /* of each folded block */
	FOLDED_LINES_MAX = 30,       /* of each group in it */
	MESSAGE_MAX_CHARS = 200,
	FILE_MAX_CHARS = 120,
	DELTAS_MAX_BYTES = 4 * 1024,
	DELTA_NAME_MAX_CHARS = 80,
};

/* ---- one failure ---- */

static const struct job_view *find_job(const struct accelerator_view *a, int64_t id)
{
	for (size_t i = 0; i < a->n_jobs; i++)
		if (a->jobs[i].id == id)
			return &a->jobs[i];
	return NULL;
}

/* True for our own words with commits in them. Such a text cannot become markup, also if others wrote it: a colon needs
 * a space after it, because links and GitHub's ":emoji:" have colons without one. */
static bool is_plain_reason(const char *reason)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,;()':";

	for (const char *colon = strchr(reason, ':'); colon; colon = strchr(colon + 1, ':'))
		if (colon[1] != ' ')
			return false;
	return reason[strspn(reason, chars)] == '\0' && strlen(reason) <= REASON_MAX_CHARS;
}

/* A word that may be a commit becomes code, because GitHub would link it, perhaps to another commit. */
static void append_reason(struct buf *out, const char *reason)
{
	static const char hex[] = "0123456789abcdefABCDEF", between[] = " ,;()':";

	if (!is_plain_reason(reason)) {
		escape_markdown_code(out, reason, REASON_MAX_CHARS, MARKDOWN_TEXT);
		return;
	}
	while (*reason) {
		size_t n = strcspn(reason, between), n_between = strspn(reason + n, between);
		bool is_commit = n >= SHA_SHORT_CHARS && strspn(reason, hex) == n;

		buf_appendf(out, is_commit ? "`%.*s`" : "%.*s", (int)n, reason);
		buf_append(out, reason + n, n_between);
		reason += n + n_between;
	}
}

/* The reason for the attribution, with a link to its evidence. A failure that is not classified yet has no
 * reason while evidence is being gathered. */
static void append_evidence(
    struct buf *out, const struct table *t, const struct verdict_view *w, const struct comment_options *o)
{
	struct verdict_evidence e = verdict_evidence_of(w);
	struct buf url = BUF_INIT(COMMENT_MAX_BYTES);
	const char *separator = " · ";

	if (t->view->is_being_attributed && w->attribution == ATTRIBUTION_UNCLASSIFIED)
		return;
	if (w->reason && w->reason[0]) {
		buf_append_str(out, separator);
		append_reason(out, w->reason);
		separator = strchr(w->reason, ':') ? ", " : ": ";
	}
	if (e.issue_url && escape_url(&url, e.issue_url, VENDOR_URL_MAX_BYTES, URL_HTTPS))
		buf_appendf(out, "%s[issue](%s)", separator, buf_str(&url));
	else if (own_url_append(&url, o->public_url, "jobs", e.job))
		buf_appendf(out, "%s[evidence](%s)", separator, buf_str(&url));
	buf_release(&url);
}

/* title: the accelerator's, or NULL if the line stands under its name. */
static void append_failure(struct buf *out, const struct table *t, const struct table_failure *f, const char *title,
    const struct comment_options *o)
{
	const struct verdict_view *w = f->verdict;
	const struct job_view *job = find_job(t->columns[f->column].accelerator, w->job);
	struct buf url = BUF_INIT(COMMENT_MAX_BYTES);
	char *name = table_row_name(f->row);

	buf_appendf(out, "- %s ", table_status_symbol(w->status));
	escape_markdown_code(out, name, TEST_MAX_CHARS, MARKDOWN_TEXT);
	if (title) {
		buf_append_str(out, " on ");
		comment_append_title(out, title);
	}
	buf_append_str(out, ": ");
	/* The error in one line: the vendor's message, else how the job ended. */
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
	if (w->file && w->file[0]) {
		char *place = w->line > 0 ? xasprintf("%s:%lld", w->file, (long long)w->line) : xstrdup(w->file);

		buf_append_str(out, " at ");
		escape_markdown_code(out, place, FILE_MAX_CHARS, MARKDOWN_TEXT);
		free(place);
	}
	append_evidence(out, t, w, o);
	rerun_append(out, w, o->public_url);
	if (own_url_append(&url, o->public_url, "jobs", w->job))
		buf_appendf(out, " · [this job](%s)", buf_str(&url));
	buf_clear(&url);
	if (job && job->url && escape_url(&url, job->url, VENDOR_URL_MAX_BYTES, URL_HTTPS))
		buf_appendf(out, " · [vendor's run](%s)", buf_str(&url));
	buf_append_str(out, w->is_late ? " · reported late\n" : "\n");
	buf_release(&url);
	free(name);
}

/* ---- failures that the change may have caused ---- */

static void append_more(struct buf *out, size_t n)
{
	buf_append_str(out, "- … and ");
	count_append(out, (size_t)n);
	buf_append_str(out, " more\n");
}

/* One column: its name, its contact, how to run only this one again, and its n failures, up to out's length `end`. */
static void append_failed_column(struct buf *out, const struct table *t, const struct table_failure *f, size_t n,
    const struct comment_options *o, size_t end)
{
	const struct accelerator_view *a = t->columns[f->column].accelerator;
	struct buf line = BUF_INIT(COMMENT_MAX_BYTES);
	char *words = xasprintf("retest %s", a->name);
	size_t n_shown = 0;

	comment_append_title(out, a->title);
	comment_append_contact(out, a, " · ");
	if (t->view->state == CHANGE_OPEN) {
		buf_append_str(out, " · test again: ");
		comment_append_command(out, o, words);
	}
	buf_append_char(out, '\n');
	for (; n_shown < n && n_shown < FAILURES_PER_COLUMN; n_shown++) {
		buf_clear(&line);
		append_failure(&line, t, &f[n_shown], NULL, o);
		if (out->len + line.len > end)
			break;
		buf_append(out, line.data, line.len);
	}
	if (n_shown < n)
		append_more(out, n - n_shown);
	buf_append_char(out, '\n');
	buf_release(&line);
	free(words);
}

static void append_open(
    struct buf *out, const struct table *t, enum failure_group group, const struct comment_options *o, size_t end)
{
	const struct table_failure *f = table_failures(t, group), *stop = f + t->n_failures_in[group];
	size_t n_columns = 0, n_unnamed = 0;

	while (f < stop) {
		size_t n = t->columns[f->column].n_failures[group];

		if (n_columns++ < NAMED_MAX && out->len < end)
			append_failed_column(out, t, f, n, o, end);
		else
			n_unnamed++;
		f += n;
	}
	if (n_unnamed)
		buf_appendf(out, "The same of %zu more accelerators.\n\n", n_unnamed);
}

void comment_append_failures(struct buf *out, const struct table *t, const struct comment_options *o)
{
	size_t end = out->len + OPEN_MAX_BYTES, n = t->n_failures_in[FAILURE_UNCLASSIFIED];

	if (t->n_failures_in[FAILURE_NEW]) {
		buf_append_str(out, "**New failures**\n\n");
		append_open(out, t, FAILURE_NEW, o, end);
	}
	if (n && t->view->is_being_attributed)
		buf_append_str(out, "**Not classified yet**: evidence is being gathered\n\n");
	else if (n && t->n_unclassified_rerunning == n)
		buf_appendf(out, "**Not classified yet**: re-running %s, and %s a failure until that is done\n\n",
		    n == 1 ? "it" : "them", n == 1 ? "it counts as" : "each counts as");
	else if (n)
		buf_appendf(
		    out, "**Not classified**: nothing shows whether this change caused %s\n\n", n == 1 ? "it" : "them");
	append_open(out, t, FAILURE_UNCLASSIFIED, o, end);
}

/* ---- failures that it did not cause ---- */

/* True if the paragraph about the silent accelerator already gives the same reason. */
static bool is_said_above(const struct table *t, const struct table_failure *f)
{
	const struct dispatch_view *silent = t->columns[f->column].silent;

	return f->verdict->status == TEST_MISS && silent && silent->last_error &&
	       str_eq(f->verdict->message, silent->last_error);
}

/* The lines of one group. Returns how many of its failures are not said above. */
static size_t append_lines(
    struct buf *out, const struct table *t, enum failure_group group, const struct comment_options *o, size_t end)
{
	const struct table_failure *f = table_failures(t, group);
	struct buf line = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = 0, n_shown = 0;

	for (size_t i = 0; i < t->n_failures_in[group]; i++, f++) {
		if (is_said_above(t, f))
			continue;
		n++;
		if (n_shown == FOLDED_LINES_MAX)
			continue;
		buf_clear(&line);
		append_failure(&line, t, f, t->columns[f->column].accelerator->title, o);
		if (out->len + line.len > end)
			continue;
		buf_append(out, line.data, line.len);
		n_shown++;
	}
	if (n_shown < n)
		append_more(out, n - n_shown);
	buf_append_str(out, n ? "\n" : "");
	buf_release(&line);
	return n;
}

static void append_unrelated(struct buf *out, const struct table *t, const struct comment_options *o)
{
	static const struct {
		enum failure_group group;
		const char *heading;
	} groups[] = {
	    {FAILURE_KNOWN, "**Known**"}, {FAILURE_BASE, "**Red on the base, too**"}, {FAILURE_FLAKY, "**Flaky**"}};
	size_t n = table_n_unrelated(t), end = out->len + FOLDED_MAX_BYTES;

	if (n == 0)
		return;
	buf_append_str(out, "<details><summary>");
	count_append(out, (size_t)n);
	buf_appendf(out, " failure%s not caused by this change: ", n == 1 ? "" : "s");
	summary_append_unrelated(t, out);
	buf_append_str(out, "</summary>\n\n");
	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		if (!t->n_failures_in[groups[i].group])
			continue;
		buf_appendf(out, "%s\n", groups[i].heading);
		append_lines(out, t, groups[i].group, o, end);
	}
	buf_append_str(out, "</details>\n\n");
}

/* One folded block of one group; `one` or `many` follows the count. */
static void append_block(struct buf *out, const struct table *t, enum failure_group group,
    const struct comment_options *o, const char *one, const char *many)
{
	struct buf lines = BUF_INIT(COMMENT_MAX_BYTES);
	size_t n = append_lines(&lines, t, group, o, FOLDED_MAX_BYTES);

	if (n) {
		buf_append_str(out, "<details><summary>");
		count_append(out, (size_t)n);
		buf_appendf(out, " %s</summary>\n\n", n == 1 ? one : many);
		buf_append(out, lines.data, lines.len);
		buf_append_str(out, "</details>\n\n");
	}
	buf_release(&lines);
}

void comment_append_folded_failures(struct buf *out, const struct table *t, const struct comment_options *o)
{
	append_unrelated(out, t, o);
	append_block(out, t, FAILURE_MISSING, o, "test gave no result, for the vendor to look at",
	    "tests gave no result, for the vendors to look at");
	append_block(out, t, FAILURE_NOT_COUNTED, o,
	    "failure not counted: red on most recent changes, the accelerator is unhealthy",
	    "failures not counted: red on most recent changes, the accelerators are unhealthy");
}

/* ---- the differences from the base ---- */

static void append_delta_part(struct buf *out, const char *what, int64_t n, const char **separator, char **names)
{
	if (n == 0)
		return;
	buf_append_str(out, *separator);
	count_append(out, (size_t)n);
	buf_appendf(out, " %s", what);
	*separator = ", ";
	for (size_t i = 0; names && names[i] && i < DELTA_NAMES_MAX; i++) {
		buf_append_str(out, i ? ", " : ": ");
		escape_markdown_code(out, names[i], DELTA_NAME_MAX_CHARS, MARKDOWN_TEXT);
		*separator = "; ";
	}
	if (names && names[0] && n > DELTA_NAMES_MAX)
		buf_append_str(out, ", …");
}

static void append_delta(struct buf *out, const struct base_delta *d)
{
	const char *separator = "";

	append_delta_part(out, "newly failing", d->n_newly_failing, &separator, NULL);
	append_delta_part(out, "fixed", d->n_fixed, &separator, d->fixed);
	append_delta_part(out, "disappeared", d->n_disappeared, &separator, d->disappeared);
	append_delta_part(out, "newly skipped", d->n_newly_skipped, &separator, d->newly_skipped);
}

void comment_append_deltas(struct buf *out, const struct table *t, const struct comment_options *o)
{
	struct buf lines = BUF_INIT(COMMENT_MAX_BYTES), line = BUF_INIT(COMMENT_MAX_BYTES);
	struct base_delta sum = {.base_sha = NULL};
	size_t n_unnamed = 0;

	for (size_t i = 0; i < t->n_columns; i++) {
		const struct base_delta *d = &t->columns[i].accelerator->delta;
		bool is_worse = d->n_newly_failing + d->n_disappeared + d->n_newly_skipped > 0;

		if (!d->base_sha || (!is_worse && (d->n_fixed <= 0 || t->n_failures == 0)))
			continue;
		sum.n_newly_failing += d->n_newly_failing;
		sum.n_fixed += d->n_fixed;
		sum.n_disappeared += d->n_disappeared;
		sum.n_newly_skipped += d->n_newly_skipped;
		buf_clear(&line);
		buf_append_str(&line, "- ");
		comment_append_title(&line, t->columns[i].accelerator->title);
		buf_append_str(&line, " against ");
		comment_append_commit(&line, t->view, o, d->base_sha);
		if (d->distance > 0)
			buf_appendf(&line, ", %lld commit%s before the merge base", (long long)d->distance,
			    d->distance == 1 ? "" : "s");
		buf_append_str(&line, ": ");
		append_delta(&line, d);
		buf_append_char(&line, '\n');
		if (lines.len + line.len > DELTAS_MAX_BYTES)
			n_unnamed++;
		else
			buf_append(&lines, line.data, line.len);
	}
	if (n_unnamed)
		buf_appendf(&lines, "- … and %zu more accelerators\n", n_unnamed);
	if (lines.len) {
		buf_append_str(out, "<details><summary>Against the base: ");
		append_delta(out, &sum);
		buf_append_str(out, "</summary>\n\n");
		buf_append(out, lines.data, lines.len);
		buf_append_str(out, "\n</details>\n\n");
	}
	buf_release(&lines);
	buf_release(&line);
}
