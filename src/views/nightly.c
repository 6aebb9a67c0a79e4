/* The accelerators with periodic runs, their runs, and the days and marks of the tests that a page shows. */
#include "views/nightly.h"

#include "db/key.h"
#include "db/record_rows.h"
#include "history/commits_between.h"
#include "history/days.h"
#include "history/history.h"

/* ---- accelerators ---- */

static int by_accelerator_name(const void *x, const void *y)
{
	return strcmp(((const struct nightly_accelerator *)x)->name, ((const struct nightly_accelerator *)y)->name);
}

const struct nightly_accelerator *nightly_accelerator_find(const struct nightly_view *v, const char *name)
{
	return v->n_accelerators ? bsearch(&(struct nightly_accelerator){.name = (char *)name}, v->accelerators,
				       v->n_accelerators, sizeof(*v->accelerators), by_accelerator_name)
				 : NULL;
}

static void read_accelerators(const struct view *d, const struct get_nightly *q, struct nightly_view *v)
{
	int64_t from_ms = v->first_day * DAY_MS;
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BOTH(NIGHTLY_ACCELERATOR_RECORD, SCHEDULE_VIEW_RECORD,
		"FROM accelerator a LEFT JOIN schedule s ON s.accelerator = a.name AND s.next_ms "
		"IS NOT NULL AND a.is_gone = 0 WHERE a.level > ?1 AND (?2 IS NULL OR a.name = ?2) "
		"AND (s.cron IS NOT NULL OR EXISTS (SELECT 1 FROM schedule_run x WHERE "
		"x.accelerator = a.name AND x.due_ms >= ?3 AND x.due_ms < ?4))"),
	    V_INT(LEVEL_1), V_TEXT(q->accelerator), V_INT(from_ms), V_INT(from_ms + (int64_t)v->n_days * DAY_MS));

	while (rows_next(r)) {
		struct nightly_accelerator *a = ARRAY_PUSH(v->accelerators, v->n_accelerators);

		record_read(r, &nightly_accelerator_record, a);
		record_read(r, &schedule_view_record, &a->schedule);
		a->runs = xcalloc(v->n_days, sizeof(*a->runs));
	}
	if (v->n_accelerators)
		qsort(v->accelerators, v->n_accelerators, sizeof(*v->accelerators), by_accelerator_name);
}

/* Newest first: of several runs on one day the page shows the last one. A run that ended without an outcome was at L1. */
static void read_runs(const struct view *d, const struct nightly_view *v, struct nightly_accelerator *a)
{
	int64_t first = v->first_day;
	struct rows *r = db_rows(d,
	    RECORD_QUERY(SCHEDULE_RUN_RECORD,
		"FROM schedule_run x WHERE x.accelerator = ?1 AND x.due_ms >= ?2 AND x.due_ms < ?3 "
		"AND (x.outcome IS NOT NULL OR x.ended_ms IS NULL) ORDER BY x.due_ms DESC, x.id DESC"),
	    V_TEXT(a->name), V_INT(first * DAY_MS), V_INT((first + (int64_t)v->n_days) * DAY_MS));

	while (rows_next(r)) {
		struct schedule_run_view run, *of_day;

		record_read(r, &schedule_run_view_record, &run);
		of_day = &a->runs[day_of(run.due_ms) - first];
		if (of_day->id)
			record_release(&schedule_run_view_record, &run);
		else
			*of_day = run;
	}
}

#define STATE_COUNT_RECORD(F, S)                                                                                       \
	F(S, HISTORY_STATE, state, NULL, "state", "")                                                                  \
	F(S, INT, n, NULL, "n", "")
RECORD_LOCAL(state_count, STATE_COUNT_RECORD)

static void add_counts(const struct view *d, struct nightly_view *v, const char *accelerator, const char *suite)
{
	struct rows *r =
	    db_rows(d, RECORD_QUERY(STATE_COUNT_RECORD, "FROM history_count WHERE accelerator = ?1 AND suite = ?2"),
		V_TEXT(accelerator), V_TEXT(suite));
	struct state_count c;

	while (rows_next(r)) {
		record_read(r, &state_count_record, &c);
		if (c.state < N_HISTORY_STATES)
			v->counts[c.state] += c.n;
	}
}

/* ---- the days of the tests ---- */

/* One cell of the view. */
struct cell_of_test {
	int64_t test_id;
	struct nightly_cell *cell;
};

static int by_accelerator_and_test(const void *x, const void *y)
{
	const struct cell_of_test *a = x, *b = y;

	if (a->cell->accelerator != b->cell->accelerator)
		return a->cell->accelerator < b->cell->accelerator ? -1 : 1;
	return (a->test_id > b->test_id) - (a->test_id < b->test_id);
}

/* All cells of the view in that order, with room for their days. The cells of accelerator i begin at (*ret_first)[i]. */
static struct cell_of_test *list_cells(struct nightly_view *v, size_t **ret_first)
{
	size_t n = 0, n_cells = 0;
	struct cell_of_test *list;

	for (size_t i = 0; i < v->n_tests; i++)
		n_cells += v->tests[i].n_cells;
	list = xcalloc(n_cells + 1, sizeof(*list));
	v->days = xcalloc(n_cells * v->n_days + 1, sizeof(*v->days));
	for (size_t i = 0; i < v->n_tests; i++)
		for (size_t k = 0; k < v->tests[i].n_cells; k++) {
			v->tests[i].cells[k].days = v->days + n * v->n_days;
			list[n++] = (struct cell_of_test){v->tests[i].id, &v->tests[i].cells[k]};
		}
	qsort(list, n, sizeof(*list), by_accelerator_and_test);
	*ret_first = xcalloc(v->n_accelerators + 1, sizeof(**ret_first));
	for (size_t i = 0; i < n; i++)
		(*ret_first)[list[i].cell->accelerator + 1] = i + 1;
	for (size_t i = 1; i <= v->n_accelerators; i++)
		if ((*ret_first)[i] < (*ret_first)[i - 1])
			(*ret_first)[i] = (*ret_first)[i - 1];
	return list;
}

/* Finds the outcome among the last ones of the run, whose outcomes begin at `first`, or adds it. Returns its place. */
static uint32_t place_of_outcome(struct nightly_view *v, size_t first, enum test_status status, int64_t job)
{
	enum { LOOKED_AT = 8 };

	for (size_t i = v->n_outcomes; i > first && v->n_outcomes - i < LOOKED_AT; i--)
		if (v->outcomes[i - 1].status == status && v->outcomes[i - 1].job == job)
			return (uint32_t)i;
	*ARRAY_PUSH(v->outcomes, v->n_outcomes) = (struct nightly_outcome){status, job};
	return (uint32_t)v->n_outcomes;
}

#define RUN_CELLS_RECORD(F, S)                                                                                         \
	F(S, BORROWED, accelerator, NULL, "accelerator", "")                                                           \
	F(S, BORROWED, jobs, NULL, "jobs", "")                                                                         \
	F(S, BLOB, cells, NULL, "cells", "")
RECORD_LOCAL(run_cells, RUN_CELLS_RECORD)

static void read_day(
    struct nightly_view *v, const struct run_cells *run, size_t day, const struct cell_of_test *list, size_t n)
{
	struct cell_reader cells = cell_reader_of(run->cells.p, run->cells.n);
	size_t n_jobs, first = v->n_outcomes;
	int64_t *jobs = history_numbers(run->jobs, 10, &n_jobs);
	struct history_cell c;

	for (size_t i = 0; i < n; i++)
		if (cell_reader_find(&cells, list[i].test_id, &c))
			list[i].cell->days[day] = place_of_outcome(
			    v, first, c.status, c.job > 0 && (size_t)c.job <= n_jobs ? jobs[c.job - 1] : 0);
	free(jobs);
}

/* The runs of all accelerators in the order of their days, in which they were written: the database reads each page once. */
static void read_days(const struct view *d, const struct get_nightly *q, struct nightly_view *v)
{
	struct value from = V_INT(v->first_day), until = V_INT(v->first_day + (int64_t)v->n_days);
	size_t *first;
	struct cell_of_test *list = list_cells(v, &first);
	struct rows *r =
	    q->accelerator
		? db_rows(d,
		      RECORD_QUERY_BY("day", RUN_CELLS_RECORD,
			  "FROM history_run WHERE day >= ?1 AND day < ?2 AND accelerator = ?3"),
		      from, until, V_TEXT(q->accelerator))
		: db_rows(d, RECORD_QUERY_BY("day", RUN_CELLS_RECORD, "FROM history_run WHERE day >= ?1 AND day < ?2"),
		      from, until);

	while (rows_next(r)) {
		const struct nightly_accelerator *a;
		struct run_cells run;

		record_read(r, &run_cells_record, &run);
		a = nightly_accelerator_find(v, run.accelerator);
		if (a)
			read_day(v, &run, (size_t)(rows_key_number(r) - v->first_day),
			    list + first[a - v->accelerators],
			    first[a - v->accelerators + 1] - first[a - v->accelerators]);
	}
	FREE_ALL(list, first);
}

/* ---- marks ---- */

struct end_of_cell {
	struct nightly_end *end;
	size_t accelerator;
};

static int by_mark(const void *x, const void *y)
{
	const struct end_of_cell *a = x, *b = y;

	if (a->accelerator != b->accelerator)
		return a->accelerator < b->accelerator ? -1 : 1;
	if (a->end->day != b->end->day)
		return a->end->day < b->end->day ? -1 : 1;
	return (a->end->job > b->end->job) - (a->end->job < b->end->job);
}

static void read_mark(
    const struct view *d, const char *accelerator, const struct nightly_end *of, struct nightly_mark *m)
{
	record_release(&nightly_mark_record, m);
	*m = (struct nightly_mark){.day = of->day};
	if (!record_read_first(
		db_rows(d,
		    RECORD_QUERY(NIGHTLY_MARK_RECORD, "FROM history_run h WHERE h.accelerator = ?1 AND h.day = ?2"),
		    V_TEXT(accelerator), V_INT(of->day), V_INT(of->job)),
		&nightly_mark_record, m))
		m->job = of->job && db_has(d, "SELECT 1 FROM job WHERE id = ?1", V_INT(of->job)) ? of->job : 0;
}

/* Reads each mark once. */
static void read_marks(const struct view *d, struct nightly_view *v)
{
	struct end_of_cell *list = NULL;
	size_t n = 0;

	for (size_t i = 0; i < v->n_tests; i++)
		for (size_t k = 0; k < v->tests[i].n_cells; k++) {
			struct nightly_cell *c = &v->tests[i].cells[k];

			if (c->first_bad.day >= 0)
				*ARRAY_PUSH(list, n) = (struct end_of_cell){&c->first_bad, c->accelerator};
			if (c->last_good.day >= 0)
				*ARRAY_PUSH(list, n) = (struct end_of_cell){&c->last_good, c->accelerator};
		}
	if (n)
		qsort(list, n, sizeof(*list), by_mark);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || by_mark(&list[i - 1], &list[i]) != 0)
			*ARRAY_PUSH(v->marks, v->n_marks) = (struct nightly_mark){.day = 0};
		list[i].end->mark = v->n_marks - 1;
	}
	DB_PIPELINE (d)
		for (size_t i = 0; i < n; i++)
			if (i == 0 || list[i - 1].end->mark != list[i].end->mark)
				read_mark(d, v->accelerators[list[i].accelerator].name, list[i].end,
				    &v->marks[list[i].end->mark]);
	for (size_t i = 0; i < n; i++)
		list[i].end->job = v->marks[list[i].end->mark].job;
	free(list);
}

/* ---- the commits between two marks ---- */

struct commits_of_cell {
	struct nightly_cell *cell;
	const struct nightly_mark *good, *bad;
};

static int by_commits(const void *x, const void *y)
{
	const struct commits_of_cell *a = x, *b = y;
	int order = a->good == b->good ? 0 : strcmp(a->good->upstream_sha, b->good->upstream_sha);

	if (!order && a->bad != b->bad)
		order = strcmp(a->bad->upstream_sha, b->bad->upstream_sha);
	return order || a->good == b->good ? order : strcmp(a->good->repository, b->good->repository);
}

static void read_commits(const struct view *d, const struct commits_of_cell *of, struct nightly_commits *ret)
{
	struct repository_key key = repository_key(of->good->repository);
	struct known_commits known = {.n = 0};

	if (strcmp(of->good->upstream_sha, of->bad->upstream_sha) != 0)
		commits_between_read(d, key.text, of->good->upstream_sha, of->bad->upstream_sha, &known);
	*ret = (struct nightly_commits){
	    .repository = xstrdup(of->good->repository),
	    .good_sha = xstrdup(of->good->upstream_sha),
	    .bad_sha = xstrdup(of->bad->upstream_sha),
	    .n = known.n,
	};
	for (size_t i = 0; i < known.n_listed; i++)
		*ARRAY_PUSH(ret->list, ret->n_listed) =
		    (struct nightly_commit){known.list[i].sha, known.list[i].title, known.list[i].author};
}

/* Reads the commits between two runs once, because all accelerators may have run on the same commits. */
static void read_all_commits(const struct view *d, struct nightly_view *v)
{
	struct commits_of_cell *list = NULL;
	size_t n = 0;

	for (size_t i = 0; i < v->n_tests; i++)
		for (size_t k = 0; k < v->tests[i].n_cells; k++) {
			struct nightly_cell *c = &v->tests[i].cells[k];
			bool has_both = c->first_bad.day >= 0 && c->last_good.day >= 0;
			const struct nightly_mark *good = has_both ? &v->marks[c->last_good.mark] : NULL;
			const struct nightly_mark *bad = has_both ? &v->marks[c->first_bad.mark] : NULL;

			if (has_both && good->upstream_sha && bad->upstream_sha)
				*ARRAY_PUSH(list, n) = (struct commits_of_cell){c, good, bad};
		}
	if (n)
		qsort(list, n, sizeof(*list), by_commits);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || by_commits(&list[i - 1], &list[i]) != 0)
			read_commits(d, &list[i], ARRAY_PUSH(v->commits, v->n_commits));
		list[i].cell->commits = (int)v->n_commits - 1;
	}
	free(list);
}

/* ---- the query ---- */

static int get_nightly_run(struct store_query *sq, const struct view *d)
{
	struct get_nightly *q = CONTAINER_OF(sq, struct get_nightly, q);
	struct nightly_view *v;

	/* also for an accelerator that left the registry: its runs are kept, and shown */
	if (q->accelerator && !db_has(d, "SELECT 1 FROM accelerator WHERE name = ?1", V_TEXT(q->accelerator)) &&
	    !db_status(d))
		return ERR_NOT_FOUND;
	v = xcalloc(1, sizeof(*v));
	v->n_days = (size_t)q->n_days;
	v->first_day = q->last_day - q->n_days + 1;
	read_accelerators(d, q, v);
	DB_PIPELINE (d) {
		memset(v->counts, 0, sizeof(v->counts));
		for (size_t i = 0; i < v->n_accelerators; i++) {
			read_runs(d, v, &v->accelerators[i]);
			add_counts(d, v, v->accelerators[i].name, q->suite ? q->suite : "");
		}
	}
	nightly_tests_read(d, q, v);
	read_days(d, q, v);
	read_marks(d, v);
	read_all_commits(d, v);
	if (db_status(d))
		nightly_view_free(v);
	else
		q->view = v;
	return 0;
}

STORE_QUERY(get_nightly)
