/* Experiments as evidence: the same tests again on the same head, and on the merge base. */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/experiment.h"
#include "store/attribution_facts.h"
#include "store/experiments.h"

enum { EXPERIMENTS_MAX = 20 /* of one test, side and cause: the newest */ };

struct experiment {
	int64_t id, run_change_id;
	bool is_here; /* on this commit, or on its merge base */
	char *runner;
	char sha[41];
	enum experiment_side side;
};

/* One result of one of its tests. */
struct experiment_result {
	size_t cell;
	enum test_status status;
	struct failure_mark mark;
	int64_t job_id;
	char *job_name;
	bool is_of_known_job; /* the test runs in a job of this name here, too */
};
struct experiment_results {
	struct experiment_result *at;
	size_t n;
};

static void take_result(
    const struct attribution_case *c, const struct rows *r, struct experiment_results *l)
{
	size_t i = 0;
	struct failure_text text = {.message = rows_is_null(r, 2) ? NULL : rows_text(r, 2),
	    .trace = rows_is_null(r, 3) ? NULL : rows_text(r, 3)};
	struct experiment_result *result;

	while (i < c->n_cells && c->cells[i].test_id != rows_int(r, 0))
		i++;
	if (i == c->n_cells)
		return;
	l->at = xrealloc(l->at, (l->n + 1) * sizeof(*l->at));
	result = &l->at[l->n++];
	*result = (struct experiment_result){.cell = i,
	    .status = test_status_parse(rows_text(r, 1)),
	    .job_id = rows_int(r, 4),
	    .job_name = rows_dup(r, 5),
	    .is_of_known_job = rows_int(r, 6)};
	text.suite = c->cells[i].suite;
	text.test = c->cells[i].test;
	text.dtype = c->cells[i].dtype;
	if (attribution_applies(result->status))
		result->mark = failure_mark(result->status, &text);
}

/* A job of the change itself with the name of the experiment's job j, in which test t has a result. */
#define HAS_JOB_HERE                                                                               \
	"EXISTS (SELECT 1 FROM job o CROSS JOIN result s INDEXED BY result_of_test ON s.job_id = " \
	"o.id"                                                                                     \
	" AND s.test_id = t.test_id AND s.status <> 'SKIP' WHERE o.change_id = ?5"                 \
	" AND o.accelerator = ?2 AND o.runner = ?6 AND o.name = j.name AND o.is_current = 1"       \
	" AND o.digest IS NOT NULL)"

/* Only of the tests that it was asked for. On the head in the attempts that count; on the base in all, because
 * a test that was green there in one of them excuses nothing. */
static struct experiment_results read_results(
    const struct attribution_case *c, const struct experiment *e)
{
	struct experiment_results l = {.n = 0};
	struct rows *r = db_rows(c->d,
	    "SELECT t.test_id, r.status, r.message, r.trace, j.id, j.name, " HAS_JOB_HERE
	    " FROM job j CROSS JOIN experiment_test t"
	    " CROSS JOIN result r INDEXED BY result_of_test"
	    " ON r.job_id = j.id AND r.test_id = t.test_id WHERE j.change_id = "
	    "?1"
	    " AND j.accelerator = ?2 AND (j.is_current = 1 OR ?4) AND j.status = 'completed'"
	    " AND j.digest IS NOT NULL AND t.experiment_id = ?3"
	    /* not of a request that was called off for a first run */
	    " AND NOT EXISTS (SELECT 1 FROM dispatch x WHERE x.id = j.dispatch_id"
	    "  AND x.accelerator = j.accelerator AND x.runner = j.runner AND x.is_current = 0)"
	    /* a job that has no tests is one itself */
	    " UNION ALL SELECT v.test_id, v.status, v.message, NULL, v.job_id, j.name, 0 FROM "
	    "experiment_test t"
	    " CROSS JOIN verdict v ON v.change_id = ?1 AND v.accelerator = ?2 AND v.test_id = "
	    "t.test_id"
	    " CROSS JOIN job j ON j.id = v.job_id AND j.n_tests = 0 WHERE t.experiment_id = ?3",
	    V_INT(e->run_change_id), V_TEXT(c->accelerator), V_INT(e->id),
	    V_INT(e->side == EXPERIMENT_BASE), V_INT(c->change_id), V_TEXT(e->runner));

	while (rows_next(r))
		take_result(c, r, &l);
	return l;
}

static void results_release(struct experiment_results *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->at[i].job_name);
	free(l->at);
}

/* In how many of the runner's jobs that count the test has a result here. */
static int64_t count_jobs(const struct attribution_case *c, const char *runner, int64_t test_id)
{
	return db_int(c->d, 0,
	    "SELECT COUNT(DISTINCT j.id) FROM job j CROSS JOIN result r INDEXED BY result_of_test"
	    " ON r.job_id = j.id AND r.test_id = ?3"
	    " WHERE j.change_id = ?1 AND j.accelerator = ?2 AND j.is_current = 1 AND j.status = "
	    "'completed'"
	    " AND j.digest IS NOT NULL AND r.status <> 'SKIP' AND j.runner = ?4",
	    V_INT(c->change_id), V_TEXT(c->accelerator), V_INT(test_id), V_TEXT(runner));
}

/* The results in jobs of the failed job's name, and in jobs whose names are new, because these may stand for it, have to
 * agree. One in another job that has the test here as well speaks of that job. A vendor may have run the test in a job of
 * another name only: that counts if it runs in no other job of this runner here. False: it proves nothing for this
 * failure. */
static bool see(
    const struct attribution_case *c, const struct experiment_results *l, struct red_failure *f)
{
	const struct job_name *job = &c->jobs[f->job];
	bool has_name = false, has_outcome = false; /* of the job with that name */

	f->seen = (struct seen){.has_red = false};
	for (size_t i = 0; i < l->n; i++) {
		bool is_own = str_eq(l->at[i].job_name, job->name);

		if (l->at[i].cell != f->cell || (!is_own && l->at[i].is_of_known_job))
			continue;
		attribution_see(f, l->at[i].status, &l->at[i].mark, l->at[i].job_id);
		has_name |= is_own;
		has_outcome |= is_own && (l->at[i].status == TEST_PASS ||
					     attribution_applies(l->at[i].status));
	}
	if (f->seen.has_red == f->seen.has_pass)
		return false;
	return has_name ? has_outcome : count_jobs(c, job->runner, f->test_id) <= 1;
}

static void note_on_head(const struct experiment *e, struct red_failure *f)
{
	struct attribution_facts *facts = &f->facts;

	facts->here.n++;
	facts->here.n_hits += f->seen.is_alike;
	if (!e->is_here)
		return;
	if (f->seen.has_pass)
		facts->passed_here_job = f->seen.job_id;
	attribution_failed_again(f);
}

static void note_on_base(
    struct attribution_case *c, const struct experiment *e, struct red_failure *f)
{
	struct base_run run = {.outcome = f->seen.has_red ? BASE_RED : BASE_GREEN,
	    .is_experiment = true,
	    .mark = f->seen.mark,
	    .job = f->seen.job_id};

	memcpy(run.sha, e->sha, sizeof(run.sha));
	attribution_add_base(c, f, &run);
}

static void note_experiment(struct attribution_case *c, const struct experiment *e)
{
	struct experiment_results l = read_results(c, e);

	for (size_t i = 0; i < c->n_failures; i++) {
		struct red_failure *f = &c->failures[i];

		if (!str_eq(c->jobs[f->job].runner, e->runner) || !see(c, &l, f))
			continue;
		if (e->side == EXPERIMENT_HEAD)
			note_on_head(e, f);
		else
			note_on_base(c, e, f);
	}
	results_release(&l);
}

static void note_all(struct attribution_case *c, struct rows *r, enum experiment_side side)
{
	struct experiment *list = NULL, *e;
	size_t n = 0;

	while (rows_next(r)) {
		list = xrealloc(list, (n + 1) * sizeof(*list));
		e = &list[n++];
		*e = (struct experiment){.id = rows_int(r, 0),
		    .run_change_id = rows_int(r, 1),
		    .runner = rows_dup(r, 2),
		    .is_here = rows_int(r, 4),
		    .side = side};
		snprintf(e->sha, sizeof(e->sha), "%s", rows_text(r, 3));
	}
	for (size_t i = 0; i < n; i++) {
		note_experiment(c, &list[i]);
		free(list[i].runner);
	}
	free(list);
}

/* Experiments can still show more where a runner takes them, unless one that the rules asked for ended without a result
 * for this change: then the rules decide alone. The outcome of a member's `stress` does not change that. */
static void read_whether_taken(struct attribution_case *c)
{
	bool *taken = xcalloc(c->n_jobs ? c->n_jobs : 1, sizeof(*taken));

	for (size_t i = 0; i < c->n_jobs; i++)
		taken[i] =
		    !c->is_push &&
		    db_has(c->d,
			"SELECT 1 FROM runner r CROSS JOIN accelerator a ON a.name = r.accelerator"
			" WHERE r.accelerator = ?1 AND r.name = ?2"
			" AND " RUNNER_TAKES_EXPERIMENTS,
			V_TEXT(c->accelerator), V_TEXT(c->jobs[i].runner)) &&
		    !db_has(c->d,
			"SELECT 1 FROM experiment WHERE change_id = ?1 AND accelerator = ?2 AND "
			"runner = ?3"
			" AND cause = 'auto' AND state IN ('expired', 'void') LIMIT 1",
			V_INT(c->change_id), V_TEXT(c->accelerator), V_TEXT(c->jobs[i].runner));
	for (size_t i = 0; i < c->n_failures; i++)
		c->failures[i].facts.takes_experiments = taken[c->failures[i].job];
	free(taken);
}

/* Those that were asked for a test that is red here, oldest first. Each test and cause has its own limit: so many rounds
 * of a `stress`, or many other tests on the same merge base, do not take an outcome away. ?2: the accelerator. */
#define NEWEST_OF_EACH_TEST(is_here, which)                                                        \
	"SELECT DISTINCT id, run_change_id, runner, sha, is_here FROM"                             \
	" (SELECT e.id, e.run_change_id, e.runner, e.sha, " is_here " AS is_here,"                 \
	"  ROW_NUMBER() OVER (PARTITION BY t.test_id, e.cause ORDER BY e.id DESC) AS n"            \
	"  FROM experiment e CROSS JOIN experiment_test t ON t.experiment_id = e.id"               \
	"  CROSS JOIN verdict v ON v.change_id = ?1 AND v.accelerator = ?2"                        \
	"  AND v.test_id = t.test_id AND v.attribution IS NOT NULL"                                \
	"  WHERE e.accelerator = ?2 AND e.state = 'done' AND " which ") WHERE n <= ?3 ORDER BY id"

void attribution_read_experiments(struct attribution_case *c)
{
	read_whether_taken(c);
	if (c->is_push)
		return;
	note_all(c,
	    db_rows(c->d,
		NEWEST_OF_EACH_TEST("e.change_id = ?1",
		    "e.side = 'head' AND e.change_id IN (SELECT ?1 UNION SELECT change_id"
		    " FROM pull_head WHERE repository_key = ?4 AND number = ?5)"),
		V_INT(c->change_id), V_TEXT(c->accelerator), V_INT(EXPERIMENTS_MAX),
		V_TEXT(c->key.text), V_INT(c->number)),
	    EXPERIMENT_HEAD);
	if (c->merge_base_sha && strcmp(c->merge_base_sha, c->head_sha) != 0)
		note_all(c,
		    db_rows(c->d, NEWEST_OF_EACH_TEST("1", "e.side = 'base' AND e.sha = ?4"),
			V_INT(c->change_id), V_TEXT(c->accelerator), V_INT(EXPERIMENTS_MAX),
			V_TEXT(c->merge_base_sha)),
		    EXPERIMENT_BASE);
}
