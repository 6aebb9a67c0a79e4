/* Which experiments are planned, when they start, how they end, and which events end them. */
#include "experiments_rig.h"

#include "views/accelerator_page.h"
#include "views/dashboard.h"

#define BASE   HEAD_C
#define HEAD_D "dddddddddddddddddddddddddddddddddddddddd"

/* ---- planned and sent ---- */

static void a_red_test_runs_again_on_both_sides(void **state)
{
	struct claim_outbox c;
	const struct outbox_row *o;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1", "t2"), 0);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	need(HEAD_A, "t2", 0, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]; ci base r1 started [t1]");
	ASSERT_TEXT("SELECT group_concat(kind || ' ' || head_sha || ' ' || ref, '; ') FROM change"
		    " WHERE kind = 'experiment'",
	    "experiment " HEAD_A " refs/pull/1/head; experiment " BASE " refs/heads/main");
	c = rig_claim(REQUESTS, T0 + MINUTE);
	assert_int_equal(c.n, 2);
	o = &c.rows[0];
	assert_string_equal(o->event_type, "experiment");
	assert_string_equal(o->sent_action, "experiment");
	assert_string_equal(o->target, "Ascend/pytorch");
	assert_string_equal(o->accelerators[0], "npu");
	assert_string_equal(o->head_sha, HEAD_A);
	assert_int_equal(o->number, 1);
	assert_non_null(o->experiment);
	assert_int_equal(o->experiment->side, EXPERIMENT_HEAD);
	assert_string_equal(o->experiment->tests[0], "unit/t1");
	assert_null(o->experiment->tests[1]);
	assert_string_equal(o->experiment->jobs[0], "test");
	assert_int_equal(c.rows[1].experiment->side, EXPERIMENT_BASE);
	assert_string_equal(c.rows[1].experiment->sha, BASE);
	claim_outbox_release(&c);
}

/* For /metrics: counts each state that an experiment enters, even after the experiment was deleted. */
static void experiments_are_counted(void **state)
{
	struct get_totals t = {.now_ms = T0};

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE);
	change_sql("DELETE FROM experiment");
	ASK_OK(store_get_totals, &t);
	for (int i = 0; i < N_EXPERIMENT_STATES; i++)
		assert_int_equal(t.n_experiments[i], strstr("planned started done", experiment_state_name(i)) != NULL);
}

/* The accelerator's figures and the list of running dispatches cover first runs only. */
static void an_experiment_counts_neither_as_a_missed_deadline_nor_as_a_run(void **state)
{
	struct get_figures f = {.only = "npu", .now_ms = T0 + DAY};
	struct get_dashboard g = {.repository = UPSTREAM, .branch = "main", .now_ms = T0 + 2 * MINUTE};

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASK_OK(store_get_dashboard, &g);
	assert_int_equal(g.view->n_running_total, 0);
	assert_int_equal(g.view->n_running, 0);
	dashboard_free(g.view);
	deadlines_pass(7 * HOUR);
	ASSERT_TEXT("SELECT state FROM experiment WHERE id = 1", "expired");
	ASK_OK(store_get_figures, &f);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.list[0].n_dispatches, 1);
	assert_int_equal(f.list[0].n_expired, 0);
	get_figures_release(&f);
}

static void the_delivery_of_an_experiment_has_the_shape_of_a_webhook(void **state)
{
	struct get_delivery g = {.guid = NULL};

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	g.guid = text_of("SELECT delivery_guid FROM dispatch WHERE event_type = 'experiment'");
	ASK_OK(store_get_delivery, &g);
	assert_non_null(strstr(g.delivery.body, "\"full_name\":\"" UPSTREAM "\""));
	assert_non_null(strstr(g.delivery.body, "\"head_sha\":\"" HEAD_A "\""));
	assert_non_null(strstr(g.delivery.body, "\"ref\":\"refs/pull/1/head\""));
	delivery_release(&g.delivery);
	free((char *)g.guid);
}

static void a_runner_without_reruns_gets_no_experiment(void **state)
{
	(void)state;
	reruns = RERUNS_NONE;
	mirror_npu(50, 2, 100, false);
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("");
	reruns = RERUNS_TESTS;
	mirror_npu(50, 2, 0, false); /* no share of the time */
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("");
}

/* The merge base comes from GitHub and may arrive later. */
static void the_base_side_starts_once_the_merge_base_is_known(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]; ci base r1 started [t1]");
}

static void many_tests_run_on_the_head_first(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"), 0);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1 t2 t3 t4 t5 t6 t7 t8 t9]");
	need(HEAD_A, "t%", 0, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1 t2 t3 t4 t5 t6 t7 t8 t9]");
	need(HEAD_A, "t3", NEEDS_BASE, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1 t2 t3 t4 t5 t6 t7 t8 t9];"
			   " ci base r1 started [t3]");
}

static void an_experiment_has_a_limit_of_tests_and_a_test_of_rounds(void **state)
{
	(void)state;
	mirror_npu(2, 2, 100, false);
	a_red_head(1, HEAD_A, "ci", NAMES("t1", "t2", "t3"), 0);
	need(HEAD_A, "t%", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1 t2]");
	/* two rounds of a test are two runs of the head and two of the merge base, which needs none here */
	for (int run = 1; run <= 8; run++) {
		end_run(number("SELECT MAX(id) FROM experiment"), NAMES("t1"), NAMES("t2", "t3"), run * 2 * MINUTE);
		need(HEAD_A, "t%", NEEDS_HEAD, run * 2 * MINUTE);
	}
	ASSERT_TEXT("SELECT group_concat(x, ' ') FROM (SELECT s.name || ' ' || COUNT(*) AS x"
		    " FROM experiment_test t JOIN test s ON s.id = t.test_id"
		    " GROUP BY s.name ORDER BY s.name) listed",
	    "t1 4 t2 4 t3 4");
}

#define T1_TO_T4 "t1", "t2", "t3", "t4"
#define T5_TO_T9 "t5", "t6", "t7", "t8", "t9"

/* Most tests of a job have the same message: a few of them run first, perhaps on another machine, then all. */
static void tests_of_a_bad_machine_are_sampled(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES(T1_TO_T4, T5_TO_T9), 0);
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_GOOD_MACHINE, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1 t2 t3 t4]");
	end_run(1, NULL, NAMES(T1_TO_T4), 2 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 done [t1 t2 t3 t4]; ci head r2 started [t5 t6 t7 t8 t9]");
}

/* A runner that runs everything needs no sample. */
static void a_whole_run_needs_no_sample(void **state)
{
	(void)state;
	reruns = RERUNS_WHOLE;
	mirror_npu(50, 2, 100, false);
	a_red_head(1, HEAD_A, "ci", NAMES(T1_TO_T4, T5_TO_T9), 0);
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_GOOD_MACHINE, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1 t2 t3 t4 t5 t6 t7 t8 t9]");
}

/* A machine is bad for hours, so each try waits twice as long as the one before it. */
static void a_bad_machine_is_tried_again_later(void **state)
{
#define R1 "ci head r1 done [t1 t2 t3 t4]; "
#define R2 R1 "ci head r2 done [t1 t2 t3 t4]; "
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES(T1_TO_T4, T5_TO_T9), 0);
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_GOOD_MACHINE, MINUTE);
	end_run(1, NAMES(T1_TO_T4), NULL, 2 * MINUTE);
	ASSERT_EXPERIMENTS(R1 "ci head r2 planned [t1 t2 t3 t4]");
	deadlines_pass(61 * MINUTE);
	ASSERT_EXPERIMENTS(R1 "ci head r2 planned [t1 t2 t3 t4]");
	deadlines_pass(63 * MINUTE);
	ASSERT_EXPERIMENTS(R1 "ci head r2 started [t1 t2 t3 t4]");
	end_run(2, NAMES(T1_TO_T4), NULL, 70 * MINUTE);
	deadlines_pass(188 * MINUTE);
	ASSERT_EXPERIMENTS(R2 "ci head r3 planned [t1 t2 t3 t4]");
	deadlines_pass(191 * MINUTE);
	ASSERT_EXPERIMENTS(R2 "ci head r3 started [t1 t2 t3 t4]");
	end_run(3, NULL, NAMES(T1_TO_T4), 195 * MINUTE);
	ASSERT_EXPERIMENTS(R2 "ci head r3 done [t1 t2 t3 t4]; "
			      "ci head r4 started [t5 t6 t7 t8 t9]");
#undef R1
#undef R2
}

/* The other tests follow a sample that passed, even if it was the last one that the limit allows. */
static void all_tests_follow_the_last_sample(void **state)
{
	(void)state;
	mirror_npu(50, 1, 100, false);
	a_red_head(1, HEAD_A, "ci", NAMES(T1_TO_T4, T5_TO_T9), 0);
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_GOOD_MACHINE, MINUTE);
	end_run(1, NAMES(T1_TO_T4), NULL, 2 * MINUTE);
	deadlines_pass(63 * MINUTE);
	end_run(2, NULL, NAMES(T1_TO_T4), 65 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 done [t1 t2 t3 t4]; ci head r2 done [t1 t2 t3 t4]; "
			   "ci head r3 started [t5 t6 t7 t8 t9]");
	end_run(3, NAMES(T5_TO_T9), NULL, 66 * MINUTE);
	assert_int_equal(number("SELECT COUNT(*) FROM experiment"), 3);
}

/* Tests that do not wait for a machine do not share the rounds of those that do. */
static void other_tests_keep_their_own_rounds(void **state)
{
	(void)state;
	mirror_npu(50, 1, 100, false);
	a_red_head(1, HEAD_A, "ci", NAMES(T1_TO_T4), 0);
	need(HEAD_A, "t%", NEEDS_HEAD, MINUTE);
	/* the round of the head, and the one that the merge base does not need */
	end_run(1, NAMES(T1_TO_T4), NULL, 2 * MINUTE);
	need(HEAD_A, "t%", NEEDS_HEAD, 2 * MINUTE);
	end_run(2, NAMES(T1_TO_T4), NULL, 3 * MINUTE);
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_GOOD_MACHINE, 4 * MINUTE);
	end_run(3, NAMES(T1_TO_T4), NULL, 5 * MINUTE);
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_GOOD_MACHINE, 6 * MINUTE);
	need(HEAD_A, "t4", NEEDS_HEAD, 7 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 done [t1 t2 t3 t4]; ci head r2 done [t1 t2 t3 t4]; "
			   "ci head r3 done [t1 t2 t3 t4]; ci head r4 planned [t1 t2 t3]");
}

/* The merge base passes: the machine is good again, and the head need not wait. */
static void a_machine_that_is_good_again_is_used_at_once(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES(T1_TO_T4, T5_TO_T9), 0);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_GOOD_MACHINE, MINUTE);
	end_run(1, NAMES(T1_TO_T4), NULL, 2 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 done [t1 t2 t3 t4]; ci head r2 planned [t1 t2 t3 t4]; "
			   "ci base r1 started [t1 t2 t3 t4]");
	end_run(3, NULL, NAMES(T1_TO_T4), 4 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 done [t1 t2 t3 t4]; ci head r2 started [t1 t2 t3 t4]; "
			   "ci base r1 done [t1 t2 t3 t4]");
	end_run(2, NAMES(T1_TO_T4), NULL, 6 * MINUTE);
	deadlines_pass(130 * MINUTE);
	end_run(4, NAMES(T1_TO_T4), NULL, 131 * MINUTE);
	end_run(5, NULL, NAMES(T5_TO_T9), 133 * MINUTE); /* the others, on the merge base */
	assert_int_equal(number("SELECT COUNT(*) FROM verdict WHERE attribution = 'NEW'"), 9);
	assert_int_equal(number("SELECT COUNT(*) FROM experiment"), 5);
}

/* Failures that no machine causes do not wait with the others. */
static void others_do_not_wait_for_a_good_machine(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES(T1_TO_T4, T5_TO_T9), 0);
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_GOOD_MACHINE, MINUTE);
	end_run(1, NAMES(T1_TO_T4), NULL, 2 * MINUTE);
	need(HEAD_A, "t9", NEEDS_HEAD, 3 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 done [t1 t2 t3 t4]; ci head r2 started [t9]");
}

static void a_planned_experiment_follows_the_current_needs(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1", "t2"), 0);
	open_head(2, HEAD_B, "ci", NULL, 2 * SECOND); /* the runner is at work */
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	need(HEAD_A, "t2", 0, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 planned [t1]");
	need(HEAD_A, "t2", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 planned [t1 t2]");
	need(HEAD_A, "t%", 0, MINUTE);
	ASSERT_EXPERIMENTS("");
}

/* One merge base, two pull requests: both use an outcome, and only one experiment runs for it at a time. */
static void an_outcome_on_a_merge_base_is_reused(void **state)
{
	static const char OF_B[] = "SELECT COUNT(*) FROM experiment e JOIN change c"
				   " ON c.id = e.change_id WHERE e.side = 'base'"
				   " AND c.head_sha = '" HEAD_B "'";

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1", "t2"), 0);
	a_red_head(2, HEAD_B, "ci", NAMES("t1", "t2"), 0);
	base_is(HEAD_A, BASE);
	base_is(HEAD_B, BASE);
	change_sql("DELETE FROM attribution_due");
	need(HEAD_A, "t1", NEEDS_BASE, MINUTE);
	need(HEAD_B, "t1", NEEDS_BASE, MINUTE);
	ASSERT_EXPERIMENTS("ci base r1 started [t1]");
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE);
	assert_int_equal(number("SELECT COUNT(*) FROM attribution_due u JOIN change c"
				" ON c.id = u.change_id WHERE c.head_sha = '" HEAD_B "'"),
	    1);
	due_pass(3 * MINUTE);
	assert_int_equal(number(OF_B), 0);
}

static enum rerun_state rerun_of(const char *head, const char *test)
{
	struct change_view *v = rig_view_of(0, head);
	enum rerun_state found = N_RERUN_STATES;

	for (size_t i = 0; i < v->n_verdicts; i++)
		if (strcmp(v->verdicts[i].test, test) == 0)
			found = v->verdicts[i].rerun;
	change_view_free(v);
	return found;
}

/* Its verdict changes when the other's experiment on their merge base ends. The comment shows this until then, and is
 * updated when the experiment has ended, even if the verdict did not change. */
static void a_change_that_waits_for_the_experiment_of_another_is_re_running(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1", "t2"), 0);
	a_red_head(2, HEAD_B, "ci", NAMES("t1", "t2"), 0);
	a_red_head(3, HEAD_D, "lab", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	base_is(HEAD_B, BASE);
	base_is(HEAD_D, BASE);
	need(HEAD_A, "t1", NEEDS_BASE, MINUTE);
	need(HEAD_B, "t1", NEEDS_BASE, MINUTE);
	ASSERT_EXPERIMENTS("ci base r1 started [t1]");
	assert_int_equal(rerun_of(HEAD_B, "t1"), RERUN_PENDING);
	assert_int_equal(rerun_of(HEAD_B, "t2"), RERUN_NONE);
	/* the outcome on one runner is no evidence for the other */
	change_sql("UPDATE verdict SET needs = 2 WHERE change_id IN"
		   " (SELECT id FROM change WHERE head_sha = '" HEAD_D "')");
	assert_int_not_equal(rerun_of(HEAD_D, "t1"), RERUN_PENDING);
	change_sql("UPDATE verdict SET needs = 1 WHERE change_id IN"
		   " (SELECT id FROM change WHERE head_sha = '" HEAD_B "')");
	/* an experiment on the head would help, but not one on the merge base */
	assert_int_not_equal(rerun_of(HEAD_B, "t1"), RERUN_PENDING);
	change_sql("UPDATE verdict SET needs = 2 WHERE change_id IN"
		   " (SELECT id FROM change WHERE head_sha = '" HEAD_B "')");
	change_sql("UPDATE outbox SET state = 'sent' WHERE kind = 'comment'");
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE);
	ASSERT_TEXT("SELECT state FROM outbox WHERE kind = 'comment' AND number = 2", "due");
	assert_int_equal(rerun_of(HEAD_B, "t1"), RERUN_NONE);
}

/* Evidence counts per job: the outcome in the job of one runner is no evidence for the other. */
static void an_outcome_counts_for_its_own_runner(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	a_red_head(2, HEAD_B, "lab", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	base_is(HEAD_B, BASE);
	need(HEAD_A, "t1", NEEDS_BASE, MINUTE);
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE);
	need(HEAD_B, "t1", NEEDS_BASE, 3 * MINUTE);
	ASSERT_EXPERIMENTS("ci base r1 done [t1]; ci head r1 started [t1];"
			   " lab base r1 started [t1]");
}

/* A cell is the worst of all jobs that have the test, and each of them has to be decided. */
static void a_test_that_is_red_in_two_runners_runs_again_in_both(void **state)
{
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(1, HEAD_A, "lab", NULL, 2 * SECOND);
	free(rig_send(T0 + 3 * SECOND));
	id = text_of("SELECT id FROM dispatch WHERE runner = 'lab' AND event_type <> 'experiment'");
	end_job(&(struct job_end){.dispatch = id, .red = NAMES("t1"), .at = 4 * SECOND});
	free(id);
	change_sql("DELETE FROM experiment");
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	assert_int_equal(number("SELECT COUNT(DISTINCT runner) FROM experiment"), 2);
}

static void an_outcome_on_a_merge_base_counts_for_its_own_job(void **state)
{
	static const char OF_B[] = "SELECT COUNT(*) FROM experiment e JOIN change c"
				   " ON c.id = e.change_id WHERE e.side = 'base'"
				   " AND c.head_sha = '" HEAD_B "'";
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_BASE, MINUTE);
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE); /* in job `test` */
	a_red_head(2, HEAD_B, "ci", NAMES("t1"), 3 * MINUTE);
	base_is(HEAD_B, BASE);
	due_pass(4 * MINUTE);
	assert_int_equal(number(OF_B), 0);
	id = first_run_of(HEAD_B);
	end_job(
	    &(struct job_end){.dispatch = id, .name = "py312", .run_id = "2", .red = NAMES("t1"), .at = 5 * MINUTE});
	free(id);
	due_pass(6 * MINUTE);
	assert_int_equal(number(OF_B), 1);
}

struct seen_job {
	const char *workflow, *name;
	enum { PASSES, FAILS, LACKS } t1;
};

static void report_jobs(const char *dispatch, const struct seen_job *jobs, int64_t at)
{
	for (const struct seen_job *j = jobs; j->name; j++)
		end_job(&(struct job_end){.dispatch = dispatch,
		    .workflow = j->workflow,
		    .name = j->name,
		    .red = j->t1 == FAILS ? NAMES("t1") : NULL,
		    .green = j->t1 == PASSES ? NAMES("t1") : NAMES("t2"),
		    .at = at});
}

/* Attribution reads the outcome by the same rule that decides against another run of the merge base. */
static void a_job_of_an_experiment_matches_the_job_of_its_name(void **state)
{
	static const struct {
		const char *what;
		struct seen_job first[3], base[3];
		bool is_settled;
	} CASES[] = {
	    {"the same job", {{"CI", "test", FAILS}}, {{"CI", "test", PASSES}}, true},
	    {"two workflows have a job of that name", {{"More", "test", PASSES}, {"CI", "test", FAILS}},
		{{"CI", "test", PASSES}, {"More", "test", FAILS}}, true},
	    {"experiments have a workflow of their own", {{"CI", "py312", PASSES}, {"CI", "test", FAILS}},
		{{"Again", "test", PASSES}, {"Again", "py312", FAILS}}, true},
	    {"they have, and two jobs have that name", {{"More", "test", PASSES}, {"CI", "test", FAILS}},
		{{"Again", "test", PASSES}}, false},
	    {"a new name, and the test runs in one job", {{"CI", "test", FAILS}}, {{"CI", "again", PASSES}}, true},
	    {"a new name, and it runs in two", {{"CI", "py312", PASSES}, {"CI", "test", FAILS}},
		{{"CI", "again", PASSES}}, false},
	    {"another job of the change, which does not run the test", {{"CI", "py312", LACKS}, {"CI", "test", FAILS}},
		{{"CI", "py312", PASSES}}, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		char *id;

		if (i) {
			experiments_teardown(state);
			experiments_setup(state);
		}
		open_head(1, HEAD_A, "lab", NULL, 0);
		base_is(HEAD_A, BASE);
		free(rig_send(T0));
		id = first_run_of(HEAD_A);
		report_jobs(id, CASES[i].first, MINUTE);
		free(id);
		ASSERT_EXPERIMENTS("lab head r1 started [t1]; lab base r1 started [t1]");
		id = run_of(2);
		report_jobs(id, CASES[i].base, 2 * MINUTE);
		free(id);
		end_run(1, NAMES("t1"), NULL, 3 * MINUTE);
		id = text_of("SELECT attribution || ' ' || (SELECT COUNT(*) FROM experiment"
			     " WHERE side = 'base') FROM verdict WHERE change_id = 1"
			     " AND attribution IS NOT NULL");
		if (strcmp(id, CASES[i].is_settled ? "NEW 1" : "UNCLASSIFIED 2") != 0)
			fail_msg("%s: %s", CASES[i].what, id);
		free(id);
	}
}

/* ---- how it ends ---- */

static void results_of_an_experiment_are_only_evidence(void **state)
{
	char *before, *after;
	const char *seen = "SELECT json_array((SELECT COUNT(*) FROM failure),"
			   " (SELECT COUNT(*) FROM run), (SELECT COUNT(*) FROM run_jobs),"
			   " (SELECT COUNT(*) FROM day), (SELECT COUNT(*) FROM number_day),"
			   " (SELECT COUNT(*) FROM platform_test),"
			   " (SELECT COUNT(*) FROM history_run), (SELECT COUNT(*) FROM red_episode),"
			   " (SELECT group_concat(n) FROM counter WHERE name LIKE 'dispatches%'))";

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	before = text_of(seen);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	end_run(1, NAMES("t1", "t9"), NULL, 2 * MINUTE);
	ASSERT_TEXT("SELECT state FROM experiment WHERE id = 1", "done");
	ASSERT_TEXT("SELECT group_concat(v.status) FROM experiment e CROSS JOIN cell v"
		    " ON v.change_id = e.run_change_id WHERE e.id = 1",
	    "FAIL,FAIL");
	ASSERT_CELLS(HEAD_A, "npu unit/t1 FAIL");
	after = text_of(seen);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* A vendor that reopens the job of each side before the other ends would move both deadlines without end. */
static void a_side_waits_for_the_other_for_a_limited_time(void **state)
{
	static const char OF_HEAD[] = "SELECT state FROM experiment WHERE side = 'head'";
	char *head;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	head = run_of(1);
	end_job(&(struct job_end){.dispatch = head, .run_id = "1", .red = NAMES("t1"), .at = 2 * MINUTE});
	ASSERT_TEXT(OF_HEAD, "started");
	end_job(&(struct job_end){.dispatch = head, .run_id = "1", .attempt = 2, .red = NAMES("t1"), .at = 7 * HOUR});
	ASSERT_TEXT(OF_HEAD, "done");
	free(head);
}

static void an_experiment_ends_as_its_dispatch_does(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	deadlines_pass(7 * HOUR);
	ASSERT_TEXT("SELECT state || ': ' || reason FROM experiment WHERE id = 1", "expired: did not start within 2h");
	/* a late report is evidence all the same */
	end_run(1, NULL, NAMES("t1"), 8 * HOUR);
	ASSERT_TEXT("SELECT state FROM experiment WHERE id = 1", "done");
}

/* No change waits for it any more, but the vendor's machine may still be running it. */
static void the_vendor_is_notified_when_an_experiment_times_out(void **state)
{
	(void)state;
	mirror_npu(50, 1, 100, false);
	a_red_head(1, HEAD_A, "lab", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	free(rig_send(T0 + MINUTE));
	deadlines_pass(7 * HOUR);
	ASSERT_EXPERIMENTS("lab head r1 expired [t1]");
	ASSERT_SENT(T0 + 7 * HOUR, "webhook_cancel https://ci.example.org/hook[npu] experiment");
}

/* The artifact is a dashboard, the same for every run. */
static void a_url_that_first_runs_share_does_not_void_an_experiment(void **state)
{
	static const char URL[] = "https://ci.example.org/dashboard";
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	a_red_head(2, HEAD_B, "ci", NAMES("t1"), 0);
	change_sql("UPDATE job SET artifact_url = 'https://ci.example.org/dashboard'");
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	id = run_of(1);
	end_job(&(struct job_end){.dispatch = id, .artifact = URL, .red = NAMES("t1"), .at = 2 * MINUTE});
	ASSERT_TEXT("SELECT state FROM experiment WHERE id = 1", "done");
	free(id);
}

static void an_experiment_that_cannot_be_sent_expires(void **state)
{
	struct claim_outbox c;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	c = rig_claim(REQUESTS, T0 + MINUTE);
	rig_done(&c.rows[0], OUTBOX_DEAD, 0);
	claim_outbox_release(&c);
	ASSERT_TEXT("SELECT state || ': ' || reason FROM experiment WHERE id = 1", "expired: 404 Not Found");
}

/* Machines are busy or the budget is spent for an hour: then the verdict is final, until a person asks again. */
static void an_experiment_that_never_starts_expires_and_is_not_planned_again(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(2, HEAD_B, "ci", NULL, 2 * SECOND);
	change_sql("UPDATE dispatch SET next_due_ms = NULL");
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	deadlines_pass(6 * HOUR);
	ASSERT_EXPERIMENTS("ci head r1 planned [t1]");
	deadlines_pass(6 * HOUR + MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 expired [t1]");
	need(HEAD_A, "t1", NEEDS_HEAD, 7 * HOUR);
	ASSERT_EXPERIMENTS("ci head r1 expired [t1]");
	/* the expired experiment explained an older run */
	change_sql("UPDATE experiment SET dispatch_id = 'older'");
	need(HEAD_A, "t1", NEEDS_HEAD, 7 * HOUR);
	ASSERT_EXPERIMENTS("ci head r1 expired [t1]; ci head r2 planned [t1]");
}

/* ---- results that prove nothing ---- */

struct proof {
	const char *first_environment, *environment;
	bool is_first_artifact; /* the same as the first run's */
	const char *run_id;
	const char *reason; /* NULL: it proves something */
};

static void results_are_evidence_only_on_the_same_commit_and_machine(void **state)
{
	static const struct proof cases[] = {
	    {NULL, NULL, false, NULL, NULL},
	    {NULL, "{\"torch_commit\": \"" HEAD_A "\"}", false, NULL, NULL},
	    {NULL, "{\"torch_commit\": \"aaaaaaaaaa\"}", false, NULL, NULL},
	    {NULL, "{\"torch_commit\": \"unknown\"}", false, NULL, NULL},
	    {NULL, "{\"torch_commit\": \"" HEAD_B "\"}", false, NULL, "it tested commit " HEAD_B " instead"},
	    {"{\"device\": \"910B\"}", "{\"device\": \"910B\"}", false, NULL, NULL},
	    {"{\"device\": \"910B\"}", "{\"device\": \"310P\"}", false, NULL, "it ran on another device: 310P"},
	    {"{\"device\": \"910B\"}", "{\"os\": \"Ubuntu\"}", false, NULL, NULL},
	    {"{\"extension\": {\"version\": \"2.10\"}}", "{\"extension\": {\"version\": \"2.11\"}}", false, NULL,
		"it ran with another version of the extension: 2.11"},
	    /* a vendor's text is cut between two characters: each of these has two bytes */
	    {"{\"device\": \"910B\"}", "{\"device\": \"xüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü\"}", false, NULL,
		"it ran on another device: xüüüüüüüüüüüüüüüüüüüüüüüüüüüüü…"},
	    {NULL, NULL, true, NULL, "the first run was reported once more"},
	    {NULL, NULL, false, "first-run", "the first run was reported once more"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct proof *p = &cases[i];
		char head[41], first[64], *id, *reason;

		/* the first letters stay: the commit above is a prefix of this head */
		snprintf(head, sizeof(head), "%s", HEAD_A);
		if (!p->environment || !strstr(p->environment, "torch_commit"))
			snprintf(head + 38, 3, "%02zu", i);
		snprintf(first, sizeof(first), "https://ci.example.org/first-%zu.xml", i);
		open_head((int64_t)i + 1, head, "ci", NULL, (int64_t)i * HOUR);
		free(rig_send(T0 + (int64_t)i * HOUR));
		id = first_run_of(head);
		end_job(&(struct job_end){.dispatch = id,
		    .run_id = "first-run",
		    .artifact = first,
		    .red = NAMES("t1"),
		    .environment = p->first_environment,
		    .attempt = 1 + (int)i,
		    .at = (int64_t)i * HOUR + SECOND});
		free(id);
		need(head, "t1", NEEDS_HEAD, (int64_t)i * HOUR + 2 * SECOND);
		id = run_of(number("SELECT MAX(id) FROM experiment"));
		assert_non_null(id);
		end_job(&(struct job_end){.dispatch = id,
		    .run_id = p->run_id,
		    .artifact = p->is_first_artifact ? first : NULL,
		    .red = NAMES("t1"),
		    .environment = p->environment,
		    .attempt = 1 + (int)i,
		    .at = (int64_t)i * HOUR + MINUTE});
		reason = text_of("SELECT CASE state WHEN 'done' THEN '' ELSE state || ': '"
				 " || reason END FROM experiment WHERE run_change_id ="
				 " (SELECT change_id FROM job ORDER BY id DESC LIMIT 1)");
		if (p->reason ? !strstr(reason, p->reason) : reason[0] != '\0')
			fail_msg("case %zu: %s", i, reason);
		free(reason);
		free(id);
		change_sql("UPDATE pull SET state = 'closed'");
		change_sql("UPDATE change SET state = 'closed' WHERE kind = 'pull_request'");
		change_sql("DELETE FROM experiment WHERE state = 'planned'");
		change_sql("UPDATE experiment SET state = 'cancelled' WHERE state = 'started'");
		change_sql("UPDATE change SET head_sha = 'x' || id");
	}
}

/* A result counts once the other side, which runs at the same time, has ended in any way. */
static void both_sides_count_together(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]; ci base r1 started [t1]");
	deadlines_pass(7 * HOUR);
	ASSERT_EXPERIMENTS("ci head r1 done [t1]; ci base r1 expired [t1]");
}

/* A machine reports each lease separately, and the other side may wait long for a machine. */
static void a_side_on_a_machine_counts_by_itself(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE);
	ASSERT_TEXT("SELECT state FROM experiment WHERE id = 1", "done");
}

/* The outcome on the merge base belongs to another pull request, and its vendor reports that run for this head. */
static void a_run_of_a_merge_base_is_no_evidence_about_a_head(void **state)
{
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	a_red_head(2, HEAD_B, "ci", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	base_is(HEAD_B, BASE);
	need(HEAD_A, "t1", NEEDS_BASE, MINUTE);
	id = run_of(1);
	end_job(&(struct job_end){.dispatch = id, .run_id = "77", .green = NAMES("t1"), .at = 2 * MINUTE});
	free(id);
	ASSERT_TEXT("SELECT state FROM experiment WHERE id = 1", "done");
	need(HEAD_B, "t1", NEEDS_HEAD, 3 * MINUTE);
	id = text_of("SELECT x.id FROM experiment e JOIN dispatch x"
		     " ON x.change_id = e.run_change_id JOIN change c ON c.id = e.change_id"
		     " WHERE c.head_sha = '" HEAD_B "' AND e.side = 'head'");
	end_job(&(struct job_end){.dispatch = id, .run_id = "77", .green = NAMES("t1"), .at = 4 * MINUTE});
	assert_int_equal(number("SELECT COUNT(*) FROM experiment WHERE state = 'void'"), 2);
	free(id);
}

/* The pull request with this merge base is judged again at once: the red run of its merge base no longer counts. */
static void a_run_that_is_reported_for_two_pull_requests_excuses_neither(void **state)
{
	static const struct {
		const char *first, *second; /* PR 1 has the base side, PR 2 the head */
	} ORDERS[] = {{"base", "head"}, {"head", "base"}};

	for (size_t i = 0; i < ARRAY_LEN(ORDERS); i++) {
		char *ids[2];

		if (i) {
			experiments_teardown(state);
			experiments_setup(state);
		}
		a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
		a_red_head(2, HEAD_B, "ci", NAMES("t1"), 0);
		base_is(HEAD_A, BASE);
		base_is(HEAD_B, BASE);
		change_sql("UPDATE verdict SET attribution = NULL WHERE change_id = 2");
		need(HEAD_A, "t1", NEEDS_BASE, MINUTE);
		change_sql("UPDATE verdict SET attribution = 'UNCLASSIFIED' WHERE change_id = 2");
		need(HEAD_B, "t1", NEEDS_HEAD, MINUTE);
		for (int k = 0; k < 2; k++)
			ids[k] = db_text(look,
			    "SELECT x.id FROM experiment e JOIN dispatch x"
			    " ON x.change_id = e.run_change_id WHERE e.side = ?1 ORDER BY e.id "
			    "LIMIT 1",
			    V_TEXT(k ? ORDERS[i].second : ORDERS[i].first));
		end_job(&(struct job_end){.dispatch = ids[0], .run_id = "77", .red = NAMES("t1"), .at = 2 * MINUTE});
		if (i == 0)
			ASSERT_TEXT("SELECT reason FROM verdict WHERE change_id = 1",
			    "red on the merge base once, which may be chance");
		end_job(&(struct job_end){.dispatch = ids[1], .run_id = "77", .red = NAMES("t1"), .at = 4 * MINUTE});
		assert_int_equal(number("SELECT COUNT(*) FROM experiment WHERE state = 'void'"), 2);
		assert_int_equal(number("SELECT COUNT(*) FROM verdict WHERE change_id = 1 AND "
					"attribution = 'UNCLASSIFIED' AND reason NOT LIKE 'red on%'"),
		    1);
		ASSERT_TEXT("SELECT attribution || needs FROM verdict WHERE change_id = 2"
			    " AND attribution = 'BASE'",
		    "");
		free(ids[0]);
		free(ids[1]);
	}
}

/* Two rounds on the same commit are two runs: a run that is reported for both counts once. */
static void a_run_that_is_reported_for_two_rounds_counts_once(void **state)
{
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	for (int n = 1; n <= 2; n++) {
		id = run_of(n);
		end_job(&(struct job_end){.dispatch = id, .run_id = "77", .red = NAMES("t1"), .at = (n + 1) * MINUTE});
		free(id);
		need(HEAD_A, "t1", NEEDS_HEAD, (n + 2) * MINUTE);
	}
	ASSERT_EXPERIMENTS("ci head r1 done [t1]; ci head r2 void [t1]");
	ASSERT_TEXT(
	    "SELECT reason FROM experiment WHERE id = 2", "the same run was reported for an earlier experiment");
}

/* The vendor ran one side and reports it for both, so Outpost cannot know which side ran. */
static void a_run_that_is_reported_for_both_sides_proves_neither(void **state)
{
	char *head, *base;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	head = run_of(1);
	base = run_of(2);
	end_job(&(struct job_end){.dispatch = base, .run_id = "77", .red = NAMES("t1"), .at = 2 * MINUTE});
	ASSERT_TEXT("SELECT state FROM experiment WHERE id = 2", "started"); /* both count together */
	end_job(&(struct job_end){.dispatch = head, .run_id = "77", .red = NAMES("t1"), .at = 3 * MINUTE});
	ASSERT_TEXT("SELECT group_concat(DISTINCT state || ': ' || reason) FROM experiment"
		    " WHERE id < 3",
	    "void: the same run was reported for the head and for the merge base");
	free(head);
	free(base);
}

static void a_vendor_that_ignores_the_list_proves_nothing(void **state)
{
	struct list_dispatches list = {.limit = 10};
	struct get_accelerator_page page = {.name = "npu", .now_ms = T0 + HOUR};

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	end_run(1, NULL, NAMES("t7", "t8"), 2 * MINUTE);
	deadlines_pass(3 * MINUTE);
	ASSERT_TEXT("SELECT state || ': ' || reason FROM experiment WHERE id = 1",
	    "void: none of its tests was reported with a result");
	ASK_OK(store_list_dispatches, &list);
	assert_int_equal(list.n, 3); /* finding 9: the next try, this one, the first run */
	assert_null(list.list[0].void_reason);
	assert_string_equal(list.list[1].state, "done");
	assert_string_equal(list.list[1].void_reason, "none of its tests was reported with a result");
	assert_null(list.list[2].void_reason);
	list_dispatches_release(&list);
	ASK_OK(store_get_accelerator_page, &page); /* finding 10: the vendor's page shows it */
	assert_int_equal(page.experiments.n_void, 1);
	assert_int_equal(page.experiments.n_done + page.experiments.n_expired, 0);
	assert_string_equal(page.experiments.newest_loss, "none of its tests was reported with a result");
	get_accelerator_page_release(&page);
}

/* The jobs of CRCR report one by one: between two of them the run looks finished. */
static void the_job_with_its_tests_may_arrive_later(void **state)
{
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	id = run_of(1);
	end_job(&(struct job_end){.dispatch = id, .name = "build", .run_id = "77", .at = 2 * MINUTE});
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
	deadlines_pass(2 * MINUTE + 14 * SECOND);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
	end_job(&(struct job_end){.dispatch = id, .run_id = "77", .green = NAMES("t1"), .at = 3 * MINUTE});
	ASSERT_TEXT("SELECT state FROM experiment WHERE id = 1", "done");
	free(id);
}

/* ---- events that end an experiment ---- */

static void a_held_head_stays_held(void **state)
{
	(void)state;
	open_head(1, HEAD_A, "ci", "first contribution", 0);
	change_sql("INSERT INTO test (id, suite, name, dtype) VALUES (1, 'unit', 't1', '')");
	change_sql("INSERT INTO verdict (change_id, accelerator, test_id, status, attribution, is_late)"
		   " SELECT id, 'npu', 1, 'FAIL', 'UNCLASSIFIED', 0 FROM change");
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	ASSERT_EXPERIMENTS("");
}

/* The release was withdrawn after the first run: code of this author must not run any more. */
static void a_withdrawn_release_ends_the_experiment(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	change_sql("UPDATE dispatch SET held_reason = 'first contribution'");
	change_sql("UPDATE change SET is_released = 1");
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
	change_sql("UPDATE change SET is_released = 0");
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]");
}

static void a_newer_head_cancels_the_experiment_and_notifies_the_vendor(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "lab", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	free(rig_send(T0 + MINUTE));
	rig_apply(&(struct rig_plan){
	    .kind = PLAN_START, .head = HEAD_B, .event_ms = T0 + 2 * MINUTE, .action = "synchronize"});
	ASSERT_EXPERIMENTS("lab head r1 cancelled [t1]; lab base r1 cancelled [t1]");
	ASSERT_TEXT("SELECT group_concat(DISTINCT state) FROM dispatch WHERE event_type = 'experiment'", "cancelled");
	ASSERT_SENT(T0 + 2 * MINUTE, "webhook_cancel https://ci.example.org/hook[npu] experiment;"
				     " webhook_cancel https://ci.example.org/hook[npu] experiment");
}

static void a_closed_pull_request_cancels_the_experiment_and_notifies_the_repository(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	free(rig_send(T0 + MINUTE));
	rig_close_pull(1, HEAD_A, 120);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]");
	/* one for the experiment, and one for the pull request's own dispatch */
	ASSERT_SENT(T0 + 2 * MINUTE, "github_closed Ascend/pytorch[npu] closed;"
				     " github_closed Ascend/pytorch[npu] closed");
	ASSERT_TEXT("SELECT group_concat(o.event_type) FROM outbox o WHERE kind = 'github_closed'"
		    " ORDER BY 1",
	    "experiment,pull_request");
	/* the reopen starts another run with rounds of its own */
	rig_start("reopened", HEAD_A, 180, wants, 1);
	free(rig_send(T0 + 3 * MINUTE));
	id = first_run_of(HEAD_A);
	end_job(&(struct job_end){.dispatch = id, .red = NAMES("t1"), .at = 4 * MINUTE});
	need(HEAD_A, "t1", NEEDS_HEAD, 4 * MINUTE);
	ASSERT_TEXT("SELECT state FROM experiment ORDER BY id DESC LIMIT 1", "started");
	free(id);
}

static void cancelling_an_unsent_experiment_notifies_no_vendor(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	need(HEAD_A, "t1", 0, 2 * MINUTE);
	ASSERT_SENT(T0 + 3 * MINUTE, "");
	ASSERT_TEXT("SELECT state || ': ' || reason FROM experiment", "cancelled: its tests are decided");
}

/* After a reload, Outpost checks the affected changes again, one by one. */
static void an_experiment_ends_with_its_runner(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	reruns = RERUNS_NONE;
	mirror_npu(50, 2, 100, false);
	due_pass(2 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]");
	ASSERT_TEXT("SELECT reason FROM experiment", "its runner takes no reruns any more");
	change_sql("DELETE FROM attribution_due");
	reruns = RERUNS_TESTS;
	mirror_npu(50, 2, 100, false);
	due_pass(3 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]; ci head r2 started [t1]");
	change_sql("DELETE FROM attribution_due");
	mirror_npu(50, 2, 100, true);
	due_pass(4 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]; ci head r2 cancelled [t1]");
	ASSERT_TEXT("SELECT reason FROM experiment WHERE id = 2", "its runner is not registered any more");
}

/* The first run used the old repository, so a run in another one explains nothing of it. */
static void an_experiment_ends_when_its_runner_moves(void **state)
{
	for (int i = 0; i < 2; i++) {
		if (i) {
			experiments_teardown(state);
			experiments_setup(state);
		}
		a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
		open_head(2, HEAD_B, "ci", NULL, 2 * SECOND); /* the runner is at work */
		need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
		ASSERT_EXPERIMENTS("ci head r1 planned [t1]");
		if (i)
			ci_kind = RUNNER_PULL;
		else
			ci_repository = "Ascend/another";
		mirror_npu(50, 2, 100, false);
		change_sql("UPDATE dispatch SET state = 'running' WHERE state = 'queued'");
		deadlines_pass(2 * MINUTE + SECOND); /* before it is checked */
		ASSERT_EXPERIMENTS("ci head r1 planned [t1]");
		due_pass(3 * MINUTE);
		ASSERT_EXPERIMENTS("");
	}
}

/* A reload that does not change the runners causes no work. */
static void a_reload_checks_only_the_changes_that_it_affects(void **state)
{
	static const char DUE[] = "SELECT group_concat(change_id) FROM attribution_due";

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	a_red_head(2, HEAD_B, "ci", NULL, 0); /* green */
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	change_sql("DELETE FROM attribution_due");
	mirror_npu(50, 2, 100, false);
	ASSERT_TEXT(DUE, "");
	reruns = RERUNS_WHOLE;
	mirror_npu(50, 2, 100, false); /* the same runners accept them */
	ASSERT_TEXT(DUE, "");
	reruns = RERUNS_NONE;
	mirror_npu(50, 2, 100, false);
	ASSERT_TEXT(DUE, "1");
	change_sql("DELETE FROM attribution_due");
	reruns = RERUNS_TESTS;
	mirror_npu(50, 2, 100, false);
	ASSERT_TEXT(DUE, "1");
}

static void a_retest_ends_the_experiment(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	rig_start("edited", HEAD_A, 120, wants, 1);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]");
	ASSERT_TEXT("SELECT reason FROM experiment", "the run that it explains counts no longer");
}

static void a_person_cancels_an_experiment(void **state)
{
	struct own_op o = {.head = HEAD_A, .call_off = "alice", .now_ms = T0 + 2 * MINUTE};

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	DO_OK(own_submit, &o);
	assert_int_equal(o.result, 1);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]");
	need(HEAD_A, "t1", NEEDS_HEAD, 3 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]");
	end_run(1, NULL, NAMES("t1"), 4 * MINUTE);
	struct get_job g = {.id = number("SELECT MAX(id) FROM job")};
	ASK_OK(store_get_job, &g);
	assert_string_equal(g.job->experiment.reason, "cancelled by alice");
	job_detail_free(g.job);
}

/* The other side does not start either when the merge base is found later. */
static void cancelling_ends_both_sides(void **state)
{
	struct own_op o = {.head = HEAD_A, .call_off = "alice", .now_ms = T0 + 2 * MINUTE};

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	DO_OK(own_submit, &o);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, 3 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]");
}

/* Cancelled experiments of earlier runs gave no result, so each run has all its rounds. */
static void a_cancelled_round_does_not_count(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	for (int i = 1; i <= 2; i++) {
		rig_start("edited", HEAD_A, 600 * i, wants, 1);
		free(rig_send(T0 + 10 * i * MINUTE));
		id = first_run_of(HEAD_A);
		end_job(&(struct job_end){.dispatch = id, .red = NAMES("t1"), .at = (10 * i + 1) * MINUTE});
		need(HEAD_A, "t1", NEEDS_HEAD, (10 * i + 2) * MINUTE);
		free(id);
	}
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]; ci head r2 cancelled [t1];"
			   " ci head r3 started [t1]");
}

/* A later job of the same run may decide the tests before the experiment has run: that does not count as a round.
 * Sixteen experiments on one side are the limit, so that a verdict that changes often does not start experiments
 * without end. */
static void an_unnecessary_experiment_does_not_count_as_a_round(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	for (int i = 1; i <= 18; i++) {
		need(HEAD_A, "t1", NEEDS_HEAD, 2 * i * MINUTE);
		assert_int_equal(number("SELECT COUNT(*) FROM experiment WHERE state = 'started'"), i <= 16 ? 1 : 0);
		need(HEAD_A, "t1", 0, (2 * i + 1) * MINUTE);
	}
	assert_int_equal(number("SELECT COUNT(*) FROM experiment"), 16);
}

/* A new round that waits for a person also holds the planned experiments. */
static void a_held_round_cancels_the_planned_experiment(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(2, HEAD_B, "ci", NULL, 2 * SECOND); /* the runner is at work */
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 planned [t1]");
	wants[0].held_reason = (char *)"first contribution";
	rig_start("edited", HEAD_A, 120, wants, 1);
	ASSERT_EXPERIMENTS("");
}

static void asks_for(const char *accelerator, const char *action, int64_t at)
{
	struct plan_want want = GITHUB_WANT("npu", "Ascend/pytorch");

	want.is_for_new_head = true;
	rig_apply(&(struct rig_plan){.kind = PLAN_UPDATE,
	    .number = 1,
	    .head = HEAD_A,
	    .event_ms = T0 + at,
	    .action = action,
	    .wants = &want,
	    .n_wants = accelerator ? 1 : 0});
}

/* It lost its label, became a draft or changed its base branch after the first run had ended. */
static void an_experiment_ends_when_the_pull_request_drops_the_accelerator(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	asks_for(NULL, "unlabeled", 2 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]");
	need(HEAD_A, "t1", NEEDS_HEAD, 3 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]");
	asks_for("npu", "labeled", 4 * MINUTE);
	need(HEAD_A, "t1", NEEDS_HEAD, 5 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 cancelled [t1]; ci head r2 started [t1]");
}

/* Later the rules need an experiment. */
static void a_dropped_accelerator_gets_no_experiment(void **state)
{
	char *drops[] = {(char *)"npu", NULL};

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	rig_apply(&(struct rig_plan){.kind = PLAN_UPDATE,
	    .number = 1,
	    .head = HEAD_A,
	    .event_ms = T0 + 2 * MINUTE,
	    .action = "converted_to_draft",
	    .sent_action = "closed",
	    .is_draft = true,
	    .drops = drops});
	need(HEAD_A, "t1", NEEDS_HEAD, 3 * MINUTE);
	ASSERT_EXPERIMENTS("");
}

/* Two pull requests have this head. */
static void an_experiment_continues_when_another_pull_request_still_wants_it(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(2, HEAD_A, "ci", NULL, 2 * SECOND);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	asks_for(NULL, "edited", 2 * MINUTE);
	need(HEAD_A, "t1", NEEDS_HEAD, 3 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
}

static void another_merge_base_ends_the_base_side(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	base_is(HEAD_A, HEAD_B);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]; ci base r1 cancelled [t1];"
			   " ci base r2 started [t1]");
}

/* ---- deletion with the change ---- */

static void experiment_rows_are_deleted_with_the_change(void **state)
{
	struct apply_retention r = {.results_before_ms = T0 + 100 * DAY};
	int n = 0;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	end_run(1, NAMES("t1"), NULL, 2 * MINUTE);
	change_sql("DELETE FROM outbox");
	change_sql("UPDATE pull SET state = 'closed'");
	do
		DO_OK(store_apply_retention, &r);
	while (r.has_more && ++n < 20);
	assert_int_equal(number("SELECT (SELECT COUNT(*) FROM change) + (SELECT COUNT(*) FROM job)"
				" + (SELECT COUNT(*) FROM verdict) + (SELECT COUNT(*) FROM experiment)"
				" + (SELECT COUNT(*) FROM experiment_test) + (SELECT COUNT(*) FROM dispatch)"
				" + (SELECT COUNT(*) FROM result) + (SELECT COUNT(*) FROM packed_job)"
				" + (SELECT COUNT(*) FROM test_list)"),
	    0);
	ASSERT_TEXT("SELECT group_concat(name || n) FROM counter WHERE n <> 0"
		    " AND name NOT LIKE 'deliver%' AND name NOT LIKE 'experiment.%'",
	    "");
}

#define T(test) cmocka_unit_test_setup_teardown(test, experiments_setup, experiments_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(a_red_test_runs_again_on_both_sides),
	    T(experiments_are_counted),
	    T(an_experiment_counts_neither_as_a_missed_deadline_nor_as_a_run),
	    T(the_delivery_of_an_experiment_has_the_shape_of_a_webhook),
	    T(a_runner_without_reruns_gets_no_experiment),
	    T(the_base_side_starts_once_the_merge_base_is_known),
	    T(many_tests_run_on_the_head_first),
	    T(an_experiment_has_a_limit_of_tests_and_a_test_of_rounds),
	    T(tests_of_a_bad_machine_are_sampled),
	    T(a_whole_run_needs_no_sample),
	    T(a_bad_machine_is_tried_again_later),
	    T(all_tests_follow_the_last_sample),
	    T(other_tests_keep_their_own_rounds),
	    T(a_machine_that_is_good_again_is_used_at_once),
	    T(others_do_not_wait_for_a_good_machine),
	    T(a_planned_experiment_follows_the_current_needs),
	    T(an_outcome_on_a_merge_base_is_reused),
	    T(a_change_that_waits_for_the_experiment_of_another_is_re_running),
	    T(an_outcome_counts_for_its_own_runner),
	    T(a_test_that_is_red_in_two_runners_runs_again_in_both),
	    T(an_outcome_on_a_merge_base_counts_for_its_own_job),
	    T(a_job_of_an_experiment_matches_the_job_of_its_name),
	    T(results_of_an_experiment_are_only_evidence),
	    T(an_experiment_ends_as_its_dispatch_does),
	    T(a_side_waits_for_the_other_for_a_limited_time),
	    T(the_vendor_is_notified_when_an_experiment_times_out),
	    T(a_url_that_first_runs_share_does_not_void_an_experiment),
	    T(an_experiment_that_cannot_be_sent_expires),
	    T(an_experiment_that_never_starts_expires_and_is_not_planned_again),
	    T(results_are_evidence_only_on_the_same_commit_and_machine),
	    T(both_sides_count_together),
	    T(a_side_on_a_machine_counts_by_itself),
	    T(a_run_of_a_merge_base_is_no_evidence_about_a_head),
	    T(a_run_that_is_reported_for_two_pull_requests_excuses_neither),
	    T(a_run_that_is_reported_for_two_rounds_counts_once),
	    T(a_run_that_is_reported_for_both_sides_proves_neither),
	    T(the_job_with_its_tests_may_arrive_later),
	    T(a_vendor_that_ignores_the_list_proves_nothing),
	    T(a_held_head_stays_held),
	    T(a_withdrawn_release_ends_the_experiment),
	    T(a_newer_head_cancels_the_experiment_and_notifies_the_vendor),
	    T(a_closed_pull_request_cancels_the_experiment_and_notifies_the_repository),
	    T(cancelling_an_unsent_experiment_notifies_no_vendor),
	    T(an_experiment_ends_with_its_runner),
	    T(an_experiment_ends_when_its_runner_moves),
	    T(a_reload_checks_only_the_changes_that_it_affects),
	    T(a_retest_ends_the_experiment),
	    T(a_person_cancels_an_experiment),
	    T(cancelling_ends_both_sides),
	    T(a_cancelled_round_does_not_count),
	    T(an_unnecessary_experiment_does_not_count_as_a_round),
	    T(a_held_round_cancels_the_planned_experiment),
	    T(an_experiment_ends_when_the_pull_request_drops_the_accelerator),
	    T(a_dropped_accelerator_gets_no_experiment),
	    T(an_experiment_continues_when_another_pull_request_still_wants_it),
	    T(another_merge_base_ends_the_base_side),
	    T(experiment_rows_are_deleted_with_the_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
