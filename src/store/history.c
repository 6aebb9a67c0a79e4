#include "store/history.h"

#include <string.h>

#include "base/alloc.h"
#include "model/history.h"
#include "store/commits_between.h"
#include "store/history_cells.h"

/* A test that is red since longer has no first bad run. */
enum { RUNS_MAX = 400, NUMBERS_MAX = 65536 };

/* One test on its way through the runs. */
struct judged_test {
	int64_t id;
	struct history_walk walk;
	struct history_verdict verdict;
};

struct judging {
	struct db *d;
	const char *accelerator;
	struct judged_test *tests; /* by id */
	size_t n;
	int64_t days[RUNS_MAX]; /* of the runs, the newest first */
	int n_runs;
	int64_t now_ms;
	int64_t *newest_keys; /* of the newest run, if it may not be over; else NULL */
	size_t n_newest_keys;
	int64_t asked_good_day, asked_bad_day; /* whose commits were wanted last */
};

int64_t *history_numbers(const char *text, int base, size_t *ret_n)
{
	size_t room = 1;
	int64_t *list;
	char *end;

	for (const char *p = text; *p && room < NUMBERS_MAX; p++)
		room += *p == ' ';
	list = xcalloc(room, sizeof(*list));
	*ret_n = 0;
	while (*ret_n < room) {
		int64_t v = strtoll(text, &end, base);

		if (end == text)
			break;
		list[(*ret_n)++] = v;
		text = end;
	}
	return list;
}

/* ---- runs into walks ---- */

static int64_t number_of(const int64_t *list, size_t n, int job)
{
	return job > 0 && (size_t)job <= n ? list[job - 1] : 0;
}

static bool has_number(const int64_t *list, size_t n, int64_t v)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == v)
			return true;
	return false;
}

struct run_reading {
	struct cell_reader cells;
	int64_t *jobs, *keys;
	size_t n_jobs, n_keys;
};

/* The newest run lacks the test, but the job that brings it has not reported there yet either. */
static bool is_untold(
    const struct judging *g, const struct run_reading *run, const struct history_cell *c)
{
	int64_t key = number_of(run->keys, run->n_keys, c->job);

	return g->newest_keys && g->n_runs == 1 && key &&
	       !has_number(g->newest_keys, g->n_newest_keys, key);
}

static void add_cell(const struct judging *g, const struct run_reading *run, struct judged_test *t,
    const struct history_cell *c)
{
	if (t->walk.gone_since == 1 && is_untold(g, run, c))
		history_walk_untold(&t->walk);
	history_walk_add(&t->walk, c->status, number_of(run->jobs, run->n_jobs, c->job));
}

/* Among the runs of which a test is remembered, each may bring tests of its own. */
static void add_run_with_new(struct judging *g, struct run_reading *run, size_t n_cells_max)
{
	struct judged_test *all = xcalloc(g->n + n_cells_max, sizeof(*all));
	struct history_cell c;
	size_t n = 0, i = 0;
	bool has_cell = cell_reader_next(&run->cells, &c);

	while (i < g->n || has_cell) {
		struct judged_test *t = &all[n++];
		bool is_new = i == g->n || (has_cell && c.test_id < g->tests[i].id);

		if (is_new) {
			t->id = c.test_id;
			for (int k = 0; k < g->n_runs; k++)
				history_walk_absent(&t->walk);
		} else {
			*t = g->tests[i++];
		}
		if (has_cell && c.test_id == t->id) {
			add_cell(g, run, t, &c);
			has_cell = cell_reader_next(&run->cells, &c);
		} else {
			history_walk_absent(&t->walk);
		}
	}
	free(g->tests);
	g->tests = all;
	g->n = n;
}

/* Of older runs only what some test still wants. */
static void add_run(struct judging *g, struct run_reading *run)
{
	for (size_t i = 0; i < g->n; i++) {
		struct judged_test *t = &g->tests[i];
		struct history_cell c;

		if (!history_walk_wants_more(&t->walk))
			continue;
		if (cell_reader_find(&run->cells, t->id, &c))
			add_cell(g, run, t, &c);
		else
			history_walk_absent(&t->walk);
	}
}

static bool wants_more(const struct judging *g)
{
	if (g->n_runs < HISTORY_FORGET)
		return true;
	for (size_t i = 0; i < g->n; i++)
		if (history_walk_wants_more(&g->tests[i].walk))
			return true;
	return false;
}

static size_t count_cells(struct cell_reader cells)
{
	struct history_cell c;
	size_t n = 0;

	while (cell_reader_next(&cells, &c))
		n++;
	return n;
}

static void read_runs(struct judging *g)
{
	struct rows *r = db_rows(g->d,
	    "SELECT day, COALESCE(jobs, ''), job_keys, is_self_report, cells"
	    " FROM history_run WHERE accelerator = ?1 AND is_judged = 1 ORDER BY day DESC"
	    " LIMIT ?2",
	    V_TEXT(g->accelerator), V_INT(RUNS_MAX));

	while (g->n_runs < RUNS_MAX && wants_more(g) && rows_next(r)) {
		struct run_reading run = {0};
		size_t n_bytes;
		const void *cells = rows_blob(r, 4, &n_bytes);

		run.cells = cell_reader_of(cells, n_bytes);
		run.jobs = history_numbers(rows_text(r, 1), 10, &run.n_jobs);
		run.keys = history_numbers(rows_text(r, 2), 16, &run.n_keys);
		if (g->n_runs < HISTORY_FORGET)
			add_run_with_new(g, &run, count_cells(run.cells));
		else
			add_run(g, &run);
		g->days[g->n_runs] = rows_int(r, 0);
		if (g->n_runs++ == 0 && rows_int(r, 3)) {
			g->newest_keys = run.keys;
			g->n_newest_keys = run.n_keys;
			run.keys = NULL;
		}
		free(run.jobs);
		free(run.keys);
	}
	rows_end(r);
}

/* ---- what came of it, against what is written ---- */

static struct value day_value(const struct judging *g, int run)
{
	return run < 0 ? V_NULL : V_INT(g->days[run]);
}

/* Two statements of one row each, because one that might write several copies every page that it
 * touches: a night on which everything breaks would take seconds. */
static void put_state(const struct judging *g, const struct judged_test *t)
{
	const struct history_verdict *v = &t->verdict;
	char *suite;

	if (db_exec(g->d,
		"UPDATE history SET state = ?3, since_day = ?4, first_bad_day = ?5,"
		" first_bad_job = ?6, last_good_day = ?7, last_good_job = ?8"
		" WHERE accelerator = ?1 AND test_id = ?2",
		V_TEXT(g->accelerator), V_INT(t->id), V_TEXT(history_state_name(v->state)),
		day_value(g, v->since), day_value(g, v->first_bad.run),
		V_INT_OR_NULL(v->first_bad.tag), day_value(g, v->last_good.run),
		V_INT_OR_NULL(v->last_good.tag)))
		return;
	suite = db_text(g->d, "SELECT suite FROM test WHERE id = ?1", V_INT(t->id));
	db_exec(g->d,
	    "INSERT INTO history (accelerator, test_id, suite, state, since_day, first_bad_day,"
	    " first_bad_job, last_good_day, last_good_job)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	    V_TEXT(g->accelerator), V_INT(t->id), V_TEXT(suite ? suite : ""),
	    V_TEXT(history_state_name(v->state)), day_value(g, v->since),
	    day_value(g, v->first_bad.run), V_INT_OR_NULL(v->first_bad.tag),
	    day_value(g, v->last_good.run), V_INT_OR_NULL(v->last_good.tag));
	free(suite);
}

/* Most tests that break, break together. */
static void want_commits(struct judging *g, const struct history_verdict *v)
{
	int64_t good, bad;

	if (v->first_bad.run < 0 || v->last_good.run < 0)
		return;
	good = g->days[v->last_good.run];
	bad = g->days[v->first_bad.run];
	if (good == g->asked_good_day && bad == g->asked_bad_day)
		return;
	g->asked_good_day = good;
	g->asked_bad_day = bad;
	commits_between_want(g->d, g->accelerator, good, bad, g->now_ms);
}

static bool is_day(const struct judging *g, const struct rows *r, int column, int run)
{
	return run < 0 ? rows_is_null(r, column) : rows_int(r, column) == g->days[run];
}

/* An id that has gone reads 0 in a walk: what is written is as good. */
static bool is_written(
    const struct judging *g, const struct rows *r, const struct history_verdict *v)
{
	return strcmp(rows_text(r, 1), history_state_name(v->state)) == 0 &&
	       is_day(g, r, 2, v->since) && is_day(g, r, 3, v->first_bad.run) &&
	       (!v->first_bad.tag || rows_int(r, 4) == v->first_bad.tag) &&
	       is_day(g, r, 5, v->last_good.run) &&
	       (!v->last_good.tag || rows_int(r, 6) == v->last_good.tag);
}

/* Those whose row is right already are taken out of `tests`; those that have none any more are
 * deleted. */
static size_t drop_written(struct judging *g, bool *ret_has_gone)
{
	struct rows *r = db_rows(g->d,
	    "SELECT test_id, state, since_day, first_bad_day, first_bad_job, last_good_day,"
	    " last_good_job FROM history WHERE accelerator = ?1 ORDER BY test_id",
	    V_TEXT(g->accelerator));
	int64_t *gone = NULL;
	size_t i = 0, n = 0, n_gone = 0;

	while (rows_next(r)) {
		int64_t id = rows_int(r, 0);

		while (i < g->n && g->tests[i].id < id)
			g->tests[n++] = g->tests[i++];
		if (i < g->n && g->tests[i].id == id) {
			if (!is_written(g, r, &g->tests[i].verdict))
				g->tests[n++] = g->tests[i];
			i++;
			continue;
		}
		if ((n_gone & (n_gone - 1)) == 0)
			gone = xrealloc(gone, (n_gone ? 2 * n_gone : 1) * sizeof(*gone));
		gone[n_gone++] = id;
	}
	while (i < g->n)
		g->tests[n++] = g->tests[i++];
	for (size_t k = 0; k < n_gone; k++)
		db_exec(g->d, "DELETE FROM history WHERE accelerator = ?1 AND test_id = ?2",
		    V_TEXT(g->accelerator), V_INT(gone[k]));
	free(gone);
	*ret_has_gone = n_gone > 0;
	return n;
}

/* The verdicts; those of which nothing is to be shown go. */
static void end_walks(struct judging *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		g->tests[i].verdict = history_walk_end(&g->tests[i].walk);
		if (g->tests[i].verdict.state != HISTORY_NONE)
			g->tests[n++] = g->tests[i];
	}
	g->n = n;
}

static void count(const struct judging *g)
{
	db_exec(g->d, "DELETE FROM history_count WHERE accelerator = ?1", V_TEXT(g->accelerator));
	db_exec(g->d,
	    "INSERT INTO history_count (accelerator, suite, state, n) SELECT accelerator, suite,"
	    " state, COUNT(*) FROM history WHERE accelerator = ?1 GROUP BY state, suite",
	    V_TEXT(g->accelerator));
	db_exec(g->d,
	    "INSERT INTO history_count (accelerator, suite, state, n) SELECT accelerator, '',"
	    " state, SUM(n) FROM history_count WHERE accelerator = ?1 GROUP BY state"
	    " ON CONFLICT (accelerator, suite, state) DO UPDATE SET n = excluded.n",
	    V_TEXT(g->accelerator));
}

void history_judge(struct db *d, const char *accelerator, int64_t now_ms)
{
	struct judging *g = xcalloc(1, sizeof(*g));
	bool has_gone;

	g->d = d;
	g->accelerator = accelerator;
	g->now_ms = now_ms;
	read_runs(g);
	end_walks(g);
	g->n = drop_written(g, &has_gone);
	for (size_t i = 0; i < g->n; i++) {
		put_state(g, &g->tests[i]);
		want_commits(g, &g->tests[i].verdict);
	}
	if (g->n || has_gone)
		count(g);
	free(g->newest_keys);
	free(g->tests);
	free(g);
}
