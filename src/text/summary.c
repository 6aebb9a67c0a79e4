/* The sentence starts with the most important fact, in bold; the others follow as counts. */
#include "text/summary.h"

enum { TITLES_MAX = 3, OWN_URL_MAX_BYTES = 512, OWN_URL_BUFFER_BYTES = 4096 };

void count_append(struct buf *out, size_t n)
{
	if (n < 1000) {
		buf_appendf(out, "%zu", n);
		return;
	}
	count_append(out, n / 1000);
	buf_appendf(out, ",%03zu", n % 1000);
}

static const char *plural(size_t n, const char *one, const char *many) { return n == 1 ? one : many; }

/* One column is in the list if it has failures of this group, or if N_FAILURE_GROUPS, by its outcome. */
struct title_filter {
	enum failure_group group;
	enum column_outcome outcome;
};

static bool is_titled(const struct table_column *c, const struct title_filter *f)
{
	return f->group < N_FAILURE_GROUPS ? c->n_failures[f->group] > 0 : c->outcome == f->outcome;
}

/* "A", "A and B", "A, B and C", "5 accelerators". */
static void append_titles(
    const struct table *t, const struct summary_style *style, const struct title_filter *f, struct buf *out)
{
	size_t n = 0, n_shown = 0;

	for (size_t i = 0; i < t->n_columns; i++)
		n += is_titled(&t->columns[i], f);
	if (n > TITLES_MAX) {
		buf_appendf(out, "%zu accelerators", n);
		return;
	}
	for (size_t i = 0; i < t->n_columns; i++) {
		if (!is_titled(&t->columns[i], f))
			continue;
		if (n_shown > 0)
			buf_append_str(out, n_shown == n - 1 ? " and " : ", ");
		style->append_title(out, t->columns[i].accelerator->title);
		n_shown++;
	}
}

static void append_ended(
    const struct table *t, const struct summary_style *style, enum column_outcome outcome, struct buf *out)
{
	append_titles(t, style, &(struct title_filter){.group = N_FAILURE_GROUPS, .outcome = outcome}, out);
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
	} parts[] = {{FAILURE_KNOWN, "known"}, {FAILURE_BASE, "on the base"}, {FAILURE_FLAKY, "flaky"}};
	const char *separator = "";

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
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

bool own_url_append(struct buf *out, const char *public_url, const char *folder, int64_t id)
{
	if (id <= 0 || !escape_url(out, public_url, OWN_URL_MAX_BYTES, URL_HTTPS_OR_HTTP))
		return false;
	buf_appendf(out, "/%s/%lld", folder, (long long)id);
	return true;
}

void rerun_append(struct buf *out, const struct verdict_view *w, const char *public_url)
{
	const char *text = rerun_state_text(w->rerun);
	struct buf url = BUF_INIT(OWN_URL_BUFFER_BYTES);

	if (text && own_url_append(&url, public_url, "jobs", w->rerun_job))
		buf_appendf(out, " · [%s](%s)", text, buf_str(&url));
	else if (text)
		buf_appendf(out, " · %s", text);
	buf_release(&url);
}

/* ---- the lead: the fact that the verdict comes from ---- */

/* group: FAILURE_NEW or FAILURE_UNCLASSIFIED. */
static void lead_failures(
    const struct table *t, const struct summary_style *style, enum failure_group group, struct buf *out)
{
	size_t n = t->n_failures_in[group];

	buf_appendf(out, "%s%s", style->bold_on, t->has_unread_red ? "At least " : "");
	count_append(out, n);
	buf_appendf(
	    out, " %s%s%s on ", group == FAILURE_NEW ? "new " : "", plural(n, "failure", "failures"), style->bold_off);
	append_titles(t, style, &(struct title_filter){.group = group}, out);
	if (group == FAILURE_NEW)
		return;
	buf_append_str(out, t->view->is_being_attributed || t->n_unclassified_rerunning == n
				? ", not classified yet"
				: plural(n, ", not classified: this change may have caused it",
				      ", not classified: this change may have caused them"));
}

static void append_not_caused(const struct table *t, struct buf *out)
{
	size_t n = table_n_unrelated(t);

	count_append(out, n);
	buf_appendf(out, " %s not caused by this change (", plural(n, "failure", "failures"));
	summary_append_unrelated(t, out);
	buf_append_char(out, ')');
}

static bool has_reported(const struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++)
		for (int s = 0; s < N_TEST_STATUSES; s++)
			if (t->columns[i].n_cells[s])
				return true;
	return false;
}

/* For a table where nothing is red and not everything has passed. */
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

/* Appends the lead. Returns the outcome that it covers, or N_OUTCOMES. */
static enum column_outcome append_lead(const struct table *t, const struct summary_style *style, struct buf *out)
{
	const size_t *n = t->n_outcomes;

	if (t->n_failures_in[FAILURE_NEW]) {
		lead_failures(t, style, FAILURE_NEW, out);
		return OUTCOME_NEW;
	}
	if (t->n_failures_in[FAILURE_UNCLASSIFIED]) {
		lead_failures(t, style, FAILURE_UNCLASSIFIED, out);
		return OUTCOME_UNCLASSIFIED;
	}
	if (n[OUTCOME_MISSING]) {
		buf_appendf(out, "%sNo result from ", style->bold_on);
		append_ended(t, style, OUTCOME_MISSING, out);
		buf_appendf(out, "%s, for the %s to look at", style->bold_off,
		    plural(t->n_outcomes[OUTCOME_MISSING], "vendor", "vendors"));
		return OUTCOME_MISSING;
	}
	if (n[OUTCOME_LACKING]) {
		buf_appendf(out, "%sRequired results are missing%s from ", style->bold_on, style->bold_off);
		append_ended(t, style, OUTCOME_LACKING, out);
		return OUTCOME_LACKING;
	}
	if (table_n_unrelated(t)) {
		buf_appendf(out, "%sNothing new is red%s%s: ", style->bold_on,
		    table_verdict(t) == VERDICT_PENDING ? " so far" : "", style->bold_off);
		append_not_caused(t, out);
		return OUTCOME_UNRELATED;
	}
	if (n[OUTCOME_PASSED] && !n[OUTCOME_RUNNING] && !n[OUTCOME_WAITING]) {
		size_t n_passed = t->n_outcomes[OUTCOME_PASSED];

		buf_append_str(out, style->bold_on);
		if (n_passed < n_counted(t)) {
			buf_appendf(out, "%zu of %zu accelerators passed", n_passed, n_counted(t));
		} else if (n_passed == 1) {
			append_ended(t, style, OUTCOME_PASSED, out);
			buf_append_str(out, " passed");
		} else if (t->n_outcomes[OUTCOME_NOT_COUNTED]) {
			buf_appendf(out, "%zu accelerators passed", n_passed);
		} else if (n_passed == 2) {
			buf_append_str(out, "Both accelerators passed");
		} else {
			buf_appendf(out, "All %zu accelerators passed", n_passed);
		}
		buf_append_str(out, style->bold_off);
		return OUTCOME_PASSED;
	}
	buf_appendf(out, "%s%s%s", style->bold_on, quiet_lead(t), style->bold_off);
	if (n[OUTCOME_CANCELLED] == t->n_columns)
		return OUTCOME_CANCELLED;
	return n[OUTCOME_WITHOUT] == t->n_columns ? OUTCOME_WITHOUT : N_OUTCOMES;
}

/* ---- the rest ---- */

static void append_others(const struct table *t, enum column_outcome covered, const char **separator, struct buf *out)
{
	static const struct {
		enum column_outcome outcome;
		const char *one, *many;
	} parts[] = {{OUTCOME_PASSED, "passed", "passed"}, {OUTCOME_RUNNING, "is still running", "are still running"},
	    {OUTCOME_WAITING, "waits for a machine", "wait for a machine"}, {OUTCOME_HELD, "is held", "are held"},
	    {OUTCOME_MERGED, "runs after the merge", "run after the merge"},
	    {OUTCOME_MISSING, "gave no result", "gave no result"},
	    {OUTCOME_LACKING, "lacks required results", "lack required results"},
	    {OUTCOME_WITHOUT, "finished without a test that passed or failed",
		"finished without a test that passed or failed"},
	    {OUTCOME_CANCELLED, "was cancelled", "were cancelled"},
	    {OUTCOME_NOT_COUNTED, "is unhealthy and not counted", "are unhealthy and not counted"}};
	bool is_first = true;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		size_t n = t->n_outcomes[parts[i].outcome];

		if (n == 0 || parts[i].outcome == covered)
			continue;
		buf_appendf(out, "%s%zu %s%s", *separator, n,
		    is_first ? plural(n, "accelerator ", "accelerators ") : "", plural(n, parts[i].one, parts[i].many));
		*separator = ", ";
		is_first = false;
	}
}

void summary_append(const struct table *t, const struct summary_style *style, struct buf *out)
{
	static const char *const signs[N_VERDICTS] = {
	    [VERDICT_PASS] = "✓", [VERDICT_FAIL] = "✗", [VERDICT_PENDING] = "…", [VERDICT_UNKNOWN] = "?"};
	const char *separator = "; ";

	if (t->view->state == CHANGE_SUPERSEDED) {
		buf_appendf(out, "– %sA newer commit took the place of this one%s: its results are not shown.",
		    style->bold_on, style->bold_off);
		return;
	}
	buf_appendf(out, "%s ", signs[table_verdict(t)]);
	enum column_outcome lead = append_lead(t, style, out);
	/* The failures that the lead does not cover. */
	size_t n = t->n_failures_in[FAILURE_UNCLASSIFIED];

	if (lead == OUTCOME_NEW && n) {
		buf_append_str(out, separator);
		count_append(out, n);
		buf_append_str(out, " more not classified");
		separator = ", ";
	}
	if (lead != OUTCOME_UNRELATED && table_n_unrelated(t)) {
		buf_append_str(out, separator);
		append_not_caused(t, out);
		separator = ", ";
	}
	/* Until an experiment decides, the failures that it runs again keep their counts. */
	if (t->n_rerunning) {
		buf_appendf(out, "%sre-running ", separator);
		count_append(out, t->n_rerunning);
		buf_append_str(out, plural(t->n_rerunning, " failure", " failures"));
		separator = ", ";
	}
	append_others(t, lead, &separator, out);
	buf_append_char(out, '.');
}

/* ---- for programs ---- */

static const char *const OUTCOMES[] = {COLUMN_OUTCOMES(WORD_NAME)};
static const char *const VERDICTS[N_VERDICTS] = {
    [VERDICT_PASS] = "pass", [VERDICT_FAIL] = "fail", [VERDICT_PENDING] = "pending", [VERDICT_UNKNOWN] = "unknown"};

/* A silent accelerator without a single cell counts as one missing result, or as one that is not counted. */
static size_t count_in_group(const struct table_column *c, enum failure_group group)
{
	enum failure_group of_silence = c->outcome == OUTCOME_NOT_COUNTED ? FAILURE_NOT_COUNTED : FAILURE_MISSING;

	return c->n_failures[group] + (group == of_silence && c->silent && !c->n_failures[of_silence]);
}

json_t *verdict_json(const struct table *t)
{
	const struct change_view *v = t->view;
	bool is_shown = v->state != CHANGE_SUPERSEDED;
	json_t *obj = json_object();

	json_set_int(obj, "schema", 1);
	json_set_str(obj, "head_sha", v->head_sha);
	json_set_str(obj, "merge_base_sha", v->merge_base_sha);
	json_set_str(obj, "verdict", VERDICTS[is_shown ? table_verdict(t) : VERDICT_UNKNOWN]);
	json_object_set_new(obj, "complete", json_boolean(table_is_complete(t)));
	for (int g = 0; is_shown && g < N_FAILURE_GROUPS; g++) {
		size_t n = 0;

		for (size_t i = 0; i < t->n_columns; i++)
			n += count_in_group(&t->columns[i], (enum failure_group)g);
		json_set_int(obj, failure_group_name((enum failure_group)g), (int64_t)n);
	}
	if (is_shown) {
		json_set_int(obj, "rerunning", (int64_t)t->n_rerunning);
		json_t *list = json_array();

		for (size_t k = 0; k < N_OUTCOMES * t->n_columns; k++) {
			const struct table_column *c = &t->columns[k % t->n_columns];

			if (c->outcome != k / t->n_columns || json_array_size(list) == TABLE_COLUMNS_MAX)
				continue;
			json_t *one = json_object();
			json_set_str(one, "name", c->accelerator->name);
			json_set_str(one, "outcome", OUTCOMES[c->outcome]);
			for (int g = 0; g < N_FAILURE_GROUPS; g++)
				json_set_int(one, failure_group_name((enum failure_group)g),
				    (int64_t)count_in_group(c, (enum failure_group)g));
			json_set_int(one, "passed", (int64_t)c->n_cells[TEST_PASS]);
			json_set_int(one, "lacking", (int64_t)c->n_lacking);
			json_set_int(one, "rerunning", (int64_t)c->n_rerunning);
			json_array_append_new(list, one);
		}
		json_object_set_new(obj, "accelerators", list);
	}
	return obj;
}
