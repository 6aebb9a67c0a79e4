/* When experiments start: only on idle capacity, within the budget, never ahead of a first run. Also `stress`. */
#include "experiments/experiments.h"
#include "experiments_rig.h"
#include "store/changes.h"
#include "store/claims.h"
#include "store/commands.h"
#include "store/job_reports.h"
#include "store/jobs.h"
#include "store/maintenance.h"
#include "store/outbox.h"
#include "store/published.h"
#include "views/accelerator_page.h"
#include "views/change.h"
#include "views/gauges.h"

/* The n-th of these names, for more heads than letters. */
static const char *head_of(int n)
{
	static char heads[64][41];

	snprintf(heads[n], sizeof(heads[n]), "%040x", 0xabc000 + n);
	return heads[n];
}

/* ---- a vendor's CI ---- */

static void an_experiment_starts_when_no_first_run_is_unfinished(void **state)
{
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(2, HEAD_B, "ci", NULL, 2 * SECOND);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 planned [t1]");
	free(rig_send(T0 + MINUTE));
	id = first_run_of(HEAD_B);
	end_job(&(struct job_end){.dispatch = id, .green = NAMES("t1"), .at = 2 * MINUTE});
	free(id);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
}

static void a_first_run_of_another_runner_does_not_delay_an_experiment(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(2, HEAD_B, "lab", NULL, 2 * SECOND);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
}

/* A change with several jobs: the first job's end is not the end of the run. */
static void an_experiment_waits_for_its_own_first_run(void **state)
{
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	id = first_run_of(HEAD_A);
	change_sql("UPDATE dispatch SET state = 'running'");
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("");
	end_job(&(struct job_end){.dispatch = id, .name = "second", .run_id = "2", .green = NAMES("t2"), .at = MINUTE});
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
	free(id);
}

/* Evidence counts per job and test: a vendor that reruns one of two red jobs decides only that one. */
static void each_red_job_is_named(void **state)
{
	char *id;
	struct claim_outbox c;
	const struct experiment_request *e;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	id = first_run_of(HEAD_A);
	end_job(&(struct job_end){.dispatch = id, .name = "py312", .run_id = "2", .red = NAMES("t1"), .at = MINUTE});
	end_job(&(struct job_end){
	    .dispatch = id, .name = "other", .run_id = "3", .red = NAMES("t2"), .green = NAMES("t1"), .at = MINUTE});
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	need(HEAD_A, "t2", 0, MINUTE);
	c = rig_claim(REQUESTS, T0 + MINUTE);
	e = c.rows[0].experiment;
	assert_non_null(e);
	assert_int_equal(strv_len((const char *const *)e->jobs), 2);
	assert_string_equal(e->jobs[0], "test");
	assert_string_equal(e->jobs[1], "py312");
	claim_outbox_release(&c);
	free(id);
}

/* "planned started spent allowed", of npu; times in minutes. */
static void assert_use(int64_t at, const char *expected)
{
	struct get_totals t = {.now_ms = T0 + at, .has_experiments = true};
	const struct experiment_use *u;
	char *text;

	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.experiments.n, 1);
	u = t.experiments.at;
	assert_string_equal(u->name, "npu");
	text = xasprintf("%lld %lld %lld %lld", (long long)u->n_planned, (long long)u->n_started,
	    (long long)u->spent_ms / 60000, (long long)u->allowed_ms / 60000);
	assert_string_equal(text, expected);
	free(text);
	get_totals_release(&t);
}

static void no_budget_is_used_without_a_runner_for_reruns(void **state)
{
	struct get_totals t = {.now_ms = T0, .has_experiments = true};

	(void)state;
	reruns = RERUNS_NONE;
	mirror_npu(50, 2, 100, false);
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.experiments.n, 0);
	get_totals_release(&t);
}

/* Half an hour of 24 is free; after that, experiments may use their share of the time of all jobs. */
static void the_budget_is_a_share_of_the_time_of_all_jobs(void **state)
{
	(void)state;
	assert_use(0, "0 0 0 30");
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE);
	change_sql("UPDATE job SET started_ms = completed_ms - 60000 * 60 * 8");
	change_sql("UPDATE job SET started_ms = completed_ms - 60000 * 40 WHERE change_id ="
		   " (SELECT id FROM change WHERE kind = 'experiment')");
	/* 40 minutes of 8:40 hours are less than a tenth */
	a_red_head(2, HEAD_B, "ci", NAMES("t1"), 3 * MINUTE);
	need(HEAD_B, "t1", NEEDS_HEAD, 4 * MINUTE);
	ASSERT_TEXT("SELECT state FROM experiment ORDER BY id DESC LIMIT 1", "started");
	end_run(number("SELECT MAX(id) FROM experiment"), NULL, NAMES("t1"), 5 * MINUTE);
	change_sql("UPDATE job SET started_ms = completed_ms - 60000 * 40 WHERE change_id IN"
		   " (SELECT id FROM change WHERE kind = 'experiment')");
	/* 80 of 10 hours are more */
	a_red_head(3, head_of(3), "ci", NAMES("t1"), 6 * MINUTE);
	need(head_of(3), "t1", NEEDS_HEAD, 7 * MINUTE);
	ASSERT_TEXT("SELECT state FROM experiment ORDER BY id DESC LIMIT 1", "planned");
	assert_use(7 * MINUTE, "1 0 80 56");
	/* the first leaves the window of 24 hours; nothing else changes */
	change_sql("UPDATE experiment SET started_ms = started_ms - 86400000 WHERE id = 1");
	change_sql("UPDATE experiment SET expires_ms = expires_ms + 86400000");
	change_sql("UPDATE dispatch SET next_due_ms = NULL");
	deadlines_pass(10 * MINUTE);
	ASSERT_TEXT("SELECT state FROM experiment ORDER BY id DESC LIMIT 1", "started");
}

/* If a vendor reports only the end of a job, the job counts from the time when its dispatch was sent. A job that has
 * not ended does not count yet. */
static void a_job_without_a_start_counts_from_its_dispatch(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	change_sql("UPDATE job SET started_ms = NULL, completed_ms = 1795176000000 + 9 * 3600000");
	change_sql("UPDATE dispatch SET created_ms = 1795176000000, sent_ms = 1795176000000 + 3600000");
	assert_use(9 * HOUR, "0 0 0 48");
	change_sql("UPDATE dispatch SET sent_ms = NULL");
	assert_use(10 * HOUR, "0 0 0 54");
	assert_use(34 * HOUR, "0 0 0 30"); /* it ended more than a day ago */
	change_sql("UPDATE job SET completed_ms = NULL");
	assert_use(10 * HOUR, "0 0 0 30");
}

static void a_burst(const char *runner)
{
	for (int n = 0; n < 10; n++)
		a_red_head(n + 1, head_of(n), runner, NAMES("t1"), n * SECOND);
	for (int n = 0; n < 10; n++)
		need(head_of(n), "t1", NEEDS_HEAD, MINUTE);
}

#define N_STARTED "SELECT COUNT(*) FROM experiment WHERE state = 'started'"

/* The next first run waits behind them in the vendor's CI. */
static void a_burst_of_experiments_starts_a_few_at_a_time(void **state)
{
	(void)state;
	a_burst("ci");
	assert_int_equal(number(N_STARTED), 2);
	assert_int_equal(number("SELECT COUNT(*) FROM experiment WHERE state = 'planned'"), 8);
	end_run(1, NAMES("t1"), NULL, 2 * MINUTE);
	assert_int_equal(number(N_STARTED), 2);
}

static void whole_runs_start_one_at_a_time(void **state)
{
	(void)state;
	reruns = RERUNS_WHOLE;
	mirror_npu(50, 2, 100, false);
	a_burst("ci");
	assert_int_equal(number(N_STARTED), 1);
}

static void machines_can_be_preempted_so_more_experiments_start_there(void **state)
{
	(void)state;
	a_burst("farm");
	assert_int_equal(number(N_STARTED), 8);
}

/* Each of the first runs took two hours. */
static void a_whole_run_counts_in_the_budget_before_it_ends(void **state)
{
	(void)state;
	reruns = RERUNS_WHOLE;
	mirror_npu(50, 2, 100, false);
	for (int n = 0; n < 3; n++)
		a_red_head(n + 1, head_of(n), "farm", NAMES("t1"), n * SECOND);
	change_sql("UPDATE job SET started_ms = completed_ms - 60000 * 120");
	for (int n = 0; n < 3; n++)
		need(head_of(n), "t1", NEEDS_HEAD, MINUTE);
	assert_int_equal(number(N_STARTED), 1);
}

/* Two runners of one repository share the dispatch, and so its jobs. Each job counts once. */
static void a_job_of_a_shared_dispatch_counts_once(void **state)
{
	(void)state;
	reruns = RERUNS_WHOLE;
	mirror_npu(50, 2, 1, false);
	for (int n = 0; n < 2; n++)
		a_red_head(n + 1, head_of(n), "farm", NAMES("t1"), n * SECOND);
	change_sql("UPDATE job SET started_ms = completed_ms - 60000 * 20");
	change_sql(
	    "INSERT INTO dispatch (id, accelerator, runner, change_id, kind, target, target_key, round, round_ms,"
	    " is_current, state, is_held_for_good, number, delivery_guid, event_type, sent_action, original_action,"
	    " acknowledge_ms, start_ms, finish_ms, created_ms, sent_ms)"
	    " SELECT id, accelerator, 'twin', change_id, kind, target, target_key, round, round_ms, 0, 'done',"
	    " is_held_for_good, number, delivery_guid, event_type, sent_action, original_action, acknowledge_ms,"
	    " start_ms, finish_ms, created_ms, sent_ms FROM dispatch");
	for (int n = 0; n < 2; n++)
		need(head_of(n), "t1", NEEDS_HEAD, MINUTE);
	assert_int_equal(number(N_STARTED), 2); /* 20 minutes are less than the half hour that is free */
}

/* GitHub stopped the workflow without a report: the job cost no more than its experiment lasted. */
static void a_job_that_never_ends_costs_no_more_than_its_experiment(void **state)
{
	struct job_report j = {.status = JOB_IN_PROGRESS,
	    .workflow = (char *)"CI",
	    .name = (char *)"test",
	    .run_id = (char *)"77",
	    .run_attempt = 1};
	struct report_job op = {.report = &j, .now_ms = T0 + 2 * MINUTE};
	struct get_accelerator_page page = {.name = "npu", .now_ms = T0 + 10 * HOUR};
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	op.dispatch_id = id = run_of(1);
	DO_OK(store_report_job, &op);
	need(HEAD_A, "t1", 0, 3 * MINUTE);
	change_sql("UPDATE experiment SET state = 'cancelled', ended_ms = started_ms + 120000");
	ASK_OK(store_get_accelerator_page, &page);
	assert_int_equal(page.experiments.spent_ms, MINUTE);
	assert_int_equal(page.experiments.allowed_ms, 30 * MINUTE); /* finding 13: the free half hour */
	get_accelerator_page_release(&page);
	a_red_head(2, HEAD_B, "ci", NAMES("t1"), 10 * HOUR);
	need(HEAD_B, "t1", NEEDS_HEAD, 10 * HOUR + MINUTE);
	ASSERT_TEXT("SELECT state FROM experiment ORDER BY id DESC LIMIT 1", "started");
	free(id);
}

/* A report may contain only the end of a job. */
static void a_job_without_a_start_costs_what_its_experiment_lasted(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	end_run(1, NAMES("t1"), NULL, 41 * MINUTE);
	change_sql("UPDATE job SET started_ms = NULL");
	a_red_head(2, HEAD_B, "ci", NAMES("t1"), 50 * MINUTE);
	need(HEAD_B, "t1", NEEDS_HEAD, 51 * MINUTE);
	ASSERT_TEXT("SELECT state FROM experiment ORDER BY id DESC LIMIT 1", "planned");
}

static void a_job_begins(const char *head, int64_t at)
{
	char *id = first_run_of(head);
	struct job_report j = {.status = JOB_IN_PROGRESS,
	    .workflow = (char *)"CI",
	    .name = (char *)"test",
	    .run_id = id,
	    .run_attempt = 1};
	struct report_job op = {.dispatch_id = id, .report = &j, .now_ms = T0 + at};

	DO_OK(store_report_job, &op);
	free(id);
}

/* A vendor with many machines always has a first run at work. */
static void a_first_run_that_has_its_machine_does_not_delay_an_experiment(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(2, HEAD_B, "ci", NULL, 2 * SECOND);
	free(rig_send(T0 + MINUTE));
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 planned [t1]");
	a_job_begins(HEAD_B, 2 * MINUTE);
	need(HEAD_A, "t1", NEEDS_HEAD, 3 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
}

/* The vendor's CI is idle and starts nothing, so it lost the request. */
static void a_first_run_that_the_vendor_lost_delays_experiments_for_two_minutes(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(2, HEAD_B, "ci", NULL, 2 * SECOND);
	free(rig_send(T0 + MINUTE));
	change_sql("UPDATE dispatch SET sent_ms = created_ms + 58000"); /* then */
	need(HEAD_A, "t1", NEEDS_HEAD, 2 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 planned [t1]");
	need(HEAD_A, "t1", NEEDS_HEAD, 3 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
}

/* All its machines run other jobs, as far as Outpost can see. */
static void a_first_run_in_the_queue_of_the_vendor_delays_experiments(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(2, HEAD_B, "ci", NULL, 2 * SECOND);
	open_head(3, HEAD_C, "ci", NULL, 3 * SECOND);
	free(rig_send(T0 + MINUTE));
	a_job_begins(HEAD_B, MINUTE);
	need(HEAD_A, "t1", NEEDS_HEAD, 30 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 planned [t1]");
}

/* A later first run got a machine. */
static void a_first_run_that_later_ones_overtook_delays_nothing(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(2, HEAD_B, "ci", NULL, 2 * SECOND);
	open_head(3, HEAD_C, "ci", NULL, 3 * SECOND);
	free(rig_send(T0 + MINUTE));
	a_job_begins(HEAD_C, MINUTE);
	need(HEAD_A, "t1", NEEDS_HEAD, 2 * MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]");
}

/* Both sides of one pull request are in the CI of `lab`, and the first run of another follows. */
static void two_experiments_and_a_first_run(void)
{
	a_red_head(1, HEAD_A, "lab", NAMES("t1"), 0);
	base_is(HEAD_A, HEAD_C);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	free(rig_send(T0 + MINUTE));
	ASSERT_EXPERIMENTS("lab head r1 started [t1]; lab base r1 started [t1]");
	open_head(2, HEAD_B, "lab", NULL, 2 * MINUTE);
	free(rig_send(T0 + 2 * MINUTE));
	change_sql("UPDATE dispatch SET sent_ms = created_ms WHERE event_type <> 'experiment'");
}

/* The n-th dispatch of an experiment. free(). */
static char *run_of_round(int64_t experiment, int64_t n)
{
	return db_text(look,
	    "SELECT x.id FROM dispatch x JOIN experiment e ON e.run_change_id = x.change_id"
	    " WHERE e.id = ?1 AND x.round = ?2",
	    V_INT(experiment), V_INT(n));
}

static void experiments_make_way_in_the_ci_of_a_vendor(void **state)
{
	static const char STARTED[] = "lab head r1 started [t1]; lab base r1 started [t1]";
	int64_t until_ms;
	char *before[2], *after[2];

	(void)state;
	two_experiments_and_a_first_run();
	until_ms = number("SELECT expires_ms FROM experiment WHERE id = 1");
	deadlines_pass(3 * MINUTE - SECOND);
	ASSERT_EXPERIMENTS(STARTED);
	deadlines_pass(3 * MINUTE);
	ASSERT_EXPERIMENTS("lab head r1 planned [t1]; lab base r1 planned [t1]");
	ASSERT_SENT(T0 + 3 * MINUTE, "webhook_cancel https://ci.example.org/hook[npu] experiment;"
				     " webhook_cancel https://ci.example.org/hook[npu] experiment");
	a_job_begins(HEAD_B, 3 * MINUTE + SECOND);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, 4 * MINUTE);
	ASSERT_EXPERIMENTS(STARTED);
	ASSERT_SENT(T0 + 4 * MINUTE, "webhook_dispatch https://ci.example.org/hook[npu] experiment;"
				     " webhook_dispatch https://ci.example.org/hook[npu] experiment");
	assert_int_equal(number("SELECT expires_ms FROM experiment WHERE id = 1"), until_ms);
	for (int n = 1; n <= 2; n++) {
		before[n - 1] = run_of_round(n, 1);
		after[n - 1] = run_of_round(n, 2);
	}
	/* the cancelled run is no evidence, whatever its result */
	end_job(&(struct job_end){.dispatch = before[0], .run_id = "1", .green = NAMES("t1"), .at = 5 * MINUTE});
	end_job(&(struct job_end){.dispatch = before[1], .run_id = "2", .red = NAMES("t1"), .at = 5 * MINUTE});
	ASSERT_EXPERIMENTS(STARTED);
	end_job(&(struct job_end){.dispatch = after[0], .run_id = "3", .red = NAMES("t1"), .at = 6 * MINUTE});
	end_job(&(struct job_end){.dispatch = after[1], .run_id = "4", .green = NAMES("t1"), .at = 6 * MINUTE});
	ASSERT_TEXT("SELECT group_concat(state) FROM experiment WHERE id <= 2", "done,done");
	ASSERT_TEXT("SELECT attribution FROM verdict WHERE change_id = 1", "NEW");
	for (int n = 0; n < 2; n++) {
		free(before[n]);
		free(after[n]);
	}
}

/* The CI has machines for both. */
/* The cancelled run had reported one of the two tests. */
static void a_cancelled_run_does_not_make_its_merge_base_known(void **state)
{
	char *id;

	(void)state;
	a_red_head(1, HEAD_A, "lab", NAMES("t1", "t2"), 0);
	base_is(HEAD_A, HEAD_C);
	need(HEAD_A, "t%", NEEDS_BASE, MINUTE);
	open_head(2, HEAD_B, "lab", NULL, 2 * MINUTE);
	free(rig_send(T0 + 2 * MINUTE));
	change_sql("UPDATE dispatch SET sent_ms = created_ms WHERE event_type <> 'experiment'");
	deadlines_pass(3 * MINUTE);
	ASSERT_EXPERIMENTS("lab base r1 planned [t1 t2]");
	a_job_begins(HEAD_B, 3 * MINUTE + SECOND);
	need(HEAD_A, "t%", NEEDS_BASE, 4 * MINUTE);
	id = run_of_round(1, 1);
	end_job(&(struct job_end){.dispatch = id, .name = "early", .green = NAMES("t1"), .at = 5 * MINUTE});
	free(id);
	id = run_of_round(1, 2);
	end_job(&(struct job_end){.dispatch = id, .green = NAMES("t2"), .at = 6 * MINUTE});
	free(id);
	need(HEAD_A, "t%", NEEDS_BASE, 7 * MINUTE);
	ASSERT_TEXT("SELECT group_concat(s.name) FROM experiment e JOIN experiment_test t"
		    " ON t.experiment_id = e.id JOIN test s ON s.id = t.test_id"
		    " WHERE e.side = 'base' AND e.round = 2",
	    "t1");
}

static void experiments_continue_when_the_first_run_gets_its_job(void **state)
{
	(void)state;
	two_experiments_and_a_first_run();
	a_job_begins(HEAD_B, 2 * MINUTE + 30 * SECOND);
	deadlines_pass(5 * MINUTE);
	ASSERT_EXPERIMENTS("lab head r1 started [t1]; lab base r1 started [t1]");
}

/* One side had ended and waited for the other, which made way. The vendor reports one run for both: its result on the
 * head never excuses anything. */
static void a_side_waits_for_the_other_that_made_way(void **state)
{
	char *head, *base;

	(void)state;
	two_experiments_and_a_first_run();
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE + SECOND);
	deadlines_pass(3 * MINUTE);
	ASSERT_EXPERIMENTS("lab head r1 started [t1]; lab base r1 planned [t1]");
	ASSERT_TEXT("SELECT attribution FROM verdict WHERE change_id = 1", "UNCLASSIFIED");
	a_job_begins(HEAD_B, 3 * MINUTE + SECOND);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, 4 * MINUTE);
	ASSERT_EXPERIMENTS("lab head r1 started [t1]; lab base r1 started [t1]");
	head = run_of_round(1, 1);
	base = run_of_round(2, 2);
	end_job(&(struct job_end){.dispatch = base, .run_id = head, .green = NAMES("t1"), .at = 5 * MINUTE});
	ASSERT_TEXT("SELECT group_concat(state) FROM experiment WHERE id <= 2", "void,void");
	ASSERT_TEXT("SELECT attribution FROM verdict WHERE change_id = 1", "UNCLASSIFIED");
	free(head);
	free(base);
}

static void a_side_waits_for_the_other_until_that_expires(void **state)
{
	(void)state;
	two_experiments_and_a_first_run();
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE + SECOND);
	deadlines_pass(3 * MINUTE);
	deadlines_pass(7 * HOUR);
	ASSERT_EXPERIMENTS("lab head r1 done [t1]; lab base r1 expired [t1]");
	ASSERT_TEXT("SELECT attribution FROM verdict WHERE change_id = 1", "FLAKY");
}

/* First runs come more often than an experiment takes, of a vendor that reports only their ends. */
static void an_experiment_ends_after_making_way_five_times(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "lab", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	for (int n = 0; n < 5; n++) {
		int64_t at = (2 + 10 * n) * MINUTE;
		char *id;

		ASSERT_EXPERIMENTS("lab head r1 started [t1]");
		open_head(10 + n, head_of(n), "lab", NULL, at);
		free(rig_send(T0 + at));
		change_sql("UPDATE dispatch SET sent_ms = created_ms WHERE event_type <> 'experiment'");
		deadlines_pass(at + MINUTE);
		if (n < 4)
			ASSERT_EXPERIMENTS("lab head r1 planned [t1]");
		id = first_run_of(head_of(n));
		end_job(&(struct job_end){.dispatch = id, .green = NAMES("t1"), .at = at + 2 * MINUTE});
		free(id);
		need(HEAD_A, "t1", NEEDS_HEAD, at + 3 * MINUTE);
	}
	ASSERT_EXPERIMENTS("lab head r1 expired [t1]");
	ASSERT_TEXT("SELECT reason FROM experiment WHERE started_ms IS NULL", "it made way for first runs five times");
}

static void an_experiment_that_made_way_is_deleted_with_its_change(void **state)
{
	struct apply_retention r = {.results_before_ms = T0 + 100 * DAY};
	int n = 0;

	(void)state;
	two_experiments_and_a_first_run();
	deadlines_pass(3 * MINUTE);
	rig_close_pull(1, HEAD_A, 300);
	ASSERT_EXPERIMENTS("lab head r1 cancelled [t1]; lab base r1 cancelled [t1]");
	rig_close_pull(2, HEAD_B, 300);
	change_sql("DELETE FROM outbox");
	do
		DO_OK(store_apply_retention, &r);
	while (r.has_more && ++n < 20);
	assert_int_equal(number("SELECT (SELECT COUNT(*) FROM change) + (SELECT COUNT(*) FROM job)"
				" + (SELECT COUNT(*) FROM experiment) + (SELECT COUNT(*) FROM dispatch)"),
	    0);
}

/* The wall clock was set back after the first run had left. */
static void experiments_make_way_after_the_clock_was_set_back(void **state)
{
	(void)state;
	two_experiments_and_a_first_run();
	change_sql("UPDATE dispatch SET state = 'running' WHERE event_type <> 'experiment'"
		   " AND state = 'done'"); /* another first run is at work */
	deadlines_pass(-HOUR);
	ASSERT_EXPERIMENTS("lab head r1 planned [t1]; lab base r1 planned [t1]");
}

/* The other accelerator's first runs wait for the machines of that repository, too. */
static void a_first_run_of_another_accelerator_in_the_repository_delays_experiments(void **state)
{
	struct plan_want want = GITHUB_WANT("second", "ascend/PyTorch");

	(void)state;
	has_second = true;
	mirror_npu(50, 2, 100, false);
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .number = 2,
	    .head = HEAD_B,
	    .event_ms = T0 + 2 * SECOND,
	    .wants = &want,
	    .n_wants = 1});
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	ASSERT_EXPERIMENTS("ci head r1 planned [t1]");
}

/* ---- authors ---- */

#define STARTED_AUTHORS                                                                                                \
	"SELECT group_concat(author || ' ' || n, ', ') FROM (SELECT c.author, COUNT(*) AS n"                           \
	" FROM experiment e JOIN change c ON c.id = e.change_id WHERE e.started_ms IS NOT NULL"                        \
	" GROUP BY 1 ORDER BY 1) listed"

/* The runner takes two at a time. Alice has many pull requests, and they came first. */
static void authors_take_turns(void **state)
{
	char *id;

	(void)state;
	for (int n = 0; n < 4; n++)
		a_red_head(n + 1, head_of(n), "ci", NAMES("t1"), n * SECOND);
	a_red_head(9, HEAD_B, "ci", NAMES("t1"), 10 * SECOND);
	change_sql("UPDATE change SET author = 'bob' WHERE head_sha = '" HEAD_B "'");
	open_head(10, HEAD_A, "ci", NULL, 20 * SECOND); /* the runner is at work */
	for (int n = 0; n < 4; n++)
		need(head_of(n), "t1", NEEDS_HEAD, 30 * SECOND);
	need(HEAD_B, "t1", NEEDS_HEAD, 31 * SECOND);
	ASSERT_TEXT(STARTED_AUTHORS, "");
	free(rig_send(T0 + MINUTE));
	id = first_run_of(HEAD_A);
	end_job(&(struct job_end){.dispatch = id, .green = NAMES("t1"), .at = 2 * MINUTE});
	free(id);
	ASSERT_TEXT(STARTED_AUTHORS, "alice 1, bob 1");
}

/* Bob's came later and used no time yet. */
static void the_author_who_spent_less_comes_first(void **state)
{
	char *id;

	(void)state;
	a_red_head(1, head_of(0), "ci", NAMES("t1"), 0);
	need(head_of(0), "t1", NEEDS_HEAD, MINUTE);
	end_run(1, NULL, NAMES("t1"), 11 * MINUTE);
	change_sql("UPDATE job SET started_ms = completed_ms - 600000 WHERE change_id ="
		   " (SELECT run_change_id FROM experiment)");
	for (int n = 1; n < 4; n++)
		a_red_head(n + 1, head_of(n), "ci", NAMES("t1"), 12 * MINUTE + n * SECOND);
	change_sql("UPDATE change SET author = 'bob' WHERE head_sha LIKE '%abc002'"
		   " OR head_sha LIKE '%abc003'");
	open_head(10, HEAD_A, "ci", NULL, 13 * MINUTE);
	for (int n = 1; n < 4; n++)
		need(head_of(n), "t1", NEEDS_HEAD, 13 * MINUTE + SECOND);
	ASSERT_TEXT(STARTED_AUTHORS, "alice 1");
	free(rig_send(T0 + 14 * MINUTE));
	id = first_run_of(HEAD_A);
	end_job(&(struct job_end){.dispatch = id, .green = NAMES("t1"), .at = 15 * MINUTE});
	free(id);
	ASSERT_TEXT(STARTED_AUTHORS, "alice 1, bob 2");
}

/* ---- machines ---- */

static void a_machine_gets_an_experiment_only_when_nothing_else_waits(void **state)
{
	struct lease_offer o;

	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	base_is(HEAD_A, HEAD_C);
	need(HEAD_A, "t1", NEEDS_BASE, MINUTE);
	ASSERT_EXPERIMENTS("farm base r1 started [t1]");
	queue_pull(2, HEAD_B, 2 * MINUTE);
	o = take("m-1", "c1", 3 * MINUTE);
	assert_string_equal(o.head_sha, HEAD_B);
	assert_null(o.experiment);
	lease_offer_release(&o);
	o = take("m-2", "c1", 3 * MINUTE);
	assert_int_equal(o.kind, CHANGE_EXPERIMENT);
	assert_string_equal(o.head_sha, HEAD_C);
	assert_string_equal(o.event_type, "experiment");
	assert_string_equal(o.ref, "refs/heads/main");
	assert_int_equal(o.number, 1);
	assert_string_equal(o.experiment->tests[0], "unit/t1");
	assert_int_equal(o.experiment->side, EXPERIMENT_BASE);
	lease_offer_release(&o);
}

/* The experiment runs on the merge base, and a first run waits for a machine. */
static void experiments_are_not_shown_as_runs_of_their_commit(void **state)
{
	struct find_tested tested = {.repository = UPSTREAM, .sha = HEAD_C};
	struct get_change change = {.now_ms = clock_wall_ms(), .repository = UPSTREAM, .head_sha = HEAD_C};
	struct list_accelerator_jobs jobs = {.accelerator = "npu", .limit = 10};
	struct get_gauges gauges = {.now_ms = T0 + 2 * MINUTE};
	struct lease_offer o;

	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	base_is(HEAD_A, HEAD_C);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	ASSERT_EXPERIMENTS("farm head r1 started [t1]; farm base r1 started [t1]");
	ASK_OK(store_get_gauges, &gauges);
	assert_int_equal(gauges.list[0].n_queued, 0);
	get_gauges_release(&gauges);
	o = take("m-1", "c1", 2 * MINUTE);
	lease_offer_release(&o);
	o = take("m-1", "c2", 2 * MINUTE);
	assert_int_equal(o.experiment->side, EXPERIMENT_BASE);
	finish(&o, "failure", 3 * MINUTE);
	lease_offer_release(&o);
	assert_int_equal(ASK(store_find_tested, &tested), ERR_NOT_FOUND);
	assert_int_equal(ASK(store_get_change, &change), ERR_NOT_FOUND);
	ASK_OK(store_list_accelerator_jobs, &jobs);
	assert_int_equal(jobs.jobs.n, 1); /* the first run's */
	page_jobs_release(&jobs.jobs);
}

/* max_parallel is 2. */
static void experiments_take_no_capacity_from_first_runs(void **state)
{
	struct lease_offer o;

	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	o = take("m-1", "c1", 2 * MINUTE);
	assert_int_equal(o.kind, CHANGE_EXPERIMENT);
	lease_offer_release(&o);
	for (int n = 0; n < 2; n++) {
		queue_pull(2 + n, head_of(n), 3 * MINUTE + n * SECOND);
		o = take("m-2", n ? "c2" : "c1", 4 * MINUTE);
		assert_int_equal(o.kind, CHANGE_PULL_REQUEST);
		lease_offer_release(&o);
	}
	queue_pull(9, HEAD_B, 5 * MINUTE);
	assert_false(claim("m-3", "c1", 6 * MINUTE).is_found);
}

static void an_experiment_waits_while_the_runner_has_no_room(void **state)
{
	struct lease_offer o;

	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	for (int n = 0; n < 2; n++) {
		queue_pull(2 + n, head_of(n), 3 * MINUTE + n * SECOND);
		o = take("m-2", n ? "c2" : "c1", 4 * MINUTE);
		lease_offer_release(&o);
	}
	assert_false(claim("m-3", "c1", 6 * MINUTE).is_found);
}

/* max_parallel is 2, of licences or of devices: a first run takes an experiment's place at once. */
static void no_more_leases_than_max_parallel_are_active(void **state)
{
	struct lease_offer a, b, o;

	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	base_is(HEAD_A, HEAD_C);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	a = take("m-1", "c1", 2 * MINUTE);
	b = take("m-2", "c1", 2 * MINUTE + 1);
	queue_pull(2, HEAD_B, 3 * MINUTE);
	o = take("m-3", "c1", 3 * MINUTE);
	assert_string_equal(o.head_sha, HEAD_B);
	assert_int_equal(number("SELECT COUNT(*) FROM lease WHERE state = 'active'"), 2);
	ASSERT_RENEWED(&a, "m-1", 3 * MINUTE, LEASE_ACTIVE, "");
	ASSERT_RENEWED(&b, "m-2", 3 * MINUTE, LEASE_CANCELLED, "makes way");
	lease_offer_release(&a);
	lease_offer_release(&b);
	lease_offer_release(&o);
}

/* The only machine has an experiment when a first run comes. */
static void a_first_run_without_a_machine_replaces_an_experiment(void **state)
{
	struct lease_offer e, o;

	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	e = take("m-1", "c1", 2 * MINUTE);
	queue_pull(2, HEAD_B, 3 * MINUTE);
	deadlines_pass(3 * MINUTE); /* another machine may claim it */
	ASSERT_RENEWED(&e, "m-1", 3 * MINUTE, LEASE_ACTIVE, "");
	deadlines_pass(3 * MINUTE + SECOND);
	ASSERT_RENEWED(&e, "m-1", 3 * MINUTE + SECOND, LEASE_CANCELLED, "makes way");
	ASSERT_EXPERIMENTS("farm head r1 started [t1]");
	o = take("m-1", "c2", 4 * MINUTE);
	assert_string_equal(o.head_sha, HEAD_B);
	finish(&o, "success", 5 * MINUTE);
	lease_offer_release(&o);
	/* the dispatch is the same, in another attempt */
	o = take("m-1", "c3", 6 * MINUTE);
	assert_string_equal(o.dispatch_id, e.dispatch_id);
	assert_int_equal(o.attempt, 2);
	/* the machine's cancelled report of the first attempt is not a result */
	assert_int_equal(finish(&e, "cancelled", 6 * MINUTE), REPORT_RECORDED);
	ASSERT_EXPERIMENTS("farm head r1 started [t1]");
	lease_offer_release(&o);
	lease_offer_release(&e);
}

static void a_machine_is_handed_over_five_times_at_most(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	for (int n = 0; n < 5; n++) {
		int64_t at = (2 + 10 * n) * MINUTE;
		char claims[2][8];
		struct lease_offer e, o;

		snprintf(claims[0], sizeof(claims[0]), "e%d", n);
		snprintf(claims[1], sizeof(claims[1]), "o%d", n);
		e = take("m-1", claims[0], at);
		assert_int_equal(e.kind, CHANGE_EXPERIMENT);
		queue_pull(10 + n, head_of(n), at + MINUTE);
		deadlines_pass(at + MINUTE + SECOND);
		ASSERT_RENEWED(&e, "m-1", at + MINUTE + SECOND, LEASE_CANCELLED, "makes way");
		o = take("m-1", claims[1], at + 2 * MINUTE);
		assert_string_equal(o.head_sha, head_of(n));
		finish(&o, "success", at + 3 * MINUTE);
		lease_offer_release(&o);
		lease_offer_release(&e);
	}
	need(HEAD_A, "t1", NEEDS_HEAD, HOUR);
	ASSERT_EXPERIMENTS("farm head r1 expired [t1]");
	ASSERT_TEXT("SELECT reason FROM experiment WHERE started_ms IS NULL", "it made way for first runs five times");
}

/* Two experiments, one first run: one of the experiments continues. */
static void only_as_many_experiments_make_way_as_first_runs_wait(void **state)
{
	struct lease_offer a, b;

	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	base_is(HEAD_A, HEAD_C);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	a = take("m-1", "c1", 2 * MINUTE);
	b = take("m-2", "c1", 2 * MINUTE + 1);
	queue_pull(2, HEAD_B, 3 * MINUTE);
	for (int n = 1; n < 5; n++)
		deadlines_pass(3 * MINUTE + n * SECOND);
	ASSERT_RENEWED(&a, "m-1", 4 * MINUTE, LEASE_ACTIVE, "");
	ASSERT_RENEWED(&b, "m-2", 4 * MINUTE, LEASE_CANCELLED, "makes way");
	lease_offer_release(&a);
	lease_offer_release(&b);
}

/* The machine has the labels of two runners, and a first run of the other one waits for it. */
static void experiments_make_way_for_each_runner_of_the_machine(void **state)
{
	static const struct claim_choice gate = {"gate", 1};
	struct plan_want want = PULL_WANT("npu", "gate");
	struct claim_dispatch of_gate = {.choices = &gate, .n_choices = 1};
	struct lease_offer e;

	(void)state;
	for (int n = 0; n < 2; n++) {
		rig_apply(&(struct rig_plan){.kind = PLAN_START,
		    .number = 7 + n,
		    .head = n ? HEAD_B : HEAD_C,
		    .event_ms = T0 + (n ? 5 * MINUTE : 0),
		    .wants = &want,
		    .n_wants = 1});
		if (n)
			break;
		of_gate = claim_with(&of_gate, "m-1", "c1", SECOND);
		assert_true(of_gate.is_found);
		finish(&of_gate.offer, "success", 2 * SECOND);
		lease_offer_release(&of_gate.offer);
		a_red_head(1, HEAD_A, "farm", NAMES("t1"), MINUTE);
		need(HEAD_A, "t1", NEEDS_HEAD, 2 * MINUTE);
		e = take("m-1", "c2", 3 * MINUTE);
		assert_int_equal(e.kind, CHANGE_EXPERIMENT);
	}
	deadlines_pass(5 * MINUTE);
	ASSERT_RENEWED(&e, "m-1", 5 * MINUTE, LEASE_ACTIVE, "");
	deadlines_pass(5 * MINUTE + SECOND);
	ASSERT_RENEWED(&e, "m-1", 5 * MINUTE + SECOND, LEASE_CANCELLED, "makes way");
	lease_offer_release(&e);
}

/* The wall clock was set back after the first run had come. */
static void a_machine_is_handed_over_after_the_clock_was_set_back(void **state)
{
	struct lease_offer e;

	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	e = take("m-1", "c1", 2 * MINUTE);
	queue_pull(2, HEAD_B, 3 * MINUTE);
	deadlines_pass(2 * MINUTE + SECOND);
	ASSERT_RENEWED(&e, "m-1", 2 * MINUTE + SECOND, LEASE_CANCELLED, "makes way");
	lease_offer_release(&e);
}

static void a_newer_head_stops_the_machine(void **state)
{
	struct lease_offer o;

	(void)state;
	a_red_head(1, HEAD_A, "farm", NAMES("t1"), 0);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	o = take("m-1", "c1", 2 * MINUTE);
	rig_apply(&(struct rig_plan){
	    .kind = PLAN_START, .head = HEAD_B, .event_ms = T0 + 3 * MINUTE, .action = "synchronize"});
	ASSERT_RENEWED(&o, "m-1", 4 * MINUTE, LEASE_CANCELLED, "");
	ASSERT_EXPERIMENTS("farm head r1 cancelled [t1]");
	lease_offer_release(&o);
}

/* ---- restarts and clock jumps ---- */

static void a_restart_changes_nothing(void **state)
{
	char *before, *after;
	static const char all[] = "SELECT group_concat(x, ' ') FROM (SELECT e.id || e.state || x.id"
				  " || o.state AS x FROM experiment e JOIN dispatch x"
				  " ON x.change_id = e.run_change_id JOIN outbox o"
				  " ON o.dispatch_id = x.id ORDER BY e.id) listed";

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	base_is(HEAD_A, HEAD_C);
	need(HEAD_A, "t1", NEEDS_HEAD | NEEDS_BASE, MINUTE);
	before = text_of(all);
	rig_reopen();
	deadlines_pass(2 * MINUTE);
	after = text_of(all);
	assert_string_equal(before, after);
	ASSERT_EXPERIMENTS("ci head r1 started [t1]; ci base r1 started [t1]");
	free(before);
	free(after);
}

static void deadlines_move_with_the_clock(void **state)
{
	struct shift_clock c = {.delta_ms = DAY, .now_ms = T0 + DAY + MINUTE};

	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(2, HEAD_B, "ci", NULL, 2 * SECOND);
	need(HEAD_A, "t1", NEEDS_HEAD, MINUTE);
	DO_OK(store_shift_clock, &c);
	assert_int_equal(number("SELECT expires_ms FROM experiment"), T0 + MINUTE + 6 * HOUR + DAY);
}

/* ---- stress ---- */

static int stress(const char *accelerator, int n_rounds, int64_t command_id)
{
	int64_t test = number("SELECT id FROM test WHERE name = 't1'");
	struct stress s = {.command_id = command_id,
	    .accelerator = accelerator,
	    .tests = &test,
	    .n_tests = 1,
	    .n_rounds = n_rounds,
	    .now_ms = T0 + MINUTE};
	struct own_op o = {.stress = &s, .now_ms = T0 + MINUTE};

	s.change_id = number("SELECT id FROM change WHERE head_sha = '" HEAD_A "'"
			     " AND kind = 'pull_request'");
	DO_OK(own_submit, &o);
	return o.result;
}

static void the_rounds_of_a_stress_run_one_after_the_other(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	base_is(HEAD_A, HEAD_C);
	change_sql("UPDATE accelerator SET experiment_per_head = 0"); /* only the stress */
	assert_int_equal(stress("npu", 2, 100), 1);
	ASSERT_TEXT("SELECT group_concat(x) FROM (SELECT side || round || state AS x FROM experiment"
		    " WHERE cause = 'stress' ORDER BY id) listed",
	    "head1started,base1started,head2planned,base2planned");
	end_run(number("SELECT MIN(id) FROM experiment WHERE cause = 'stress'"), NAMES("t1"), NULL, 2 * MINUTE);
	assert_int_equal(number("SELECT COUNT(*) FROM experiment WHERE round = 2"
				" AND cause = 'stress' AND state = 'planned'"),
	    2);
	end_run(number("SELECT MIN(id) + 1 FROM experiment WHERE cause = 'stress'"), NULL, NAMES("t1"), 3 * MINUTE);
	assert_int_equal(number("SELECT COUNT(*) FROM experiment WHERE round = 2"
				" AND cause = 'stress' AND state = 'started'"),
	    2);
	assert_int_equal(number("SELECT COUNT(*) FROM outbox WHERE kind = 'reply'"), 0);
	end_run(number("SELECT MIN(id) + 2 FROM experiment WHERE cause = 'stress'"), NULL, NAMES("t1"), 4 * MINUTE);
	end_run(number("SELECT MIN(id) + 3 FROM experiment WHERE cause = 'stress'"), NULL, NAMES("t7"), 5 * MINUTE);
	deadlines_pass(6 * MINUTE);
	ASSERT_TEXT("SELECT text FROM outbox WHERE kind = 'reply'",
	    "{\"comment\":100,\"stress\":{\"test\":\"unit/t1\",\"rounds\":2,\"accelerators\":[{"
	    "\"accelerator\":\"npu\","
	    "\"head\":{\"sha\":\"" HEAD_A "\",\"passed\":1,\"failed\":1,\"lost\":0},"
	    "\"base\":{\"sha\":\"" HEAD_C "\",\"passed\":1,\"failed\":0,\"lost\":1}}]}}");
	ASSERT_TEXT("SELECT key || ' ' || target || ' ' || number FROM outbox WHERE kind = 'reply'",
	    "stress:100 " UPSTREAM " 1");
}

static void a_stress_run_delays_no_experiment(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	base_is(HEAD_A, HEAD_C);
	change_sql("UPDATE accelerator SET experiment_per_head = 0"); /* only the stress */
	for (int n = 0; n < 6; n++)
		assert_int_equal(stress("npu", 20, 100 + n), 1);
	/* more than one look takes */
	assert_int_equal(number("SELECT COUNT(*) FROM experiment WHERE state = 'planned'"), 238);
	assert_int_equal(number(N_STARTED), 2);
	change_sql("UPDATE accelerator SET experiment_per_head = 2");
	a_red_head(2, HEAD_B, "ci", NAMES("t1"), 2 * MINUTE);
	need(HEAD_B, "t1", NEEDS_HEAD, 3 * MINUTE);
	ASSERT_TEXT("SELECT state FROM experiment WHERE cause = 'auto'"
		    " ORDER BY id DESC LIMIT 1",
	    "started");
}

static void an_interrupted_stress_run_is_answered_with_partial_results(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	assert_int_equal(stress("npu", 3, 100), 1);
	rig_close_pull(1, HEAD_A, 120);
	ASSERT_TEXT("SELECT text FROM outbox WHERE kind = 'reply'",
	    "{\"comment\":100,\"stress\":{\"test\":\"unit/t1\",\"rounds\":3,\"accelerators\":[{"
	    "\"accelerator\":\"npu\",\"head\":{\"sha\":\"" HEAD_A "\",\"passed\":0,\"failed\":0,\"lost\":3}}]}}");
	assert_int_equal(number("SELECT COUNT(*) FROM outbox WHERE kind = 'reply'"), 1);
}

static void a_stress_run_needs_a_runner_with_reruns(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	assert_int_equal(stress("xpu", 3, 100), 0);
	change_sql("UPDATE runner SET reruns = 'none'");
	assert_int_equal(stress("npu", 3, 100), 0);
	ASSERT_EXPERIMENTS("");
}

#define T(test) cmocka_unit_test_setup_teardown(test, experiments_setup, experiments_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(an_experiment_starts_when_no_first_run_is_unfinished),
	    T(a_first_run_of_another_runner_does_not_delay_an_experiment),
	    T(an_experiment_waits_for_its_own_first_run),
	    T(each_red_job_is_named),
	    T(no_budget_is_used_without_a_runner_for_reruns),
	    T(the_budget_is_a_share_of_the_time_of_all_jobs),
	    T(a_job_without_a_start_counts_from_its_dispatch),
	    T(a_burst_of_experiments_starts_a_few_at_a_time),
	    T(whole_runs_start_one_at_a_time),
	    T(machines_can_be_preempted_so_more_experiments_start_there),
	    T(a_whole_run_counts_in_the_budget_before_it_ends),
	    T(a_job_that_never_ends_costs_no_more_than_its_experiment),
	    T(a_job_of_a_shared_dispatch_counts_once),
	    T(a_job_without_a_start_costs_what_its_experiment_lasted),
	    T(a_first_run_that_has_its_machine_does_not_delay_an_experiment),
	    T(a_first_run_that_the_vendor_lost_delays_experiments_for_two_minutes),
	    T(a_first_run_in_the_queue_of_the_vendor_delays_experiments),
	    T(a_first_run_that_later_ones_overtook_delays_nothing),
	    T(experiments_make_way_in_the_ci_of_a_vendor),
	    T(a_cancelled_run_does_not_make_its_merge_base_known),
	    T(experiments_continue_when_the_first_run_gets_its_job),
	    T(a_side_waits_for_the_other_that_made_way),
	    T(a_side_waits_for_the_other_until_that_expires),
	    T(an_experiment_ends_after_making_way_five_times),
	    T(an_experiment_that_made_way_is_deleted_with_its_change),
	    T(experiments_make_way_after_the_clock_was_set_back),
	    T(a_first_run_of_another_accelerator_in_the_repository_delays_experiments),
	    T(authors_take_turns),
	    T(the_author_who_spent_less_comes_first),
	    T(a_machine_gets_an_experiment_only_when_nothing_else_waits),
	    T(experiments_are_not_shown_as_runs_of_their_commit),
	    T(experiments_take_no_capacity_from_first_runs),
	    T(an_experiment_waits_while_the_runner_has_no_room),
	    T(no_more_leases_than_max_parallel_are_active),
	    T(a_first_run_without_a_machine_replaces_an_experiment),
	    T(a_machine_is_handed_over_five_times_at_most),
	    T(only_as_many_experiments_make_way_as_first_runs_wait),
	    T(experiments_make_way_for_each_runner_of_the_machine),
	    T(a_machine_is_handed_over_after_the_clock_was_set_back),
	    T(a_newer_head_stops_the_machine),
	    T(a_restart_changes_nothing),
	    T(deadlines_move_with_the_clock),
	    T(the_rounds_of_a_stress_run_one_after_the_other),
	    T(a_stress_run_delays_no_experiment),
	    T(an_interrupted_stress_run_is_answered_with_partial_results),
	    T(a_stress_run_needs_a_runner_with_reruns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
