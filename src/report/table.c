/* Columns from dispatches, rows from verdicts and running jobs. Verdicts that no job stands
 * behind are an accelerator's silence, told by its whole column and not by a row. */
#include "report/table.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

struct table_entry {
	const char *suite, *test;
	size_t column;
	const struct verdict_view *verdict; /* or */
	const struct job_view *job;         /* in progress */
};

/* ---- columns ---- */

static enum column_state state_of(enum dispatch_state s)
{
	switch (s) {
	case DISPATCH_HELD:
		return COLUMN_HELD;
	case DISPATCH_QUEUED:
	case DISPATCH_SENT:
	case DISPATCH_ACKNOWLEDGED:
	case DISPATCH_RUNNING:
		return COLUMN_RUNNING;
	case DISPATCH_FAILED:
	case DISPATCH_EXPIRED:
		return COLUMN_SILENT;
	case DISPATCH_DONE:
		return COLUMN_FINISHED;
	case DISPATCH_SUPERSEDED:
	case DISPATCH_CANCELLED:
	case N_DISPATCH_STATES:
		break;
	}
	return COLUMN_CANCELLED;
}

static void column_init(struct table_column *c, const struct accelerator_view *a)
{
	*c = (struct table_column){.accelerator = a, .state = COLUMN_CANCELLED};
	for (size_t i = 0; i < a->n_dispatches; i++) {
		const struct dispatch_view *d = &a->dispatches[i];
		enum column_state s = state_of(d->state);

		if (!d->is_current)
			continue;
		if (s == COLUMN_HELD && (!c->held || c->held->is_held_for_good))
			c->held = d;
		if (s == COLUMN_SILENT && !c->silent)
			c->silent = d;
		if (!c->dispatch || s < c->state) {
			c->dispatch = d;
			c->state = s;
		}
	}
}

static enum column_outcome outcome_of(const struct table_column *c)
{
	if (c->n_cells[TEST_FAIL] || c->n_cells[TEST_ERROR])
		return OUTCOME_RED;
	if (c->n_cells[TEST_MISS] || c->silent)
		return OUTCOME_MISSING;
	if (c->state == COLUMN_RUNNING || c->n_running_jobs)
		return OUTCOME_RUNNING;
	if (c->held)
		return OUTCOME_HELD;
	if (c->state == COLUMN_CANCELLED)
		return OUTCOME_CANCELLED;
	return c->n_cells[TEST_PASS] ? OUTCOME_PASSED : OUTCOME_WITHOUT;
}

bool table_is_releasable(const struct table_column *c)
{
	return c->held && !c->held->is_held_for_good;
}

const char *table_declined_why(const struct table_column *c)
{
	const char *why =
	    c->state == COLUMN_CANCELLED && c->dispatch ? c->dispatch->last_error : NULL;

	return why && str_has_prefix(why, "declined by ") ? why : NULL;
}

static int compare_columns(const void *a, const void *b)
{
	const struct table_column *x = a, *y = b;

	return strcmp(x->accelerator->name, y->accelerator->name);
}

/* Fills column_of[accelerator] (SIZE_MAX: not shown to anybody). */
static void add_columns(struct table *t, size_t *column_of)
{
	const struct change_view *v = t->view;

	t->columns = xcalloc(v->n_accelerators + 1, sizeof(*t->columns));
	for (size_t i = 0; i < v->n_accelerators; i++)
		if (v->accelerators[i].level > LEVEL_1)
			column_init(&t->columns[t->n_columns++], &v->accelerators[i]);
	qsort(t->columns, t->n_columns, sizeof(*t->columns), compare_columns);
	for (size_t i = 0; i < v->n_accelerators; i++)
		column_of[i] = SIZE_MAX;
	for (size_t i = 0; i < t->n_columns; i++)
		column_of[t->columns[i].accelerator - v->accelerators] = i;
}

/* What a cut view has counted and not read. */
static void add_unread(struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		struct table_column *c = &t->columns[i];

		for (int s = 0; s < N_TEST_STATUSES; s++)
			if (c->n_cells[s] < c->accelerator->n_verdicts[s])
				c->n_cells[s] = c->accelerator->n_verdicts[s];
	}
}

/* Columns with something to show, the worst first where there are too many. */
static void choose_shown(struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		struct table_column *c = &t->columns[i];

		c->outcome = outcome_of(c);
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
			t->n_shown++;
		}
	}
}

/* ---- rows ---- */

static int compare_names(const struct table_entry *x, const struct table_entry *y)
{
	int order = strcmp(x->suite, y->suite);

	return order ? order : strcmp(x->test, y->test);
}

static int compare_entries(const void *a, const void *b)
{
	const struct table_entry *x = a, *y = b;
	int order = compare_names(x, y);

	if (order)
		return order;
	if (x->column != y->column)
		return x->column < y->column ? -1 : 1;
	if (!x->verdict != !y->verdict)
		return x->verdict ? -1 : 1;
	if (x->verdict)
		return (int)x->verdict->status - (int)y->verdict->status;
	return x->job->id < y->job->id ? -1 : x->job->id > y->job->id;
}

static void add_verdicts(struct table *t, const size_t *column_of)
{
	const struct change_view *v = t->view;

	for (size_t i = 0; i < v->n_verdicts; i++) {
		const struct verdict_view *w = &v->verdicts[i];
		size_t column =
		    w->accelerator < v->n_accelerators ? column_of[w->accelerator] : SIZE_MAX;

		if (column == SIZE_MAX)
			continue;
		if (w->status == TEST_MISS && w->job == 0)
			continue;
		t->columns[column].n_cells[w->status]++;
		t->entries[t->n_entries++] = (struct table_entry){.suite = w->suite ? w->suite : "",
		    .test = w->test ? w->test : "",
		    .column = column,
		    .verdict = w};
	}
}

static void add_running_jobs(struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct accelerator_view *a = t->columns[i].accelerator;

		for (size_t j = 0; j < a->n_jobs; j++) {
			const struct job_view *job = &a->jobs[j];

			if (job->status != JOB_IN_PROGRESS || t->columns[i].state != COLUMN_RUNNING)
				continue;
			t->columns[i].n_running_jobs++;
			t->entries[t->n_entries++] =
			    (struct table_entry){.suite = job->workflow ? job->workflow : "",
				.test = job->name ? job->name : "",
				.column = i,
				.job = job};
		}
	}
}

static void sort_entries(struct table *t)
{
	for (size_t i = 1; i < t->n_entries; i++) {
		if (compare_entries(&t->entries[i - 1], &t->entries[i]) > 0) {
			qsort(t->entries, t->n_entries, sizeof(*t->entries), compare_entries);
			return;
		}
	}
}

static enum row_class class_of(const struct table *t, const struct table_row *row, bool *ret_failed)
{
	enum row_class class = ROW_PASSED;

	*ret_failed = false;
	for (size_t i = 0; i < row->n; i++) {
		const struct table_entry *e = &t->entries[row->first + i];

		enum test_status s = e->verdict ? e->verdict->status : N_TEST_STATUSES;

		if (test_status_is_red(s))
			class = ROW_RED;
		else if (s != TEST_PASS && class == ROW_PASSED)
			class = ROW_OTHER;
		*ret_failed = *ret_failed || s == TEST_FAIL || s == TEST_ERROR;
	}
	return class;
}

static void add_rows(struct table *t)
{
	struct table_row *by_name = xcalloc(t->n_entries + 1, sizeof(*by_name));
	size_t next[N_ROW_CLASSES] = {0};

	for (size_t i = 0; i < t->n_entries;) {
		struct table_row *row = &by_name[t->n_rows++];
		bool has_failed;

		*row = (struct table_row){
		    .suite = t->entries[i].suite, .test = t->entries[i].test, .first = i};
		while (i < t->n_entries && !compare_names(&t->entries[row->first], &t->entries[i]))
			i++;
		row->n = i - row->first;
		row->class = class_of(t, row, &has_failed);
		t->n_rows_in[row->class]++;
		t->n_rows_failed += has_failed;
	}
	for (int c = 1; c < N_ROW_CLASSES; c++)
		next[c] = next[c - 1] + t->n_rows_in[c - 1];
	t->rows = xcalloc(t->n_rows + 1, sizeof(*t->rows));
	for (size_t i = 0; i < t->n_rows; i++)
		t->rows[next[by_name[i].class]++] = by_name[i];
	free(by_name);
}

/* ---- the whole ---- */

static bool is_all_red(const struct change_view *v)
{
	for (size_t i = 0; i < v->n_verdicts; i++)
		if (!test_status_is_red(v->verdicts[i].status))
			return false;
	return v->n_verdicts > 0;
}

void table_init(struct table *t, const struct change_view *v)
{
	size_t *column_of = xcalloc(v->n_accelerators + 1, sizeof(*column_of));
	size_t n = v->n_verdicts;

	*t = (struct table){.view = v, .has_unread_red = v->is_cut && is_all_red(v)};
	for (size_t i = 0; i < v->n_accelerators; i++)
		n += v->accelerators[i].n_jobs;
	t->entries = xcalloc(n + 1, sizeof(*t->entries));
	add_columns(t, column_of);
	add_verdicts(t, column_of);
	add_running_jobs(t);
	sort_entries(t);
	add_rows(t);
	add_unread(t);
	choose_shown(t);
	free(column_of);
}

void table_release(struct table *t)
{
	free(t->columns);
	free(t->entries);
	free(t->rows);
	*t = (struct table){.n_columns = 0};
}

struct table_cell table_empty_cell(const struct table *t, const struct table_column *c)
{
	struct table_cell cell = {.kind = CELL_BLANK};

	if (t->view->is_cut && c->state != COLUMN_SILENT)
		cell.kind = CELL_NOT_READ;
	else if (c->state == COLUMN_RUNNING)
		cell.kind = CELL_RUNNING;
	else if (c->state == COLUMN_SILENT)
		cell.kind = CELL_NO_REPORT;
	return cell;
}

void table_row_cells(const struct table *t, const struct table_row *row, struct table_cell *cells)
{
	for (size_t i = 0; i < t->n_columns; i++)
		cells[i] = table_empty_cell(t, &t->columns[i]);
	/* backwards, so that of several entries of one cell the worst, which is first, stays */
	for (size_t i = row->n; i-- > 0;) {
		const struct table_entry *e = &t->entries[row->first + i];

		cells[e->column] =
		    (struct table_cell){.kind = e->verdict ? CELL_VERDICT : CELL_RUNNING,
			.verdict = e->verdict,
			.job = e->job};
	}
}

const char *table_cell_symbol(const struct table_cell *cell)
{
	static const char *const symbols[N_TEST_STATUSES] = {[TEST_FAIL] = "✗",
	    [TEST_ERROR] = "!",
	    [TEST_MISS] = "?",
	    [TEST_PASS] = "✓",
	    [TEST_DONE] = "•",
	    [TEST_SKIP] = "–"};

	switch (cell->kind) {
	case CELL_VERDICT:
		return symbols[cell->verdict->status];
	case CELL_RUNNING:
		return "…";
	case CELL_NO_REPORT:
		return "?";
	case CELL_NOT_READ:
		return "·";
	case CELL_BLANK:
		break;
	}
	return "";
}

char *table_test_name(const char *suite, const char *test)
{
	if (!suite[0] || str_eq(suite, test))
		return xstrdup(test);
	return xasprintf("%s/%s", suite, test);
}
