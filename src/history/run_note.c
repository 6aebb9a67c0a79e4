#include "history/run_note.h"

#include "db/cell_sets.h"
#include "db/record_rows.h"
#include "history/days.h"
#include "history/red_episodes.h"
#include "model/accelerator.h"
#include "model/attribution.h"
#include "model/dashboard.h"
#include "verdict/cells_moved.h"

struct run {
	bool is_push;
	const char *outcome;
	int64_t ended_ms, n_dispatches, n_met;
	int64_t queue_ms, run_ms; /* -1: not known */
	struct cell_counts cells; /* of a push */
};

/* All that a run consists of besides its cells. A pull dispatch is sent when a machine takes it, so it has waited since its
 * creation. */
#define RUN_FACTS_RECORD(F, S)                                                                                         \
	F(S, CHANGE_KIND, kind, NULL, "c.kind", "")                                                                    \
	F(S, INT, level, NULL, "COALESCE(a.level, 0)", "Of the accelerator.")                                          \
	F(S, BOOL, is_unhealthy, NULL, "a.unhealthy_since_ms IS NOT NULL", "The accelerator.")                         \
	F(S, INT, n, NULL, "x.n", "Its dispatches.")                                                                   \
	F(S, INT, n_unfinished, NULL, "x.n_unfinished", "")                                                            \
	F(S, TIME, finished_ms, NULL, "x.finished_ms", "")                                                             \
	F(S, INT, n_met, NULL, "x.n_met", "")                                                                          \
	F(S, TIME, sent_ms, NULL, "x.sent_ms", "")                                                                     \
	F(S, TIME, started_ms, NULL, "j.started_ms", "Its jobs.")                                                      \
	F(S, TIME, completed_ms, NULL, "j.completed_ms", "")
RECORD_LOCAL(run_facts, RUN_FACTS_RECORD)
#define RUN_FACTS_OF                                                                                                   \
	"FROM change c LEFT JOIN accelerator a ON a.name = ?2"                                                         \
	" JOIN (SELECT COUNT(*) AS n,"                                                                                 \
	"  COUNT(*) FILTER (WHERE state NOT IN ('done', 'failed', 'expired')) AS n_unfinished,"                        \
	"  MAX(finished_ms) AS finished_ms, COUNT(*) FILTER (WHERE state = 'done' AND is_late = 0) AS n_met,"          \
	"  MIN(CASE kind WHEN 'pull' THEN created_ms ELSE sent_ms END) AS sent_ms"                                     \
	"  FROM dispatch WHERE change_id = ?1 AND accelerator = ?2 AND is_current = 1"                                 \
	"  AND state NOT IN ('superseded', 'cancelled')) x ON TRUE"                                                    \
	" JOIN (SELECT MIN(started_ms) AS started_ms, MAX(completed_ms) AS completed_ms"                               \
	"  FROM job WHERE change_id = ?1 AND accelerator = ?2 AND is_current = 1) j ON TRUE WHERE c.id = ?1"

static struct run run_of_facts(const struct run_facts *f)
{
	return (struct run){
	    .is_push = f->kind == CHANGE_PUSH,
	    .ended_ms = f->finished_ms,
	    .n_dispatches = f->n,
	    .n_met = f->n_met,
	    /* a time is not known either if the clock was set back, or if a job began before its dispatch */
	    .queue_ms = f->sent_ms && f->started_ms >= f->sent_ms ? f->started_ms - f->sent_ms : -1,
	    .run_ms = f->started_ms && f->completed_ms >= f->started_ms ? f->completed_ms - f->started_ms : -1,
	};
}

#define RED_CELLS_RECORD(F, S)                                                                                         \
	F(S, BOOL, has_new, NULL, "EXISTS (SELECT 1 " OF_CAUSE("'NEW'") ")", "")                                       \
	F(S, BOOL, has_other, NULL, "EXISTS (SELECT 1 " OF_CAUSE("'UNCLASSIFIED', 'BASE', 'FLAKY'") ")", "")
#define OF_CAUSE(causes) "FROM verdict WHERE change_id = ?1 AND accelerator = ?2 AND attribution IN (" causes ")"
RECORD_LOCAL(red_cells, RED_CELLS_RECORD)

/* A packed PASS is the cell of its test unless that has a row, because a worse result has one. So the first one decides, and
 * the other jobs need not be read. */
static bool has_passed(const struct view *d, int64_t change_id, const char *accelerator)
{
	return db_has(d,
		   "SELECT 1 FROM job j CROSS JOIN job_test r ON r.job_id = j.id WHERE j.change_id = ?1"
		   " AND j.accelerator = ?2 AND j.is_counted = 1 AND r.status = 'PASS' AND NOT EXISTS (SELECT 1"
		   "  FROM verdict v WHERE v.change_id = ?1 AND v.accelerator = ?2 AND v.test_id = r.test_id) LIMIT 1",
		   V_INT(change_id), V_TEXT(accelerator)) ||
	       db_has(d, "SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2 AND status = 'PASS' LIMIT 1",
		   V_INT(change_id), V_TEXT(accelerator));
}

/* Of a pull request. A FLAKY failure shows that this accelerator fails without a reason in the change, which trips the breaker. */
static const char *outcome_of_pull_request(const struct view *d, int64_t change_id, const char *accelerator)
{
	struct red_cells red = {.has_new = false};

	RECORD_READ_FIRST(d, red_cells, RED_CELLS_RECORD, &red, "", V_INT(change_id), V_TEXT(accelerator));
	if (red.has_other)
		return RUN_RED;
	if (red.has_new)
		return RUN_OWN;
	return has_passed(d, change_id, accelerator) ? RUN_GREEN : RUN_NOTHING;
}

/* On a branch a FLAKY failure does not count. */
static const char *outcome_of_push(const struct cell_counts *cells)
{
	if (cells->n_broken)
		return RUN_RED;
	return cells->by_status[TEST_PASS] ? RUN_GREEN : RUN_NOTHING;
}

#define NOTED_RUN_RECORD(F, S)                                                                                         \
	F(S, COUNT, ended_ms, NULL, "ended_ms", "-1: it is not noted.")                                                \
	F(S, BOOL, is_same, NULL,                                                                                      \
	    "ended_ms = ?3 AND outcome = ?4 AND n_dispatches = ?5 AND n_met = ?6 AND n_fail = ?7 AND n_error = ?8"     \
	    " AND n_miss = ?9 AND n_pass = ?10 AND n_done = ?11 AND n_skip = ?12 AND n_flaky = ?13",                   \
	    "")
RECORD_LOCAL(noted_run, NOTED_RUN_RECORD)

/* Writes the row and its day, and also the day on which the run ended before. Returns whether anything is new. */
static bool put_noted_run(struct txn *d, int64_t change_id, const char *accelerator, const struct run *r)
{
	const int64_t *n = r->cells.by_status;
	struct noted_run before = {.ended_ms = -1};

	RECORD_READ_FIRST(d, noted_run, NOTED_RUN_RECORD, &before, "FROM run WHERE change_id = ?1 AND accelerator = ?2",
	    V_INT(change_id), V_TEXT(accelerator), V_INT(r->ended_ms), V_TEXT(r->outcome), V_INT(r->n_dispatches),
	    V_INT(r->n_met), V_INT(n[TEST_FAIL]), V_INT(n[TEST_ERROR]), V_INT(n[TEST_MISS]), V_INT(n[TEST_PASS]),
	    V_INT(n[TEST_DONE]), V_INT(n[TEST_SKIP]), V_INT(r->cells.n_flaky));
	if (before.is_same)
		return false;
	db_exec(d, "DELETE FROM run WHERE change_id = ?1 AND accelerator = ?2", V_INT(change_id), V_TEXT(accelerator));
	db_exec(d,
	    "INSERT INTO run (accelerator, ended_ms, change_id, is_push, outcome, n_dispatches,"
	    " n_met, queue_ms, run_ms, n_fail, n_error, n_miss, n_pass, n_done, n_skip, n_flaky)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
	    V_TEXT(accelerator), V_INT(r->ended_ms), V_INT(change_id), V_INT(r->is_push), V_TEXT(r->outcome),
	    V_INT(r->n_dispatches), V_INT(r->n_met), r->queue_ms < 0 ? V_NULL : V_INT(r->queue_ms),
	    r->run_ms < 0 ? V_NULL : V_INT(r->run_ms), V_INT(n[TEST_FAIL]), V_INT(n[TEST_ERROR]), V_INT(n[TEST_MISS]),
	    V_INT(n[TEST_PASS]), V_INT(n[TEST_DONE]), V_INT(n[TEST_SKIP]), V_INT(r->cells.n_flaky));
	if (before.ended_ms >= 0 && day_of(before.ended_ms) != day_of(r->ended_ms))
		day_note(d, accelerator, before.ended_ms);
	day_note(d, accelerator, r->ended_ms);
	return true;
}

/* ---- the cells of a run by suite ---- */

struct suite {
	char *name;
	int64_t by_status[N_TEST_STATUSES];
	int64_t n_broken;
	enum test_status worst;
	bool is_worst_broken;
	int64_t job_id; /* 0: no job has that status */
};

struct suites {
	struct suite *at;
	size_t n;
};

/* A broken test is worse than an explained one. */
static void note_worst(struct suite *s, enum test_status status, bool is_broken, int64_t job_id)
{
	if (is_broken == s->is_worst_broken ? status >= s->worst : !is_broken)
		return;
	s->worst = status;
	s->is_worst_broken = is_broken;
	s->job_id = job_id;
}

/* Cells of one suite with one status. */
#define CELL_GROUP_RECORD(F, S)                                                                                        \
	F(S, TEXT, suite, NULL, "t.suite", "")                                                                         \
	F(S, TEST_STATUS, status, NULL, "v.status", "")                                                                \
	F(S, ATTRIBUTION, whose, NULL, "v.attribution", "")                                                            \
	F(S, INT, n, NULL, "COUNT(*)", "")                                                                             \
	F(S, ID, job_id, NULL, "MIN(v.job_id)", "")
RECORD_LOCAL(cell_group, CELL_GROUP_RECORD)

struct cell_groups {
	struct cell_group *at;
	size_t n;
};

/* Adds the cells without a row. It counts them as numbers: a statement would read the suite of each. Returns whether others have
 * rows. */
static bool add_packed_groups(const struct view *d, const struct cell_set *s, struct cell_groups *l)
{
	int64_t **n_of = xcalloc(s->n_parts + 1, sizeof(*n_of)); /* by part, suite and status */
	bool has_rows = false;

	for (size_t i = 0; i < s->n_parts; i++) {
		const struct cell_part *part = &s->parts[i];

		if (!test_list_suites(d, part->list, part->job_id, part->first))
			db_fail(d, ERR_INVALID, "the packed results of job %lld are damaged", (long long)part->job_id);
		n_of[i] = xcalloc((size_t)part->list->n_suites * N_TEST_STATUSES + 1, sizeof(**n_of));
	}
	for (size_t i = 0; i < s->n && !db_why(d)->code; i++) {
		const struct cell *c = &s->at[i];

		has_rows |= c->is_row;
		if (!c->is_row)
			n_of[c->part][s->parts[c->part].list->suite_of[c->i] * N_TEST_STATUSES + c->status]++;
	}
	for (size_t i = 0; i < s->n_parts; i++) {
		const struct test_list *list = s->parts[i].list;

		for (size_t k = 0; k < (size_t)list->n_suites * N_TEST_STATUSES; k++)
			if (n_of[i][k])
				*ARRAY_PUSH(l->at, l->n) =
				    (struct cell_group){.suite = xstrdup(list->suites[k / N_TEST_STATUSES]),
					.status = (enum test_status)(k % N_TEST_STATUSES),
					.whose = N_ATTRIBUTIONS,
					.n = n_of[i][k],
					.job_id = s->parts[i].job_id};
		free(n_of[i]);
	}
	free(n_of);
	return has_rows;
}

/* By suite, and then the oldest job first, so that a suite names the same job however the statement orders its rows. */
static int by_suite_and_job(const void *x, const void *y)
{
	const struct cell_group *a = x, *b = y;
	int order = strcmp(a->suite, b->suite);

	if (order || a->job_id == b->job_id)
		return order;
	return b->job_id == 0 || (a->job_id && a->job_id < b->job_id) ? -1 : 1;
}

static struct cell_groups read_groups(const struct view *d, int64_t change_id, const char *accelerator)
{
	struct cell_groups l = {0};
	struct cell_sets cells;

	cell_sets_read(d, change_id, accelerator, &cells);
	if (!db_status(d) && cells.n && add_packed_groups(d, &cells.at[0], &l))
		RECORDS_READ(db_rows(d,
				 RECORD_QUERY(CELL_GROUP_RECORD,
				     "FROM verdict v CROSS JOIN test t ON t.id = v.test_id WHERE v.change_id = ?1"
				     " AND v.accelerator = ?2 GROUP BY t.suite, v.status, v.attribution"),
				 V_INT(change_id), V_TEXT(accelerator)),
		    cell_group, l.at, l.n);
	cell_sets_release(&cells);
	if (l.n)
		qsort(l.at, l.n, sizeof(*l.at), by_suite_and_job);
	return l;
}

static void read_suites(
    const struct view *d, int64_t change_id, const char *accelerator, struct suites *l, struct cell_counts *total)
{
	struct cell_groups groups = read_groups(d, change_id, accelerator);

	for (const struct cell_group *of = groups.at; of < groups.at + groups.n; of++) {
		struct suite *s;
		bool is_red, is_broken;

		if (of->status == N_TEST_STATUSES)
			continue;
		is_red = test_status_is_red(of->status);
		is_broken = is_red && of->whose != ATTRIBUTION_FLAKY && of->whose != ATTRIBUTION_KNOWN;
		if (!l->n || strcmp(l->at[l->n - 1].name, of->suite) != 0)
			*ARRAY_PUSH(l->at, l->n) = (struct suite){.name = xstrdup(of->suite), .worst = N_TEST_STATUSES};
		s = &l->at[l->n - 1];
		s->by_status[of->status] += of->n;
		s->n_broken += is_broken ? of->n : 0;
		note_worst(s, of->status, is_broken, of->job_id);
		total->by_status[of->status] += of->n;
		total->n_flaky += is_red && of->whose == ATTRIBUTION_FLAKY ? of->n : 0;
		total->n_broken += is_broken ? of->n : 0;
	}
	RECORDS_RELEASE(cell_group, groups.at, groups.n);
}

static int64_t n_red(const struct suite *s)
{
	return s->by_status[TEST_FAIL] + s->by_status[TEST_ERROR] + s->by_status[TEST_MISS];
}

static int by_worth(const void *x, const void *y)
{
	const struct suite *a = x, *b = y;
	bool is_usual = suite_is_usual(a->name);

	if (is_usual != suite_is_usual(b->name))
		return is_usual ? -1 : 1;
	if (a->n_broken != b->n_broken)
		return a->n_broken < b->n_broken ? 1 : -1;
	if (n_red(a) != n_red(b))
		return n_red(a) < n_red(b) ? 1 : -1;
	return strcmp(a->name, b->name);
}

struct cell_counts run_suites_put(struct txn *d, int64_t change_id, const char *accelerator)
{
	struct cell_counts total = {.n_flaky = 0};
	struct suites l = {0};

	read_suites(d->view, change_id, accelerator, &l, &total);
	if (l.n > RUN_SUITES_MAX) {
		qsort(l.at, l.n, sizeof(*l.at), by_worth);
		free(l.at[RUN_SUITES_MAX - 1].name);
		l.at[RUN_SUITES_MAX - 1].name = xstrdup(RUN_SUITES_OTHERS);
	}
	for (size_t i = RUN_SUITES_MAX; i < l.n; i++) {
		struct suite *others = &l.at[RUN_SUITES_MAX - 1], *s = &l.at[i];

		for (int k = 0; k < N_TEST_STATUSES; k++)
			others->by_status[k] += s->by_status[k];
		others->n_broken += s->n_broken;
		note_worst(others, s->worst, s->is_worst_broken, s->job_id);
		free(s->name);
	}
	if (l.n > RUN_SUITES_MAX)
		l.n = RUN_SUITES_MAX;
	db_exec(d, "DELETE FROM run_suite WHERE change_id = ?1 AND accelerator = ?2", V_INT(change_id),
	    V_TEXT(accelerator));
	for (const struct suite *s = l.at; s < l.at + l.n; s++) {
		/* A vendor may have a suite with the name RUN_SUITES_OTHERS: both are added up. */
		db_exec(d,
		    "INSERT INTO run_suite (change_id, accelerator, suite, status, n_fail, n_error, n_miss, n_pass,"
		    " n_done, n_skip, n_broken, job_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
		    " ON CONFLICT (change_id, accelerator, suite)"
		    " DO UPDATE SET n_fail = run_suite.n_fail + excluded.n_fail,"
		    " n_error = run_suite.n_error + excluded.n_error, n_miss = run_suite.n_miss + excluded.n_miss,"
		    " n_pass = run_suite.n_pass + excluded.n_pass, n_done = run_suite.n_done + excluded.n_done,"
		    " n_skip = run_suite.n_skip + excluded.n_skip, n_broken = run_suite.n_broken + excluded.n_broken",
		    V_INT(change_id), V_TEXT(accelerator), V_TEXT(s->name), V_TEXT(test_status_name(s->worst)),
		    V_INT(s->by_status[TEST_FAIL]), V_INT(s->by_status[TEST_ERROR]), V_INT(s->by_status[TEST_MISS]),
		    V_INT(s->by_status[TEST_PASS]), V_INT(s->by_status[TEST_DONE]), V_INT(s->by_status[TEST_SKIP]),
		    V_INT(s->n_broken), V_INT_OR_NULL(s->job_id));
		free(s->name);
	}
	free(l.at);
	return total;
}

/* ---- the circuit breaker: the newest runs of an accelerator decide whether its results count ---- */

enum {
	RUNS_MAX = 200,     /* read until HEALTH_LOOKS_AT of them count */
	CELLS_MAX = 8,      /* of a change, to see whether others have the same failure */
	SHARED_BY_MIN = 3,  /* other authors */
	COMMENTS_MAX = 100, /* GitHub accepts 500 content writes an hour */
};

static const int64_t COMMENTS_LOOK_BACK_MS = INT64_C(14) * 86400 * 1000;

#define SAMPLE_RECORD(F, S)                                                                                            \
	F(S, INT, change_id, NULL, "r.change_id", "")                                                                  \
	F(S, TEXT, author, NULL, "CASE WHEN r.is_push <> 0 THEN NULL ELSE c.author END",                               \
	    "Of a pull request; NULL: a push, or not known.")                                                          \
	F(S, BOOL, is_red, NULL, "r.outcome <> '" RUN_GREEN "'", "")                                                   \
	F(S, BOOL, is_own, NULL, "r.outcome = '" RUN_OWN "'", "")
RECORD_LOCAL(sample, SAMPLE_RECORD)

struct samples {
	struct sample at[HEALTH_LOOKS_AT];
	size_t n;
};

/* One run for each author, because one change may have several heads or parts. Each push counts. */
static void read_samples(const struct view *d, const char *accelerator, struct samples *s)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(SAMPLE_RECORD, "FROM run r JOIN change c ON c.id = r.change_id WHERE r.accelerator = ?1"
					" AND r.outcome <> ?2 ORDER BY r.ended_ms DESC, r.change_id DESC LIMIT ?3"),
	    V_TEXT(accelerator), V_TEXT(RUN_NOTHING), V_INT(RUNS_MAX));

	while (s->n < HEALTH_LOOKS_AT && rows_next(r)) {
		struct sample *at = &s->at[s->n];
		bool is_known = false;

		record_read(r, &sample_record, at);
		for (size_t i = 0; at->author && i < s->n; i++)
			is_known |= str_eq(s->at[i].author, at->author);
		if (is_known)
			record_release(&sample_record, at);
		else
			s->n++;
	}
	rows_end(r);
}

/* Several other authors have the same new failure, so none of their changes caused it. */
static bool is_shared(const struct view *d, const char *accelerator, const struct samples *s, size_t i)
{
	int64_t oldest = s->at[0].change_id;
	struct rows *r;
	bool is_found = false;

	for (size_t k = 1; k < s->n; k++)
		oldest = s->at[k].change_id < oldest ? s->at[k].change_id : oldest;
	r = db_rows(d,
	    "SELECT test_id FROM verdict WHERE change_id = ?1 AND accelerator = ?2 AND attribution = 'NEW'"
	    " ORDER BY test_id LIMIT ?3",
	    V_INT(s->at[i].change_id), V_TEXT(accelerator), V_INT(CELLS_MAX));
	while (!is_found && rows_next(r))
		is_found = db_int(d, 0,
			       "SELECT COUNT(DISTINCT c.author) FROM (SELECT change_id FROM run WHERE accelerator = ?1"
			       "  ORDER BY ended_ms DESC, change_id DESC LIMIT ?5) r CROSS JOIN verdict v"
			       " ON v.change_id = r.change_id AND v.accelerator = ?1 AND v.test_id = ?2"
			       " AND v.attribution IS NOT NULL CROSS JOIN change c ON c.id = v.change_id"
			       " WHERE r.change_id >= ?3 AND c.kind = 'pull_request' AND c.author <> ?4",
			       V_TEXT(accelerator), V_INT(rows_key_number(r)), V_INT(oldest),
			       V_TEXT(s->at[i].author ? s->at[i].author : ""), V_INT(RUNS_MAX)) >= SHARED_BY_MIN;
	rows_end(r);
	return is_found;
}

/* A run has ended, or has another outcome now. `was`: the accelerator was unhealthy. When the breaker trips or recovers, the comments
 * of the newest open pull requests are requested again. */
static void health_note(struct txn *d, const char *accelerator, bool was, int64_t now_ms)
{
	struct health_sample judged[HEALTH_LOOKS_AT];
	struct samples s = {.n = 0};
	bool is;

	read_samples(d->view, accelerator, &s);
	for (size_t i = 0; i < s.n; i++)
		judged[i] = (struct health_sample){
		    .is_red = s.at[i].is_red,
		    .is_attributed = s.at[i].is_own && !is_shared(d->view, accelerator, &s, i),
		};
	is = health_is_unhealthy(judged, s.n, was);
	for (size_t i = 0; i < s.n; i++)
		free(s.at[i].author);
	if (is == was)
		return;
	db_exec(d, "UPDATE accelerator SET unhealthy_since_ms = ?2 WHERE name = ?1", V_TEXT(accelerator),
	    V_INT_OR_NULL(is ? now_ms : 0));
	log_event(is ? LOG_WARN : LOG_INFO, is ? "accelerator_unhealthy" : "accelerator_healthy",
	    LOG_S("accelerator", accelerator), LOG_I("looked_at", (int64_t)s.n));
	cells_moved_each(d,
	    db_rows(d,
		"SELECT x.change_id FROM dispatch x JOIN change c ON c.id = x.change_id WHERE x.accelerator = ?1"
		" AND x.created_ms >= ?2 AND x.number > 0 AND x.is_current = 1 AND c.state = 'open'"
		" GROUP BY x.change_id ORDER BY MAX(x.created_ms) DESC, x.change_id DESC LIMIT ?3",
		V_TEXT(accelerator), V_INT(now_ms - COMMENTS_LOOK_BACK_MS), V_INT(COMMENTS_MAX)),
	    NULL, CELLS_HEALTH_CHANGED, now_ms);
}

/* ---- a run ends ---- */

void run_note(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct run_facts f;
	struct run r;

	platform_tests_note(d, change_id, accelerator);
	if (!accelerator[0] ||
	    !RECORD_READ_FIRST(d, run_facts, RUN_FACTS_RECORD, &f, RUN_FACTS_OF, V_INT(change_id), V_TEXT(accelerator)))
		return;
	if (f.kind == CHANGE_NIGHTLY) {
		nightly_note(d, change_id, accelerator, now_ms);
		return;
	}
	/* It has not ended, or there is none. */
	if (f.level == LEVEL_1 || !f.n || f.n_unfinished)
		return;
	r = run_of_facts(&f);
	if (r.is_push) {
		r.cells = run_suites_put(d, change_id, accelerator);
		r.outcome = outcome_of_push(&r.cells);
	} else {
		r.outcome = outcome_of_pull_request(d->view, change_id, accelerator);
		run_jobs_note(d, change_id, accelerator, r.ended_ms);
	}
	if (!put_noted_run(d, change_id, accelerator, &r))
		return;
	if (r.is_push)
		red_episode_note(d, change_id, accelerator, now_ms);
	health_note(d, accelerator, f.is_unhealthy, now_ms);
}

int64_t runs_drop(struct txn *d, int64_t change_id)
{
	int64_t n;

	days_close(d, change_id);
	db_exec(d, "DELETE FROM run_suite WHERE change_id = ?1", V_INT(change_id));
	n = run_jobs_drop_change(d, change_id);
	return n + db_exec_count(d, "DELETE FROM run WHERE change_id = ?1", V_INT(change_id));
}
