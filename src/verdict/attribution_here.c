/* The same tests in the same jobs on this commit and on older heads of the pull request: other attempts, and experiments on
 * the head and on the merge base. */

#include "experiments/experiments.h"
#include "model/experiment.h"
#include "model/plan.h"
#include "store/branch_commits.h"
#include "verdict/attribution_facts.h"

enum {
	HEADS_MAX = 6,     /* of the same pull request, the newest */
	ATTEMPTS_MAX = 20, /* of one job on one commit, the newest */
};

/* ---- this pull request ---- */

struct own_run {
	struct job_run run;
	bool is_here;     /* on this commit */
	bool is_evidence; /* a pass in it counts: it is recent, had this base branch, and was of this commit */
	bool is_current;
};

void attribution_failed_again(struct red_failure *f)
{
	f->facts.n_failed_again += f->seen.has_red;
	f->facts.n_failed_so_again += f->seen.is_alike;
	f->facts.numbers_vary |= f->seen.is_alike && f->seen.mark.numbers != f->facts.mark.numbers;
}

/* Another test failed with the same message in this attempt, in any job: the crash only moved to another test. */
static bool crash_moved_in_attempt(struct attribution_case *c, const struct red_failure *f, int64_t job_id)
{
	return f->facts.mark.key && db_has(c->d,
					"SELECT 1 FROM failure f CROSS JOIN job j ON j.id = f.job_id"
					" AND j.run_attempt = (SELECT run_attempt FROM job WHERE id = ?5)"
					" WHERE f.change_id = ?1 AND f.key = ?2 AND f.accelerator = ?3"
					" AND f.test_id <> ?4 LIMIT 1",
					V_INT(c->change_id), V_INT(f->facts.mark.key), V_TEXT(c->accelerator),
					V_INT(f->test_id), V_INT(job_id));
}

/* A test may have several results in one run. It passed only if none of them is red. */
static void note_own_run(struct attribution_case *c, struct red_failure *f, const struct own_run *own)
{
	struct attribution_facts *facts = &f->facts;
	const struct seen *seen = &f->seen;

	if (!seen->has_red && !seen->has_pass)
		return;
	facts->here.n++;
	facts->here.n_hits += seen->is_alike;
	facts->here_whole = facts->here;
	if (!own->is_here || own->is_current || !own->is_evidence)
		return;
	attribution_failed_again(f);
	if (seen->has_red)
		return;
	if (attribution_is_other_build(c, own->run.id, f->job_id))
		facts->passed_on_other_build = true;
	else if (!crash_moved_in_attempt(c, f, own->run.id))
		facts->passed_here_job = seen->job_id;
}

#define ATTEMPT_RECORD(F, S)                                                                                           \
	F(S, ID, id, NULL, "id", "")                                                                                   \
	F(S, INT, n_tests, NULL, "n_tests", "")                                                                        \
	F(S, BOOL, is_current, NULL, "is_current", "")                                                                 \
	F(S, BOOL, is_recent, NULL,                                                                                    \
	    "completed_ms >= ?6 AND NOT EXISTS (SELECT 1 FROM dispatch e WHERE e.change_id = ?1"                       \
	    " AND e.accelerator = ?2 AND e.original_action = 'edited' AND e.created_ms >= job.completed_ms)",          \
	    "And of this base branch: with another one it was another test.")                                          \
	F(S, BORROWED, torch_commit, NULL, "json_extract(environment, '$.torch_commit')", "")                          \
	F(S, BOOL, is_superseded, NULL,                                                                                \
	    "COALESCE((SELECT CASE WHEN h.change_id <> ?1 THEN 1 ELSE 0 END FROM pull_head h"                          \
	    " WHERE h.repository_key = ?8 AND h.number = ?9 AND h.since_ms < job.completed_ms"                         \
	    " ORDER BY h.since_ms DESC, h.change_id DESC LIMIT 1), 0)",                                                \
	    "It ended after another head was pushed, which may be what it checked out.")
RECORD_LOCAL(attempt, ATTEMPT_RECORD)

static size_t list_attempts(const struct attribution_case *c, size_t job, int64_t change_id, struct own_run *list)
{
	const struct job_name *j = &c->jobs[job];
	size_t n = 0;
	struct rows *r = db_rows(c->d,
	    RECORD_QUERY(ATTEMPT_RECORD,
		"FROM job WHERE change_id = ?1 AND accelerator = ?2 AND workflow = ?3 AND name = ?4 AND runner = ?5"
		" AND status = 'completed' AND digest IS NOT NULL ORDER BY id DESC LIMIT ?7"),
	    V_INT(change_id), V_TEXT(c->accelerator), V_TEXT(j->workflow), V_TEXT(j->name), V_TEXT(j->runner),
	    V_INT(c->now_ms - c->window_ms), V_INT(ATTEMPTS_MAX), V_TEXT(c->repository_key), V_INT(c->number));

	while (rows_next(r)) {
		struct attempt a;

		record_read(r, &attempt_record, &a);
		list[n++] = (struct own_run){
		    .run = {job, a.id, a.n_tests},
		    .is_here = change_id == c->change_id,
		    .is_current = a.is_current,
		    .is_evidence =
			a.is_recent &&
			(names_a_commit(a.torch_commit) ? names_commit(a.torch_commit, c->head_sha) : !a.is_superseded),
		};
	}
	return n;
}

/* Sets `seen` of the job's failures if this is the run that they were read from: they are its results, so it need not be read. */
static bool see_itself(struct attribution_case *c, const struct own_run *own)
{
	struct red_failure *f = c->failures + c->jobs[own->run.job].first_failure;
	size_t n = c->jobs[own->run.job].n_failures;
	bool is_itself = own->is_here && own->is_current;

	for (size_t i = 0; i < n; i++)
		is_itself &= f[i].job_id == own->run.id;
	for (size_t i = 0; is_itself && i < n; i++) {
		f[i].seen = (struct seen){.has_red = false};
		attribution_see(&f[i], TEST_FAIL, &f[i].facts.mark, own->run.id);
	}
	return is_itself;
}

void fact_this_commit(struct attribution_case *c)
{
	/* the heads of the pull request, newest first after this one; a push has only itself */
	int64_t heads[HEADS_MAX] = {c->change_id};
	size_t n_heads = 1;

	if (c->number) {
		struct rows *r = db_rows(c->d,
		    "SELECT change_id FROM pull_head WHERE repository_key = ?1 AND number = ?2"
		    " AND change_id <> ?3 GROUP BY change_id ORDER BY MAX(since_ms) DESC, change_id DESC LIMIT ?4",
		    V_TEXT(c->repository_key), V_INT(c->number), V_INT(c->change_id), V_INT(HEADS_MAX - 1));

		while (rows_next(r))
			heads[n_heads++] = rows_key_number(r);
	}
	for (size_t job = 0; job < c->n_jobs; job++)
		for (size_t h = n_heads; h-- > 0;) { /* oldest first */
			struct own_run list[ATTEMPTS_MAX];
			size_t n = list_attempts(c, job, heads[h], list);

			while (n-- > 0) {
				struct red_failure *f = c->failures + c->jobs[job].first_failure;

				if (!see_itself(c, &list[n]))
					attribution_read_run(c, &list[n].run);
				for (size_t i = 0; i < c->jobs[job].n_failures; i++)
					note_own_run(c, &f[i], &list[n]);
			}
		}
}

/* ==== experiments ==== */

/* Jobs of the change on the runner of experiment xe. */
#define XO_HERE                                                                                                        \
	" FROM job xo WHERE xo.change_id = ?1 AND xo.accelerator = xe.accelerator"                                     \
	" AND xo.runner = xe.runner AND xo.is_current = 1"

/* Job xb of experiment xe repeats the job of the change with xb's name and this workflow. That is the job with the same
 * name and workflow, even if it has no result of the test: then xb proves nothing for the job that failed. A vendor may run
 * experiments in a separate workflow, in which the change has no job: then it is the only job with xb's name. NULL: xb is
 * new, and may repeat any job. */
#define WORKFLOW_OF_XB                                                                                                 \
	"CASE WHEN EXISTS (SELECT 1" XO_HERE " AND xo.name = xb.name"                                                  \
	"  AND xo.workflow = xb.workflow) THEN xb.workflow"                                                            \
	" WHEN NOT EXISTS (SELECT 1" XO_HERE " AND xo.workflow = xb.workflow) THEN"                                    \
	" (SELECT CASE COUNT(DISTINCT xo.workflow) WHEN 1 THEN MIN(xo.workflow) END" XO_HERE                           \
	"  AND xo.name = xb.name) END AS workflow"

enum {
	EXPERIMENTS_MAX = 20, /* of one test, side and cause: the newest */
	REDS_MAX = 2000, /* of one experiment, any of them; with so many, each failure may have moved to another test */
};

#define EXPERIMENT_RUN_RECORD(F, S)                                                                                    \
	F(S, ID, id, NULL, "id", "")                                                                                   \
	F(S, TEXT, runner, NULL, "runner", "")                                                                         \
	F(S, TEXT, sha, NULL, "sha", "")                                                                               \
	F(S, BOOL, is_here, NULL, "is_here", "On this commit, or on its merge base.")                                  \
	F(S, EXPERIMENT_SIDE, side, NULL, "side", "")                                                                  \
	F(S, TIME, started_ms, NULL, "started_ms", "")                                                                 \
	F(S, TIME, ended_ms, NULL, "ended_ms", "")
RECORD_LOCAL(experiment_run, EXPERIMENT_RUN_RECORD)

/* One result of one of its tests. xr is a row of `result`, or of `verdict` if a job without tests is the test. The key is
 * the trace, which only `result` has. */
#define EXPERIMENT_RESULT_RECORD(F, S)                                                                                 \
	F(S, ID, test_id, NULL, "xt.test_id", "")                                                                      \
	F(S, TEST_STATUS, status, NULL, "xr.status", "")                                                               \
	F(S, BORROWED, message, NULL, "xr.message", "")                                                                \
	F(S, ID, job_id, NULL, "xb.id AS job_id", "")                                                                  \
	F(S, BOOL, waits, NULL, "xt.waits", "It waited for a good machine.")                                           \
	F(S, TEXT, job_name, NULL, "xb.name", "")                                                                      \
	F(S, TEXT, workflow, NULL, WORKFLOW_OF_XB,                                                                     \
	    "With job_name: the job here that it repeats. NULL: it may repeat any.")
RECORD_LOCAL(experiment_result, EXPERIMENT_RESULT_RECORD)

struct experiment_results {
	struct judged_result {
		struct experiment_result row; /* without its message */
		struct failure_mark mark;     /* if it is red */
	} * at;
	size_t n;
	struct red_job { /* a red test of its jobs, also one that was not requested */
		int64_t test_id, key;
	} * reds;
	size_t n_reds;
};

static void add_experiment_result(const struct attribution_case *c, struct rows *r, struct experiment_results *l)
{
	struct judged_result result = {.mark = {.key = 0}};
	const struct red_cell *cell;

	record_read(r, &experiment_result_record, &result.row);
	cell = attribution_cell(c, result.row.test_id);
	if (!cell) {
		record_release(&experiment_result_record, &result.row);
		return;
	}
	if (attribution_applies(result.row.status))
		result.mark = attribution_mark(c, cell, result.row.status, result.row.message, rows_key(r));
	*ARRAY_PUSH(l->at, l->n) = result;
}

/* The results of its tests, with the job of the change that each repeats. On the head they are of the current attempts. On
 * the base they are of all attempts, because a test that was green there in one of them excuses nothing. The results of a
 * request that was cancelled for a first run do not count. The newest job comes last, because attribution_see() keeps the last
 * job. */
#define EXPERIMENT_RESULTS                                                                                             \
	RECORD_QUERY_BY("xr.trace", EXPERIMENT_RESULT_RECORD,                                                          \
	    ", xr.ordinal AS ordinal FROM experiment xe CROSS JOIN experiment_test xt ON xt.experiment_id = xe.id"     \
	    " CROSS JOIN job xb ON xb.change_id = xe.run_change_id"                                                    \
	    " CROSS JOIN job_test xr"                                                                                  \
	    " ON xr.job_id = xb.id AND xr.test_id = xt.test_id WHERE xe.id = ?2"                                       \
	    " AND xb.accelerator = xe.accelerator AND (xb.is_current = 1 OR xe.side = 'base')"                         \
	    " AND xb.status = 'completed' AND xb.digest IS NOT NULL AND NOT EXISTS"                                    \
	    "  (SELECT 1 FROM dispatch xd WHERE xd.id = xb.dispatch_id"                                                \
	    "   AND xd.accelerator = xb.accelerator AND xd.runner = xb.runner"                                         \
	    "   AND xd.is_current = 0)")                                                                               \
	" UNION ALL " RECORD_QUERY_BY("NULL", EXPERIMENT_RESULT_RECORD,                                                \
	    ", 0 FROM experiment xe CROSS JOIN experiment_test xt ON xt.experiment_id = xe.id"                         \
	    " CROSS JOIN verdict xr ON xr.change_id = xe.run_change_id AND xr.accelerator = xe.accelerator"            \
	    " AND xr.test_id = xt.test_id CROSS JOIN job xb ON xb.id = xr.job_id AND xb.n_tests = 0"                   \
	    " WHERE xe.id = ?2 ORDER BY job_id, ordinal")

#define RED_RESULT_RECORD(F, S)                                                                                        \
	F(S, ID, test_id, NULL, "r.test_id", "")                                                                       \
	F(S, TEST_STATUS, status, NULL, "r.status", "")                                                                \
	F(S, BORROWED, message, NULL, "r.message", "")                                                                 \
	F(S, BORROWED, trace, NULL, "r.trace", "")                                                                     \
	F(S, BORROWED, suite, NULL, "t.suite", "")                                                                     \
	F(S, BORROWED, test, NULL, "t.name", "")                                                                       \
	F(S, BORROWED, dtype, NULL, "t.dtype", "")
RECORD_LOCAL(red_result, RED_RESULT_RECORD)

static void read_experiment_reds(
    const struct attribution_case *c, const struct experiment_run *e, struct experiment_results *l)
{
	struct rows *r = db_rows(c->d,
	    RECORD_QUERY(RED_RESULT_RECORD, "FROM experiment e CROSS JOIN job j ON j.change_id = e.run_change_id"
					    " AND j.accelerator = e.accelerator AND j.is_current = 1"
					    " CROSS JOIN result r ON r.job_id = j.id AND r.ordinal < j.n_tests"
					    " AND r.status IN ('FAIL', 'ERROR')"
					    " CROSS JOIN test t ON t.id = r.test_id WHERE e.id = ?1 LIMIT ?2"),
	    V_INT(e->id), V_INT(REDS_MAX));

	while (rows_next(r)) {
		struct red_result red;
		struct failure_text text;

		record_read(r, &red_result_record, &red);
		text = (struct failure_text){red.message, red.trace, red.suite, red.test, red.dtype};
		*ARRAY_PUSH(l->reds, l->n_reds) = (struct red_job){red.test_id, failure_mark(red.status, &text).key};
	}
}

/* Another test failed with the same message in that run, in any job: the crash only moved to another test. */
static bool crash_moved_in_experiment(const struct experiment_results *l, const struct red_failure *f)
{
	if (l->n_reds == REDS_MAX)
		return true;
	for (size_t i = 0; i < l->n_reds; i++)
		if (l->reds[i].key == f->facts.mark.key && l->reds[i].test_id != f->test_id)
			return f->facts.mark.key != 0;
	return false;
}

/* At most one current job of the runner has a result of the test here. Only then do new jobs prove something: with more
 * jobs it is not known which of them a new job repeats. */
static bool is_in_one_job(const struct attribution_case *c, const char *runner, int64_t test_id)
{
	return db_int(c->d, 0,
		   "SELECT COUNT(DISTINCT xo.id) FROM job xo CROSS JOIN job_test xr"
		   " ON xr.job_id = xo.id AND xr.test_id = ?3 WHERE xo.change_id = ?1"
		   " AND xo.accelerator = ?2 AND xo.runner = ?4 AND xo.is_current = 1"
		   " AND xo.status = 'completed' AND xo.digest IS NOT NULL AND xr.status <> 'SKIP'",
		   V_INT(c->change_id), V_TEXT(c->accelerator), V_INT(test_id), V_TEXT(runner)) <= 1;
}

/* The results in the job that repeats the failed one have to agree with those in new jobs, which may repeat it. If a vendor
 * ran the test only in new jobs, they count if the test runs in one job of this runner here. False: they prove nothing for
 * this failure. */
static bool see_in_experiment(
    const struct attribution_case *c, const struct experiment_results *l, struct red_failure *f)
{
	const struct job_name *job = &c->jobs[f->job];
	bool has_own = false, has_outcome = false; /* of the job that repeats this one */

	f->seen = (struct seen){.has_red = false};
	for (size_t i = 0; i < l->n; i++) {
		const struct experiment_result *r = &l->at[i].row;
		bool is_own = r->workflow && str_eq(r->workflow, job->workflow) && str_eq(r->job_name, job->name);

		if (r->test_id != f->test_id || (r->workflow && !is_own))
			continue;
		attribution_see(f, r->status, &l->at[i].mark, r->job_id);
		f->seen.has_waited |= r->waits;
		has_own |= is_own;
		has_outcome |= is_own && (r->status == TEST_PASS || attribution_applies(r->status));
	}
	if (f->seen.has_red == f->seen.has_pass)
		return false;
	return has_own ? has_outcome : is_in_one_job(c, job->runner, f->test_id);
}

static void note_on_head(const struct experiment_run *e, const struct experiment_results *l, struct red_failure *f)
{
	struct attribution_facts *facts = &f->facts;

	/* repeated runs on one bad machine do not show how often the test fails */
	if (!(f->seen.has_waited && f->seen.has_red)) {
		facts->here.n++;
		facts->here.n_hits += f->seen.is_alike;
	}
	if (!e->is_here)
		return;
	if (f->seen.has_pass && !crash_moved_in_experiment(l, f))
		facts->passed_here_job = f->seen.job_id;
	if (f->seen.has_red)
		facts->experiment_failed_ms = e->started_ms;
	attribution_failed_again(f);
}

static void note_experiment(struct attribution_case *c, const struct experiment_run *e)
{
	struct experiment_results l = {.n = 0};
	struct rows *r = db_rows(c->d, EXPERIMENT_RESULTS, V_INT(c->change_id), V_INT(e->id));

	while (rows_next(r))
		add_experiment_result(c, r, &l);
	if (e->side == EXPERIMENT_HEAD)
		read_experiment_reds(c, e, &l);
	for (size_t i = 0; i < c->n_failures; i++) {
		struct red_failure *f = &c->failures[i];

		if (!str_eq(c->jobs[f->job].runner, e->runner) || !see_in_experiment(c, &l, f))
			continue;
		if (e->side == EXPERIMENT_HEAD) {
			note_on_head(e, &l, f);
		} else {
			struct base_run run = {.outcome = f->seen.has_red ? BASE_RED : BASE_GREEN,
			    .is_experiment = true,
			    .experiment_ended_ms = e->ended_ms,
			    .mark = f->seen.mark,
			    .job = f->seen.job_id};

			snprintf(run.sha, sizeof(run.sha), "%s", e->sha);
			attribution_add_base(c, f, &run);
		}
	}
	for (size_t i = 0; i < l.n; i++)
		record_release(&experiment_result_record, &l.at[i].row);
	free(l.reds);
	free(l.at);
}

static void note_experiments(struct attribution_case *c, struct rows *r)
{
	struct experiment_run *list = NULL;
	size_t n = 0;

	RECORDS_READ(r, experiment_run, list, n);
	for (size_t i = 0; i < n; i++)
		note_experiment(c, &list[i]);
	RECORDS_RELEASE(experiment_run, list, n);
}

/* Experiments can show more if the runner accepts them, unless one that the rules requested ended without a result for this
 * change: then Outpost requests no further one, and the cause stays undecided. A `stress` and an experiment that waited for
 * a good machine do not change that. */
void fact_accepts_experiments(struct attribution_case *c)
{
	for (const struct job_name *job = c->jobs; job < c->jobs + c->n_jobs; job++) {
		bool takes =
		    !c->is_push && db_has(c->d,
				       "SELECT 1 FROM runner r CROSS JOIN accelerator a ON a.name = r.accelerator"
				       " WHERE r.accelerator = ?1 AND r.name = ?2 AND " RUNNER_ACCEPTS_EXPERIMENTS,
				       V_TEXT(c->accelerator), V_TEXT(job->runner));
		bool lacks =
		    takes &&
		    db_has(c->d,
			"SELECT 1 FROM experiment WHERE change_id = ?1 AND accelerator = ?2 AND runner = ?3"
			" AND cause = 'auto' AND state IN (" EXPERIMENT_SQL_EXPIRED ", " EXPERIMENT_SQL_VOID ")"
			" AND not_before_ms = 0 LIMIT 1",
			V_INT(c->change_id), V_TEXT(c->accelerator), V_TEXT(job->runner));

		for (size_t i = 0; i < job->n_failures; i++) {
			struct attribution_facts *f = &c->failures[job->first_failure + i].facts;

			f->lacks_experiment = lacks;
			f->accepts_experiments = takes && !lacks;
		}
	}
}

/* The experiments with a test that is red here, oldest first. Each test and cause has its own limit, so that many rounds of
 * a `stress`, or many other tests on the same merge base, do not displace an outcome. ?2: the accelerator. */
#define NEWEST_OF_EACH_TEST(is_here, which)                                                                            \
	RECORD_QUERY_DISTINCT(EXPERIMENT_RUN_RECORD,                                                                   \
	    "FROM (SELECT e.id, e.runner, e.sha, " is_here " AS is_here, e.side, e.started_ms,"                        \
	    "  e.ended_ms, ROW_NUMBER() OVER (PARTITION BY t.test_id, e.cause ORDER BY e.id DESC)"                     \
	    "  AS n FROM experiment e CROSS JOIN experiment_test t ON t.experiment_id = e.id"                          \
	    "  CROSS JOIN verdict v ON v.change_id = ?1 AND v.accelerator = ?2"                                        \
	    "  AND v.test_id = t.test_id AND v.attribution IS NOT NULL"                                                \
	    "  WHERE e.accelerator = ?2 AND e.state = " EXPERIMENT_SQL_DONE " AND " which                              \
	    ") ranked WHERE n <= ?3 ORDER BY id")

void fact_experiments(struct attribution_case *c)
{
	if (c->is_push)
		return;
	note_experiments(c, db_rows(c->d,
				NEWEST_OF_EACH_TEST("e.change_id = ?1",
				    "e.side = 'head' AND e.change_id IN (SELECT ?1 UNION SELECT change_id"
				    " FROM pull_head WHERE repository_key = ?4 AND number = ?5)"),
				V_INT(c->change_id), V_TEXT(c->accelerator), V_INT(EXPERIMENTS_MAX),
				V_TEXT(c->repository_key), V_INT(c->number)));
	if (c->merge_base_sha && strcmp(c->merge_base_sha, c->head_sha) != 0)
		note_experiments(
		    c, db_rows(c->d, NEWEST_OF_EACH_TEST("1", "e.side = 'base' AND e.sha = ?4"), V_INT(c->change_id),
			   V_TEXT(c->accelerator), V_INT(EXPERIMENTS_MAX), V_TEXT(c->merge_base_sha)));
}
