#include "views/change.h"
#include "views/job.h"
/* Report documents and logs: when their results are shown, and what happens before and after. */
#include "lease_rig.h"

#define RESULT(s, n, st)                                                                                               \
	{                                                                                                              \
		.suite = (char *)(s), .name = (char *)(n), .status = (st), .duration_ms = 5                            \
	}

static struct test_result two[] = {RESULT("model", "llama3", TEST_PASS), RESULT("model", "Qwen", TEST_FAIL)};
static struct test_result green[] = {RESULT("unit", "ops", TEST_PASS)};

static enum report_outcome put(int64_t job_id, const char *bytes, struct test_result *tests, size_t n, int64_t at)
{
	struct put_report p = {
	    .job_id = job_id,
	    .tests = tests,
	    .n_tests = n,
	    .n_cut = 7,
	    .environment = "{\"device\":\"Ascend 910B\"}",
	    .now_ms = T0 + at,
	};

	sha256(bytes, strlen(bytes), p.digest);
	DO_OK(store_put_report, &p);
	return p.outcome;
}

static struct lease_offer begin(void)
{
	queue_pull(1, HEAD_A, 0);
	return take("npu-1", "c1", 0);
}

static int64_t n_comments(int64_t at)
{
	struct claim_outbox c = rig_claim(COMMENTS, T0 + at);
	int64_t n = (int64_t)c.n;

	for (size_t i = 0; i < c.n; i++)
		rig_done(&c.rows[i], OUTBOX_OK, 0);
	claim_outbox_release(&c);
	return n;
}

static int64_t n_results(void)
{
	struct get_totals t = {0};

	ASK_OK(store_get_totals, &t);
	return t.n_results;
}

static void a_report_waits_for_the_jobs_end(void **state)
{
	struct lease_offer o = begin();
	struct job_detail *j;

	(void)state;
	assert_int_equal(put(o.job_id, "a", two, 2, SECOND), REPORT_RECORDED);
	ASSERT_CELLS(HEAD_A, "");
	assert_int_equal(n_results(), 2);
	assert_int_equal(finish_with(&o, "failure", green, 1, NULL, 2 * SECOND), REPORT_RECORDED);
	ASSERT_CELLS(HEAD_A, "npu model/Qwen FAIL, npu model/llama3 PASS, npu unit/ops PASS");
	j = job_of(o.job_id);
	assert_int_equal(j->n_tests, 3); /* the report's came first */
	assert_int_equal(j->job.n_cut, 7);
	assert_string_equal(j->tests[0].name, "llama3");
	assert_string_equal(j->tests[2].name, "ops");
	assert_string_equal(j->environment, "{\"device\":\"Ascend 910B\"}");
	job_detail_free(j);
	assert_int_equal(n_results(), 3);
	lease_offer_release(&o);
}

/* A failed job with a red test in its report adds no row of its own. */
static void red_tests_of_the_report_explain_the_job(void **state)
{
	struct lease_offer o = begin();

	(void)state;
	put(o.job_id, "a", two, 2, SECOND);
	finish(&o, "failure", 2 * SECOND);
	ASSERT_CELLS(HEAD_A, "npu model/Qwen FAIL, npu model/llama3 PASS");
	lease_offer_release(&o);
}

static void a_failed_job_without_a_red_test_is_red(void **state)
{
	struct lease_offer o = begin();

	(void)state;
	put(o.job_id, "a", green, 1, SECOND);
	finish(&o, "failure", 2 * SECOND);
	ASSERT_CELLS(HEAD_A, "npu farm/tests FAIL, npu unit/ops PASS");
	lease_offer_release(&o);
}

static void a_report_after_the_end_shows_at_once(void **state)
{
	struct lease_offer o = begin();
	struct job_detail *j;

	(void)state;
	finish_with(&o, "success", green, 1, NULL, SECOND);
	ASSERT_CELLS(HEAD_A, "npu unit/ops PASS");
	assert_int_equal(n_comments(HOUR), 1);
	rig_topics = 0;
	assert_int_equal(put(o.job_id, "a", two, 2, 2 * SECOND), REPORT_RECORDED);
	assert_true(rig_topics & STORE_CHANGES);
	ASSERT_CELLS(HEAD_A, "npu model/Qwen FAIL, npu model/llama3 PASS, npu unit/ops PASS");
	assert_int_equal(n_comments(HOUR), 1);
	j = job_of(o.job_id);
	assert_int_equal(j->n_tests, 3);
	assert_string_equal(j->tests[0].name, "ops");
	job_detail_free(j);
	lease_offer_release(&o);
}

/* A job without a report has a row of its own name, which its report replaces. */
static void a_report_replaces_the_row_of_the_job(void **state)
{
	struct lease_offer o = begin();

	(void)state;
	finish(&o, "success", SECOND);
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS");
	put(o.job_id, "a", green, 1, 2 * SECOND);
	ASSERT_CELLS(HEAD_A, "npu unit/ops PASS");
	lease_offer_release(&o);
}

static void each_job_has_one_report(void **state)
{
	struct lease_offer o = begin();

	(void)state;
	assert_int_equal(put(o.job_id, "a", two, 2, SECOND), REPORT_RECORDED);
	assert_int_equal(put(o.job_id, "a", two, 2, 2 * SECOND), REPORT_UNCHANGED);
	assert_int_equal(put(o.job_id, "b", green, 1, 3 * SECOND), REPORT_CONFLICT);
	finish(&o, "failure", 4 * SECOND);
	assert_int_equal(put(o.job_id, "a", two, 2, 5 * SECOND), REPORT_UNCHANGED);
	assert_int_equal(put(o.job_id, "b", green, 1, 6 * SECOND), REPORT_CONFLICT);
	assert_int_equal(put(o.job_id + 99, "a", two, 2, 7 * SECOND), REPORT_NO_DISPATCH);
	ASSERT_CELLS(HEAD_A, "npu model/Qwen FAIL, npu model/llama3 PASS");
	assert_int_equal(n_results(), 2);
	lease_offer_release(&o);
}

static void an_empty_report_counts_as_a_report(void **state)
{
	struct lease_offer o = begin();

	(void)state;
	assert_int_equal(put(o.job_id, "", NULL, 0, SECOND), REPORT_RECORDED);
	assert_int_equal(put(o.job_id, "a", two, 2, SECOND), REPORT_CONFLICT);
	finish(&o, "success", 2 * SECOND);
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS");
	lease_offer_release(&o);
}

/* B2: jobs of pull requests are not runs of the branch, and no figure counts them. */
static void figures_ignore_pull_requests(void **state)
{
	struct get_figures g = {.now_ms = T0 + HOUR};
	struct accelerator npu = {.name = (char *)"npu", .title = (char *)"NPU", .level = LEVEL_2};
	struct mirror_registry m = {.list = &npu, .n = 1, .now_ms = T0};
	struct lease_offer a, b;

	(void)state;
	DO_OK(store_mirror_registry, &m);
	a = begin();
	put(a.job_id, "a", two, 2, SECOND);
	finish(&a, "success", 2 * SECOND);
	queue_pull(2, HEAD_B, 0);
	b = take("npu-1", "c2", 0);
	finish(&b, "success", SECOND);
	ASK_OK(store_get_figures, &g);
	assert_true(g.list[0].at.facts.last_report_ms > 0);
	assert_int_equal(g.list[0].at.facts.n_runs, 0);
	assert_int_equal(g.list[0].at.state.status, ACCELERATOR_UNTESTED);
	get_figures_release(&g);
	lease_offer_release(&a);
	lease_offer_release(&b);
}

static void a_report_for_a_superseded_head_does_not_show_on_the_new_one(void **state)
{
	struct lease_offer o = begin();

	(void)state;
	finish(&o, "success", SECOND);
	queue_pull(1, HEAD_B, 2 * SECOND); /* superseded: its job still belongs to the old head */
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS");
	assert_int_equal(put(o.job_id, "a", two, 2, 3 * SECOND), REPORT_RECORDED);
	ASSERT_CELLS(HEAD_B, "");
	lease_offer_release(&o);
}

/* A machine whose lease expired sends its report and then its job's end: both are shown only together. */
static void a_report_of_an_abandoned_job_waits_for_its_end(void **state)
{
	struct lease_offer o = begin();

	(void)state;
	expire(2 * MINUTE);
	assert_int_equal(put(o.job_id, "a", two, 2, 3 * MINUTE), REPORT_RECORDED);
	ASSERT_CELLS(HEAD_A, "");
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	finish(&o, "failure", 4 * MINUTE);
	ASSERT_CELLS(HEAD_A, "npu model/Qwen FAIL, npu model/llama3 PASS");
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	lease_offer_release(&o);
}

/* The next machine repeated all of the work, so its list of tests is complete: a failure of the first machine need
 * not appear again. */
static void tests_of_a_returned_attempt_are_not_results(void **state)
{
	struct test_result broken[] = {RESULT("model", "collect", TEST_ERROR)};
	struct lease_offer first = begin(), second;

	(void)state;
	put(first.job_id, "a", broken, 1, SECOND);
	give_back(&first, "npu-1", "it is stopped", 2 * SECOND);
	second = take("npu-2", "c1", 3 * SECOND);
	finish_with(&second, "success", green, 1, NULL, MINUTE);
	ASSERT_CELLS(HEAD_A, "npu unit/ops PASS");
	finish(&first, "cancelled", 2 * MINUTE); /* its cancelled report comes last */
	ASSERT_CELLS(HEAD_A, "npu unit/ops PASS");
	lease_offer_release(&first);
	lease_offer_release(&second);
}

/* The deadline passed in between: the cell is a MISS, not the half that has arrived, whichever event recomputes the
 * cells. */
static void a_late_report_is_not_shown_before_its_job_ends(void **state)
{
	struct plan_want wants[] = {PULL_WANT("npu", "farm"), PULL_WANT("npu", "lab")};
	struct expire_dispatches e = {.now_ms = T0 + 7 * HOUR};
	struct lease_offer o;

	(void)state;
	wants[1].start_ms = wants[1].finish_ms = 8 * HOUR;
	rig_start("opened", HEAD_A, 0, wants, 2);
	o = take("npu-1", "c1", 0);
	DO_OK(store_expire_dispatches, &e);
	ASSERT_CELLS(HEAD_A, "npu farm/tests MISS");
	put(o.job_id, "a", two, 2, 7 * HOUR);
	e.now_ms = T0 + 8 * HOUR;
	DO_OK(store_expire_dispatches, &e);
	ASSERT_CELLS(HEAD_A, "npu dispatch/lab MISS, npu farm/tests MISS");
	finish(&o, "failure", 9 * HOUR);
	ASSERT_CELLS(HEAD_A, "npu dispatch/lab MISS, npu model/Qwen FAIL late, npu model/llama3 PASS late");
	lease_offer_release(&o);
}

static void a_trace_and_a_message_are_kept(void **state)
{
	struct test_result t = {.suite = (char *)"unit",
	    .name = (char *)"ops",
	    .status = TEST_FAIL,
	    .duration_ms = -1,
	    .message = (char *)"it differs",
	    .trace = (char *)"ops.py:3\n  assert 1 == 2"};
	struct lease_offer o = begin();
	struct job_report r = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"failure",
	    .workflow = o.runner,
	    .name = (char *)"tests",
	    .run_id = o.run_id,
	    .run_attempt = 1,
	    .message = (char *)"step build: exit code 2"};
	struct report_job op = {.dispatch_id = o.dispatch_id, .report = &r, .now_ms = T0 + MINUTE};
	struct job_detail *j;

	(void)state;
	DO_OK(store_report_job, &op);
	assert_cell_says(HEAD_A, "step build: exit code 2");
	assert_job(o.job_id, "failure: step build: exit code 2");
	put(o.job_id, "a", &t, 1, 2 * MINUTE);
	assert_cell_says(HEAD_A, "it differs");
	j = job_of(o.job_id);
	assert_string_equal(j->tests[0].trace, "ops.py:3\n  assert 1 == 2");
	assert_string_equal(j->message, "step build: exit code 2");
	job_detail_free(j);
	lease_offer_release(&o);
}

static void a_job_is_found_with_its_owner(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("cuda", "NVIDIA/pytorch")};
	struct job_report r = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"success",
	    .workflow = (char *)"CI",
	    .name = (char *)"t",
	    .run_id = (char *)"1",
	    .run_attempt = 1};
	struct report_nightly n = {.repository = UPSTREAM,
	    .target = "Vendor/ci",
	    .accelerator = "xpu",
	    .head_sha = HEAD_C,
	    .report = &r,
	    .now_ms = T0};
	struct report_job g = {.report = &r, .now_ms = T0};
	struct lease_offer o = begin();
	struct find_job f = {.id = o.job_id};
	char *id;

	(void)state;
	ASK_OK(store_find_job, &f);
	assert_string_equal(f.dispatch_id, o.dispatch_id);
	assert_string_equal(f.accelerator, "npu");
	assert_null(f.repository);
	assert_string_equal(f.machine, "npu-1");
	assert_int_equal(f.status, JOB_IN_PROGRESS);
	assert_false(f.has_report);
	find_job_release(&f);
	put(o.job_id, "a", two, 2, 0);
	finish(&o, "failure", 0);
	ASK_OK(store_find_job, &f);
	assert_int_equal(f.status, JOB_COMPLETED);
	assert_true(f.has_report);
	find_job_release(&f);

	rig_start("opened", HEAD_B, 5, wants, 1);
	id = rig_dispatch_id(HEAD_B, "cuda");
	g.dispatch_id = id;
	DO_OK(store_report_job, &g);
	f.id = g.job_id;
	ASK_OK(store_find_job, &f);
	assert_string_equal(f.repository, "NVIDIA/pytorch");
	assert_null(f.machine);
	find_job_release(&f);
	free(id);

	DO_OK(store_report_nightly, &n);
	f.id = n.job_id;
	ASK_OK(store_find_job, &f);
	assert_string_equal(f.repository, "Vendor/ci");
	assert_string_equal(f.dispatch_id, "");
	find_job_release(&f);
	assert_int_equal(put(n.job_id, "n", two, 2, 0), REPORT_RECORDED);
	f.id = 4711;
	assert_int_equal(ASK(store_find_job, &f), ERR_NOT_FOUND);
	find_job_release(&f);
	lease_offer_release(&o);
}

static void a_log_is_noted(void **state)
{
	struct lease_offer o = begin();
	struct note_log n = {.job_id = o.job_id, .bytes = 7};
	struct job_detail *j;

	(void)state;
	DO_OK(store_note_log, &n);
	j = job_of(o.job_id);
	assert_int_equal(j->log_bytes, 7);
	assert_false(j->is_log_complete);
	job_detail_free(j);
	n.bytes = 6;
	DO_OK(store_note_log, &n);
	j = job_of(o.job_id);
	assert_int_equal(j->log_bytes, 7);
	job_detail_free(j);
	n.bytes = 9;
	n.is_complete = true;
	DO_OK(store_note_log, &n);
	j = job_of(o.job_id);
	assert_int_equal(j->log_bytes, 9);
	assert_true(j->is_log_complete);
	job_detail_free(j);
	/* notes that come late, as of a daemon that was cut off from the database */
	n = (struct note_log){.job_id = o.job_id, .bytes = 8};
	DO_OK(store_note_log, &n);
	n.bytes = 10;
	DO_OK(store_note_log, &n);
	j = job_of(o.job_id);
	assert_int_equal(j->log_bytes, 9);
	assert_true(j->is_log_complete);
	job_detail_free(j);
	n.job_id = 99;
	assert_int_equal(DO(store_note_log, &n), ERR_NOT_FOUND);
	lease_offer_release(&o);
}

static void a_large_report_is_stored_in_time(void **state)
{
	enum { N = 20000 };
	struct test_result *tests = xcalloc(N, sizeof(*tests));
	struct lease_offer o = begin();
	struct get_change g = {.now_ms = clock_wall_ms(), .repository = UPSTREAM, .number = 1, .max_verdicts = 5};

	(void)state;
	for (int i = 0; i < N; i++)
		tests[i] = (struct test_result){.suite = (char *)"unit",
		    .name = xasprintf("test_%d", i),
		    .status = i % 1000 ? TEST_PASS : TEST_FAIL,
		    .duration_ms = i};
	put(o.job_id, "a", tests, N, SECOND);
	finish(&o, "failure", 2 * SECOND);
	ASK_OK(store_get_change, &g);
	assert_int_equal(g.view->n_verdicts_total, N);
	assert_int_equal(g.view->accelerators[0].n_verdicts[TEST_FAIL], N / 1000);
	change_view_free(g.view);
	for (int i = 0; i < N; i++)
		free(tests[i].name);
	free(tests);
	lease_offer_release(&o);
}

/* Several statements name them together. */
static void a_list_names_known_new_and_repeated_tests(void **state)
{
	enum { KNOWN = 14, N = 40 };
	struct test_result known[KNOWN], tests[N];
	struct lease_offer o = begin();
	struct job_detail *j;

	(void)state;
	for (int i = 0; i < KNOWN; i++)
		known[i] = (struct test_result)RESULT("unit", xasprintf("test_%d", 3 * i), TEST_PASS);
	for (int i = 0; i < N; i++)
		tests[i] = (struct test_result)RESULT("unit", xasprintf("test_%d", i == 7 ? 5 : i), TEST_PASS);
	put(o.job_id, "a", known, KNOWN, SECOND);
	finish_with(&o, "success", tests, N, NULL, 2 * SECOND);
	j = job_of(o.job_id);
	assert_int_equal(j->n_tests, KNOWN + N);
	for (int i = 0; i < KNOWN + N; i++)
		assert_string_equal(j->tests[i].name, i < KNOWN ? known[i].name : tests[i - KNOWN].name);
	job_detail_free(j);
	for (int i = 0; i < KNOWN; i++)
		free(known[i].name);
	for (int i = 0; i < N; i++)
		free(tests[i].name);
	lease_offer_release(&o);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_report_waits_for_the_jobs_end),
	    TEST(red_tests_of_the_report_explain_the_job),
	    TEST(a_failed_job_without_a_red_test_is_red),
	    TEST(a_report_after_the_end_shows_at_once),
	    TEST(a_report_replaces_the_row_of_the_job),
	    TEST(each_job_has_one_report),
	    TEST(an_empty_report_counts_as_a_report),
	    TEST(figures_ignore_pull_requests),
	    TEST(a_report_for_a_superseded_head_does_not_show_on_the_new_one),
	    TEST(a_report_of_an_abandoned_job_waits_for_its_end),
	    TEST(tests_of_a_returned_attempt_are_not_results),
	    TEST(a_late_report_is_not_shown_before_its_job_ends),
	    TEST(a_trace_and_a_message_are_kept),
	    TEST(a_job_is_found_with_its_owner),
	    TEST(a_log_is_noted),
	    TEST(a_list_names_known_new_and_repeated_tests),
	    TEST(a_large_report_is_stored_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
