#include "views/job.h"
/* Tests that an accelerator does not support: stored unchanged, shown as skipped. */
#include "store_rig.h"

static char *no_names[] = {NULL};
static char *unsupported[] = {(char *)"model/XModel", (char *)"model/org/name", NULL};

static void mirror(char **skip)
{
	struct accelerator list[] = {
	    {.name = (char *)"npu", .title = (char *)"NPU", .oncall = no_names, .must_pass = no_names, .skip = skip},
	    {.name = (char *)"tpu",
		.title = (char *)"TPU",
		.oncall = no_names,
		.must_pass = no_names,
		.skip = no_names},
	};
	struct mirror_registry m = {.list = list, .n = 2, .now_ms = T0};

	DO_OK(store_mirror_registry, &m);
}

#define RED(s, n)                                                                                                      \
	{                                                                                                              \
		.suite = (char *)(s), .name = (char *)(n), .status = TEST_FAIL, .duration_ms = 5,                      \
		.file = (char *)"test/a.py", .line = 3, .message = (char *)"no such op"                                \
	}

static int64_t report(const char *accelerator, const char *job, struct test_result *tests, size_t n, int64_t attempt)
{
	char *id = rig_dispatch_id(HEAD_A, accelerator);
	struct job_report j = {
	    .status = JOB_COMPLETED,
	    .conclusion = (char *)(n && test_status_is_red(tests[0].status) ? "failure" : "success"),
	    .workflow = (char *)"CI",
	    .name = (char *)job,
	    .run_id = (char *)"1",
	    .run_attempt = attempt,
	    .tests = tests,
	    .n_tests = n,
	    .digest = {(uint8_t)attempt, 1},
	};
	struct report_job op = {.dispatch_id = id, .accelerator = accelerator, .report = &j, .now_ms = T0 + MINUTE};

	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
	return op.job_id;
}

static void begin(char **skip)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), GITHUB_WANT("tpu", "google/pytorch")};

	mirror(skip);
	rig_start("opened", HEAD_A, 0, wants, 2);
	free(rig_send(T0));
}

static void a_result_of_an_unsupported_test_is_kept_and_shown_as_skipped(void **state)
{
	struct test_result tests[] = {RED("model", "XModel"), RED("model", "org/name"), RED("model", "XModel2")};
	struct change_view *v;
	struct get_job g = {0};

	(void)state;
	begin(unsupported);
	g.id = report("npu", "a", tests, 3, 1);
	report("tpu", "a", tests, 1, 1);
	ASSERT_CELLS(HEAD_A, "npu model/XModel SKIP, tpu model/XModel FAIL, npu model/XModel2 FAIL,"
			     " npu model/org/name SKIP");
	v = rig_view_of(0, HEAD_A);
	assert_string_equal(v->verdicts[0].message, "not supported by this accelerator");
	assert_int_equal(v->verdicts[0].attribution, N_ATTRIBUTIONS);
	assert_null(v->verdicts[0].file);
	change_view_free(v);
	ASK_OK(store_get_job, &g);
	assert_int_equal(g.job->tests[0].status, TEST_FAIL);
	assert_string_equal(g.job->tests[0].message, "no such op");
	assert_string_equal(g.job->tests[0].file, "test/a.py");
	assert_int_equal(g.job->tests[0].line, 3);
	job_detail_free(g.job);
}

static void later_reports_stay_skipped(void **state)
{
	struct test_result tests[] = {RED("model", "XModel")};

	(void)state;
	begin(unsupported);
	report("npu", "a", tests, 1, 1);
	report("npu", "b", tests, 1, 1); /* one more job: added to the existing cells */
	ASSERT_CELLS(HEAD_A, "npu model/XModel SKIP");
	report("npu", "a", tests, 1, 2); /* another attempt: all cells are recomputed */
	ASSERT_CELLS(HEAD_A, "npu model/XModel SKIP");
}

static void open_changes_follow_the_file(void **state)
{
	struct test_result tests[] = {RED("model", "XModel"), RED("model", "Qwen")};
	struct claim_outbox c;

	(void)state;
	begin(no_names);
	report("npu", "a", tests, 2, 1);
	report("tpu", "a", tests, 1, 1);
	ASSERT_CELLS(HEAD_A, "npu model/Qwen FAIL, npu model/XModel FAIL, tpu model/XModel FAIL");
	c = rig_claim(COMMENTS, T0 + HOUR);
	assert_int_equal(c.n, 1);
	rig_done(&c.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&c);
	mirror(unsupported);
	ASSERT_CELLS(HEAD_A, "npu model/Qwen FAIL, npu model/XModel SKIP, tpu model/XModel FAIL");
	c = rig_claim(COMMENTS, T0 + HOUR);
	assert_int_equal(c.n, 1);
	rig_done(&c.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&c);
	mirror(unsupported); /* nothing new */
	c = rig_claim(COMMENTS, T0 + HOUR);
	assert_int_equal(c.n, 0);
	claim_outbox_release(&c);
	mirror(no_names);
	ASSERT_CELLS(HEAD_A, "npu model/Qwen FAIL, npu model/XModel FAIL, tpu model/XModel FAIL");
}

static bool run_is(const char *outcome)
{
	char *path = rig_path();
	struct db *d;
	bool is_so;

	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	is_so = db_has(d, "SELECT 1 FROM run WHERE accelerator = 'npu' AND outcome = ?1", V_TEXT(outcome));
	db_close(d);
	free(path);
	return is_so;
}

/* A test that the accelerator does not support proves nothing when it passes. */
static void an_unsupported_test_that_passes_makes_no_run_green(void **state)
{
	struct test_result tests[] = {{.suite = (char *)"model", .name = (char *)"XModel", .status = TEST_PASS},
	    {.suite = (char *)"model", .name = (char *)"Qwen", .status = TEST_SKIP}};

	(void)state;
	begin(unsupported);
	report("npu", "a", tests, 2, 1);
	assert_true(run_is("nothing"));
	tests[1].status = TEST_DONE;
	report("npu", "b", tests, 2, 1);
	assert_true(run_is("nothing"));
	tests[1].status = TEST_PASS;
	report("npu", "c", tests, 2, 1);
	assert_true(run_is("green"));
	mirror(no_names);
	report("npu", "c", tests, 1, 2);
	assert_true(run_is("green"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		an_unsupported_test_that_passes_makes_no_run_green, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(
		a_result_of_an_unsupported_test_is_kept_and_shown_as_skipped, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(later_reports_stay_skipped, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(open_changes_follow_the_file, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
