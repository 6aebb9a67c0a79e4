/* What weighs most is said first and in bold; the other accelerators are counted behind it. */
#include "report/summary.h"

#include <stdbool.h>

enum { TITLES_MAX = 3 };

static const char *plural(size_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* "A", "A and B", "A, B and C", "5 accelerators". */
static void append_titles(const struct table *t, const struct summary_style *style,
    enum column_outcome outcome, struct buf *out)
{
	size_t n = t->n_outcomes[outcome], i_title = 0;

	if (n > TITLES_MAX) {
		buf_appendf(out, "%zu accelerators", n);
		return;
	}
	for (size_t i = 0; i < t->n_columns; i++) {
		if (t->columns[i].outcome != outcome)
			continue;
		if (i_title > 0)
			buf_append_str(out, i_title == n - 1 ? " and " : ", ");
		style->append_title(out, t->columns[i].accelerator->title);
		i_title++;
	}
}

static void append_red(const struct table *t, const struct summary_style *style, struct buf *out)
{
	size_t n = t->n_rows_failed;

	buf_appendf(out, "%s%s%zu %s red on ", style->bold_on, t->has_unread_red ? "At least " : "",
	    n, plural(n, "test is", "tests are"));
	append_titles(t, style, OUTCOME_RED, out);
	buf_appendf(out, "%s, cause not classified yet", style->bold_off);
}

static void append_passed(const struct table *t, const struct summary_style *style, struct buf *out)
{
	size_t n = t->n_outcomes[OUTCOME_PASSED];

	buf_append_str(out, style->bold_on);
	if (n < t->n_columns) {
		buf_appendf(out, "%zu of %zu accelerators passed", n, t->n_columns);
	} else if (n == 1) {
		append_titles(t, style, OUTCOME_PASSED, out);
		buf_append_str(out, " passed");
	} else if (n == 2) {
		buf_append_str(out, "Both accelerators passed");
	} else {
		buf_appendf(out, "All %zu accelerators passed", n);
	}
	buf_append_str(out, style->bold_off);
}

static const char *held_lead(const struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (table_is_releasable(&t->columns[i]))
			return "Nothing runs before a member allows it";
	return "Nothing runs before this is merged";
}

/* Appends the lead; returns the outcome that it has told of, N_OUTCOMES for none. */
static enum column_outcome append_lead(
    const struct table *t, const struct summary_style *style, struct buf *out)
{
	const size_t *n = t->n_outcomes;
	const char *text = "Finished without a test that passed or failed";
	enum column_outcome told = N_OUTCOMES;

	if (n[OUTCOME_RED]) {
		append_red(t, style, out);
		return OUTCOME_RED;
	}
	if (n[OUTCOME_MISSING]) {
		buf_appendf(out, "%sNo result from ", style->bold_on);
		append_titles(t, style, OUTCOME_MISSING, out);
		buf_append_str(out, style->bold_off);
		return OUTCOME_MISSING;
	}
	if (n[OUTCOME_PASSED] && !n[OUTCOME_RUNNING]) {
		append_passed(t, style, out);
		return OUTCOME_PASSED;
	}
	if (n[OUTCOME_PASSED])
		text = "Nothing is red so far";
	else if (n[OUTCOME_RUNNING])
		text = "No accelerator has reported yet";
	else if (n[OUTCOME_HELD])
		text = held_lead(t);
	else if (t->n_columns == 0)
		text = "No accelerator tests this change";
	else if (n[OUTCOME_CANCELLED] == t->n_columns)
		text = t->n_rows ? "Cancelled before everything was reported"
				 : "Cancelled before anything was reported";
	else
		told = OUTCOME_WITHOUT;
	if (n[OUTCOME_CANCELLED] == t->n_columns)
		told = OUTCOME_CANCELLED;
	buf_appendf(out, "%s%s%s", style->bold_on, text, style->bold_off);
	return told;
}

void summary_append(const struct table *t, const struct summary_style *style, struct buf *out)
{
	static const struct {
		enum column_outcome outcome;
		const char *one, *many;
	} parts[] = {{OUTCOME_PASSED, "passed", "passed"},
	    {OUTCOME_RUNNING, "is still running", "are still running"},
	    {OUTCOME_HELD, "is held", "are held"},
	    {OUTCOME_MISSING, "gave no result", "gave no result"},
	    {OUTCOME_WITHOUT, "finished without a test that passed or failed",
		"finished without a test that passed or failed"},
	    {OUTCOME_CANCELLED, "was cancelled", "were cancelled"}};
	enum column_outcome told = append_lead(t, style, out);
	bool is_first = true;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t n = t->n_outcomes[parts[i].outcome];

		if (n == 0 || parts[i].outcome == told)
			continue;
		buf_append_str(out, is_first ? "; " : ", ");
		buf_appendf(
		    out, "%zu %s", n, is_first ? plural(n, "accelerator ", "accelerators ") : "");
		buf_append_str(out, plural(n, parts[i].one, parts[i].many));
		is_first = false;
	}
	buf_append_char(out, '.');
}
