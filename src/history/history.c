#include "history/history.h"

#include "db/record_rows.h"
#include "history/commits_between.h"
#include "model/history.h"

/* ---- the cells of a run, packed ---- */

enum { PACKED_BYTES_MAX = 16 << 20 };

void cell_packer_init(struct cell_packer *p) { *p = (struct cell_packer){.out = BUF_INIT(PACKED_BYTES_MAX)}; }

/* Writes a stretch: the number of tests left out before it, its length, and the outcome of its tests. */
static void put_run_length(struct cell_packer *p)
{
	if (!p->n_run)
		return;
	varint_put(&p->out, (uint64_t)(p->run.test_id - p->end));
	varint_put(&p->out, (uint64_t)p->n_run);
	varint_put(&p->out, (uint64_t)p->run.job * N_TEST_STATUSES + p->run.status);
	p->end = p->run.test_id + p->n_run;
	p->n_run = 0;
}

void cell_packer_add(struct cell_packer *p, const struct history_cell *c)
{
	if (p->n_run && c->test_id == p->run.test_id + p->n_run && c->status == p->run.status && c->job == p->run.job) {
		p->n_run++;
		return;
	}
	put_run_length(p);
	p->run = *c;
	p->n_run = 1;
}

const struct buf *cell_packer_end(struct cell_packer *p)
{
	put_run_length(p);
	return &p->out;
}

void cell_packer_release(struct cell_packer *p) { buf_release(&p->out); }

struct cell_reader cell_reader_of(const void *p, size_t n)
{
	const uint8_t *at = p;

	return (struct cell_reader){.p = at, .end = n ? at + n : at};
}

/* False: the last stretch was read, or the bytes are damaged. */
static bool next_run(struct cell_reader *r)
{
	int64_t gap, n, code;

	if (!varint_get(&r->p, r->end, &gap) || !varint_get(&r->p, r->end, &n) || !varint_get(&r->p, r->end, &code) ||
	    n == 0 || code / N_TEST_STATUSES > INT32_MAX) {
		r->p = r->end;
		return false;
	}
	r->next.test_id += gap;
	r->next.status = (enum test_status)(code % N_TEST_STATUSES);
	r->next.job = (int)(code / N_TEST_STATUSES);
	r->n_left = n;
	return true;
}

bool cell_reader_next(struct cell_reader *r, struct history_cell *ret)
{
	if (!r->n_left && !next_run(r))
		return false;
	*ret = r->next;
	r->next.test_id++;
	r->n_left--;
	return true;
}

bool cell_reader_find(struct cell_reader *r, int64_t test_id, struct history_cell *ret)
{
	while (r->n_left || next_run(r)) {
		if (test_id < r->next.test_id)
			return false;
		if (test_id < r->next.test_id + r->n_left) {
			*ret = r->next;
			ret->test_id = test_id;
			return true; /* the stretch stays: the next one may be in it */
		}
		r->next.test_id += r->n_left;
		r->n_left = 0;
	}
	return false;
}

/* ---- the states of the tests ---- */

/* A test that is red in all of these runs has no first bad run. */
enum { RUNS_MAX = 400, NUMBERS_MAX = 65536 };

struct judged_test {
	int64_t id;
	struct history_walk walk;
	struct history_verdict verdict;
};

struct judging {
	struct txn *d;
	const char *accelerator;
	struct judged_test *tests; /* by id */
	size_t n;
	int64_t days[RUNS_MAX]; /* of the runs, the newest first */
	int n_runs;
	int64_t *newest_keys; /* of the newest run, if it may not be over; else NULL */
	size_t n_newest_keys;
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

struct run_reading {
	struct cell_reader cells;
	int64_t *jobs, *keys;
	size_t n_jobs, n_keys;
};

static int64_t number_of(const int64_t *list, size_t n, int job)
{
	return job > 0 && (size_t)job <= n ? list[job - 1] : 0;
}

static void add_cell(
    const struct judging *g, const struct run_reading *run, struct judged_test *t, const struct history_cell *c)
{
	int64_t key = number_of(run->keys, run->n_keys, c->job);
	bool has_reported = !g->newest_keys || g->n_runs != 1 || !key;

	/* the newest run lacks the test, but the job that usually reports it has not reported in that run yet */
	if (t->walk.gone_since == 1) {
		for (size_t i = 0; i < g->n_newest_keys && !has_reported; i++)
			has_reported = g->newest_keys[i] == key;
		if (!has_reported)
			history_walk_unfinished(&t->walk);
	}
	history_walk_add(&t->walk, c->status, number_of(run->jobs, run->n_jobs, c->job));
}

/* Each of the newest HISTORY_FORGET runs may have tests that the runs after it lack. */
static void add_run_with_new(struct judging *g, struct run_reading *run)
{
	struct cell_reader cells = run->cells;
	struct judged_test *all;
	struct history_cell c;
	size_t n_max = g->n, n = 0, i = 0;
	bool has_cell;

	while (cell_reader_next(&cells, &c))
		n_max++;
	all = xcalloc(n_max, sizeof(*all));
	has_cell = cell_reader_next(&run->cells, &c);
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

/* Adds an older run, only for tests that need more of their past. True: some need still more. */
static bool add_history_run(struct judging *g, struct run_reading *run)
{
	bool wants_more = false;

	for (size_t i = 0; i < g->n; i++) {
		struct judged_test *t = &g->tests[i];
		struct history_cell c;

		if (!history_walk_wants_more(&t->walk))
			continue;
		if (cell_reader_find(&run->cells, t->id, &c))
			add_cell(g, run, t, &c);
		else
			history_walk_absent(&t->walk);
		wants_more |= history_walk_wants_more(&t->walk);
	}
	return wants_more;
}

#define JUDGED_RUN_RECORD(F, S)                                                                                        \
	F(S, INT, day, NULL, "day", "")                                                                                \
	F(S, BORROWED, jobs, NULL, "jobs", "")                                                                         \
	F(S, BORROWED, job_keys, NULL, "job_keys", "")                                                                 \
	F(S, BOOL, is_self_report, NULL, "is_self_report", "")                                                         \
	F(S, BLOB, cells, NULL, "cells", "")
RECORD_LOCAL(judged_run, JUDGED_RUN_RECORD)

static void read_history_runs(struct judging *g)
{
	struct rows *r = db_rows(g->d,
	    RECORD_QUERY(JUDGED_RUN_RECORD, "FROM history_run WHERE accelerator = ?1"
					    " AND is_judged = 1 ORDER BY day DESC LIMIT ?2"),
	    V_TEXT(g->accelerator), V_INT(RUNS_MAX));
	struct judged_run of;
	bool wants_more = true;

	while (g->n_runs < RUNS_MAX && wants_more && rows_next(r)) {
		struct run_reading run = {0};

		record_read(r, &judged_run_record, &of);
		run.cells = cell_reader_of(of.cells.p, of.cells.n);
		run.jobs = history_numbers(of.jobs, 10, &run.n_jobs);
		run.keys = history_numbers(of.job_keys, 16, &run.n_keys);
		if (g->n_runs >= HISTORY_FORGET)
			wants_more = add_history_run(g, &run);
		else
			add_run_with_new(g, &run);
		g->days[g->n_runs] = of.day;
		if (g->n_runs++ == 0 && of.is_self_report) {
			g->newest_keys = run.keys;
			g->n_newest_keys = run.n_keys;
			run.keys = NULL;
		}
		free(run.jobs);
		free(run.keys);
	}
	rows_end(r);
}

/* ---- the result, compared with the rows ---- */

static struct value day_value(const struct judging *g, int run) { return run < 0 ? V_NULL : V_INT(g->days[run]); }

#define STATE_VALUES                                                                                                   \
	V_TEXT(g->accelerator), V_INT(t->id), V_TEXT(history_state_name(v->state)), day_value(g, v->since),            \
	    day_value(g, v->first_bad.run), V_INT_OR_NULL(v->first_bad.tag), day_value(g, v->last_good.run),           \
	    V_INT_OR_NULL(v->last_good.tag)

/* Uses two statements for one row each: a statement that may write several rows copies every page that it touches, and a
 * night on which everything breaks would take seconds. */
static void put_state(const struct judging *g, const struct judged_test *t)
{
	const struct history_verdict *v = &t->verdict;

	if (!db_exec_count(g->d,
		"UPDATE history SET state = ?3, since_day = ?4, first_bad_day = ?5, first_bad_job = ?6,"
		" last_good_day = ?7, last_good_job = ?8 WHERE accelerator = ?1 AND test_id = ?2",
		STATE_VALUES))
		db_exec(g->d,
		    "INSERT INTO history (accelerator, test_id, state, since_day, first_bad_day, first_bad_job,"
		    " last_good_day, last_good_job, suite) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
		    " COALESCE((SELECT suite FROM test WHERE id = ?2), ''))",
		    STATE_VALUES);
}

#define WRITTEN_STATE_RECORD(F, S)                                                                                     \
	F(S, INT, test_id, NULL, "test_id", "")                                                                        \
	F(S, BORROWED, state, NULL, "state", "")                                                                       \
	F(S, COUNT, since_day, NULL, "since_day", "")                                                                  \
	F(S, COUNT, first_bad_day, NULL, "first_bad_day", "")                                                          \
	F(S, ID, first_bad_job, NULL, "first_bad_job", "")                                                             \
	F(S, COUNT, last_good_day, NULL, "last_good_day", "")                                                          \
	F(S, ID, last_good_job, NULL, "last_good_job", "")
RECORD_LOCAL(written_state, WRITTEN_STATE_RECORD)

static bool is_day(const struct judging *g, int64_t day, int run) { return day == (run < 0 ? -1 : g->days[run]); }

/* Removes the tests whose row is correct already from `tests`, and deletes the rows of tests that have no state any more.
 * Returns how many tests are left. */
static size_t drop_written(struct judging *g, bool *ret_has_gone)
{
	struct rows *r =
	    db_rows(g->d, RECORD_QUERY(WRITTEN_STATE_RECORD, "FROM history WHERE accelerator = ?1 ORDER BY test_id"),
		V_TEXT(g->accelerator));
	struct written_state w;
	int64_t *gone = NULL;
	size_t i = 0, n = 0, n_gone = 0;

	while (rows_next(r)) {
		const struct history_verdict *v;

		record_read(r, &written_state_record, &w);
		while (i < g->n && g->tests[i].id < w.test_id)
			g->tests[n++] = g->tests[i++];
		if (i == g->n || g->tests[i].id != w.test_id) {
			*ARRAY_PUSH(gone, n_gone) = w.test_id;
			continue;
		}
		v = &g->tests[i].verdict;
		/* a walk has 0 for a job that retention has deleted; the row may keep its id */
		if (strcmp(w.state, history_state_name(v->state)) != 0 || !is_day(g, w.since_day, v->since) ||
		    !is_day(g, w.first_bad_day, v->first_bad.run) ||
		    (v->first_bad.tag && w.first_bad_job != v->first_bad.tag) ||
		    !is_day(g, w.last_good_day, v->last_good.run) ||
		    (v->last_good.tag && w.last_good_job != v->last_good.tag))
			g->tests[n++] = g->tests[i];
		i++;
	}
	while (i < g->n)
		g->tests[n++] = g->tests[i++];
	for (size_t k = 0; k < n_gone; k++)
		db_exec(g->d, "DELETE FROM history WHERE accelerator = ?1 AND test_id = ?2", V_TEXT(g->accelerator),
		    V_INT(gone[k]));
	free(gone);
	*ret_has_gone = n_gone > 0;
	return n;
}

void history_judge(struct txn *d, const char *accelerator, int64_t now_ms)
{
	struct judging g = {.d = d, .accelerator = accelerator};
	int64_t asked_good = 0, asked_bad = 0;
	size_t n = 0;
	bool has_gone;

	read_history_runs(&g);
	for (size_t i = 0; i < g.n; i++) {
		g.tests[i].verdict = history_walk_end(&g.tests[i].walk);
		if (g.tests[i].verdict.state != HISTORY_NONE)
			g.tests[n++] = g.tests[i];
	}
	g.n = n;
	g.n = drop_written(&g, &has_gone);
	for (size_t i = 0; i < g.n; i++) {
		const struct history_verdict *v = &g.tests[i].verdict;
		int64_t good = v->last_good.run < 0 ? 0 : g.days[v->last_good.run];
		int64_t bad = v->first_bad.run < 0 ? 0 : g.days[v->first_bad.run];

		put_state(&g, &g.tests[i]);
		/* most tests that break have the same two days, which need one question */
		if (v->first_bad.run < 0 || v->last_good.run < 0 || (good == asked_good && bad == asked_bad))
			continue;
		asked_good = good;
		asked_bad = bad;
		commits_between_want(d, accelerator, good, bad, now_ms);
	}
	if (g.n || has_gone) {
		db_exec(d, "DELETE FROM history_count WHERE accelerator = ?1", V_TEXT(accelerator));
		db_exec(d,
		    "INSERT INTO history_count (accelerator, suite, state, n) SELECT accelerator,"
		    " suite, state, COUNT(*) FROM history WHERE accelerator = ?1 GROUP BY accelerator, state, suite",
		    V_TEXT(accelerator));
		db_exec(d,
		    "INSERT INTO history_count (accelerator, suite, state, n) SELECT accelerator, '',"
		    " state, SUM(n) FROM history_count WHERE accelerator = ?1 GROUP BY accelerator, state"
		    " ON CONFLICT (accelerator, suite, state) DO UPDATE SET n = excluded.n",
		    V_TEXT(accelerator));
	}
	free(g.newest_keys);
	free(g.tests);
}
