/* Reads the change, its red cells, and their failures. A cell shows the worst of several results, so the failures are read
 * from the jobs. */
#include "verdict/attribution_facts.h"

#include "store/branch_commits.h"
#include "store/changes.h"
#include "verdict/verdicts.h"

enum {
	/* Reads all tests of a job at once if more than one of so many are needed: to find one test takes as long as to read 100. */
	LOOK_UP_MAX_SHARE = 64,
};

RECORD_DEFINE(attribution_case, ATTRIBUTED_CHANGE_RECORD)
RECORD_DEFINE(red_cell, RED_CELL_RECORD)

static int compare_test_to_cell(const void *id, const void *cell)
{
	int64_t a = *(const int64_t *)id, b = ((const struct red_cell *)cell)->test_id;

	return (a > b) - (a < b);
}

const struct red_cell *attribution_cell(const struct attribution_case *c, int64_t test_id)
{
	return c->n_cells ? bsearch(&test_id, c->cells, c->n_cells, sizeof(*c->cells), compare_test_to_cell) : NULL;
}

/* ---- the results of a job ---- */

struct job_result { /* of a test that has a cell here */
	size_t cell;
	int64_t ordinal; /* -1: of the job itself */
	enum test_status status;
	struct failure_mark mark; /* when it is red */
};
struct job_results {
	struct job_result *at;
	size_t n;
};

static void add_result(const struct attribution_case *c, const struct red_cell *cell, int64_t ordinal,
    enum test_status status, const struct failure_mark *mark, struct job_results *l)
{
	*ARRAY_PUSH(l->at, l->n) =
	    (struct job_result){.cell = (size_t)(cell - c->cells), .ordinal = ordinal, .status = status, .mark = *mark};
}

static int by_ordinal(const void *x, const void *y)
{
	const struct job_result *a = x, *b = y;

	return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

/* By their places in the report, because the mark of a test is that of its first red result. PostgreSQL returns them in any order, and
 * an ORDER BY would sort all tests of the job. */
static void sort_results(struct job_results *l)
{
	for (size_t i = 1; i < l->n; i++)
		if (l->at[i - 1].ordinal > l->at[i].ordinal) {
			qsort(l->at, l->n, sizeof(*l->at), by_ordinal);
			return;
		}
}

#define TEST_NAME_RECORD(F, S)                                                                                         \
	F(S, BORROWED, suite, NULL, "suite", "")                                                                       \
	F(S, BORROWED, test, NULL, "name", "")                                                                         \
	F(S, BORROWED, dtype, NULL, "dtype", "")
RECORD_LOCAL(test_name, TEST_NAME_RECORD)

struct failure_mark attribution_mark(const struct attribution_case *c, const struct red_cell *cell,
    enum test_status status, const char *message, const char *trace)
{
	struct failure_mark mark = {.key = 0};
	struct rows *r = db_rows(c->d, RECORD_QUERY(TEST_NAME_RECORD, "FROM test WHERE id = ?1"), V_INT(cell->test_id));
	struct test_name name;

	if (rows_next(r)) {
		record_read(r, &test_name_record, &name);
		mark = failure_mark(status, &(struct failure_text){message, trace, name.suite, name.test, name.dtype});
	}
	rows_end(r);
	return mark;
}

/* The stored mark, or the one of the texts, for a result of an older version. */
static struct failure_mark mark_of(const struct attribution_case *c, const struct red_cell *cell,
    enum test_status status, const struct record_blob *stored, const char *message, const char *trace)
{
	struct failure_mark mark = {.key = 0};

	if (attribution_applies(status) && !(stored && failure_mark_get(stored->p, stored->n, status, &mark)))
		mark = attribution_mark(c, cell, status, message, trace);
	return mark;
}

#define RESULT_OF_TEST_RECORD(F, S)                                                                                    \
	F(S, ID, test_id, NULL, "test_id", "")                                                                         \
	F(S, INT, ordinal, NULL, "ordinal", "")                                                                        \
	F(S, TEST_STATUS, status, NULL, "status", "")                                                                  \
	F(S, BORROWED, message, NULL, "message", "")                                                                   \
	F(S, BORROWED, trace, NULL, "trace", "")                                                                       \
	F(S, BLOB, mark, NULL, "mark", "")
RECORD_LOCAL(result_of_test, RESULT_OF_TEST_RECORD)

static void add_results(const struct attribution_case *c, struct rows *r, struct job_results *l)
{
	while (rows_next(r)) {
		struct result_of_test result;
		struct failure_mark mark;
		const struct red_cell *cell;

		record_read(r, &result_of_test_record, &result);
		cell = attribution_cell(c, result.test_id);
		if (!cell)
			continue;
		mark = mark_of(c, cell, result.status, &result.mark, result.message, result.trace);
		add_result(c, cell, result.ordinal, result.status, &mark, l);
	}
}

#define JOB_ITSELF_RECORD(F, S)                                                                                        \
	F(S, TEXT, conclusion, NULL, "conclusion", "")                                                                 \
	F(S, INT, n_tests, NULL, "n_tests", "")                                                                        \
	F(S, TEXT, message, NULL, "message", "")
RECORD_LOCAL(job_itself, JOB_ITSELF_RECORD)

/* A job without red tests is itself a test, which is red or passed. */
static void add_job_itself(const struct attribution_case *c, int64_t job_id, int64_t test_id, struct job_results *l)
{
	struct job_itself job;
	struct failure_mark mark;
	enum test_status status;
	char *message;

	if (!record_read_first(
		db_rows(c->d, RECORD_QUERY(JOB_ITSELF_RECORD, "FROM job WHERE id = ?1 AND n_red = 0"), V_INT(job_id)),
		&job_itself_record, &job))
		return;
	message = job_outcome_text(
	    &(struct job_outcome){.conclusion = job.conclusion, .n_tests = job.n_tests, .message = job.message});
	status = test_status_of_conclusion(job.conclusion);
	mark = mark_of(c, attribution_cell(c, test_id), status, NULL, message, NULL);
	add_result(c, attribution_cell(c, test_id), -1, status, &mark, l);
	free(message);
	record_release(&job_itself_record, &job);
}

/* Adds the results of `tests` in a job with n_tests tests, and perhaps those of other tests that have cells. */
static void add_results_of_tests(const struct attribution_case *c, int64_t job_id, int64_t n_tests,
    const int64_t *tests, size_t n, struct job_results *l)
{
	if ((int64_t)n * LOOK_UP_MAX_SHARE > n_tests) {
		add_results(c,
		    db_rows(
			c->d, RECORD_QUERY(RESULT_OF_TEST_RECORD, "FROM job_test WHERE job_id = ?1"), V_INT(job_id)),
		    l);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (i == 0 || tests[i] != tests[i - 1])
			add_results(c,
			    db_rows(c->d,
				RECORD_QUERY(RESULT_OF_TEST_RECORD, "FROM job_test"
								    " WHERE job_id = ?1 AND test_id = ?2"),
				V_INT(job_id), V_INT(tests[i])),
			    l);
}

void attribution_see(struct red_failure *f, enum test_status status, const struct failure_mark *mark, int64_t job_id)
{
	struct seen *seen = &f->seen;
	bool is_red = attribution_applies(status), is_alike = is_red && failure_marks_are_alike(mark, &f->facts.mark);

	if (is_red && (!seen->has_red || (is_alike && !seen->is_alike)))
		seen->mark = *mark;
	seen->has_red |= is_red;
	seen->is_alike |= is_alike;
	seen->has_pass |= status == TEST_PASS;
	seen->has_skip |= status == TEST_SKIP;
	if (status != TEST_SKIP || !seen->job_id)
		seen->job_id = job_id;
}

void attribution_read_run(struct attribution_case *c, const struct job_run *run)
{
	const struct job_name *job = &c->jobs[run->job];
	struct red_failure *f = c->failures + job->first_failure;
	int64_t *tests = xcalloc(job->n_failures + 1, sizeof(*tests));
	struct job_results l = {0};

	for (size_t i = 0; i < job->n_failures; i++) {
		f[i].seen = (struct seen){.has_red = false};
		tests[i] = f[i].test_id;
	}
	if (job->own_test)
		add_job_itself(c, run->id, job->own_test, &l);
	add_results_of_tests(c, run->id, run->n_tests, tests, job->n_failures, &l);
	sort_results(&l);
	for (size_t i = 0; i < l.n; i++) {
		const struct job_result *r = &l.at[i];
		size_t n;

		f = attribution_failures_of(c, run->job, c->cells[r->cell].test_id, &n);
		while (n-- > 0)
			attribution_see(&f[n], r->status, &r->mark, run->id);
	}
	free(l.at);
	free(tests);
}

/* ---- the failures ---- */

/* A current red job of this change. */
#define COUNTED_JOB_RECORD(F, S)                                                                                       \
	F(S, ID, id, NULL, "id", "")                                                                                   \
	F(S, TEXT, runner, NULL, "runner", "")                                                                         \
	F(S, TEXT, workflow, NULL, "workflow", "")                                                                     \
	F(S, TEXT, name, NULL, "name", "")                                                                             \
	F(S, INT, n_tests, NULL, "n_tests", "")                                                                        \
	F(S, INT, n_red, NULL, "n_red", "")
RECORD_LOCAL(counted_job, COUNTED_JOB_RECORD)

static size_t find_job(struct attribution_case *c, const struct counted_job *j, int64_t own_test_id)
{
	for (size_t i = 0; i < c->n_jobs; i++)
		if (str_eq(c->jobs[i].name, j->name) && str_eq(c->jobs[i].workflow, j->workflow) &&
		    str_eq(c->jobs[i].runner, j->runner))
			return i;
	*ARRAY_PUSH(c->jobs, c->n_jobs) = (struct job_name){.runner = xstrdup(j->runner),
	    .workflow = xstrdup(j->workflow),
	    .name = xstrdup(j->name),
	    .own_test = own_test_id};
	return c->n_jobs - 1;
}

/* The test that stands for the job itself, if none of its tests is red; 0: it has no cell. */
static int64_t own_test(const struct attribution_case *c, const struct counted_job *j)
{
	int64_t id = j->n_red ? 0
			      : db_int(c->d, 0, "SELECT id FROM test WHERE suite = ?1 AND name = ?2 AND dtype = ''",
				    V_TEXT(j->workflow), V_TEXT(j->name));

	return id && attribution_cell(c, id) ? id : 0;
}

static void read_failures_of(struct attribution_case *c, const struct counted_job *j, const int64_t *tests)
{
	int64_t own_test_id = own_test(c, j);
	struct job_results l = {0};

	if (own_test_id)
		add_job_itself(c, j->id, own_test_id, &l);
	/* each red result has a row, also one that is packed */
	if (j->n_red && c->n_cells * LOOK_UP_MAX_SHARE > (size_t)j->n_red)
		add_results(c,
		    db_rows(c->d,
			RECORD_QUERY(RESULT_OF_TEST_RECORD, "FROM result WHERE job_id = ?1 AND ordinal < ?2"
							    " AND status IN ('FAIL', 'ERROR')"),
			V_INT(j->id), V_INT(j->n_tests)),
		    &l);
	else if (j->n_red)
		add_results_of_tests(c, j->id, j->n_tests, tests, c->n_cells, &l);
	sort_results(&l);
	for (size_t i = 0; i < l.n; i++) {
		const struct job_result *r = &l.at[i];
		struct red_cell *cell = &c->cells[r->cell];
		const struct red_failure *last = cell->n_failures ? &c->failures[cell->failure] : NULL;

		if (!attribution_applies(r->status) || cell->n_failures == FAILURES_MAX ||
		    (last && last->job_id == j->id && failure_marks_are_alike(&last->facts.mark, &r->mark) &&
			last->facts.mark.numbers == r->mark.numbers))
			continue;
		cell->n_failures++;
		cell->failure = c->n_failures;
		*ARRAY_PUSH(c->failures, c->n_failures) = (struct red_failure){.cell = r->cell,
		    .job = find_job(c, j, own_test_id),
		    .test_id = cell->test_id,
		    .job_id = j->id,
		    .facts = {.mark = r->mark, .is_push = c->is_push, .max_distance = c->distance}};
	}
	free(l.at);
}

static int by_job_and_test(const void *x, const void *y)
{
	const struct red_failure *a = x, *b = y;

	if (a->job != b->job)
		return a->job < b->job ? -1 : 1;
	return (a->test_id > b->test_id) - (a->test_id < b->test_id);
}

static void read_failures(struct attribution_case *c)
{
	struct counted_job *jobs = NULL;
	size_t n = 0;
	int64_t *tests = xcalloc(c->n_cells, sizeof(*tests));

	for (size_t i = 0; i < c->n_cells; i++)
		tests[i] = c->cells[i].test_id;
	RECORDS_READ(
	    db_rows(c->d,
		RECORD_QUERY(COUNTED_JOB_RECORD, "FROM job WHERE change_id = ?1 AND accelerator = ?2 AND is_current = 1"
						 " AND status = 'completed' AND digest IS NOT NULL"
						 " AND verdict IN ('FAIL', 'ERROR', 'MISS')"
						 " ORDER BY workflow, name, id"),
		V_INT(c->change_id), V_TEXT(c->accelerator)),
	    counted_job, jobs, n);
	for (size_t i = 0; i < n; i++)
		read_failures_of(c, &jobs[i], tests);
	free(tests);
	RECORDS_RELEASE(counted_job, jobs, n);
	if (c->n_failures)
		qsort(c->failures, c->n_failures, sizeof(*c->failures), by_job_and_test);
	for (size_t i = 0; i < c->n_cells; i++)
		c->cells[i].failure = SIZE_MAX;
	for (size_t i = c->n_failures; i-- > 0;) {
		struct job_name *job = &c->jobs[c->failures[i].job];
		struct red_cell *cell = &c->cells[c->failures[i].cell];

		job->first_failure = i;
		job->n_failures++;
		c->failures[i].next_of_cell = cell->failure;
		cell->failure = i;
	}
}

struct red_failure *attribution_failures_of(
    const struct attribution_case *c, size_t job, int64_t test_id, size_t *ret_n)
{
	struct red_failure key = {.job = job, .test_id = test_id};
	struct red_failure *f =
	    c->n_failures ? bsearch(&key, c->failures, c->n_failures, sizeof(key), by_job_and_test) : NULL;
	struct red_failure *end = f;

	*ret_n = 0;
	if (!f)
		return NULL;
	while (f > c->failures && f[-1].job == job && f[-1].test_id == test_id)
		f--;
	while (end < c->failures + c->n_failures && end->job == job && end->test_id == test_id)
		end++;
	*ret_n = (size_t)(end - f);
	return f;
}

bool attribution_case_read(struct attribution_case *c)
{
	struct rows *r;

	if (!record_read_first(db_rows(c->d,
				   RECORD_QUERY(ATTRIBUTED_CHANGE_RECORD,
				       "FROM change WHERE id = ?1 AND kind IN ('pull_request', 'push')"),
				   V_INT(c->change_id)),
		&attribution_case_record, c))
		return false;
	c->ref = branch_name(c->full_ref);
	c->number = change_pull(c->d->view, c->change_id);
	r = db_rows(c->d,
	    RECORD_QUERY(RED_CELL_RECORD, "FROM verdict v WHERE v.change_id = ?1 AND v.accelerator = ?2"
					  " AND v.attribution IS NOT NULL ORDER BY v.test_id"),
	    V_INT(c->change_id), V_TEXT(c->accelerator));
	while (rows_next(r)) {
		struct red_cell cell = {0};

		record_read(r, &red_cell_record, &cell);
		if (attribution_applies(cell.status))
			*ARRAY_PUSH(c->cells, c->n_cells) = cell;
		else
			record_release(&red_cell_record, &cell);
	}
	return c->n_cells > 0;
}

void attribution_case_release(struct attribution_case *c)
{
	for (size_t i = 0; i < c->n_cells; i++)
		free(c->cells[i].known_url);
	RECORDS_RELEASE(red_cell, c->cells, c->n_cells);
	for (size_t i = 0; i < c->n_jobs; i++) {
		free(c->jobs[i].runner);
		free(c->jobs[i].workflow);
		free(c->jobs[i].name);
	}
	for (size_t i = 0; i < c->n_failures; i++)
		free(c->failures[i].base);
	free(c->jobs);
	free(c->failures);
	others_free(c->others);
	record_release(&attribution_case_record, c);
}

/* ---- parts ---- */

enum { STEPS_OF_LOOK = 64 };

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void attribution_begin_part(struct attribution_case *c, int64_t us)
{
	c->pause_us = now_us() + us;
	c->is_paused = false;
	c->n_steps = 0;
}

static bool is_time_over(const struct attribution_case *c) { return c->pause_us && now_us() >= c->pause_us; }

bool attribution_must_pause(struct attribution_case *c)
{
	c->is_paused |= ++c->n_steps % STEPS_OF_LOOK == 0 && is_time_over(c);
	return c->is_paused;
}

/* ---- the questions ---- */

/* The groups of facts in struct attribution_facts. */
enum {
	FACTS_FAILURES = 1 << 0,     /* mark, is_push, max_distance */
	FACTS_KNOWN = 1 << 1,        /* known_url */
	FACTS_BRANCH = 1 << 2,       /* is_base_known, base, has_revert_near */
	FACTS_THIS_COMMIT = 1 << 3,  /* passed_here_job, n_failed_again, here, … */
	FACTS_TAKES = 1 << 4,        /* accepts_experiments, lacks_experiment */
	FACTS_EXPERIMENTS = 1 << 5,  /* more runs for FACTS_BRANCH and FACTS_THIS_COMMIT */
	FACTS_LANDED = 1 << 6,       /* has_own_landing, has_own_commit, …, n_red_near */
	FACTS_MESSAGE = 1 << 7,      /* is_specific, is_outage */
	FACTS_SAME_MESSAGE = 1 << 8, /* is_job_outage, is_alike_…, n_alike_again */
	FACTS_ELSEWHERE = 1 << 9,    /* may_be_own, elsewhere, n_seen, n_proved */
	FACTS_OF_RUNS = FACTS_BRANCH | FACTS_THIS_COMMIT | FACTS_EXPERIMENTS,
	FACTS_BUT_ELSEWHERE = FACTS_ELSEWHERE - 1,
};

/* The order is that of the decision table in docs/attribution.md as far as the inputs permit. `reads` are the groups that
 * have to be complete before the function runs. */
static const struct question {
	void (*ask)(struct attribution_case *c);
	unsigned reads, fills;
} QUESTIONS[] = {
    {read_failures, 0, FACTS_FAILURES},
    {fact_known, FACTS_FAILURES, FACTS_KNOWN},
    {fact_branch, FACTS_FAILURES, FACTS_BRANCH},
    {fact_this_commit, FACTS_FAILURES, FACTS_THIS_COMMIT},
    {fact_accepts_experiments, FACTS_FAILURES, FACTS_TAKES},
    {fact_experiments, FACTS_BRANCH | FACTS_THIS_COMMIT, FACTS_EXPERIMENTS},
    {fact_landed, FACTS_OF_RUNS | FACTS_TAKES, FACTS_LANDED},
    {fact_message, FACTS_FAILURES, FACTS_MESSAGE},
    {fact_same_message, FACTS_OF_RUNS | FACTS_MESSAGE, FACTS_SAME_MESSAGE},
    /* reads all groups below it: FACTS_ELSEWHERE stays the last bit when a group is added */
    {fact_elsewhere, FACTS_BUT_ELSEWHERE, FACTS_ELSEWHERE},
};

bool attribution_collect_facts(struct attribution_case *c)
{
	while (c->question < ARRAY_LEN(QUESTIONS)) {
		const struct question *q = &QUESTIONS[c->question];

		assert((q->reads & ~c->filled) == 0);
		q->ask(c);
		if (c->is_paused)
			return false;
		c->filled |= q->fills;
		c->question++;
		c->next = 0;
		if (is_time_over(c))
			return false;
	}
	return true;
}
