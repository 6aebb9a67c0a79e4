/* The notes on reruns in the cells of a pull request: pending, or why a helpful rerun gave no result. */
#include "experiments_rig.h"

#include "views/gauges.h"

#define BASE HEAD_C

/* "t1 void, t2 -": the red cells of a head, by name; "t1 void job" where a job shows it. free(). */
static char *reruns_of(const char *head)
{
	struct change_view *v = rig_view_of(0, head);
	struct buf text = BUF_INIT(4096);

	for (size_t i = 0; i < v->n_verdicts; i++) {
		const struct verdict_view *w = &v->verdicts[i];
		const char *name = rerun_state_name(w->rerun);

		if (!attribution_applies(w->status)) {
			assert_int_equal(w->rerun, RERUN_NONE);
			continue;
		}
		buf_appendf(
		    &text, "%s%s %s%s", text.len ? ", " : "", w->test, name ? name : "-", w->rerun_job ? " job" : "");
	}
	change_view_free(v);
	return buf_detach(&text);
}

#define ASSERT_RERUNS(expected)                                                                                        \
	do {                                                                                                           \
		char *reruns_ = reruns_of(HEAD_A);                                                                     \
		assert_string_equal(reruns_, expected);                                                                \
		free(reruns_);                                                                                         \
	} while (0)

static void a_red_head_of(const char *runner, const char *const *red) { a_red_head(1, HEAD_A, runner, red, 0); }

static void decided_and_unneeded_tests_have_no_note(void **state)
{
	(void)state;
	a_red_head_of("ci", NAMES("t1"));
	ASSERT_RERUNS("t1 -");
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_RERUNS("t1 pending");
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE); /* it is flaky */
	ASSERT_RERUNS("t1 -");
}

static void runners_without_reruns_have_no_note(void **state)
{
	(void)state;
	reruns = RERUNS_NONE;
	mirror_npu(50, 2, 100, false);
	a_red_head_of("ci", NAMES("t1"));
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_RERUNS("t1 -");
	mirror_npu(50, 2, 100, true); /* the accelerator was removed */
	ASSERT_RERUNS("t1 -");
}

static void a_rerun_waits_for_a_bad_machine(void **state)
{
	const char *const *tests = NAMES("t1", "t2", "t3", "t4", "t5");

	(void)state;
	a_red_head_of("ci", tests);
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_GOOD_MACHINE, MINUTE);
	ASSERT_RERUNS("t1 pending, t2 pending, t3 pending, t4 pending, t5 pending");
	end_run(1, tests, NULL, 2 * MINUTE);
	ASSERT_RERUNS("t1 later, t2 later, t3 later, t4 later, t5 later");
	deadlines_pass(63 * MINUTE);
	ASSERT_RERUNS("t1 pending, t2 pending, t3 pending, t4 pending, t5 pending");
}

/* Finding 3: six tests look like failures of a bad machine. Four of them run, and the others follow if these pass. */
static void the_tests_behind_a_sample_share_its_mark(void **state)
{
	(void)state;
	a_red_head_of("ci", NAMES("t1", "t2", "t3", "t4", "t5", "t6"));
	need(HEAD_A, "t%", NEEDS_HEAD | NEEDS_GOOD_MACHINE, MINUTE);
	ASSERT_RERUNS("t1 pending, t2 pending, t3 pending, t4 pending, t5 pending, t6 pending");
	end_run(1, NAMES("t1", "t2", "t3", "t4"), NULL, 2 * MINUTE);
	ASSERT_RERUNS("t1 later, t2 later, t3 later, t4 later, t5 later, t6 later");
	change_sql("UPDATE verdict SET needs = 6 WHERE test_id = (SELECT id FROM test WHERE name = 't6')");
	ASSERT_RERUNS("t1 later, t2 later, t3 later, t4 later, t5 later, t6 -");
	change_sql("UPDATE verdict SET needs = 5 WHERE test_id = (SELECT id FROM test WHERE name = 't6')");
	deadlines_pass(66 * MINUTE);
	ASSERT_RERUNS("t1 pending, t2 pending, t3 pending, t4 pending, t5 pending, t6 pending");
	end_run(2, NULL, NAMES("t1", "t2", "t3", "t4"), 70 * MINUTE);
	ASSERT_RERUNS("t1 -, t2 -, t3 -, t4 -, t5 pending, t6 pending");
}

/* A sample represents only tests that failed on its own runner. */
static void a_sample_of_another_runner_marks_nothing(void **state)
{
	(void)state;
	a_red_head_of("ci", NAMES("t1"));
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_GOOD_MACHINE, MINUTE);
	ASSERT_RERUNS("t1 pending");
	change_sql("UPDATE experiment SET runner = 'lab'");
	change_sql("DELETE FROM experiment_test");
	change_sql("INSERT INTO experiment_test VALUES (1, 999, 1)");
	ASSERT_RERUNS("t1 over_limit"); /* as if it had never been planned */
	change_sql("UPDATE experiment SET runner = 'ci'");
	ASSERT_RERUNS("t1 pending");
	change_sql("UPDATE experiment_test SET waits = 0");
	ASSERT_RERUNS("t1 -"); /* no sample */
}

/* Finding 4: the vendor did not answer for t1, whether or not another test of the runner waits for hours. */
static void a_waiting_test_does_not_hide_notes_of_others(void **state)
{
	(void)state;
	mirror_npu(50, 1, 100, false);
	a_red_head_of("ci", NAMES("t1", "m1"));
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	change_sql("UPDATE experiment SET state = 'expired', ended_ms = expires_ms");
	change_sql("INSERT INTO experiment (change_id, accelerator, runner, dispatch_id, cause, round,"
		   " side, sha, state, created_ms, expires_ms, not_before_ms) SELECT change_id,"
		   " accelerator, runner, dispatch_id, 'auto', 2, 'head', sha, 'planned', created_ms,"
		   " expires_ms, expires_ms FROM experiment");
	change_sql("INSERT INTO experiment_test SELECT 2, id, 1 FROM test WHERE name = 'm1'");
	change_sql("UPDATE verdict SET needs = 5 WHERE test_id = (SELECT id FROM test WHERE name = 'm1')");
	ASSERT_RERUNS("m1 later, t1 no_answer");
	change_sql("UPDATE experiment SET not_before_ms = 0 WHERE id = 2");
	ASSERT_RERUNS("m1 pending, t1 -"); /* a further round may run it */
}

static void the_note_says_that_the_vendor_did_not_answer(void **state)
{
	(void)state;
	mirror_npu(50, 1, 100, false);
	a_red_head_of("ci", NAMES("t1"));
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	deadlines_pass(7 * HOUR);
	need(HEAD_A, "t1", NEEDS_HEAD, 7 * HOUR + MINUTE);
	ASSERT_RERUNS("t1 no_answer");
	rig_close_pull(1, HEAD_A, 8 * 3600); /* nothing of a closed pull request runs again */
	ASSERT_RERUNS("t1 -");
}

static void the_note_says_that_no_machine_was_free(void **state)
{
	(void)state;
	a_red_head_of("ci", NAMES("t1"));
	open_head(2, HEAD_B, "ci", NULL, 2 * SECOND);
	change_sql("UPDATE dispatch SET next_due_ms = NULL");
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_RERUNS("t1 pending");
	deadlines_pass(6 * HOUR + MINUTE);
	need(HEAD_A, "t1", NEEDS_HEAD, 6 * HOUR + 2 * MINUTE);
	ASSERT_RERUNS("t1 no_room");
}

/* It had started and waits again: this is not a missing answer of the vendor. */
static void the_note_says_that_a_rerun_that_made_way_found_no_machine(void **state)
{
	struct get_gauges g = {.now_ms = T0 + 7 * HOUR};

	(void)state;
	a_red_head_of("ci", NAMES("t1"));
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	change_sql("UPDATE accelerator SET experiment_share = 0"); /* nothing starts it again */
	change_sql("UPDATE experiment SET state = 'planned', started_ms = NULL");
	change_sql("UPDATE dispatch SET state = 'cancelled', next_due_ms = NULL WHERE change_id ="
		   " (SELECT run_change_id FROM experiment)");
	change_sql("UPDATE experiment SET state = 'expired', ended_ms = expires_ms");
	change_sql("UPDATE accelerator SET experiment_share = 100");
	ASSERT_RERUNS("t1 no_room");
	ASK_OK(store_get_gauges, &g);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.list[0].n_experiments_expired, 0);
	get_gauges_release(&g);
	change_sql("UPDATE experiment SET started_ms = created_ms");
	ASSERT_RERUNS("t1 no_answer");
	ASK_OK(store_get_gauges, &g);
	assert_int_equal(g.list[0].n_experiments_expired, 1);
	get_gauges_release(&g);
}

static void the_note_says_that_a_rerun_proved_nothing(void **state)
{
	char *id;

	(void)state;
	mirror_npu(50, 1, 100, false);
	a_red_head_of("ci", NAMES("t1"));
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	id = run_of(1);
	end_job(&(struct job_end){
	    .dispatch = id, .red = NAMES("t1"), .environment = "{\"torch_commit\": \"" HEAD_B "\"}", .at = 2 * MINUTE});
	need(HEAD_A, "t1", NEEDS_HEAD, 3 * MINUTE);
	ASSERT_RERUNS("t1 void job");
	free(id);
}

static void the_note_says_that_a_rerun_omitted_a_test(void **state)
{
	(void)state;
	mirror_npu(50, 1, 100, false);
	a_red_head_of("ci", NAMES("t1", "t2"));
	need(HEAD_A, "t%", NEEDS_HEAD, MINUTE);
	ASSERT_RERUNS("t1 pending, t2 pending");
	change_sql("UPDATE accelerator SET experiment_per_head = 0"); /* no run may follow */
	end_run(1, NAMES("t1"), NULL, 2 * MINUTE);
	need(HEAD_A, "t2", NEEDS_HEAD, 3 * MINUTE);
	change_sql("UPDATE verdict SET needs = 0 WHERE test_id = (SELECT id FROM test WHERE name = 't1')");
	ASSERT_RERUNS("t1 -, t2 no_result job");
}

/* Two tests a run, two runs a head: the third test has nothing to wait for. */
static void the_note_names_a_limit_once_no_round_can_follow(void **state)
{
	(void)state;
	mirror_npu(2, 1, 100, false);
	a_red_head_of("ci", NAMES("t1", "t2", "t3"));
	need(HEAD_A, "t%", NEEDS_HEAD, MINUTE);
	ASSERT_RERUNS("t1 pending, t2 pending, t3 -"); /* a further round may include it */
	end_run(1, NAMES("t1", "t2"), NULL, 2 * MINUTE);
	need(HEAD_A, "t%", NEEDS_HEAD, 3 * MINUTE);
	end_run(2, NAMES("t1", "t2", "t3"), NULL, 4 * MINUTE);
	change_sql("UPDATE verdict SET needs = 1 WHERE attribution IS NOT NULL");
	/* one more run would help all of them */
	ASSERT_RERUNS("t1 over_limit, t2 over_limit, t3 over_limit");
}

/* Without a known merge base nothing could run there, and another change's run there does not use up a limit. */
static void a_missing_merge_base_is_not_a_limit(void **state)
{
	(void)state;
	mirror_npu(50, 1, 100, false);
	a_red_head_of("ci", NAMES("t1"));
	need(HEAD_A, "t1", NEEDS_BASE, MINUTE);
	ASSERT_RERUNS("t1 -");
	a_red_head(2, HEAD_B, "ci", NAMES("t1"), 0);
	base_is(HEAD_B, BASE);
	need(HEAD_B, "t1", NEEDS_BASE, 2 * MINUTE);
	base_is(HEAD_A, BASE);
	need(HEAD_A, "t1", NEEDS_BASE, 3 * MINUTE);
	ASSERT_RERUNS("t1 pending"); /* it waits for that run */
}

static void the_note_names_the_person_who_cancelled(void **state)
{
	struct own_op o = {.head = HEAD_A, .call_off = "alice", .now_ms = T0 + 2 * MINUTE};

	(void)state;
	a_red_head_of("ci", NAMES("t1"));
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	DO_OK(own_submit, &o);
	need(HEAD_A, "t1", NEEDS_HEAD, 3 * MINUTE);
	ASSERT_RERUNS("t1 called_off");
}

#define T(f) cmocka_unit_test_setup_teardown(f, experiments_setup, experiments_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(decided_and_unneeded_tests_have_no_note),
	    T(runners_without_reruns_have_no_note),
	    T(a_rerun_waits_for_a_bad_machine),
	    T(the_tests_behind_a_sample_share_its_mark),
	    T(a_sample_of_another_runner_marks_nothing),
	    T(a_waiting_test_does_not_hide_notes_of_others),
	    T(the_note_says_that_the_vendor_did_not_answer),
	    T(the_note_says_that_no_machine_was_free),
	    T(the_note_says_that_a_rerun_that_made_way_found_no_machine),
	    T(the_note_says_that_a_rerun_proved_nothing),
	    T(the_note_says_that_a_rerun_omitted_a_test),
	    T(the_note_names_a_limit_once_no_round_can_follow),
	    T(a_missing_merge_base_is_not_a_limit),
	    T(the_note_names_the_person_who_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
