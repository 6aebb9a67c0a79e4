/* Derived state: the test drives each cause, and each observer reports whether it saw a change. Also, after every
 * cause, recomputing the derived state from the jobs and dispatches gives the stored state. */
#include "commands_rig.h"
#include "db/db.h"
#include "db/touched.h"
#include "experiments/experiments.h"
#include "history/run_note.h"
#include "lease_rig.h"
#include "verdict/attribution.h"
#include "verdict/cells_moved.h"
#include "verdict/known_issues.h"
#include "verdict/verdicts.h"

/* ---- the observers ---- */

#define ROWS(columns, from) "SELECT group_concat(x, '\n') FROM (SELECT " columns " AS x FROM " from ") listed"

/* The table below names them in this order. */
static const struct observer {
	const char *name, *sql;
} OBSERVERS[] = {
    {"cells", ROWS("json_array(v.change_id, v.accelerator, v.test_id, v.status, v.message, v.job_id, v.is_late)",
		  "change c CROSS JOIN cell v ON v.change_id = c.id ORDER BY v.change_id, v.accelerator, v.test_id")},
    {"attribution", ROWS("json_array(change_id, accelerator, test_id, attribution, reason, evidence_job,"
			 " evidence_url)",
			"verdict WHERE attribution IS NOT NULL ORDER BY change_id, accelerator, test_id")},
    {"due", ROWS("json_array(change_id, next_ms, generation)", "attribution_due ORDER BY change_id")},
    {"run", ROWS("json_array(change_id, accelerator, ended_ms, outcome, n_dispatches, n_met)",
		"run ORDER BY change_id, accelerator")},
    {"suites", ROWS("json_array(change_id, accelerator, suite, status, job_id)",
		   "run_suite ORDER BY change_id, accelerator, suite")},
    {"days", ROWS("json_array(accelerator, day, n_runs, n_green, n_fail, n_miss, n_pass,"
		  " n_dispatches, n_met)",
		 "day ORDER BY accelerator, day")},
    {"history", "SELECT (SELECT group_concat(json_array(accelerator, day, hex(cells)))"
		" FROM history_run) || (SELECT group_concat(json_array(outcome, state))"
		" FROM schedule_run)"},
    {"platform", ROWS("json_array(accelerator, torch, change_id, n_passed, n_failed, n_missing)",
		     "platform_test ORDER BY accelerator, torch")},
    {"episode", ROWS("json_array(accelerator, first_bad_change, ended_ms)", "red_episode ORDER BY id")},
    {"health", ROWS("json_array(name, unhealthy_since_ms)", "accelerator ORDER BY name")},
    {"experiments", ROWS("json_array(side, sha, state)", "experiment ORDER BY id")},
    {"comment", ROWS("json_array(key, generation)", "outbox WHERE kind = 'comment' ORDER BY key")},
    {"twin", ROWS("generation", "outbox WHERE kind = 'comment' AND number = 2")},
    {"checks", ROWS("json_array(key, generation)", "outbox WHERE kind = 'checks' ORDER BY key")},
};

static struct db *look;
static struct store_touched touched;

static void on_changes(unsigned topics, void *owner)
{
	(void)topics;
	(void)owner;
	touched_merge(&touched, store_touched(rig_store));
}

static char *see(const struct view *d, const struct observer *o)
{
	char *text = db_text_values(d, o->sql, VALUES());

	if (db_status(d))
		fail_msg("%s: %s", o->name, db_why(d)->text);
	return text ? text : xstrdup("");
}

static int64_t number(const char *sql) { return db_int_values(db_view(look), 0, sql, VALUES()); }

/* ---- the fixture: a push to main, and PR 1 with a repository and a farm ---- */

static const char *const nothing_skipped[] = {NULL};
static const char *const qwen_skipped[] = {"model/Qwen", NULL};

static void mirror(enum level level, const char *const *skip)
{
	static char *no_names[] = {NULL}, *must_pass[] = {(char *)"model/llama3", NULL};
	struct accelerator npu = {.name = (char *)"npu",
	    .title = (char *)"NPU",
	    .level = level,
	    .oncall = no_names,
	    .must_pass = must_pass,
	    .skip = (char **)skip};
	struct mirror_registry m = {.list = &npu, .n = 1, .now_ms = T0};

	DO_OK(store_mirror_registry, &m);
}

static void push(const char *sha, const char *before)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct push_commit commit = {
	    .sha = (char *)sha, .author = (char *)"alice", .title = (char *)"A commit", .at_ms = T0 - HOUR};
	struct plan p = {.kind = PLAN_START,
	    .change_kind = CHANGE_PUSH,
	    .repository = (char *)UPSTREAM,
	    .head_sha = (char *)sha,
	    .before = (char *)before,
	    .ref = (char *)"refs/heads/main",
	    .commits = &commit,
	    .n_commits = 1,
	    .event_type = "push",
	    .wants = wants,
	    .n_wants = 1};
	struct apply_plan op = {.guid = sha, .body = "{}", .body_bytes = 2, .plan = &p, .now_ms = T0 - HOUR};

	DO_OK(store_apply_plan, &op);
	free(rig_send(T0));
}

static void open_pull(int64_t number, const char *head, const char *held_reason)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), PULL_WANT("npu", "farm")};

	wants[1].held_reason = (char *)held_reason;
	rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .number = number,
	    .head = head,
	    .event_ms = T0 + number * SECOND,
	    .wants = wants,
	    .n_wants = 2});
}

static char *dispatch_of(const char *head, const char *runner)
{
	char *id = db_text(look,
	    "SELECT x.id FROM dispatch x JOIN change c ON c.id = x.change_id"
	    " WHERE c.head_sha = ?1 AND x.runner = ?2 AND x.is_current = 1",
	    V_TEXT(head), V_TEXT(runner));

	assert_non_null(id);
	return id;
}

/* A job of the repository's: PASS of model/llama3 and, if it failed, FAIL of model/Qwen. */
struct job {
	const char *head, *conclusion; /* NULL: in progress */
	int attempt;                   /* 0: 1 */
	int64_t at;
	bool is_silent;
};
static int64_t report(const struct job *job)
{
	static const char *const npu[] = {"npu", NULL};
	bool is_red = job->conclusion && strcmp(job->conclusion, "failure") == 0;
	struct test_result tests[] = {
	    {.suite = (char *)"model", .name = (char *)"llama3", .status = TEST_PASS},
	    {.suite = (char *)"model",
		.name = (char *)"Qwen",
		.status = is_red ? TEST_FAIL : TEST_PASS,
		.message = (char *)(is_red ? "RuntimeError: npu_fused_attention has no kernel for BFloat16" : NULL)},
	};
	char *id = dispatch_of(job->head, "ci");
	struct job_report j = {.status = job->conclusion ? JOB_COMPLETED : JOB_IN_PROGRESS,
	    .conclusion = (char *)job->conclusion,
	    .workflow = (char *)"CI",
	    .name = (char *)"test",
	    .run_id = (char *)"1",
	    .run_attempt = job->attempt ? job->attempt : 1,
	    .tests = tests,
	    .n_tests = job->conclusion ? 2 : 0};
	struct report_job op = {.dispatch_id = id,
	    .report = &j,
	    .accelerator = "npu",
	    .silent = job->is_silent ? npu : NULL,
	    .now_ms = T0 + job->at};

	sha256(id, (size_t)j.run_attempt, j.digest);
	DO_OK(store_report_job, &op);
	free(id);
	return op.job_id;
}

static void put_document(int64_t job_id, int64_t at)
{
	struct test_result tests[] = {{.suite = (char *)"unit", .name = (char *)"ops", .status = TEST_PASS}};
	struct put_report p = {.job_id = job_id,
	    .tests = tests,
	    .n_tests = 1,
	    .environment = "{\"torch\":\"2.10.0a0+gitabc\",\"os\":\"Ubuntu 22.04\"}",
	    .now_ms = T0 + at};

	DO_OK(store_put_report, &p);
}

static void deadlines(int64_t at)
{
	struct expire_dispatches e = {.now_ms = T0 + at};

	DO_OK(store_expire_dispatches, &e);
}

static struct lease_offer offer;

static void say_member(enum command_kind kind)
{
	rig_say(&(struct rig_comment){.kind = kind, .at_ms = T0 + 10 * MINUTE, .speaker = SPEAKER_MEMBER});
}

static void look_again(bool has_learnt)
{
	struct attribute_change a = {.change_id = number("SELECT id FROM change WHERE head_sha = '" HEAD_A "'"),
	    .generation = number("SELECT generation FROM attribution_due WHERE change_id ="
				 " (SELECT id FROM change WHERE head_sha = '" HEAD_A "')"),
	    .has_learnt = has_learnt,
	    .now_ms = T0 + HOUR};

	DO_OK(store_attribute_change, &a);
}

/* Attributes the due changes until none is left. */
static void settle(void)
{
	int64_t id;

	while ((id = number("SELECT change_id FROM attribution_due LIMIT 1")) != 0) {
		struct attribute_change a = {.change_id = id,
		    .generation = number("SELECT generation FROM attribution_due LIMIT 1"),
		    .now_ms = T0 + HOUR};

		DO_OK(store_attribute_change, &a);
	}
}

/* ---- causes ---- */

static void an_empty_store(void) {}

static void a_pull_request(void)
{
	open_pull(1, HEAD_A, NULL);
	free(rig_send(T0 + 2 * SECOND));
}
static void a_job_in_progress(void)
{
	a_pull_request();
	report(&(struct job){.head = HEAD_A, .at = MINUTE});
}
static void a_job_done(void)
{
	a_pull_request();
	report(&(struct job){.head = HEAD_A, .conclusion = "success", .at = MINUTE});
}
static void a_job_red(void)
{
	a_pull_request();
	report(&(struct job){.head = HEAD_A, .conclusion = "failure", .at = MINUTE});
	settle();
}
static void a_machine_at_work(void)
{
	a_pull_request();
	offer = take("npu-1", "c1", SECOND);
}
static void a_job_done_and_a_machine_at_work(void)
{
	a_job_done();
	offer = take("npu-1", "c1", SECOND);
}
static void two_pull_requests_of_one_head(void)
{
	open_pull(2, HEAD_A, NULL);
	a_job_done_and_a_machine_at_work();
}
static void a_silent_push(void)
{
	push(HEAD_B, HEAD_C);
	deadlines(7 * HOUR);
}

static void a_job_starts(void) { report(&(struct job){.head = HEAD_A, .at = MINUTE}); }
static void the_machine_finishes(void) { finish(&offer, "success", MINUTE); }
static void a_job_fails(void) { report(&(struct job){.head = HEAD_A, .conclusion = "failure", .at = 2 * MINUTE}); }
static void a_push_fails(void) { report(&(struct job){.head = HEAD_B, .conclusion = "failure", .at = 2 * MINUTE}); }
static void a_retry_passes(void)
{
	report(&(struct job){.head = HEAD_A, .conclusion = "success", .attempt = 2, .at = 3 * MINUTE});
}
static void a_document_arrives(void) { put_document(number("SELECT MAX(id) FROM job"), 3 * MINUTE); }
static void a_push(void) { push(HEAD_B, HEAD_C); }
static void a_push_with_a_job(void)
{
	a_push();
	report(&(struct job){.head = HEAD_B, .conclusion = "success", .at = MINUTE});
}
static void a_vendor_reports_itself(void)
{
	struct test_result tests[] = {{.suite = (char *)"model", .name = (char *)"llama3", .status = TEST_PASS}};
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"success",
	    .workflow = (char *)"nightly",
	    .name = (char *)"all",
	    .run_id = (char *)"1",
	    .run_attempt = 1,
	    .tests = tests,
	    .n_tests = 1};
	struct report_nightly op = {.repository = UPSTREAM,
	    .target = "Ascend/pytorch",
	    .accelerator = "npu",
	    .head_sha = HEAD_A,
	    .report = &j,
	    .now_ms = T0};

	DO_OK(store_report_nightly, &op);
}
static void a_missed_deadline_before_the_move_to_l1(void)
{
	a_pull_request();
	deadlines(7 * HOUR);
	mirror(LEVEL_1, nothing_skipped);
}
static void a_job_is_reported_at_l1(void)
{
	report(&(struct job){.head = HEAD_A, .conclusion = "success", .at = 8 * HOUR, .is_silent = true});
}
/* Attempt 2 began, fell silent and counts as such; then attempt 1 is reported. */
static void a_second_attempt_fell_silent(void)
{
	a_pull_request();
	report(&(struct job){.head = HEAD_A, .attempt = 2, .at = MINUTE});
	deadlines(7 * HOUR);
}
static void the_first_attempt_is_reported(void)
{
	report(&(struct job){.head = HEAD_A, .conclusion = "success", .at = 8 * HOUR});
}

static void a_round_starts(void)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), PULL_WANT("npu", "farm")};

	rig_start("reopened", HEAD_A, 600, wants, 2);
}
static void a_pull_request_waits_for_a_person(void) { open_pull(1, HEAD_A, "the author is new"); }
static void the_request_arrives(void) { free(rig_send(T0 + 2 * SECOND)); }
static void the_request_is_refused(void)
{
	struct claim_outbox c = rig_claim(REQUESTS, T0 + 2 * SECOND);

	assert_int_equal(c.n, 1);
	rig_done(&c.rows[0], OUTBOX_DEAD, 0);
	claim_outbox_release(&c);
}
static void a_machine_claims_the_dispatch(void) { offer = take("npu-1", "c1", SECOND); }
static void the_machine_returns_the_lease(void) { give_back(&offer, "npu-1", "drained", MINUTE); }
static void the_machine_falls_silent(void) { expire(2 * MINUTE); }
static void a_machine_fell_silent(void)
{
	a_machine_at_work();
	expire(2 * MINUTE);
}
static void the_machine_sends_a_late_heartbeat(void) { ASSERT_RENEWED(&offer, "npu-1", 3 * MINUTE, LEASE_ACTIVE, ""); }
static void all_machines_but_one_fell_silent(void)
{
	a_job_done();
	for (int i = 0; i <= LEASE_HANDOVERS_MAX; i++) {
		char claim_id[16];

		if (i)
			expire(i * HOUR);
		snprintf(claim_id, sizeof(claim_id), "c%d", i);
		lease_offer_release(&offer);
		offer = take("npu-1", claim_id, i * HOUR);
	}
}
static void the_last_machine_falls_silent(void) { expire((LEASE_HANDOVERS_MAX + 1) * HOUR); }
static void the_deadlines_pass(void) { deadlines(7 * HOUR); }
static void the_runs_are_cancelled(void) { say_member(COMMAND_CANCEL); }
static void a_job_in_progress_was_cancelled(void)
{
	a_job_in_progress();
	deadlines(3 * HOUR); /* the farm's job has ended, so that a report recomputes the cells */
	say_member(COMMAND_CANCEL);
}
static void the_cancelled_job_fails(void)
{
	report(&(struct job){.head = HEAD_A, .conclusion = "failure", .at = HOUR});
}
static void the_cancelled_machine_finishes(void) { finish(&offer, "success", HOUR); }
static void a_machine_was_cancelled(void)
{
	a_job_done_and_a_machine_at_work();
	say_member(COMMAND_CANCEL);
}
static void the_head_is_declined(void) { say_member(COMMAND_DECLINE); }
static void one_done_and_one_held(void)
{
	open_pull(1, HEAD_A, "the author is new");
	free(rig_send(T0 + 2 * SECOND));
	report(&(struct job){.head = HEAD_A, .conclusion = "success", .at = MINUTE});
}
static void the_head_is_released(void) { say_member(COMMAND_OK_TO_TEST); }
static void the_pull_request_is_closed(void) { rig_close_pull(1, HEAD_A, 600); }
static void a_new_head_arrives(void)
{
	rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .head = HEAD_B,
	    .before = HEAD_A,
	    .event_ms = T0 + 10 * MINUTE,
	    .action = "synchronize"});
}
static void the_label_is_removed(void)
{
	static char *npu[] = {(char *)"npu", NULL};

	rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .head = HEAD_A,
	    .event_ms = T0 + 10 * MINUTE,
	    .action = "unlabeled",
	    .sent_action = "closed",
	    .drops = npu});
}

static void a_test_is_skipped(void) { mirror(LEVEL_2, qwen_skipped); }
static void the_accelerator_leaves_the_registry(void)
{
	struct mirror_registry m = {.now_ms = T0};

	DO_OK(store_mirror_registry, &m);
}
static void an_issue_is_known(void)
{
	struct add_known k = {
	    .pattern = "model/*", .url = "https://example.org/1", .until_ms = T0 + DAY, .now_ms = T0 + MINUTE};

	DO_OK(store_add_known, &k);
}
static void a_known_issue_explains_it(void)
{
	a_job_red();
	an_issue_is_known();
	settle();
}
static void the_issue_is_removed(void)
{
	struct remove_known k = {.id = 1, .now_ms = T0 + 2 * MINUTE};

	DO_OK(store_remove_known, &k);
}
static void the_issue_expires(void)
{
	struct expire_known k = {.now_ms = T0 + 2 * DAY};

	DO_OK(store_expire_known, &k);
	assert_int_equal(k.n_expired, 1);
}
static void a_known_issue_with_a_due_change(void)
{
	a_job_red();
	an_issue_is_known();
}
static void the_change_is_attributed_again(void) { look_again(false); }
static void two_changes_with_the_same_failure(void)
{
	a_job_red();
	open_pull(2, HEAD_B, NULL);
	free(rig_send(T0 + 3 * SECOND));
	report(&(struct job){.head = HEAD_B, .conclusion = "failure", .at = 2 * MINUTE});
	settle();
}
static void the_evidence_arrives(void) { look_again(true); }
static void the_merge_base_is_found(void)
{
	struct put_merge_base p = {.change_id = number("SELECT id FROM change WHERE head_sha = '" HEAD_A "'"),
	    .sha = HEAD_C,
	    .now_ms = T0 + MINUTE};

	DO_OK(store_put_merge_base, &p);
}
static void the_base_branch_changes(void)
{
	struct pull_info pull = {.number = 1,
	    .head_sha = (char *)HEAD_A,
	    .base_ref = (char *)"release/2.9",
	    .base_sha = (char *)HEAD_B,
	    .is_open = true,
	    .updated_ms = T0 + 20 * MINUTE};
	struct note_head n = {.repository = UPSTREAM, .pull = &pull, .now_ms = T0 + 20 * MINUTE};

	DO_OK(store_note_head, &n);
}

/* ---- experiments ---- */

static void the_runner_accepts_reruns(void)
{
	static char *no_names[] = {NULL}, *must_pass[] = {(char *)"model/llama3", NULL};
	struct runner ci = {.name = (char *)"ci",
	    .kind = RUNNER_GITHUB,
	    .repository = (char *)"Ascend/pytorch",
	    .reruns = RERUNS_TESTS};
	struct accelerator npu = {.name = (char *)"npu",
	    .title = (char *)"NPU",
	    .level = LEVEL_2,
	    .oncall = no_names,
	    .must_pass = must_pass,
	    .experiments = {.tests = 50, .per_head = 1, .share_permille = 100},
	    .runners = &ci,
	    .n_runners = 1};
	struct mirror_registry m = {.list = &npu, .n = 1, .now_ms = T0};

	npu.skip = no_names;
	DO_OK(store_mirror_registry, &m);
}
static void merge_base_of(const char *head)
{
	struct put_merge_base m = {.sha = HEAD_C, .now_ms = T0 + 15 * MINUTE};

	m.change_id =
	    db_int(look, 0, "SELECT id FROM change WHERE head_sha = ?1 AND kind = 'pull_request'", V_TEXT(head));
	DO_OK(store_put_merge_base, &m);
}
static void report_experiment(int64_t experiment)
{
	char *run_id = xasprintf("%lld", (long long)experiment);
	struct test_result t = {
	    .suite = (char *)"model", .name = (char *)"Qwen", .status = TEST_PASS, .duration_ms = -1};
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"success",
	    .workflow = (char *)"CI",
	    .name = (char *)"again",
	    .run_id = run_id,
	    .run_attempt = 1,
	    .tests = &t,
	    .n_tests = 1};
	char *id = db_text(look,
	    "SELECT x.id FROM experiment e JOIN dispatch x ON x.change_id = e.run_change_id"
	    " WHERE e.id = ?1",
	    V_INT(experiment));
	struct report_job op = {.dispatch_id = id, .report = &j, .now_ms = T0 + 25 * MINUTE};

	assert_non_null(id);
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
	free(run_id);
}
static void an_experiment_on_the_head(void)
{
	the_runner_accepts_reruns();
	a_job_red();
	settle();
	assert_true(number("SELECT COUNT(*) FROM experiment WHERE state = 'started'") > 0);
}
static void an_experiment_on_a_base_of_two(void)
{
	the_runner_accepts_reruns();
	open_pull(2, HEAD_B, NULL);
	merge_base_of(HEAD_B);
	report(&(struct job){.head = HEAD_B, .conclusion = "failure", .at = MINUTE});
	an_experiment_on_the_head();
	merge_base_of(HEAD_A);
	/* both sides count when the last of them has ended */
	report_experiment(number("SELECT MIN(id) FROM experiment WHERE side = 'head'"));
	settle();
}
static void the_experiment_is_reported(void)
{
	report_experiment(number("SELECT MAX(id) FROM experiment WHERE side = 'head'"));
}
static void the_base_is_reported(void)
{
	report_experiment(number("SELECT MAX(id) FROM experiment WHERE side = 'base'"));
}

/* ---- the breaker ---- */

/* Red pushes, one fewer than make it unhealthy, and PR 1, which was tested. */
enum { RED_UNTIL_UNHEALTHY = 8 };
static void one_more_red_push(int n)
{
	static char shas[RED_UNTIL_UNHEALTHY][41];

	snprintf(shas[n], sizeof(shas[n]), "%040x", n + 1);
	push(shas[n], n ? shas[n - 1] : HEAD_C);
	report(&(struct job){.head = shas[n], .conclusion = "failure", .at = n * MINUTE});
}
static void the_accelerator_is_almost_unhealthy(void)
{
	a_job_done();
	for (int n = 0; n < RED_UNTIL_UNHEALTHY - 1; n++)
		one_more_red_push(n);
	settle();
}
static void the_accelerator_becomes_unhealthy(void) { one_more_red_push(RED_UNTIL_UNHEALTHY - 1); }

/* ---- the table ---- */

static const struct scenario {
	enum cells_cause cause;
	const char *name;
	void (*before)(void), (*it)(void);
	const char *seen_by;
} SCENARIOS[] = {
#define X(cause, before, it, seen_by)                                                                                  \
	{                                                                                                              \
		cause, #before ", " #it, before, it, seen_by                                                           \
	}
    X(CELLS_JOB_STARTED, a_pull_request, a_job_starts, "due comment checks page"),
    X(CELLS_JOB_COMPLETED, a_job_in_progress, a_job_fails, "cells attribution due comment checks page"),
    X(CELLS_JOB_COMPLETED, a_job_done_and_a_machine_at_work, the_machine_finishes,
	"cells due run days comment checks page"),
    X(CELLS_JOB_COMPLETED, a_push, a_push_fails, "cells attribution run suites days episode page"),
    X(CELLS_JOB_REPLACED, a_silent_push, a_push_fails, "cells attribution run suites days page"),
    X(CELLS_JOB_REPLACED, a_job_red, a_retry_passes, "cells attribution due comment checks page"),
    X(CELLS_JOB_REPLACED, a_second_attempt_fell_silent, the_first_attempt_is_reported,
	"cells attribution due comment checks page"),
    X(CELLS_REPORT_ADDED, a_job_done, a_document_arrives, "cells due comment checks page"),
    X(CELLS_REPORT_ADDED, a_push_with_a_job, a_document_arrives, "cells suites days platform page"),
    X(CELLS_SELF_REPORTED, an_empty_store, a_vendor_reports_itself, "cells history page"),
    X(CELLS_SELF_REPORTED, a_vendor_reports_itself, a_document_arrives, "cells history platform page"),
    X(CELLS_REPORTED_AT_L1, a_missed_deadline_before_the_move_to_l1, a_job_is_reported_at_l1,
	"cells attribution due comment checks page"),

    X(CELLS_STARTED, two_pull_requests_of_one_head, a_round_starts, "cells due comment twin checks page"),
    X(CELLS_STARTED, one_done_and_one_held, the_head_is_released, "comment checks page"),
    X(CELLS_HELD, an_empty_store, a_pull_request_waits_for_a_person, "due comment checks page"),
    X(CELLS_SENT, a_pull_request_waits_for_a_person, the_request_arrives, "comment checks page"),
    X(CELLS_NOT_SENT, a_pull_request_waits_for_a_person, the_request_is_refused,
	"cells attribution due comment checks page"),
    X(CELLS_LEASE_GRANTED, a_job_done, a_machine_claims_the_dispatch, "comment checks page"),
    X(CELLS_LEASE_ENDED, a_machine_at_work, the_machine_returns_the_lease, "comment checks page"),
    X(CELLS_LEASE_ENDED, a_machine_at_work, the_machine_falls_silent, "comment checks page"),
    X(CELLS_LEASE_RESUMED, a_machine_fell_silent, the_machine_sends_a_late_heartbeat, "comment checks page"),
    X(CELLS_LEASES_EXHAUSTED, all_machines_but_one_fell_silent, the_last_machine_falls_silent,
	"cells attribution due run days comment checks page"),
    X(CELLS_DEADLINE_PASSED, a_job_done_and_a_machine_at_work, the_deadlines_pass,
	"cells attribution due run days comment checks page"),

    /* If everything was cancelled there is no run; if a part had ended, the run consists of that part. */
    X(CELLS_CANCELLED, a_pull_request, the_runs_are_cancelled, "due comment checks page"),
    X(CELLS_CANCELLED, a_machine_at_work, the_runs_are_cancelled, "comment checks page"),
    X(CELLS_CANCELLED, a_job_done_and_a_machine_at_work, the_runs_are_cancelled, "run days comment checks page"),
    X(CELLS_CANCELLED, a_job_in_progress_was_cancelled, the_cancelled_job_fails, "page"),
    X(CELLS_CANCELLED, a_machine_was_cancelled, the_cancelled_machine_finishes, "page"),
    X(CELLS_CANCELLED, one_done_and_one_held, the_head_is_declined, "run days comment checks page"),
    X(CELLS_WITHDRAWN, a_job_done_and_a_machine_at_work, the_pull_request_is_closed, "run days comment checks page"),
    X(CELLS_WITHDRAWN, a_job_done_and_a_machine_at_work, a_new_head_arrives, "run days comment checks page"),
    X(CELLS_WITHDRAWN, a_job_done_and_a_machine_at_work, the_label_is_removed, "run days comment checks page"),
    X(CELLS_RETIRED, a_job_red, a_round_starts, "cells attribution comment checks page"),

    X(CELLS_SKIPS_CHANGED, a_job_red, a_test_is_skipped, "cells attribution due comment checks page"),
    X(CELLS_SKIPS_CHANGED, a_job_red, the_accelerator_leaves_the_registry, ""),
    X(CELLS_KNOWN_CHANGED, a_job_red, an_issue_is_known, "due"),
    X(CELLS_KNOWN_CHANGED, a_known_issue_explains_it, the_issue_is_removed, "due"),
    X(CELLS_KNOWN_CHANGED, a_known_issue_explains_it, the_issue_expires, "due"),
    X(CELLS_LOOKED_AGAIN, a_known_issue_with_a_due_change, the_change_is_attributed_again,
	"attribution due comment checks page"),
    X(CELLS_LOOKED_AGAIN, a_job_red, the_change_is_attributed_again, ""),
    X(CELLS_EVIDENCE_CAME, a_known_issue_with_a_due_change, the_evidence_arrives,
	"attribution due comment checks page"),
    X(CELLS_EVIDENCE_CAME, two_changes_with_the_same_failure, the_evidence_arrives, "due"),
    X(CELLS_BASE_FOUND, a_job_done, the_merge_base_is_found, "comment checks page"),
    X(CELLS_BASE_CHANGED, a_job_red, the_base_branch_changes, "due"),
    X(CELLS_CHANGE_SETTLED, an_experiment_on_the_head, the_pull_request_is_closed,
	"run days experiments comment checks page"),
    X(CELLS_EXPERIMENT_MOVED, an_experiment_on_the_head, the_experiment_is_reported,
	"cells attribution experiments comment checks page"),
    X(CELLS_BASE_TESTED, an_experiment_on_a_base_of_two, the_base_is_reported,
	"cells attribution due experiments comment twin checks page"),
    X(CELLS_RERUNS_CHANGED, a_job_red, the_runner_accepts_reruns, "due"),
    X(CELLS_HEALTH_CHANGED, the_accelerator_is_almost_unhealthy, the_accelerator_becomes_unhealthy,
	"cells attribution run suites days health comment checks page"),
#undef X
};

static size_t scenario;

static int setup(void **state)
{
	char *path;

	scenario = *state ? (size_t)((const struct scenario *)*state - SCENARIOS) : 0;
	rig_setup(state);
	rig_n_guids = 0;
	path = rig_path();
	assert_int_equal(db_open(path, DB_READER, &look, NULL), 0);
	free(path);
	mirror(LEVEL_2, nothing_skipped);
	store_subscribe(rig_store, STORE_CHANGES, on_changes, NULL);
	return 0;
}

static int teardown(void **state)
{
	lease_offer_release(&offer);
	offer = (struct lease_offer){0};
	db_close(look);
	return rig_teardown(state);
}

static void observe_all(const struct view *d, char **ret)
{
	for (size_t i = 0; i < ARRAY_LEN(OBSERVERS); i++)
		ret[i] = see(d, &OBSERVERS[i]);
}

static void free_lines(char **list)
{
	for (size_t i = 0; i < ARRAY_LEN(OBSERVERS); i++)
		free(list[i]);
}

/* The names of the observers that see a change. */
static char *differences(char **before, char **after)
{
	struct buf text = BUF_INIT(4096);

	buf_append_str(&text, "");
	for (size_t i = 0; i < ARRAY_LEN(OBSERVERS); i++)
		if (strcmp(before[i], after[i]) != 0)
			buf_appendf(&text, "%s%s", text.len ? " " : "", OBSERVERS[i].name);
	return text.data ? buf_detach(&text) : xstrdup("");
}

/* Recomputes everything in a transaction that is rolled back. The store is closed. */
static void recompute_all(struct txn *d)
{
	struct rows *r = db_rows(d, "SELECT id, kind IN ('nightly', 'experiment') FROM change ORDER BY id");
	int64_t ids[64], n = 0;

	while (rows_next(r) && n < (int64_t)ARRAY_LEN(ids))
		ids[n++] = rows_int(r, 1) ? -rows_int(r, 0) : rows_int(r, 0);
	for (int64_t i = 0; i < n; i++) {
		int64_t id = ids[i] < 0 ? -ids[i] : ids[i];

		verdicts_rebuild(d, id, "npu");
		if (ids[i] > 0) /* self-reports and experiments are not attributed */
			attribution_apply(d, id, "npu", T0 + HOUR);
		if (!experiment_is_run(d->view, id))
			run_note(d, id, "npu", T0 + HOUR);
	}
}

static void assert_it_is_what_follows(void)
{
	char *kept[ARRAY_LEN(OBSERVERS)], *made[ARRAY_LEN(OBSERVERS)], *path;
	struct db *d;

	settle();
	rig_close();
	path = rig_path();
	assert_int_equal(db_open(path, DB_WRITER, &d, NULL), 0);
	free(path);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	observe_all(db_view(d), kept);
	recompute_all(db_txn(d));
	observe_all(db_view(d), made);
	db_rollback(d);
	db_close(d);
	for (size_t i = 0; i < ARRAY_LEN(OBSERVERS); i++)
		if (strcmp(kept[i], made[i]) != 0)
			fail_msg("%s: %s recomputed:\n%s\ndiffers from the stored state:\n%s", SCENARIOS[scenario].name,
			    OBSERVERS[i].name, made[i], kept[i]);
	free_lines(kept);
	free_lines(made);
}

static void each_scenario_matches_the_table(void **state)
{
	const struct scenario *s = &SCENARIOS[scenario];
	char *before[ARRAY_LEN(OBSERVERS)], *after[ARRAY_LEN(OBSERVERS)], *seen, *all;

	(void)state;
	s->before();
	touched = (struct store_touched){0};
	observe_all(db_view(look), before);
	s->it();
	observe_all(db_view(look), after);
	seen = differences(before, after);
	all = xasprintf("%s%s", seen, !touched.n_changes ? "" : seen[0] ? " page" : "page");
	if (strcmp(all, s->seen_by) != 0) {
		for (size_t k = 0; k < ARRAY_LEN(OBSERVERS); k++)
			if (strcmp(before[k], after[k]) != 0)
				print_message("%s:\n%s\n→\n%s\n", OBSERVERS[k].name, before[k], after[k]);
		print_error("%s: seen by [%s], expected [%s]\n", s->name, all, s->seen_by);
		fail();
	}
	free(seen);
	free(all);
	free_lines(before);
	free_lines(after);
	if (s->it != the_accelerator_leaves_the_registry)
		assert_it_is_what_follows();
}

static void every_cause_notifies_its_observers(void **state)
{
	(void)state;
	for (int cause = 0; cause < N_CELLS_CAUSES; cause++) {
		bool is_driven = false;

		for (size_t i = 0; i < ARRAY_LEN(SCENARIOS); i++)
			is_driven |= (int)SCENARIOS[i].cause == cause;
		if (!is_driven)
			fail_msg("no scenario has cause %d", cause);
	}
}

int main(void)
{
	static struct CMUnitTest tests[ARRAY_LEN(SCENARIOS) + 1];

	tests[0] = (struct CMUnitTest)cmocka_unit_test(every_cause_notifies_its_observers);
	for (size_t i = 0; i < ARRAY_LEN(SCENARIOS); i++) {
		tests[i + 1].name = SCENARIOS[i].name;
		tests[i + 1].test_func = each_scenario_matches_the_table;
		tests[i + 1].setup_func = setup;
		tests[i + 1].teardown_func = teardown;
		tests[i + 1].initial_state = (void *)&SCENARIOS[i];
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
