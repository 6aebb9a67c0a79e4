/* What weighs most is said first and in bold; the rest is counted behind it. */
#include "report/summary.h"

#include <stdbool.h>

#include "report/count.h"

enum { TITLES_MAX = 3 };

static const char *plural(size_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* "A", "A and B", "A, B and C", "5 accelerators". */
static void append_titles(const struct table *t, const struct summary_style *style,
    bool (*is_in)(const struct table_column *c), struct buf *out)
{
	size_t n = 0, i_title = 0;

	for (size_t i = 0; i < t->n_columns; i++)
		n += is_in(&t->columns[i]);
	if (n > TITLES_MAX) {
		buf_appendf(out, "%zu accelerators", n);
		return;
	}
	for (size_t i = 0; i < t->n_columns; i++) {
		if (!is_in(&t->columns[i]))
			continue;
		if (i_title > 0)
			buf_append_str(out, i_title == n - 1 ? " and " : ", ");
		style->append_title(out, t->columns[i].accelerator->title);
		i_title++;
	}
}

static bool has_new(const struct table_column *c)
{
	return c->n_failures[FAILURE_NEW] > 0;
}

static bool has_unclassified(const struct table_column *c)
{
	return c->n_failures[FAILURE_UNCLASSIFIED] > 0;
}

static bool is_missing(const struct table_column *c)
{
	return c->outcome == OUTCOME_MISSING;
}

static bool is_lacking(const struct table_column *c)
{
	return c->outcome == OUTCOME_LACKING;
}

static bool is_passed(const struct table_column *c)
{
	return c->outcome == OUTCOME_PASSED;
}

static size_t n_counted(const struct table *t)
{
	return t->n_columns - t->n_outcomes[OUTCOME_NOT_COUNTED] - t->n_outcomes[OUTCOME_MERGED];
}

void summary_append_unrelated(const struct table *t, struct buf *out)
{
	static const struct {
		enum failure_group group;
		const char *word;
	} parts[] = {
	    {FAILURE_KNOWN, "known"}, {FAILURE_BASE, "on the base"}, {FAILURE_FLAKY, "flaky"}};
	const char *separator = "";

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t n = t->n_failures_in[parts[i].group];

		if (n == 0)
			continue;
		buf_append_str(out, separator);
		if (n < table_n_unrelated(t)) {
			count_append(out, n);
			buf_append_char(out, ' ');
		}
		buf_append_str(out, parts[i].word);
		separator = ", ";
	}
}

/* ---- the lead: each says what the verdict comes from ---- */

static void lead_new(const struct table *t, const struct summary_style *style, struct buf *out)
{
	size_t n = t->n_failures_in[FAILURE_NEW];

	buf_appendf(out, "%s%s", style->bold_on, t->has_unread_red ? "At least " : "");
	count_append(out, n);
	buf_appendf(out, " new %s%s on ", plural(n, "failure", "failures"), style->bold_off);
	append_titles(t, style, has_new, out);
}

static void lead_unclassified(
    const struct table *t, const struct summary_style *style, struct buf *out)
{
	size_t n = t->n_failures_in[FAILURE_UNCLASSIFIED];

	buf_appendf(out, "%s%s", style->bold_on, t->has_unread_red ? "At least " : "");
	count_append(out, n);
	buf_appendf(out, " %s%s on ", plural(n, "failure", "failures"), style->bold_off);
	append_titles(t, style, has_unclassified, out);
	buf_append_str(out, t->view->is_being_attributed || t->n_unclassified_rerunning == n
				? ", not classified yet"
				: plural(n, ", not classified: this change may have caused it",
				      ", not classified: this change may have caused them"));
}

static void lead_missing(const struct table *t, const struct summary_style *style, struct buf *out)
{
	buf_appendf(out, "%sNo result from ", style->bold_on);
	append_titles(t, style, is_missing, out);
	buf_appendf(out, "%s, for the %s to look at", style->bold_off,
	    plural(t->n_outcomes[OUTCOME_MISSING], "vendor", "vendors"));
}

static void lead_lacking(const struct table *t, const struct summary_style *style, struct buf *out)
{
	buf_appendf(out, "%sRequired results are missing%s from ", style->bold_on, style->bold_off);
	append_titles(t, style, is_lacking, out);
}

static void lead_passed(const struct table *t, const struct summary_style *style, struct buf *out)
{
	size_t n = t->n_outcomes[OUTCOME_PASSED];

	buf_append_str(out, style->bold_on);
	if (n < n_counted(t)) {
		buf_appendf(out, "%zu of %zu accelerators passed", n, n_counted(t));
	} else if (n == 1) {
		append_titles(t, style, is_passed, out);
		buf_append_str(out, " passed");
	} else if (t->n_outcomes[OUTCOME_NOT_COUNTED]) {
		buf_appendf(out, "%zu accelerators passed", n);
	} else if (n == 2) {
		buf_append_str(out, "Both accelerators passed");
	} else {
		buf_appendf(out, "All %zu accelerators passed", n);
	}
	buf_append_str(out, style->bold_off);
}

static void append_not_caused(const struct table *t, struct buf *out)
{
	size_t n = table_n_unrelated(t);

	count_append(out, n);
	buf_appendf(out, " %s not caused by this change (", plural(n, "failure", "failures"));
	summary_append_unrelated(t, out);
	buf_append_char(out, ')');
}

static void lead_unrelated(
    const struct table *t, const struct summary_style *style, struct buf *out)
{
	bool is_over = table_verdict(t) != VERDICT_PENDING;

	buf_appendf(out, "%sNothing new is red%s%s: ", style->bold_on, is_over ? "" : " so far",
	    style->bold_off);
	append_not_caused(t, out);
}

static bool has_reported(const struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++)
		for (int s = 0; s < N_TEST_STATUSES; s++)
			if (t->columns[i].n_cells[s])
				return true;
	return false;
}

/* Where nothing is red and not all has passed. */
static const char *quiet_lead(const struct table *t)
{
	const size_t *n = t->n_outcomes;
	size_t n_at_work = n[OUTCOME_RUNNING] + n[OUTCOME_WAITING];

	if (t->n_columns == 0)
		return "No accelerator tests this change";
	if (n[OUTCOME_NOT_COUNTED] == t->n_columns)
		return "Nothing that counts was reported";
	if (n_at_work && has_reported(t))
		return "Nothing is red so far";
	if (n_at_work)
		return "No accelerator has reported yet";
	if (n[OUTCOME_HELD])
		return "Nothing runs before a member allows it";
	if (n[OUTCOME_MERGED] && n_counted(t) == 0)
		return "Nothing runs before this is merged";
	if (n[OUTCOME_CANCELLED])
		return t->n_rows ? "Cancelled before everything was reported"
				 : "Cancelled before anything was reported";
	return "Finished without a test that passed or failed";
}

/* Appends the lead; returns the outcome that it has told of, N_OUTCOMES for none. */
static enum column_outcome append_lead(
    const struct table *t, const struct summary_style *style, struct buf *out)
{
	const size_t *n = t->n_outcomes;

	if (t->n_failures_in[FAILURE_NEW]) {
		lead_new(t, style, out);
		return OUTCOME_NEW;
	}
	if (t->n_failures_in[FAILURE_UNCLASSIFIED]) {
		lead_unclassified(t, style, out);
		return OUTCOME_UNCLASSIFIED;
	}
	if (n[OUTCOME_MISSING]) {
		lead_missing(t, style, out);
		return OUTCOME_MISSING;
	}
	if (n[OUTCOME_LACKING]) {
		lead_lacking(t, style, out);
		return OUTCOME_LACKING;
	}
	if (table_n_unrelated(t)) {
		lead_unrelated(t, style, out);
		return OUTCOME_UNRELATED;
	}
	if (n[OUTCOME_PASSED] && !n[OUTCOME_RUNNING] && !n[OUTCOME_WAITING]) {
		lead_passed(t, style, out);
		return OUTCOME_PASSED;
	}
	buf_appendf(out, "%s%s%s", style->bold_on, quiet_lead(t), style->bold_off);
	if (n[OUTCOME_CANCELLED] == t->n_columns)
		return OUTCOME_CANCELLED;
	return n[OUTCOME_WITHOUT] == t->n_columns ? OUTCOME_WITHOUT : N_OUTCOMES;
}

/* ---- the rest ---- */

/* What else failed, after a lead that told of the worst. */
static void append_other_failures(
    const struct table *t, enum column_outcome told, const char **separator, struct buf *out)
{
	size_t n = t->n_failures_in[FAILURE_UNCLASSIFIED];

	if (told == OUTCOME_NEW && n) {
		buf_append_str(out, *separator);
		count_append(out, n);
		buf_append_str(out, " more not classified");
		*separator = ", ";
	}
	if (told != OUTCOME_UNRELATED && table_n_unrelated(t)) {
		buf_append_str(out, *separator);
		append_not_caused(t, out);
		*separator = ", ";
	}
}

/* Until an experiment decides, the failures that it runs again count as they are. */
static void append_rerunning(const struct table *t, const char **separator, struct buf *out)
{
	if (t->n_rerunning == 0)
		return;
	buf_appendf(out, "%sre-running ", *separator);
	count_append(out, t->n_rerunning);
	buf_append_str(out, plural(t->n_rerunning, " failure", " failures"));
	*separator = ", ";
}

static void append_others(
    const struct table *t, enum column_outcome told, const char **separator, struct buf *out)
{
	static const struct {
		enum column_outcome outcome;
		const char *one, *many;
	} parts[] = {{OUTCOME_PASSED, "passed", "passed"},
	    {OUTCOME_RUNNING, "is still running", "are still running"},
	    {OUTCOME_WAITING, "waits for a machine", "wait for a machine"},
	    {OUTCOME_HELD, "is held", "are held"},
	    {OUTCOME_MERGED, "runs after the merge", "run after the merge"},
	    {OUTCOME_MISSING, "gave no result", "gave no result"},
	    {OUTCOME_LACKING, "lacks required results", "lack required results"},
	    {OUTCOME_WITHOUT, "finished without a test that passed or failed",
		"finished without a test that passed or failed"},
	    {OUTCOME_CANCELLED, "was cancelled", "were cancelled"},
	    {OUTCOME_NOT_COUNTED, "is unhealthy and not counted", "are unhealthy and not counted"}};
	bool is_first = true;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t n = t->n_outcomes[parts[i].outcome];

		if (n == 0 || parts[i].outcome == told)
			continue;
		buf_appendf(out, "%s%zu %s%s", *separator, n,
		    is_first ? plural(n, "accelerator ", "accelerators ") : "",
		    plural(n, parts[i].one, parts[i].many));
		*separator = ", ";
		is_first = false;
	}
}

void summary_append(const struct table *t, const struct summary_style *style, struct buf *out)
{
	static const char *const signs[N_VERDICTS] = {[VERDICT_PASS] = "✓",
	    [VERDICT_FAIL] = "✗",
	    [VERDICT_PENDING] = "…",
	    [VERDICT_UNKNOWN] = "?"};
	const char *separator = "; ";
	enum column_outcome told;

	if (t->view->state == CHANGE_SUPERSEDED) {
		buf_appendf(out,
		    "– %sA newer commit took the place of this one%s: its results are not shown.",
		    style->bold_on, style->bold_off);
		return;
	}
	buf_appendf(out, "%s ", signs[table_verdict(t)]);
	told = append_lead(t, style, out);
	append_other_failures(t, told, &separator, out);
	append_rerunning(t, &separator, out);
	append_others(t, told, &separator, out);
	buf_append_char(out, '.');
}
