/* Which check runs a change should have, and their conclusions: levels × labels × states × attributions, compared
 * with the recorded ones. */
#include <setjmp.h>

#include <cmocka.h>

#include "publish/publish_internal.h"
#include "view_builder.h"

static const struct check_options OPTIONS = {.public_url = "https://outpost.example.org", .bot = "outpost-ci"};

/* A view with one accelerator "npu" at a vendor's repository and one job with this conclusion (NULL: in progress). */
static struct change_view *view_with_job(enum level level, enum dispatch_state state, const char *conclusion)
{
	struct change_view *v = view_new();
	size_t a = view_add_accelerator(v, "npu", "NPU", level, state);
	struct accelerator_view *x = &v->accelerators[a];
	struct job_view *j = VIEW_PUSH(x->jobs, x->n_jobs);

	free(x->dispatches[0].runner_kind);
	x->dispatches[0].runner_kind = xstrdup("github");
	x->dispatches[0].repository = xstrdup("Ascend/pytorch");
	*j = (struct job_view){.id = 7,
	    .workflow = xstrdup("ci"),
	    .name = xstrdup("test"),
	    .run_id = xstrdup("900"),
	    .dispatch_id = xstrdup(x->dispatches[0].id),
	    .runner = xstrdup(x->dispatches[0].runner),
	    .status = conclusion ? JOB_COMPLETED : JOB_IN_PROGRESS,
	    .conclusion = xstrdup_or_null(conclusion)};
	return v;
}

static struct verdict_view *add_cell(
    struct change_view *v, const char *test, enum test_status status, enum attribution attribution)
{
	struct verdict_view *w;

	view_add_verdict(v, 0, "model", test, status, 7);
	w = &v->verdicts[v->n_verdicts - 1];
	w->attribution = attribution;
	return w;
}

static struct list_checks nothing_on_record(const char *label)
{
	struct list_checks l = {.named_number = 4711, .labels = strv_copy(NULL)};

	if (label)
		strv_add(&l.labels, label);
	return l;
}

static void record(struct list_checks *l, const struct planned_check *w, int64_t id, bool is_of_head)
{
	struct stored_check *k = VIEW_PUSH(l->list, l->n);

	*k = (struct stored_check){.head_sha = xstrdup(w->head_sha),
	    .name = xstrdup(w->name),
	    .accelerator = xstrdup(w->accelerator),
	    .check_id = id,
	    .job_id = w->job_id,
	    .n_annotations = (int)w->output.n_annotations,
	    .is_completed = w->output.conclusion != NULL,
	    .is_of_head = is_of_head};
	memcpy(k->digest, w->digest, SHA256_BYTES);
}

/* "NAME CONCLUSION[ anew] [title]; …" */
static char *planned(const struct change_view *v, const struct list_checks *l, const struct check_options *o)
{
	struct buf text = BUF_INIT(65536);
	struct check_plan p;

	check_plan_make(v, l, o, &p);
	for (size_t i = 0; i < p.n; i++) {
		const struct planned_check *w = &p.list[i];

		buf_appendf(&text, "%s%s %s%s [%s]", i ? "; " : "", w->name,
		    w->output.conclusion ? w->output.conclusion : "in_progress", w->is_recreated ? " anew" : "",
		    w->job_id ? w->output.title : "");
	}
	check_plan_release(&p);
	return text.data ? buf_detach(&text) : xstrdup("");
}

#define ASSERT_PLAN(v, l, o, expected)                                                                                 \
	do {                                                                                                           \
		char *got_ = planned((v), (l), (o));                                                                   \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

#define NAME "crcr/Ascend/pytorch/ci/test"

static void level_and_label_decide_which_check_runs_exist(void **state)
{
	static const struct {
		enum level level;
		const char *label, *expected;
	} cases[] = {
	    {LEVEL_1, "ciflow/crcr/npu", ""},
	    {LEVEL_2, "ciflow/crcr/npu", ""},
	    {LEVEL_3, NULL, ""},
	    {LEVEL_3, "ciflow/crcr/other", ""},
	    {LEVEL_3, "ciflow/crcr/npu", NAME " in_progress [Running]"},
	    {LEVEL_4, NULL, NAME " in_progress [Running]"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct change_view *v = view_with_job(cases[i].level, DISPATCH_RUNNING, NULL);
		struct list_checks l = nothing_on_record(cases[i].label);

		ASSERT_PLAN(v, &l, &OPTIONS, cases[i].expected);
		v->kind = CHANGE_PUSH;
		ASSERT_PLAN(v, &l, &OPTIONS, "");
		list_checks_release(&l);
		change_view_free(v);
	}
}

/* No status: no such cell. */
#define NO_CELL N_TEST_STATUSES

static void conclusions_follow_results_and_attributions(void **state)
{
	static const struct {
		const char *said;
		struct {
			enum test_status status;
			enum attribution attribution;
		} cells[2];
		const char *l4, *l3, *title;
	} cases[] = {
	    {"success", {{TEST_PASS, N_ATTRIBUTIONS}, {TEST_PASS, N_ATTRIBUTIONS}}, "success", "success",
		"2 tests passed"},
	    {"success", {{TEST_PASS, N_ATTRIBUTIONS}, {TEST_SKIP, N_ATTRIBUTIONS}}, "success", "success",
		"1 test passed"},
	    {"success", {{TEST_SKIP, N_ATTRIBUTIONS}, {NO_CELL, 0}}, "skipped", "skipped", "Skipped"},
	    {"success", {{TEST_DONE, N_ATTRIBUTIONS}, {TEST_SKIP, N_ATTRIBUTIONS}}, "neutral", "neutral",
		"Measured only"},
	    {"success", {{NO_CELL, 0}, {NO_CELL, 0}}, "success", "success", "Passed"},
	    {"failure", {{TEST_FAIL, ATTRIBUTION_NEW}, {TEST_PASS, N_ATTRIBUTIONS}}, "failure", "neutral",
		"1 new failure"},
	    {"failure", {{TEST_FAIL, ATTRIBUTION_NEW}, {TEST_ERROR, ATTRIBUTION_UNCLASSIFIED}}, "failure", "neutral",
		"1 new failure, 1 not classified"},
	    {"failure", {{TEST_FAIL, ATTRIBUTION_UNCLASSIFIED}, {TEST_FAIL, ATTRIBUTION_BASE}}, "failure", "neutral",
		"1 failure, not classified"},
	    {"failure", {{TEST_FAIL, ATTRIBUTION_BASE}, {TEST_FAIL, ATTRIBUTION_FLAKY}}, "neutral", "neutral",
		"2 failures, known, flaky or on the base as well"},
	    {"failure", {{TEST_ERROR, ATTRIBUTION_KNOWN}, {TEST_PASS, N_ATTRIBUTIONS}}, "neutral", "neutral",
		"1 failure, known, flaky or on the base as well"},
	    /* red by its tests, for any conclusion of the job; red by the conclusion of a job without tests */
	    {"success", {{TEST_FAIL, ATTRIBUTION_NEW}, {NO_CELL, 0}}, "failure", "neutral", "1 new failure"},
	    {"failure", {{NO_CELL, 0}, {NO_CELL, 0}}, "failure", "neutral", "1 failure, not classified"},
	    /* a failure on the vendor's side */
	    {"timed_out", {{TEST_MISS, ATTRIBUTION_UNCLASSIFIED}, {TEST_PASS, N_ATTRIBUTIONS}}, "neutral", "neutral",
		"No result: timed_out"},
	    {"success", {{TEST_MISS, ATTRIBUTION_NEW}, {TEST_PASS, N_ATTRIBUTIONS}}, "neutral", "neutral",
		"1 test without a result"},
	    {"cancelled", {{NO_CELL, 0}, {NO_CELL, 0}}, "neutral", "neutral", "No result: cancelled"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (int level = LEVEL_3; level <= LEVEL_4; level++) {
			/* another dispatch that is queued prevents the verdict's check run */
			struct change_view *v = view_with_job((enum level)level, DISPATCH_RUNNING, cases[i].said);
			struct list_checks l = nothing_on_record("ciflow/crcr/npu");
			char *expected =
			    xasprintf(NAME " %s [%s]", level == LEVEL_4 ? cases[i].l4 : cases[i].l3, cases[i].title);

			for (int c = 0; c < 2; c++)
				if (cases[i].cells[c].status != NO_CELL)
					add_cell(
					    v, c ? "b" : "a", cases[i].cells[c].status, cases[i].cells[c].attribution);
			ASSERT_PLAN(v, &l, &OPTIONS, expected);
			free(expected);
			list_checks_release(&l);
			change_view_free(v);
		}
	}
}

static void results_after_a_cancel_conclude_neutral(void **state)
{
	static const enum dispatch_state states[] = {DISPATCH_CANCELLED, DISPATCH_SUPERSEDED};
	static const char *const said[] = {"success", "failure", "timed_out"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(states) * ARRAY_LEN(said); i++) {
		struct change_view *v =
		    view_with_job(LEVEL_4, states[i % ARRAY_LEN(states)], said[i / ARRAY_LEN(states)]);
		struct list_checks l = nothing_on_record(NULL);

		ASSERT_PLAN(v, &l, &OPTIONS, NAME " neutral [Cancelled]");
		if (i < ARRAY_LEN(states)) { /* it had ended before */
			add_cell(v, "a", TEST_PASS, N_ATTRIBUTIONS);
			ASSERT_PLAN(v, &l, &OPTIONS, NAME " success [1 test passed]");
		}
		list_checks_release(&l);
		change_view_free(v);
	}
}

static void l3_may_fail_and_the_unhealthy_never(void **state)
{
	struct check_options o = OPTIONS;
	struct change_view *v = view_with_job(LEVEL_3, DISPATCH_RUNNING, "failure");
	struct list_checks l = nothing_on_record("ciflow/crcr/npu");

	(void)state;
	add_cell(v, "a", TEST_FAIL, ATTRIBUTION_NEW);
	o.l3_may_fail = true;
	ASSERT_PLAN(v, &l, &o, NAME " failure [1 new failure]");
	v->accelerators[0].is_unhealthy = true;
	ASSERT_PLAN(v, &l, &o, NAME " neutral [1 failure, not counted: the accelerator is unhealthy]");
	list_checks_release(&l);
	change_view_free(v);
}

/* A cell names only one job; another job that failed in the same way has the same attribution. */
static void a_red_job_whose_cell_names_another_job(void **state)
{
	struct change_view *v = view_with_job(LEVEL_4, DISPATCH_RUNNING, "failure");
	struct list_checks l = nothing_on_record(NULL);
	struct verdict_view *w = add_cell(v, "a", TEST_FAIL, ATTRIBUTION_BASE);

	(void)state;
	w->job = 8;
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " neutral [1 failure, known, flaky or on the base as well]");
	w->attribution = ATTRIBUTION_NEW;
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " failure [1 new failure]");
	w->attribution = ATTRIBUTION_BASE;
	v->is_cut = true; /* the unread cells may be failures of the change */
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " failure [1 failure, not classified]");
	/* but all red cells were read if any other cell was */
	view_add_accelerator(v, "gpu", "GPU", LEVEL_2, DISPATCH_DONE);
	view_add_verdict(v, 1, "model", "Qwen", TEST_PASS, 8);
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " neutral [1 failure, known, flaky or on the base as well]");
	list_checks_release(&l);
	change_view_free(v);
}

/* For a change with more tests than a comment reads, only a part of the green ones is available. */
static void unread_cells_are_not_counted(void **state)
{
	struct change_view *v = view_with_job(LEVEL_4, DISPATCH_DONE, "success");
	struct list_checks l = nothing_on_record(NULL);

	(void)state;
	add_cell(v, "XModel", TEST_SKIP, N_ATTRIBUTIONS);
	v->is_cut = true;
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " success [Passed]; outpost neutral []");
	add_cell(v, "Qwen", TEST_PASS, N_ATTRIBUTIONS);
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " success [Passed]; outpost neutral []");
	list_checks_release(&l);
	change_view_free(v);
}

static void a_test_without_a_result_is_counted(void **state)
{
	struct change_view *v = view_with_job(LEVEL_4, DISPATCH_DONE, "success");
	struct list_checks l = nothing_on_record(NULL);

	(void)state;
	add_cell(v, "Qwen", TEST_PASS, N_ATTRIBUTIONS);
	add_cell(v, "llama3", TEST_MISS, ATTRIBUTION_UNCLASSIFIED);
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " neutral [1 test without a result]; outpost neutral []");
	list_checks_release(&l);
	change_view_free(v);
}

/* The verdict said that all had passed; then a retest started and was cancelled. */
static void a_verdict_is_withdrawn_when_a_new_round_is_cancelled(void **state)
{
	struct change_view *v = view_with_job(LEVEL_2, DISPATCH_DONE, "success");
	struct list_checks l = nothing_on_record(NULL);
	struct check_plan p;

	(void)state;
	add_cell(v, "Qwen", TEST_PASS, N_ATTRIBUTIONS);
	check_plan_make(v, &l, &OPTIONS, &p);
	assert_int_equal(p.n, 1);
	record(&l, &p.list[0], 50, true);
	check_plan_release(&p);
	v->n_verdicts = 0;
	v->accelerators[0].dispatches[0].state = DISPATCH_QUEUED;
	ASSERT_PLAN(v, &l, &OPTIONS, "");
	v->accelerators[0].dispatches[0].state = DISPATCH_CANCELLED;
	ASSERT_PLAN(v, &l, &OPTIONS, "outpost neutral []");
	v->n_verdicts = 1;
	list_checks_release(&l);
	/* No check run is created for a run that did not finish. */
	l = nothing_on_record(NULL);
	ASSERT_PLAN(v, &l, &OPTIONS, "");
	list_checks_release(&l);
	change_view_free(v);
}

static void a_dispatch_that_ended_ends_its_job(void **state)
{
	static const struct {
		enum dispatch_state state;
		const char *expected;
	} cases[] = {
	    {DISPATCH_RUNNING, NAME " in_progress [Running]"},
	    {DISPATCH_DONE, NAME " in_progress [Running]"},
	    {DISPATCH_CANCELLED, NAME " neutral [Cancelled]"},
	    {DISPATCH_SUPERSEDED, NAME " neutral [Cancelled]"},
	    {DISPATCH_EXPIRED, NAME " neutral [No result]"},
	    {DISPATCH_FAILED, NAME " neutral [No result]"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct change_view *v = view_with_job(LEVEL_4, cases[i].state, NULL);
		struct list_checks l = nothing_on_record(NULL);
		char *got = planned(v, &l, &OPTIONS);

		assert_non_null(strstr(got, cases[i].expected));
		free(got);
		list_checks_release(&l);
		change_view_free(v);
	}
}

static void only_differences_are_written(void **state)
{
	struct change_view *v = view_with_job(LEVEL_4, DISPATCH_RUNNING, NULL);
	struct list_checks l = nothing_on_record(NULL);
	struct job_view *j = &v->accelerators[0].jobs[0];
	struct check_plan p;
	struct verdict_view *w;

	(void)state;
	check_plan_make(v, &l, &OPTIONS, &p);
	assert_int_equal(p.n, 1);
	assert_string_equal(p.list[0].external_id, "900:4711");
	assert_string_equal(p.list[0].details_url, "https://outpost.example.org/jobs/7");
	record(&l, &p.list[0], 55, true);
	check_plan_release(&p);
	ASSERT_PLAN(v, &l, &OPTIONS, "");

	/* it completes: overwritten; then it is red with a place; then it runs again: a new one */
	j->status = JOB_COMPLETED;
	j->conclusion = xstrdup("failure");
	w = add_cell(v, "a", TEST_FAIL, ATTRIBUTION_NEW);
	w->file = xstrdup("test/test_a.py");
	w->line = 12;
	check_plan_make(v, &l, &OPTIONS, &p);
	assert_int_equal(p.n, 1);
	assert_int_equal(p.list[0].check_id, 55);
	assert_false(p.list[0].is_recreated);
	assert_int_equal(p.list[0].output.n_annotations, 1);
	assert_string_equal(p.list[0].output.annotations[0].level, "failure");
	free(l.list[0].head_sha);
	free(l.list[0].name);
	free(l.list[0].accelerator);
	l.n = 0;
	record(&l, &p.list[0], 55, true);
	check_plan_release(&p);
	ASSERT_PLAN(v, &l, &OPTIONS, "");
	w->attribution = ATTRIBUTION_BASE;
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " neutral anew [1 failure, known, flaky or on the base as well]");
	j->status = JOB_IN_PROGRESS;
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " in_progress anew [Running]");
	list_checks_release(&l);
	change_view_free(v);
}

static void a_check_run_that_is_no_longer_requested_is_closed(void **state)
{
	struct change_view *v = view_with_job(LEVEL_3, DISPATCH_RUNNING, NULL);
	struct list_checks l = nothing_on_record("ciflow/crcr/npu");
	struct check_plan p;

	(void)state;
	check_plan_make(v, &l, &OPTIONS, &p);
	record(&l, &p.list[0], 55, true);
	check_plan_release(&p);
	strv_free(l.labels);
	l.labels = strv_copy(NULL);
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " neutral [Not asked for any more]");
	l.list[0].is_of_head = false;
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " cancelled [Superseded]");
	l.list[0].is_completed = true;
	ASSERT_PLAN(v, &l, &OPTIONS, "");
	list_checks_release(&l);
	change_view_free(v);
}

static void the_verdict_is_written_when_all_have_reported(void **state)
{
	struct change_view *v = view_with_job(LEVEL_2, DISPATCH_RUNNING, "success");
	struct list_checks l = nothing_on_record(NULL);

	(void)state;
	add_cell(v, "a", TEST_PASS, N_ATTRIBUTIONS);
	ASSERT_PLAN(v, &l, &OPTIONS, "");
	v->accelerators[0].dispatches[0].state = DISPATCH_DONE;
	ASSERT_PLAN(v, &l, &OPTIONS, CHECK_VERDICT_NAME " neutral []");
	v->accelerators[0].level = LEVEL_1;
	ASSERT_PLAN(v, &l, &OPTIONS, "");
	list_checks_release(&l);
	change_view_free(v);
}

static void two_jobs_of_one_name_have_separate_check_runs(void **state)
{
	struct change_view *v = view_with_job(LEVEL_4, DISPATCH_RUNNING, NULL);
	struct list_checks l = nothing_on_record(NULL);
	struct accelerator_view *a = &v->accelerators[0];
	struct job_view *j = VIEW_PUSH(a->jobs, a->n_jobs);

	(void)state;
	*j = (struct job_view){.id = 9,
	    .workflow = xstrdup("ci"),
	    .name = xstrdup("test"),
	    .run_id = xstrdup("901"),
	    .dispatch_id = xstrdup("other"),
	    .runner = xstrdup("lab")};
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " in_progress [Running]; outpost/npu/ci/test in_progress [Running]");
	free(j->dispatch_id);
	j->dispatch_id = xstrdup(a->dispatches[0].id);
	free(j->runner);
	j->runner = xstrdup(a->dispatches[0].runner);
	ASSERT_PLAN(v, &l, &OPTIONS, NAME " in_progress [Running]; " NAME " (npu, ci) in_progress [Running]");
	list_checks_release(&l);
	change_view_free(v);
}

/* No file name of a vendor leaves the tree, and the vendor's text stays text. */
static void hostile_places_and_words_stay_text(void **state)
{
	static const char *const places[] = {"/etc/passwd", "../x", "a/../../x", "a/..", "a\nb", "", "..", "a\\b",
	    "a\xc2\x85x", "\xe2\x80\xaeyp.x", "a\xff"};
	struct change_view *v = view_with_job(LEVEL_4, DISPATCH_RUNNING, "failure");
	struct list_checks l = nothing_on_record(NULL);
	struct check_plan p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct verdict_view *w = add_cell(v, "a", TEST_FAIL, ATTRIBUTION_NEW);

		w->file = xstrdup(places[i]);
		w->line = 1;
		w->message = xstrdup("`@all` <img src=x> [x](javascript:1)");
	}
	check_plan_make(v, &l, &OPTIONS, &p);
	assert_int_equal(p.n, 1);
	assert_int_equal(p.list[0].output.n_annotations, 0);
	assert_non_null(strstr(p.list[0].output.summary, "`` `@all` <img src=x> [x](javascript:1) ``"));
	check_plan_release(&p);
	list_checks_release(&l);
	change_view_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(level_and_label_decide_which_check_runs_exist),
	    cmocka_unit_test(conclusions_follow_results_and_attributions),
	    cmocka_unit_test(results_after_a_cancel_conclude_neutral),
	    cmocka_unit_test(l3_may_fail_and_the_unhealthy_never),
	    cmocka_unit_test(a_red_job_whose_cell_names_another_job),
	    cmocka_unit_test(unread_cells_are_not_counted),
	    cmocka_unit_test(a_test_without_a_result_is_counted),
	    cmocka_unit_test(a_verdict_is_withdrawn_when_a_new_round_is_cancelled),
	    cmocka_unit_test(a_dispatch_that_ended_ends_its_job),
	    cmocka_unit_test(only_differences_are_written),
	    cmocka_unit_test(a_check_run_that_is_no_longer_requested_is_closed),
	    cmocka_unit_test(the_verdict_is_written_when_all_have_reported),
	    cmocka_unit_test(two_jobs_of_one_name_have_separate_check_runs),
	    cmocka_unit_test(hostile_places_and_words_stay_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
