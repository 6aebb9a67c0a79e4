#include "db/db.h"
#include "model/packed_tests.h"
#include "verdict/attribution.h"
#include "verdict/cells_moved.h"
#include "views/job.h"
/* Reports in any order, repeated, late, wrong: their effect on jobs, dispatches and cells. */
#include "commands_rig.h"

struct rig_report {
	const char *accelerator, *name, *conclusion; /* no conclusion: in_progress */
	int64_t attempt;
	const char *run_id;
	struct test_result *tests;
	size_t n_tests;
	int64_t at;
	const char *dispatch_id, *delivery_id, *repository;
	const char *const *allowed, *const *silent;
};

/* The digest of the content, as from the parser: these tests only need the same digest for the same content. */
static void digest(const struct rig_report *r, uint8_t out[SHA256_BYTES])
{
	struct buf text = BUF_INIT(1 << 20);

	buf_append_str(&text, r->conclusion ? r->conclusion : "");
	for (size_t i = 0; i < r->n_tests; i++)
		buf_appendf(&text, " %s %d", r->tests[i].name, r->tests[i].status);
	sha256(buf_str(&text), text.len, out);
	buf_release(&text);
}

static struct report_job report(const struct rig_report *r)
{
	struct job_report j = {
	    .status = r->conclusion ? JOB_COMPLETED : JOB_IN_PROGRESS,
	    .conclusion = (char *)r->conclusion,
	    .workflow = (char *)"CI",
	    .name = (char *)(r->name ? r->name : "test"),
	    .run_id = (char *)(r->run_id ? r->run_id : "100"),
	    .run_attempt = r->attempt ? r->attempt : 1,
	    .url = (char *)"https://ci.example.org/1",
	    .tests = r->tests,
	    .n_tests = r->n_tests,
	};
	struct report_job op = {
	    .repository = r->repository,
	    .dispatch_id = r->dispatch_id,
	    .delivery_id = r->delivery_id,
	    .accelerator = r->accelerator,
	    .allowed = r->allowed,
	    .silent = r->silent,
	    .report = &j,
	    .now_ms = T0 + r->at,
	};

	digest(r, j.digest);
	DO_OK(store_report_job, &op);
	op.report = NULL;
	return op;
}

#define TEST_RESULT(s, n, st)                                                                                          \
	{                                                                                                              \
		.suite = (char *)(s), .name = (char *)(n), .status = (st), .duration_ms = 5                            \
	}

/* PR 1 with one accelerator in Ascend/pytorch, whose request was sent. Returns the dispatch's id. */
static char *begin(void)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

	rig_start("opened", HEAD_A, 0, wants, 1);
	free(rig_send(T0));
	return rig_dispatch_id(HEAD_A, "npu");
}

static void a_job_runs_and_completes(void **state)
{
	char *id = begin();
	struct report_job r = report(&(struct rig_report){.dispatch_id = id, .at = 1000}), done;
	struct test_result tests[] = {
	    TEST_RESULT("model", "llama3", TEST_PASS), TEST_RESULT("model", "Qwen", TEST_SKIP)};
	struct change_view *v;
	struct claim_outbox c;

	(void)state;
	assert_int_equal(r.outcome, REPORT_RECORDED);
	assert_true(r.job_id > 0);
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	done = report(
	    &(struct rig_report){.dispatch_id = id, .conclusion = "success", .tests = tests, .n_tests = 2, .at = 2000});
	assert_int_equal(done.outcome, REPORT_RECORDED);
	assert_int_equal(done.job_id, r.job_id);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu model/Qwen SKIP, npu model/llama3 PASS");
	v = rig_view_of(1, NULL);
	assert_int_equal(v->accelerators[0].n_jobs, 1);
	assert_string_equal(v->accelerators[0].jobs[0].conclusion, "success");
	assert_int_equal(v->accelerators[0].jobs[0].started_ms, T0 + 1000);
	assert_int_equal(v->accelerators[0].jobs[0].completed_ms, T0 + 2000);
	assert_int_equal(v->verdicts[0].attribution, N_ATTRIBUTIONS);
	assert_int_equal(v->verdicts[0].job, r.job_id);
	change_view_free(v);
	c = rig_claim(COMMENTS, T0 + 3000);
	assert_int_equal(c.n, 1);
	claim_outbox_release(&c);
	free(id);
}

static void repeats_change_nothing(void **state)
{
	char *id = begin();
	struct rig_report running = {.dispatch_id = id}, done = {.dispatch_id = id, .conclusion = "success"},
			  other = {.dispatch_id = id, .conclusion = "failure"};

	(void)state;
	assert_int_equal(report(&running).outcome, REPORT_RECORDED);
	assert_int_equal(report(&running).outcome, REPORT_UNCHANGED);
	assert_int_equal(report(&done).outcome, REPORT_RECORDED);
	assert_int_equal(report(&done).outcome, REPORT_UNCHANGED);
	assert_int_equal(report(&running).outcome, REPORT_UNCHANGED);
	assert_int_equal(report(&other).outcome, REPORT_CONFLICT);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu CI/test PASS");
	free(id);
}

struct fill_dispatch {
	struct store_op op;
	int64_t job_id; /* one of its jobs */
};

static int fill_dispatch_run(struct store_op *op, struct txn *d)
{
	int64_t id = CONTAINER_OF(op, struct fill_dispatch, op)->job_id;

	db_exec(d,
	    "WITH RECURSIVE more (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM more WHERE n < ?2)"
	    " INSERT INTO job (id, change_id, dispatch_id, accelerator, runner, workflow, name, run_id, run_attempt, "
	    "status,"
	    " is_current, is_late, is_push, n_tests, n_red, reported_ms) SELECT id + 1000000 + more.n, change_id, "
	    "dispatch_id, accelerator,"
	    " runner, workflow, 'another', run_id, more.n, 'completed', 0, 0, 0, 0, 0, 1 FROM job, more WHERE id = ?1",
	    V_INT(id), V_INT(JOBS_PER_DISPATCH_MAX - 1));
	db_exec(d, "UPDATE job SET n_tests = ?2 WHERE id = ?1", V_INT(id), V_INT(RESULTS_PER_DISPATCH_MAX - 3));
	return 0;
}

static int store_fill_dispatch(struct store *s, struct fill_dispatch *o)
{
	o->op.run = fill_dispatch_run;
	return store_submit(s, &o->op);
}

/* The last job and the last results still have room. */
static void a_dispatch_has_room_for_so_many_jobs_and_results(void **state)
{
	struct test_result tests[] = {TEST_RESULT("unit", "x", TEST_PASS), TEST_RESULT("unit", "y", TEST_PASS)};
	char *id = begin();
	struct rig_report first = {.dispatch_id = id, .name = "a"}, last = {.dispatch_id = id, .name = "last"},
			  next = {.dispatch_id = id, .name = "next"};
	struct put_report document = {.tests = tests, .n_tests = 2, .digest = {1}, .now_ms = T0};
	struct fill_dispatch fill = {.job_id = 0};

	(void)state;
	fill.job_id = report(&first).job_id;
	DO_OK(store_fill_dispatch, &fill);
	document.job_id = report(&last).job_id;
	assert_int_equal(report(&next).outcome, REPORT_TOO_MANY_JOBS);
	next.conclusion = "success";
	assert_int_equal(report(&next).outcome, REPORT_TOO_MANY_JOBS);
	assert_int_equal(report(&last).outcome, REPORT_UNCHANGED);
	last.conclusion = "success";
	last.tests = tests;
	last.n_tests = 2;
	assert_int_equal(report(&last).outcome, REPORT_RECORDED);
	DO_OK(store_put_report, &document);
	assert_int_equal(document.outcome, REPORT_TOO_MANY_RESULTS);
	document.n_tests = 1;
	DO_OK(store_put_report, &document);
	assert_int_equal(document.outcome, REPORT_RECORDED);
	first.conclusion = "failure";
	first.tests = tests;
	first.n_tests = 1;
	assert_int_equal(report(&first).outcome, REPORT_TOO_MANY_RESULTS);
	first.n_tests = 0;
	assert_int_equal(report(&first).outcome, REPORT_RECORDED);
	free(id);
}

static void a_job_may_complete_without_a_start(void **state)
{
	char *id = begin();

	(void)state;
	report(&(struct rig_report){.dispatch_id = id, .conclusion = "failure"});
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu CI/test FAIL");
	free(id);
}

static void several_jobs_make_one_state(void **state)
{
	char *id = begin();

	(void)state;
	report(&(struct rig_report){.dispatch_id = id, .name = "a"});
	report(&(struct rig_report){.dispatch_id = id, .name = "b", .conclusion = "success"});
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	report(&(struct rig_report){.dispatch_id = id, .name = "a", .conclusion = "skipped"});
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	report(&(struct rig_report){.dispatch_id = id, .name = "c"});
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	ASSERT_CELLS(HEAD_A, "npu CI/a SKIP, npu CI/b PASS");
	free(id);
}

static void the_worst_result_of_several_jobs_shows(void **state)
{
	struct test_result a[] = {TEST_RESULT("unit", "x", TEST_PASS), TEST_RESULT("unit", "y", TEST_DONE),
	    TEST_RESULT("unit", "y", TEST_SKIP)};
	struct test_result b[] = {TEST_RESULT("unit", "x", TEST_FAIL), TEST_RESULT("unit", "y", TEST_PASS)};
	char *id = begin();

	(void)state;
	report(&(struct rig_report){.dispatch_id = id, .name = "a", .conclusion = "success", .tests = a, .n_tests = 3});
	ASSERT_CELLS(HEAD_A, "npu unit/x PASS, npu unit/y DONE");
	report(&(struct rig_report){.dispatch_id = id, .name = "b", .conclusion = "failure", .tests = b, .n_tests = 2});
	ASSERT_CELLS(HEAD_A, "npu unit/x FAIL, npu unit/y PASS");
	free(id);
}

static void a_red_job_without_a_red_test_is_a_failure_itself(void **state)
{
	struct test_result green[] = {TEST_RESULT("unit", "x", TEST_PASS)};
	struct test_result red[] = {TEST_RESULT("unit", "x", TEST_ERROR)};
	char *id = begin();

	(void)state;
	report(&(struct rig_report){
	    .dispatch_id = id, .name = "a", .conclusion = "failure", .tests = green, .n_tests = 1});
	report(&(struct rig_report){
	    .dispatch_id = id, .name = "b", .conclusion = "timed_out", .tests = green, .n_tests = 1});
	report(
	    &(struct rig_report){.dispatch_id = id, .name = "c", .conclusion = "failure", .tests = red, .n_tests = 1});
	report(&(struct rig_report){.dispatch_id = id, .name = "d", .conclusion = "cancelled"});
	report(&(struct rig_report){.dispatch_id = id, .name = "e", .conclusion = "neutral"});
	ASSERT_CELLS(HEAD_A, "npu CI/a FAIL, npu CI/b MISS, npu CI/d MISS, npu CI/e DONE, "
			     "npu unit/x ERROR");
	free(id);
}

/* An old link leads to the current job, and only current jobs have an attribution. */
static void a_job_names_its_replacement(void **state)
{
	struct test_result tests[] = {TEST_RESULT("unit", "x", TEST_FAIL), TEST_RESULT("unit", "y", TEST_PASS)};
	char *id = begin();
	struct report_job first, second;
	struct get_job g;

	(void)state;
	first = report(&(struct rig_report){
	    .dispatch_id = id, .name = "a", .conclusion = "failure", .tests = tests, .n_tests = 2});
	g = (struct get_job){.id = first.job_id};
	ASK_OK(store_get_job, &g);
	assert_true(g.job->is_current);
	assert_int_equal(g.job->superseded_by, 0);
	assert_int_equal(g.job->attributions[0], ATTRIBUTION_UNCLASSIFIED);
	assert_int_equal(g.job->attributions[1], N_ATTRIBUTIONS);
	job_detail_free(g.job);

	second = report(&(struct rig_report){.dispatch_id = id, .name = "a", .attempt = 2, .at = HOUR});
	ASK_OK(store_get_job, &g);
	assert_false(g.job->is_current);
	assert_int_equal(g.job->superseded_by, second.job_id);
	assert_int_equal(g.job->attributions[0], N_ATTRIBUTIONS);
	job_detail_free(g.job);
	free(id);
}

static void a_new_attempt_reopens_and_replaces(void **state)
{
	struct test_result red[] = {TEST_RESULT("unit", "x", TEST_FAIL)};
	struct test_result green[] = {TEST_RESULT("unit", "x", TEST_PASS)};
	char *id = begin();
	struct change_view *v;

	(void)state;
	report(
	    &(struct rig_report){.dispatch_id = id, .name = "a", .conclusion = "failure", .tests = red, .n_tests = 1});
	report(&(struct rig_report){.dispatch_id = id, .name = "b", .conclusion = "success"});
	report(&(struct rig_report){.dispatch_id = id, .name = "a", .attempt = 2, .at = HOUR});
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	ASSERT_CELLS(HEAD_A, "npu CI/b PASS"); /* the old failure has no verdict any more */
	v = rig_view_of(1, NULL);
	assert_int_equal(v->accelerators[0].n_jobs, 2);
	assert_int_equal(v->accelerators[0].dispatches[0].due_ms, T0 + 7 * HOUR);
	change_view_free(v);
	report(&(struct rig_report){.dispatch_id = id,
	    .name = "a",
	    .attempt = 2,
	    .conclusion = "success",
	    .tests = green,
	    .n_tests = 1,
	    .at = HOUR});
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu CI/b PASS, npu unit/x PASS");
	/* A report about the first attempt arrives too late to count. */
	report(&(struct rig_report){
	    .dispatch_id = id, .name = "a", .attempt = 1, .run_id = "99", .conclusion = "failure"});
	ASSERT_CELLS(HEAD_A, "npu CI/b PASS, npu unit/x PASS");
	free(id);
}

static void a_red_test_that_a_retry_does_not_name_has_no_result(void **state)
{
	struct test_result first[] = {TEST_RESULT("unit", "x", TEST_FAIL), TEST_RESULT("unit", "y", TEST_FAIL),
	    TEST_RESULT("unit", "z", TEST_PASS), TEST_RESULT("unit", "test_file.py", TEST_ERROR)};
	struct test_result rest[] = {TEST_RESULT("unit", "y", TEST_PASS)};
	struct test_result other[] = {TEST_RESULT("unit", "x", TEST_PASS)};
	struct rig_report r = {.name = "a", .conclusion = "failure", .tests = first, .n_tests = 4};
	char *id = begin();
	struct change_view *v;

	(void)state;
	r.dispatch_id = id;
	report(&r);
	r = (struct rig_report){.dispatch_id = id,
	    .name = "a",
	    .conclusion = "success",
	    .tests = rest,
	    .n_tests = 1,
	    .attempt = 2,
	    .at = HOUR};
	report(&r);
	ASSERT_CELLS(HEAD_A, "npu unit/x MISS, npu unit/y PASS");
	v = rig_view_of(1, NULL);
	assert_string_equal(v->verdicts[0].message, "failed in attempt 1, and not in the report of attempt 2");
	change_view_free(v);
	r.attempt = 3; /* it stays so */
	report(&r);
	ASSERT_CELLS(HEAD_A, "npu unit/x MISS, npu unit/y PASS");
	/* another job reports it */
	report(&(struct rig_report){
	    .dispatch_id = id, .name = "b", .conclusion = "success", .tests = other, .n_tests = 1, .at = HOUR});
	ASSERT_CELLS(HEAD_A, "npu unit/x PASS, npu unit/y PASS");
	/* a report without tests is judged by its conclusion */
	report(&(struct rig_report){.dispatch_id = id, .name = "a", .conclusion = "success", .attempt = 4, .at = HOUR});
	ASSERT_CELLS(HEAD_A, "npu CI/a PASS, npu unit/x PASS");
	free(id);
}

/* Reports may arrive in any order: the first attempt still counts although the second was quicker. */
static void a_late_first_attempt_still_counts(void **state)
{
	struct test_result first[] = {TEST_RESULT("unit", "x", TEST_FAIL), TEST_RESULT("unit", "y", TEST_FAIL)};
	struct test_result rest[] = {TEST_RESULT("unit", "y", TEST_PASS)};
	char *id = begin();

	(void)state;
	report(&(struct rig_report){
	    .dispatch_id = id, .conclusion = "success", .tests = rest, .n_tests = 1, .attempt = 2, .at = HOUR});
	ASSERT_CELLS(HEAD_A, "npu unit/y PASS");
	report(&(struct rig_report){
	    .dispatch_id = id, .conclusion = "failure", .tests = first, .n_tests = 2, .at = 2 * HOUR});
	ASSERT_CELLS(HEAD_A, "npu unit/x MISS, npu unit/y PASS");
	free(id);
}

/* The same in two parts: first the end of the job, then its report document. */
static void the_late_report_document_of_a_first_attempt_still_counts(void **state)
{
	struct test_result first[] = {TEST_RESULT("unit", "x", TEST_FAIL)};
	struct test_result rest[] = {TEST_RESULT("unit", "y", TEST_PASS)};
	char *id = begin();
	struct rig_report r = {.dispatch_id = id, .conclusion = "failure"};
	struct put_report p = {.tests = first, .n_tests = 1, .now_ms = T0 + 2 * HOUR};

	(void)state;
	p.job_id = report(&r).job_id;
	r = (struct rig_report){
	    .dispatch_id = id, .conclusion = "success", .tests = rest, .n_tests = 1, .attempt = 2, .at = HOUR};
	report(&r);
	ASSERT_CELLS(HEAD_A, "npu unit/y PASS");
	DO_OK(store_put_report, &p);
	ASSERT_CELLS(HEAD_A, "npu unit/x MISS, npu unit/y PASS");
	free(id);
}

enum { N_MANY = 5000 };

/* What a reader sees; the statement gives one number. */
#define LOOK(sql)                                                                                                      \
	({                                                                                                             \
		char *path = rig_path();                                                                               \
		struct db *look;                                                                                       \
                                                                                                                       \
		assert_int_equal(db_open(path, DB_READER, &look, NULL), 0);                                            \
		int64_t number = db_int(look, -1, sql);                                                                \
		db_close(look);                                                                                        \
		free(path);                                                                                            \
		number;                                                                                                \
	})

static struct test_result *many_tests(const char *prefix, enum test_status status)
{
	struct test_result *tests = xcalloc(N_MANY, sizeof(*tests));

	for (int i = 0; i < N_MANY; i++)
		tests[i] = (struct test_result){.suite = xstrdup("unit"),
		    .name = xasprintf("%s_%d", prefix, i),
		    .status = status,
		    .message = status == TEST_FAIL ? xasprintf("it is %s, not %s", "wrong", "right") : NULL,
		    .duration_ms = i};
	return tests;
}

static void release_many(struct test_result *tests)
{
	for (int i = 0; i < N_MANY; i++)
		test_result_release(&tests[i]);
	free(tests);
}

/* Its tests get their rows in transactions of their own, and it appears as a whole. */
static void a_long_list_of_new_tests_is_written_in_parts(void **state)
{
	struct test_result *tests = many_tests("new", TEST_PASS);
	struct packed_tests packed;
	char *id = begin();
	struct rig_report r = {.dispatch_id = id, .conclusion = "success"};
	struct put_report p = {.tests = tests, .n_tests = N_MANY, .packed = &packed, .now_ms = T0};

	(void)state;
	packed_tests_make(&packed, tests, N_MANY);
	p.job_id = report(&r).job_id;
	DO_OK(store_put_report, &p);
	assert_int_equal(p.outcome, REPORT_RECORDED);
	assert_true(p.op.n_parts > 1);
	assert_int_equal(LOOK("SELECT COUNT(*) FROM test WHERE name LIKE 'new_%'"), N_MANY);
	assert_int_equal(LOOK("SELECT n_tests_pass FROM job"), N_MANY);
	/* the same again, and a known list: no part */
	DO_OK(store_put_report, &p);
	assert_int_equal(p.outcome, REPORT_UNCHANGED);
	assert_int_equal(p.op.n_parts, 0);
	/* no such job: nothing of the list is written */
	packed_tests_release(&packed);
	release_many(tests);
	tests = many_tests("other", TEST_PASS);
	packed_tests_make(&packed, tests, N_MANY);
	p.tests = tests;
	p.job_id += 1000;
	DO_OK(store_put_report, &p);
	assert_int_equal(p.outcome, REPORT_NO_DISPATCH);
	assert_int_equal(LOOK("SELECT COUNT(*) FROM test WHERE name LIKE 'other_%'"), 0);
	packed_tests_release(&packed);
	release_many(tests);
	free(id);
}

/* The report writes the red cells, and the change is due until each has its cause. */
static void thousands_of_red_cells_are_attributed_in_parts(void **state)
{
	char *id = begin();
	struct attribute_change a = {.now_ms = T0 + HOUR};

	(void)state;
	for (int i = 0; i < 2; i++) {
		char *name = xasprintf("job%d", i);
		struct test_result *tests = many_tests(name, TEST_FAIL);

		report(&(struct rig_report){
		    .dispatch_id = id, .name = name, .conclusion = "failure", .tests = tests, .n_tests = N_MANY});
		release_many(tests);
		free(name);
	}
	assert_int_equal(
	    LOOK("SELECT COUNT(*) FROM verdict WHERE attribution = 'UNCLASSIFIED' AND reason IS NULL"), 2 * N_MANY);
	assert_int_equal(LOOK("SELECT COUNT(*) FROM run"), 0);
	a.change_id = LOOK("SELECT change_id FROM attribution_due");
	a.generation = LOOK("SELECT generation FROM attribution_due");
	DO_OK(store_attribute_change, &a);
	assert_true(a.has_moved);
	assert_true(a.op.n_parts >= 2 * N_MANY / 2000 - 1);
	assert_int_equal(LOOK("SELECT COUNT(*) FROM attribution_due"), 0);
	assert_int_equal(LOOK("SELECT COUNT(*) FROM verdict WHERE attribution IS NOT NULL AND reason IS NULL"), 0);
	assert_int_equal(LOOK("SELECT COUNT(*) FROM run"), 1);
	free(id);
}

/* The cells of a job are made again and attributed between two parts of a look. The look begins again, and the change stays due. */
static void a_look_in_parts_begins_again_when_the_cells_change(void **state)
{
	struct test_result *tests = many_tests("red", TEST_FAIL);
	char *id = begin(), *database;
	struct attribute_change a = {.now_ms = T0 + HOUR};
	struct db *d;

	(void)state;
	DO_OK(store_attribute_change, &a); /* of no change: it sets op.run, which the test calls */
	report(&(struct rig_report){.dispatch_id = id, .conclusion = "failure", .tests = tests, .n_tests = N_MANY});
	a.change_id = LOOK("SELECT change_id FROM attribution_due");
	a.generation = LOOK("SELECT generation FROM attribution_due");
	rig_close();
	database = rig_path();
	assert_int_equal(db_open(database, DB_WRITER, &d, NULL), 0);
	a.op.is_unfinished = true;
	for (a.op.n_parts = 0; a.op.is_unfinished; a.op.n_parts++) {
		assert_int_equal(db_begin(d, DB_WRITER), 0);
		a.op.is_unfinished = false;
		assert_int_equal(a.op.run(&a.op, db_txn(d)), 0);
		if (a.op.n_parts == 0) {
			assert_true(a.op.is_unfinished);
			db_exec(db_txn(d), "UPDATE job SET n_tests = 10");
			cells_moved(db_txn(d), a.change_id, "npu", CELLS_REPORT_ADDED, T0 + HOUR);
		}
		assert_int_equal(db_commit(d), 0);
	}
	db_close(d);
	rig_open();
	assert_null(a.look);
	assert_false(a.has_moved);
	assert_int_equal(LOOK("SELECT COUNT(*) FROM attribution_due"), 1);
	assert_int_equal(LOOK("SELECT COUNT(*) FROM verdict WHERE reason IS NOT NULL"), 10);
	release_many(tests);
	free(database);
	free(id);
}

/* The look ends after the part that has changed the cause of a cell of another accelerator. The comment shows it. */
static void a_look_that_ends_early_leaves_nothing_undone(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("cpu", "Others/pytorch"), GITHUB_WANT("npu", "Ascend/pytorch")};
	struct test_result *tests = many_tests("red", TEST_FAIL);
	struct attribute_change a = {.now_ms = T0 + HOUR};
	char *cpu, *npu, *database;
	struct db *d;
	int64_t n_old;

	(void)state;
	DO_OK(store_attribute_change, &a); /* of no change: it sets op.run, which the test calls */
	rig_start("opened", HEAD_A, 0, wants, 2);
	free(rig_send(T0));
	cpu = rig_dispatch_id(HEAD_A, "cpu");
	npu = rig_dispatch_id(HEAD_A, "npu");
	report(&(struct rig_report){
	    .accelerator = "cpu", .dispatch_id = cpu, .conclusion = "failure", .tests = tests, .n_tests = 1});
	report(&(struct rig_report){.dispatch_id = npu, .conclusion = "failure", .tests = tests, .n_tests = N_MANY});
	a.change_id = LOOK("SELECT change_id FROM attribution_due");
	a.generation = LOOK("SELECT generation FROM attribution_due");
	rig_close();
	database = rig_path();
	assert_int_equal(db_open(database, DB_WRITER, &d, NULL), 0);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	db_exec(db_txn(d), "UPDATE verdict SET reason = 'another' WHERE accelerator = 'cpu'");
	db_exec(db_txn(d), "UPDATE outbox SET generation = 100 WHERE kind = 'comment'");
	assert_int_equal(db_commit(d), 0);
	/* A part lasts a certain time, so a slow machine needs several for the first accelerator. */
	a.op.n_parts = 0;
	do {
		assert_int_equal(db_begin(d, DB_WRITER), 0);
		assert_int_equal(a.op.run(&a.op, db_txn(d)), 0);
		assert_true(a.op.is_unfinished);
		a.op.n_parts++;
		n_old = db_int(db_view(d), 0, "SELECT COUNT(*) FROM verdict WHERE reason = 'another'");
		assert_int_equal(db_commit(d), 0);
	} while (n_old > 0);
	attribute_change_release(&a); /* as if the daemon were killed */
	db_close(d);
	rig_open();
	assert_int_equal(LOOK("SELECT COUNT(*) FROM attribution_due"), 1);
	assert_int_equal(LOOK("SELECT COUNT(*) FROM verdict WHERE reason = 'another'"), 0);
	assert_int_equal(LOOK("SELECT generation FROM outbox WHERE kind = 'comment'"), 101);
	release_many(tests);
	free(database);
	free(cpu);
	free(npu);
}

/* They get no cause, so the run does not wait for one. */
static void thousands_of_missing_results_are_a_run_at_once(void **state)
{
	struct test_result *tests = many_tests("missing", TEST_MISS);
	char *id = begin();

	(void)state;
	report(&(struct rig_report){.dispatch_id = id, .conclusion = "failure", .tests = tests, .n_tests = N_MANY});
	assert_int_equal(LOOK("SELECT COUNT(*) FROM run"), 1);
	release_many(tests);
	free(id);
}

static void a_late_result_replaces_the_silence(void **state)
{
	struct expire_dispatches e = {.now_ms = T0 + 2 * HOUR};
	char *id = begin();

	(void)state;
	DO_OK(store_expire_dispatches, &e);
	ASSERT_CELLS(HEAD_A, "npu dispatch/ci MISS");
	report(&(struct rig_report){.dispatch_id = id, .at = 3 * HOUR});
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	ASSERT_CELLS(HEAD_A, "");
	e.now_ms = T0 + 3 * HOUR + 6 * HOUR - 1;
	DO_OK(store_expire_dispatches, &e);
	assert_int_equal(e.n_expired, 0);
	report(&(struct rig_report){.dispatch_id = id, .conclusion = "success", .at = 4 * HOUR});
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu CI/test PASS late");
	free(id);
}

static void a_job_that_never_ends_is_a_miss(void **state)
{
	struct expire_dispatches e = {.now_ms = T0 + 6 * HOUR};
	char *id = begin();

	(void)state;
	report(&(struct rig_report){.dispatch_id = id, .name = "a", .conclusion = "success"});
	report(&(struct rig_report){.dispatch_id = id, .name = "b"});
	DO_OK(store_expire_dispatches, &e);
	assert_int_equal(e.n_expired, 1);
	ASSERT_CELLS(HEAD_A, "npu CI/a PASS, npu CI/b MISS");
	report(&(struct rig_report){.dispatch_id = id, .name = "b", .conclusion = "success", .at = 7 * HOUR});
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu CI/a PASS, npu CI/b PASS late");
	free(id);
}

static void results_of_an_old_head_are_kept_apart(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	char *id = begin();
	struct report_job r;

	(void)state;
	report(&(struct rig_report){.dispatch_id = id, .name = "a", .conclusion = "success"});
	rig_start("synchronize", HEAD_B, 1, wants, 1);
	r = report(&(struct rig_report){.dispatch_id = id, .name = "b", .conclusion = "failure"});
	assert_int_equal(r.outcome, REPORT_RECORDED);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu CI/a PASS, npu CI/b FAIL");
	ASSERT_CELLS(HEAD_B, "");
	free(id);
}

static void reports_for_a_superseded_dispatch_are_not_shown(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	char *id = begin();

	(void)state;
	report(&(struct rig_report){.dispatch_id = id, .name = "a"});
	rig_start("edited", HEAD_A, 1, wants, 1);
	assert_int_equal(report(&(struct rig_report){.dispatch_id = id, .name = "a", .conclusion = "failure"}).outcome,
	    REPORT_RECORDED);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu superseded");
	ASSERT_CELLS(HEAD_A, "");
	free(id);
}

static void a_report_proves_that_the_request_arrived(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct claim_outbox c;
	char *id;

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 1);
	c = rig_claim(REQUESTS, T0);
	rig_done(&c.rows[0], OUTBOX_RETRY, T0 + MINUTE); /* timed out from the sender's point of view */
	claim_outbox_release(&c);
	id = rig_dispatch_id(HEAD_A, "npu");
	report(&(struct rig_report){.dispatch_id = id});
	ASSERT_SENT(T0 + HOUR, "");
	free(id);
}

/* ---- finding the dispatch and the accelerator ---- */

static void the_dispatch_is_found_by_id_or_delivery(void **state)
{
	static const char repo[] = "ASCEND/PyTorch";
	char *id = begin(), guid[32];
	struct rig_report r = {.repository = repo, .delivery_id = guid};

	(void)state;
	snprintf(guid, sizeof(guid), "guid-%d", rig_n_guids);
	assert_int_equal(report(&r).outcome, REPORT_RECORDED);
	r.dispatch_id = "nonsense";
	assert_int_equal(report(&r).outcome, REPORT_UNCHANGED);
	r.delivery_id = "other";
	assert_int_equal(report(&r).outcome, REPORT_NO_DISPATCH);
	r.dispatch_id = id;
	assert_int_equal(report(&r).outcome, REPORT_UNCHANGED);
	r.repository = "somebody/else";
	assert_int_equal(report(&r).outcome, REPORT_NO_DISPATCH);
	r.delivery_id = guid;
	assert_int_equal(report(&r).outcome, REPORT_NO_DISPATCH);
	assert_int_equal(report(&(struct rig_report){.dispatch_id = "none"}).outcome, REPORT_NO_DISPATCH);
	free(id);
}

static void the_newest_of_one_delivery_counts(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "v/ci")}, more[] = {GITHUB_WANT("xpu", "v/ci")};
	static const char *const repo = "v/ci";
	char guid[32];

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 1);
	rig_start("labeled", HEAD_A, 1, more, 1);
	snprintf(guid, sizeof(guid), "guid-%d", rig_n_guids);
	free(rig_send(T0 + 1000));
	assert_int_equal(
	    report(&(struct rig_report){.repository = repo, .delivery_id = guid, .accelerator = "npu"}).outcome,
	    REPORT_RECORDED);
	ASSERT_DISPATCHES(HEAD_A, "npu running*, npu superseded, xpu sent*");
}

/* The vendor's first run covers the trusted accelerators. It reports with the delivery only, before the request
 * arrives that also lists those that a member released. */
static void a_report_of_an_earlier_run_proves_no_later_request(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "v/ci"), GITHUB_WANT("xpu", "v/ci")};
	struct claim_outbox c;
	char guid[32];
	int n;

	(void)state;
	wants[1].held_reason = (char *)"new";
	rig_start("opened", HEAD_A, 0, wants, 2);
	snprintf(guid, sizeof(guid), "guid-%d", rig_n_guids);
	ASSERT_SENT(T0, "github_dispatch v/ci[npu] opened");
	assert_int_equal(rig_release(NULL, T0 + 5000, &n), 0);
	c = rig_claim(REQUESTS, T0 + 5000);
	rig_done(&c.rows[0], OUTBOX_RETRY, T0 + MINUTE);
	claim_outbox_release(&c);
	assert_int_equal(
	    report(&(struct rig_report){.repository = "v/ci", .delivery_id = guid, .accelerator = "npu"}).outcome,
	    REPORT_RECORDED);
	ASSERT_SENT(T0 + HOUR, "github_dispatch v/ci[npu,xpu] opened");
}

static void a_report_from_a_shared_repository_must_name_its_accelerator(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "v/ci"), GITHUB_WANT("xpu", "v/ci"), GITHUB_WANT("mlu", "v/ci"),
	    GITHUB_WANT("own", "other/ci")};
	static const char *const only_xpu[] = {"xpu", NULL};
	static const char *const two[] = {"xpu", "npu", NULL};
	static const char *const none[] = {NULL};
	struct rig_report r = {.repository = "v/ci"};
	char *id;

	(void)state;
	wants[2].held_reason = (char *)"new";
	rig_start("opened", HEAD_A, 0, wants, 4);
	free(rig_send(T0));
	id = rig_dispatch_id(HEAD_A, "npu");
	r.dispatch_id = id;
	assert_int_equal(report(&r).outcome, REPORT_WHICH_ACCELERATOR);
	r.allowed = two;
	assert_int_equal(report(&r).outcome, REPORT_WHICH_ACCELERATOR);
	r.allowed = none;
	assert_int_equal(report(&r).outcome, REPORT_WRONG_ACCELERATOR);
	r.allowed = only_xpu;
	assert_int_equal(report(&r).outcome, REPORT_RECORDED);
	r.accelerator = "npu";
	assert_int_equal(report(&r).outcome, REPORT_WRONG_ACCELERATOR);
	r.allowed = NULL;
	assert_int_equal(report(&r).outcome, REPORT_RECORDED);
	r.accelerator = "own";
	assert_int_equal(report(&r).outcome, REPORT_WRONG_ACCELERATOR);
	r.accelerator = "mlu";
	assert_int_equal(report(&r).outcome, REPORT_WRONG_ACCELERATOR);
	ASSERT_DISPATCHES(HEAD_A, "mlu held*, npu running*, own sent*, xpu running*");
	free(id);
}

static void a_report_for_a_held_dispatch_is_refused(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "v/ci")};
	char *id, guid[32];

	(void)state;
	wants[0].held_reason = (char *)"new";
	rig_start("opened", HEAD_A, 0, wants, 1);
	snprintf(guid, sizeof(guid), "guid-%d", rig_n_guids);
	id = rig_dispatch_id(HEAD_A, "npu");
	assert_int_equal(report(&(struct rig_report){.dispatch_id = id}).outcome, REPORT_NO_DISPATCH);
	assert_int_equal(
	    report(&(struct rig_report){.repository = "v/ci", .dispatch_id = id, .delivery_id = guid}).outcome,
	    REPORT_NO_DISPATCH);
	ASSERT_DISPATCHES(HEAD_A, "npu held*");
	free(id);
}

static void an_answer_to_closed_is_ignored(void **state)
{
	char *id = begin(), guid[32];
	struct rig_report r = {.repository = "Ascend/pytorch", .delivery_id = guid};

	(void)state;
	rig_close_pull(1, HEAD_A, 1);
	snprintf(guid, sizeof(guid), "guid-%d", rig_n_guids);
	assert_int_equal(report(&r).outcome, REPORT_IGNORED_CLOSED);
	r.dispatch_id = id; /* `closed` has the id of the dispatch that it closes */
	assert_int_equal(report(&r).outcome, REPORT_IGNORED_CLOSED);
	free(id);
}

static void a_silent_level_records_nothing(void **state)
{
	static const char *const silent[] = {"npu", NULL};
	char *id = begin();
	struct rig_report r = {.dispatch_id = id, .silent = silent};

	(void)state;
	assert_int_equal(report(&r).outcome, REPORT_IGNORED_LEVEL);
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	r.conclusion = "failure";
	assert_int_equal(report(&r).outcome, REPORT_IGNORED_LEVEL);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "");
	free(id);
}

static void register_and_remove(enum level level)
{
	struct accelerator npu = {.name = (char *)"npu", .title = (char *)"NPU", .level = level};
	struct mirror_registry m = {.list = &npu, .n = 1, .now_ms = T0};

	DO_OK(store_mirror_registry, &m);
	m.n = 0;
	DO_OK(store_mirror_registry, &m);
}

static void an_accelerator_that_left_finishes_its_jobs(void **state)
{
	static const char *const others[] = {"xpu", NULL};
	char *id = begin();
	struct rig_report r = {.repository = "Ascend/pytorch", .dispatch_id = id, .allowed = others};

	(void)state;
	assert_int_equal(report(&r).outcome, REPORT_WRONG_ACCELERATOR); /* never registered */
	register_and_remove(LEVEL_1);
	assert_int_equal(report(&r).outcome, REPORT_WRONG_ACCELERATOR);
	register_and_remove(LEVEL_3);
	assert_int_equal(report(&r).outcome, REPORT_RECORDED);
	free(id);
}

static void the_number_of_jobs_of_a_dispatch_is_bounded(void **state)
{
	char *id = begin(), run[16];
	struct job_report j = {.status = JOB_IN_PROGRESS,
	    .workflow = (char *)"CI",
	    .name = (char *)"test",
	    .run_id = run,
	    .run_attempt = 1};
	struct report_job op = {.dispatch_id = id, .report = &j, .now_ms = T0};

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(run, sizeof(run), "%d", i);
		DO_OK(store_report_job, &op);
	}
	snprintf(run, sizeof(run), "one more");
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_TOO_MANY_JOBS);
	free(id);
}

/* ---- periodic runs ---- */

static enum report_outcome nightly(const char *conclusion, const char *run_id, int *ret_err)
{
	struct job_report j = {.status = conclusion ? JOB_COMPLETED : JOB_IN_PROGRESS,
	    .conclusion = (char *)conclusion,
	    .workflow = (char *)"nightly",
	    .name = (char *)"all",
	    .run_id = (char *)run_id,
	    .run_attempt = 1};
	struct report_nightly n = {.repository = UPSTREAM,
	    .target = "Ascend/pytorch",
	    .accelerator = "npu",
	    .head_sha = HEAD_A,
	    .report = &j,
	    .now_ms = T0};

	sha256(conclusion, conclusion ? strlen(conclusion) : 0, j.digest);
	*ret_err = DO(store_report_nightly, &n);
	return n.outcome;
}

static void a_self_report_is_a_separate_change(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct change_view *v;
	int err;

	(void)state;
	assert_int_equal(nightly("failure", "1", &err), REPORT_RECORDED);
	assert_int_equal(nightly("failure", "1", &err), REPORT_UNCHANGED);
	assert_int_equal(nightly("success", "1", &err), REPORT_CONFLICT);
	nightly(NULL, "2", &err);
	assert_int_equal(err, ERR_INVALID);
	v = rig_view_of(0, HEAD_A);
	assert_int_equal(v->kind, CHANGE_NIGHTLY);
	assert_int_equal(v->n_accelerators, 1);
	assert_int_equal(v->n_verdicts, 1);
	change_view_free(v);
	/* A requested test of the same commit is shown separately. */
	rig_start("opened", HEAD_A, 0, wants, 1);
	v = rig_view_of(0, HEAD_A);
	assert_int_equal(v->kind, CHANGE_PULL_REQUEST);
	assert_int_equal(v->n_verdicts, 0);
	change_view_free(v);
}

/* The answer to the request was lost, and then a hosted accelerator reports: the infra repository itself, for which
 * no report comes, does not wait for ever. */
static void a_report_also_acknowledges_the_request_to_the_infra_repository(void **state)
{
	struct plan_want wants[] = {
	    {.accelerator = (char *)"", .runner = (char *)"infra", .kind = RUNNER_INFRA, .target = (char *)"fdn/infra"},
	    {.accelerator = (char *)"cpu",
		.runner = (char *)"infra",
		.kind = RUNNER_INFRA,
		.target = (char *)"fdn/infra"}};
	struct list_dispatches l = {.limit = 10};
	struct claim_outbox c;
	char *id;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	c = rig_claim(REQUESTS, T0 + 1000);
	rig_done(&c.rows[0], OUTBOX_RETRY, T0 + MINUTE);
	claim_outbox_release(&c);
	id = rig_dispatch_id(HEAD_A, "cpu");
	report(&(struct rig_report){.dispatch_id = id, .at = 2000, .conclusion = "success"});
	ASK_OK(store_list_dispatches, &l);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.list[0].state, "done");
	assert_string_equal(l.list[1].state, "done");
	list_dispatches_release(&l);
	free(id);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(a_job_runs_and_completes),
	    TEST(repeats_change_nothing),
	    TEST(a_dispatch_has_room_for_so_many_jobs_and_results),
	    TEST(a_job_may_complete_without_a_start),
	    TEST(several_jobs_make_one_state),
	    TEST(the_worst_result_of_several_jobs_shows),
	    TEST(a_red_job_without_a_red_test_is_a_failure_itself),
	    TEST(a_job_names_its_replacement),
	    TEST(a_new_attempt_reopens_and_replaces),
	    TEST(a_red_test_that_a_retry_does_not_name_has_no_result),
	    TEST(a_late_first_attempt_still_counts),
	    TEST(the_late_report_document_of_a_first_attempt_still_counts),
	    TEST(a_long_list_of_new_tests_is_written_in_parts),
	    TEST(thousands_of_red_cells_are_attributed_in_parts),
	    TEST(a_look_in_parts_begins_again_when_the_cells_change),
	    TEST(a_look_that_ends_early_leaves_nothing_undone),
	    TEST(thousands_of_missing_results_are_a_run_at_once),
	    TEST(a_late_result_replaces_the_silence),
	    TEST(a_job_that_never_ends_is_a_miss),
	    TEST(results_of_an_old_head_are_kept_apart),
	    TEST(reports_for_a_superseded_dispatch_are_not_shown),
	    TEST(a_report_proves_that_the_request_arrived),
	    TEST(a_report_also_acknowledges_the_request_to_the_infra_repository),
	    TEST(the_dispatch_is_found_by_id_or_delivery),
	    TEST(the_newest_of_one_delivery_counts),
	    TEST(a_report_of_an_earlier_run_proves_no_later_request),
	    TEST(a_report_from_a_shared_repository_must_name_its_accelerator),
	    TEST(a_report_for_a_held_dispatch_is_refused),
	    TEST(an_answer_to_closed_is_ignored),
	    TEST(a_silent_level_records_nothing),
	    TEST(an_accelerator_that_left_finishes_its_jobs),
	    TEST(the_number_of_jobs_of_a_dispatch_is_bounded),
	    TEST(a_self_report_is_a_separate_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
