/* Makes rows from verdicts and running jobs, and failures from rows. A verdict without a job means that the
 * accelerator is silent: its column shows that, not a row. */
#include "text/table.h"

static const char *or_empty(const char *s) { return s ? s : ""; }

static int compare_entry_names(const struct table_entry *x, const struct table_entry *y)
{
	int order = strcmp(x->suite, y->suite);

	if (!order)
		order = strcmp(x->test, y->test);
	return order ? order : strcmp(x->dtype, y->dtype);
}

static int compare_entries(const void *a, const void *b)
{
	const struct table_entry *x = a, *y = b;
	int order = compare_entry_names(x, y);

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

/* ---- rows ---- */

static enum row_class row_class_of(const struct table *t, const struct table_row *row)
{
	enum row_class class = ROW_PASSED;

	for (size_t i = 0; i < row->n; i++) {
		const struct table_entry *e = &t->entries[row->first + i];
		enum test_status s = e->verdict ? e->verdict->status : N_TEST_STATUSES;
		enum row_class c = s == TEST_PASS ? ROW_PASSED : ROW_OTHER;

		if (test_status_is_red(s)) {
			enum failure_group group = table_failure_group(t->columns[e->column].accelerator, e->verdict);

			c = group == FAILURE_NEW ? ROW_NEW : group == FAILURE_UNCLASSIFIED ? ROW_UNCLASSIFIED : ROW_RED;
		}
		class = c < class ? c : class;
	}
	return class;
}

static void add_rows(struct table *t)
{
	struct table_row *by_name = xcalloc(t->n_entries + 1, sizeof(*by_name));
	size_t next[N_ROW_CLASSES] = {0};

	for (size_t i = 0; i < t->n_entries;) {
		const struct table_entry *e = &t->entries[i];
		struct table_row *row = &by_name[t->n_rows++];

		*row = (struct table_row){.suite = e->suite, .test = e->test, .dtype = e->dtype, .first = i};
		while (i < t->n_entries && !compare_entry_names(e, &t->entries[i]))
			i++;
		row->n = i - row->first;
		row->class = row_class_of(t, row);
		t->n_rows_in[row->class]++;
	}
	for (int c = 1; c < N_ROW_CLASSES; c++)
		next[c] = next[c - 1] + t->n_rows_in[c - 1];
	t->rows = xcalloc(t->n_rows + 1, sizeof(*t->rows));
	for (size_t i = 0; i < t->n_rows; i++)
		t->rows[next[by_name[i].class]++] = by_name[i];
	free(by_name);
}

size_t table_n_red_rows(const struct table *t)
{
	return t->n_rows_in[ROW_NEW] + t->n_rows_in[ROW_UNCLASSIFIED] + t->n_rows_in[ROW_RED];
}

/* ---- failures ---- */

enum failure_group table_failure_group(const struct accelerator_view *a, const struct verdict_view *w)
{
	if (a->is_unhealthy)
		return FAILURE_NOT_COUNTED;
	if (w->status == TEST_MISS)
		return FAILURE_MISSING;
	switch (w->attribution) {
	case ATTRIBUTION_KNOWN:
		return FAILURE_KNOWN;
	case ATTRIBUTION_BASE:
		return FAILURE_BASE;
	case ATTRIBUTION_FLAKY:
		return FAILURE_FLAKY;
	case ATTRIBUTION_NEW:
		return FAILURE_NEW;
	case ATTRIBUTION_UNCLASSIFIED:
	case N_ATTRIBUTIONS:
		break;
	}
	return FAILURE_UNCLASSIFIED;
}

WORDS_DEFINE(failure_group, N_FAILURE_GROUPS, FAILURE_GROUPS(WORD_NAME))

static void count_failure(struct table *t, enum failure_group group, const struct table_entry *e)
{
	struct table_column *c = &t->columns[e->column];

	c->n_failures[group]++;
	t->n_failures_in[group]++;
	t->n_failures++;
	if (group == FAILURE_MISSING || group == FAILURE_NOT_COUNTED)
		return;
	c->n_reruns_later += e->verdict->rerun == RERUN_LATER;
	if (e->verdict->rerun == RERUN_PENDING) {
		c->n_rerunning++;
		t->n_rerunning++;
		t->n_unclassified_rerunning += group == FAILURE_UNCLASSIFIED;
	}
}

/* Counts the red cells, row by row, and then puts each into the part of its group and column. */
static void add_failures(struct table *t)
{
	size_t *next = xcalloc(N_FAILURE_GROUPS * t->n_columns + 1, sizeof(*next)), at = 0;
	const struct table_row *end = t->rows + table_n_red_rows(t);

	for (int pass = 0; pass < 2; pass++) {
		for (const struct table_row *row = t->rows; row < end; row++) {
			for (size_t i = row->first; i < row->first + row->n; i++) {
				const struct table_entry *e = &t->entries[i];

				if (!e->verdict || !test_status_is_red(e->verdict->status))
					continue;
				enum failure_group group =
				    table_failure_group(t->columns[e->column].accelerator, e->verdict);
				if (pass == 0)
					count_failure(t, group, e);
				else
					t->failures[next[group * t->n_columns + e->column]++] =
					    (struct table_failure){e->column, row, e->verdict};
			}
		}
		if (pass == 1)
			break;
		t->failures = xcalloc(t->n_failures + 1, sizeof(*t->failures));
		for (size_t g = 0; g < N_FAILURE_GROUPS; g++)
			for (size_t i = 0; i < t->n_columns; i++) {
				next[g * t->n_columns + i] = at;
				at += t->columns[i].n_failures[g];
			}
	}
	free(next);
}

const struct table_failure *table_failures(const struct table *t, enum failure_group group)
{
	const struct table_failure *first = t->failures;

	for (int g = 0; g < (int)group; g++)
		first += t->n_failures_in[g];
	return first;
}

void table_add_rows(struct table *t, const size_t *column_of)
{
	const struct change_view *v = t->view;
	size_t n = v->n_verdicts;

	for (size_t i = 0; i < v->n_accelerators; i++)
		n += v->accelerators[i].n_jobs;
	t->entries = xcalloc(n + 1, sizeof(*t->entries));
	for (size_t i = 0; i < v->n_verdicts; i++) {
		const struct verdict_view *w = &v->verdicts[i];
		size_t column = w->accelerator < v->n_accelerators ? column_of[w->accelerator] : SIZE_MAX;

		if (column == SIZE_MAX || (w->status == TEST_MISS && w->job == 0))
			continue;
		t->columns[column].n_cells[w->status]++;
		t->entries[t->n_entries++] = (struct table_entry){.suite = or_empty(w->suite),
		    .test = or_empty(w->test),
		    .dtype = or_empty(w->dtype),
		    .column = column,
		    .verdict = w};
	}
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct accelerator_view *a = t->columns[i].accelerator;

		for (size_t j = 0; j < a->n_jobs; j++) {
			const struct job_view *job = &a->jobs[j];

			if (job->status != JOB_IN_PROGRESS || t->columns[i].state != COLUMN_RUNNING)
				continue;
			t->columns[i].n_running_jobs++;
			t->entries[t->n_entries++] = (struct table_entry){.suite = or_empty(job->workflow),
			    .test = or_empty(job->name),
			    .dtype = "",
			    .column = i,
			    .job = job};
		}
	}
	/* a view is mostly sorted already */
	for (size_t i = 1; i < t->n_entries; i++) {
		if (compare_entries(&t->entries[i - 1], &t->entries[i]) > 0) {
			qsort(t->entries, t->n_entries, sizeof(*t->entries), compare_entries);
			break;
		}
	}
	add_rows(t);
	add_failures(t);
}

/* ---- cells ---- */

struct table_cell table_empty_cell(const struct table *t, const struct table_column *c)
{
	if (c->state == COLUMN_SILENT)
		return (struct table_cell){.kind = CELL_NO_REPORT};
	if (t->view->is_cut)
		return (struct table_cell){.kind = CELL_NOT_READ};
	return (struct table_cell){.kind = c->state == COLUMN_RUNNING ? CELL_RUNNING : CELL_BLANK};
}

static struct table_cell entry_cell(const struct table *t, const struct table_entry *e)
{
#define FAILURE_WORD(e, name, word, heading) word,
	static const char *const words[] = {FAILURE_GROUPS(FAILURE_WORD)};
	struct table_cell cell = {
	    .kind = e->verdict ? CELL_VERDICT : CELL_RUNNING, .verdict = e->verdict, .job = e->job};

	if (e->verdict && test_status_is_red(e->verdict->status))
		cell.word = words[table_failure_group(t->columns[e->column].accelerator, e->verdict)];
	return cell;
}

void table_row_cells(const struct table *t, const struct table_row *row, struct table_cell *cells)
{
	char *name = xasprintf("%s%s%s", row->suite, row->suite[0] ? "/" : "", row->test);

	for (size_t i = 0; i < t->n_columns; i++) {
		cells[i] = table_empty_cell(t, &t->columns[i]);
		if (strv_contains((const char *const *)t->columns[i].accelerator->skip, name))
			cells[i].kind = CELL_NOT_SUPPORTED;
	}
	/* backwards: several entries of one cell come worst first, and the worst one stays */
	for (size_t i = row->n; i-- > 0;) {
		const struct table_entry *e = &t->entries[row->first + i];

		cells[e->column] = entry_cell(t, e);
	}
	free(name);
}

const char *table_status_symbol(enum test_status s)
{
	static const char *const symbols[N_TEST_STATUSES] = {[TEST_FAIL] = "✗",
	    [TEST_ERROR] = "!",
	    [TEST_MISS] = "?",
	    [TEST_PASS] = "✓",
	    [TEST_DONE] = "•",
	    [TEST_SKIP] = "–"};

	return symbols[s];
}

const char *table_cell_symbol(const struct table_cell *cell)
{
	switch (cell->kind) {
	case CELL_VERDICT:
		return table_status_symbol(cell->verdict->status);
	case CELL_RUNNING:
		return "…";
	case CELL_NO_REPORT:
		return "?";
	case CELL_NOT_SUPPORTED:
		return "–";
	case CELL_NOT_READ:
		return "·";
	case CELL_BLANK:
		break;
	}
	return "";
}

char *table_row_name(const struct table_row *row)
{
	bool needs_suite = row->suite[0] && !str_eq(row->suite, row->test);

	return xasprintf("%s%s%s%s%s%s", needs_suite ? row->suite : "", needs_suite ? "/" : "", row->test,
	    row->dtype[0] ? " (" : "", row->dtype, row->dtype[0] ? ")" : "");
}
