/* Makes the columns from the dispatches, and the verdict from the columns. */
#include "text/table.h"

/* ---- columns ---- */

static const enum column_state COLUMN_STATES[N_DISPATCH_STATES] = {[DISPATCH_HELD] = COLUMN_HELD,
    [DISPATCH_QUEUED] = COLUMN_RUNNING,
    [DISPATCH_SENT] = COLUMN_RUNNING,
    [DISPATCH_ACKNOWLEDGED] = COLUMN_RUNNING,
    [DISPATCH_RUNNING] = COLUMN_RUNNING,
    [DISPATCH_FAILED] = COLUMN_SILENT,
    [DISPATCH_EXPIRED] = COLUMN_SILENT,
    [DISPATCH_DONE] = COLUMN_FINISHED,
    [DISPATCH_SUPERSEDED] = COLUMN_CANCELLED,
    [DISPATCH_CANCELLED] = COLUMN_CANCELLED};

static enum column_outcome outcome_of_column(const struct table_column *c)
{
	if (c->accelerator->is_unhealthy)
		return OUTCOME_NOT_COUNTED;
	if (c->n_failures[FAILURE_NEW])
		return OUTCOME_NEW;
	if (c->n_failures[FAILURE_UNCLASSIFIED])
		return OUTCOME_UNCLASSIFIED;
	if (c->n_cells[TEST_MISS] || c->silent)
		return OUTCOME_MISSING;
	if (c->n_running_jobs)
		return OUTCOME_RUNNING;
	if (c->state == COLUMN_RUNNING)
		return c->is_waiting ? OUTCOME_WAITING : OUTCOME_RUNNING;
	if (c->held && c->held->is_current)
		return table_is_releasable(c) ? OUTCOME_HELD : OUTCOME_MERGED;
	if (c->state == COLUMN_CANCELLED)
		return OUTCOME_CANCELLED;
	if (c->n_lacking)
		return OUTCOME_LACKING;
	if (c->n_cells[TEST_FAIL] || c->n_cells[TEST_ERROR])
		return OUTCOME_UNRELATED;
	return c->n_cells[TEST_PASS] ? OUTCOME_PASSED : OUTCOME_WITHOUT;
}

bool table_is_releasable(const struct table_column *c) { return c->held && !c->held->is_held_for_good; }

const char *table_declined_why(const struct table_column *c)
{
	const struct dispatch_view *d = c->state == COLUMN_CANCELLED ? c->dispatch : NULL;

	return d && d->is_ended_by_person ? d->last_error : NULL;
}

static int compare_columns(const void *a, const void *b)
{
	const struct table_column *x = a, *y = b;

	return strcmp(x->accelerator->name, y->accelerator->name);
}

static void add_dispatch(struct table_column *c, const struct dispatch_view *d)
{
	enum column_state s = d->state < N_DISPATCH_STATES ? COLUMN_STATES[d->state] : COLUMN_CANCELLED;

	if (s == COLUMN_HELD && (!c->held || c->held->is_held_for_good))
		c->held = d;
	if (!d->is_current)
		return;
	if (s == COLUMN_SILENT && !c->silent)
		c->silent = d;
	if (s == COLUMN_RUNNING && !(d->state == DISPATCH_QUEUED && str_eq(d->runner_kind, "pull")))
		c->is_waiting = false;
	if (!c->dispatch || s < c->state) {
		c->dispatch = d;
		c->state = s;
	}
}

static void add_columns(struct table *t, size_t *column_of)
{
	const struct change_view *v = t->view;

	t->columns = xcalloc(v->n_accelerators + 1, sizeof(*t->columns));
	for (size_t i = 0; i < v->n_accelerators; i++) {
		const struct accelerator_view *a = &v->accelerators[i];

		column_of[i] = SIZE_MAX;
		if (a->level <= LEVEL_1)
			continue;
		struct table_column *c = &t->columns[t->n_columns++];
		*c = (struct table_column){.accelerator = a, .state = COLUMN_CANCELLED, .is_waiting = true};
		for (size_t k = 0; k < a->n_dispatches; k++)
			add_dispatch(c, &a->dispatches[k]);
		c->is_waiting = c->is_waiting && c->state == COLUMN_RUNNING;
	}
	qsort(t->columns, t->n_columns, sizeof(*t->columns), compare_columns);
	for (size_t i = 0; i < t->n_columns; i++)
		column_of[t->columns[i].accelerator - v->accelerators] = i;
}

/* ---- requirements ---- */

/* Whether `name` is the entry's "suite/test". */
static bool is_test_named(const char *name, const struct table_entry *e)
{
	size_t n = strlen(e->suite);

	if (n == 0)
		return str_eq(name, e->test);
	return strncmp(name, e->suite, n) == 0 && name[n] == '/' && str_eq(name + n + 1, e->test);
}

static enum requirement_state requirement_state_of(enum test_status s)
{
	if (s == TEST_PASS)
		return REQUIREMENT_MET;
	return test_status_is_red(s) ? REQUIREMENT_RED : REQUIREMENT_NOT_PASSED;
}

/* A test with several dtypes is as good as the worst of them. */
static enum requirement_state worse_state(enum requirement_state x, enum requirement_state y)
{
	if (x == REQUIREMENT_NOT_REPORTED || x == REQUIREMENT_UNKNOWN)
		return y;
	return x == REQUIREMENT_MET || y == REQUIREMENT_RED ? y : x;
}

static size_t count_lacking(const enum requirement_state *list, size_t n)
{
	size_t n_lacking = 0;

	for (size_t i = 0; i < n; i++)
		n_lacking += list[i] == REQUIREMENT_NOT_PASSED || list[i] == REQUIREMENT_NOT_REPORTED;
	return n_lacking;
}

/* ---- which columns are shown ---- */

static int compare_indices(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Chooses the columns with something to show; if there are too many, the worst ones. */
static void choose_shown(struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		struct table_column *c = &t->columns[i];

		c->n_lacking = count_lacking(c->required.suites, c->required.n_suites) +
			       count_lacking(c->required.tests, c->required.n_tests);
		c->outcome = outcome_of_column(c);
		t->n_outcomes[c->outcome]++;
	}
	for (int outcome = 0; outcome < N_OUTCOMES; outcome++) {
		for (size_t i = 0; i < t->n_columns; i++) {
			struct table_column *c = &t->columns[i];
			bool is_empty = c->n_running_jobs == 0;

			for (int s = 0; s < N_TEST_STATUSES; s++)
				is_empty = is_empty && c->n_cells[s] == 0;
			if ((int)c->outcome != outcome || t->n_shown == TABLE_COLUMNS_MAX ||
			    (is_empty && c->state > COLUMN_SILENT))
				continue;
			c->is_shown = true;
			t->shown[t->n_shown++] = i;
		}
	}
	if (t->n_shown <= TABLE_COLUMNS_MANY)
		qsort(t->shown, t->n_shown, sizeof(*t->shown), compare_indices);
}

/* ---- the whole ---- */

bool table_has_unread_red(const struct change_view *v)
{
	for (size_t i = 0; v->is_cut && i < v->n_verdicts; i++)
		if (!test_status_is_red(v->verdicts[i].status))
			return false;
	return v->is_cut && v->n_verdicts > 0;
}

void table_init(struct table *t, const struct change_view *v)
{
	size_t *column_of = xcalloc(v->n_accelerators + 1, sizeof(*column_of));

	*t = (struct table){.view = v, .has_unread_red = table_has_unread_red(v)};
	add_columns(t, column_of);
	table_add_rows(t, column_of);
	/* Counts the results that the view counted but did not read. */
	for (size_t i = 0; i < t->n_columns; i++) {
		struct table_column *c = &t->columns[i];

		for (int s = 0; s < N_TEST_STATUSES; s++)
			if (c->n_cells[s] < c->accelerator->n_verdicts[s]) {
				c->n_cells[s] = c->accelerator->n_verdicts[s];
				t->has_unread_other |= s != TEST_PASS;
			}
	}
	/* Only a column that has finished is judged: a silent or running one is reported as such. A
	 * test without a result was not reported. */
	enum requirement_state unseen = t->view->is_cut ? REQUIREMENT_UNKNOWN : REQUIREMENT_NOT_REPORTED;

	for (size_t i = 0; i < t->n_columns; i++) {
		struct table_column *c = &t->columns[i];
		struct requirements *q = &c->required;

		if (c->state != COLUMN_FINISHED || c->silent || c->n_running_jobs)
			continue;
		q->n_suites = strv_len((const char *const *)c->accelerator->required_suites);
		q->n_tests = strv_len((const char *const *)c->accelerator->must_pass);
		q->suites = xcalloc(q->n_suites + 1, sizeof(*q->suites));
		q->tests = xcalloc(q->n_tests + 1, sizeof(*q->tests));
		for (size_t k = 0; k < q->n_suites; k++)
			q->suites[k] = unseen;
		for (size_t k = 0; k < q->n_tests; k++)
			q->tests[k] = unseen;
	}
	for (size_t i = 0; i < t->n_entries; i++) {
		const struct table_entry *e = &t->entries[i];
		const struct accelerator_view *a = t->columns[e->column].accelerator;
		struct requirements *q = &t->columns[e->column].required;

		if (!e->verdict || e->verdict->status == TEST_MISS)
			continue;
		for (size_t k = 0; k < q->n_suites; k++)
			if (str_eq(a->required_suites[k], e->suite))
				q->suites[k] = REQUIREMENT_MET;
		for (size_t k = 0; k < q->n_tests; k++)
			if (is_test_named(a->must_pass[k], e))
				q->tests[k] = worse_state(q->tests[k], requirement_state_of(e->verdict->status));
	}
	choose_shown(t);
	free(column_of);
}

void table_release(struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++)
		FREE_ALL(t->columns[i].required.suites, t->columns[i].required.tests);
	FREE_ALL(t->columns, t->entries, t->rows, t->failures);
	*t = (struct table){.n_columns = 0};
}

static bool has_pass(const struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (t->columns[i].outcome != OUTCOME_NOT_COUNTED && t->columns[i].n_cells[TEST_PASS])
			return true;
	return false;
}

/* A column may get more results although it has some: other runners of it are running or wait for a member. */
static bool is_more_to_come(const struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct table_column *c = &t->columns[i];

		if (c->outcome != OUTCOME_NOT_COUNTED && (c->state == COLUMN_RUNNING || table_is_releasable(c)))
			return true;
	}
	return false;
}

enum verdict table_verdict(const struct table *t)
{
	const size_t *n = t->n_outcomes;
	bool is_unclassified = t->n_failures_in[FAILURE_UNCLASSIFIED] > 0;

	if (t->n_failures_in[FAILURE_NEW])
		return VERDICT_FAIL;
	if (is_more_to_come(t) || t->n_rerunning || (is_unclassified && t->view->is_being_attributed))
		return VERDICT_PENDING;
	if (is_unclassified || n[OUTCOME_MISSING] || n[OUTCOME_LACKING] || n[OUTCOME_CANCELLED] || t->has_unread_red)
		return VERDICT_UNKNOWN;
	return has_pass(t) ? VERDICT_PASS : VERDICT_UNKNOWN;
}

bool table_is_complete(const struct table *t)
{
	bool is_complete = false;

	for (size_t i = 0; i < t->n_columns; i++)
		is_complete = is_complete || t->columns[i].state == COLUMN_FINISHED ||
			      t->columns[i].state == COLUMN_SILENT || t->columns[i].state == COLUMN_CANCELLED;
	for (size_t i = 0; i < t->n_columns; i++)
		is_complete = is_complete && t->columns[i].state != COLUMN_RUNNING;
	return is_complete && !t->n_rerunning;
}

size_t table_n_unrelated(const struct table *t)
{
	return t->n_failures_in[FAILURE_KNOWN] + t->n_failures_in[FAILURE_BASE] + t->n_failures_in[FAILURE_FLAKY];
}
