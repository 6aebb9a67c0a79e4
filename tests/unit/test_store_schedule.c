/* Periodic runs in the store: started once, not repeated, skipped with a reason, dispatched for both heads, and
 * complete after a kill at any point. */
#include <signal.h>
#include <sys/wait.h>

#include "lease_rig.h"
#include "store/claims.h"
#include "store/dispatches.h"
#include "store/job_reports.h"
#include "store/jobs.h"
#include "store/outbox.h"
#include "store/registry.h"
#include "store/schedules.h"
#include "views/nightly.h"

#define DUE  (T0 + 14 * HOUR) /* 2026-11-21T02:00:00Z */
#define SRC1 "1111111111111111111111111111111111111111"
#define SRC2 "2222222222222222222222222222222222222222"

/* ---- one look ---- */

struct who {
	const char *name, *cron;
};

static int64_t found_run; /* by the last look */

/* "taken skipped [run:accelerator …]" of a look at the schedules of `who`. */
static char *look(const struct who *who, size_t n, int64_t now_ms, int64_t *ret_next_ms)
{
	struct schedule_entry entries[8];
	struct schedule times[8];
	const char *crons[8][2];
	struct look_at_schedules o = {.entries = entries, .n_entries = n, .now_ms = now_ms};
	struct buf text = BUF_INIT(1024);

	for (size_t i = 0; i < n; i++) {
		crons[i][0] = who[i].cron;
		crons[i][1] = NULL;
		schedule_init(&times[i], who[i].name, crons[i], 0);
		entries[i] = (struct schedule_entry){who[i].name, crons[i], &times[i]};
	}
	DO_OK(store_look_at_schedules, &o);
	buf_appendf(&text, "%d %d", o.n_taken, o.n_skipped);
	found_run = o.n ? o.tasks[0].id : 0;
	for (size_t i = 0; i < o.n; i++)
		buf_appendf(&text, " %s", o.tasks[i].accelerator);
	if (ret_next_ms)
		*ret_next_ms = o.next_ms;
	look_at_schedules_release(&o);
	for (size_t i = 0; i < n; i++)
		schedule_release(&times[i]);
	return buf_detach(&text);
}

static const struct who NPU[] = {{"npu", "0 2 * * *"}};

#define ASSERT_LOOK(who, now_ms, expected)                                                                             \
	do {                                                                                                           \
		char *got_ = look(who, ARRAY_LEN(who), now_ms, NULL);                                                  \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

/* The newest run as "cause state outcome reason". */
static char *newest(const char *accelerator)
{
	struct list_schedules l = {.accelerator = accelerator};
	const struct schedule_row *r;
	char *text;

	ASK_OK(store_list_schedules, &l);
	assert_int_equal(l.n, 1);
	r = &l.list[0];
	text = r->due_ms ? xasprintf("%s %s %s %s", r->cause, r->state, r->outcome ? r->outcome : "-",
			       r->reason ? r->reason : "-")
			 : xstrdup("none");
	list_schedules_release(&l);
	return text;
}

#define ASSERT_NEWEST(accelerator, expected)                                                                           \
	do {                                                                                                           \
		char *got_ = newest(accelerator);                                                                      \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

static void mirror(enum level level)
{
	static char *none[] = {NULL};
	struct accelerator a = {
	    .name = (char *)"npu",
	    .title = (char *)"NPU",
	    .level = level,
	    .oncall = none,
	    .must_pass = none,
	    .skip = none,
	};
	struct mirror_registry m = {.list = &a, .n = 1, .now_ms = T0};

	DO_OK(store_mirror_registry, &m);
}

static int setup(void **state)
{
	rig_setup(state);
	mirror(LEVEL_2);
	return 0;
}

/* ---- heads ---- */

static struct start_schedule_run start_of(int64_t run_id, const char *head, const char *source, int64_t now_ms)
{
	static int n;
	char guid[32];
	struct plan_want wants[] = {PULL_WANT("npu", "farm"), GITHUB_WANT("npu", "Ascend/pytorch")};
	struct source_head s = {
	    .accelerator = (char *)"npu",
	    .git_url = (char *)"https://example.org/npu.git",
	    .branch = (char *)"main",
	    .sha = (char *)source,
	};
	struct plan p = {
	    .kind = PLAN_START,
	    .change_kind = CHANGE_NIGHTLY,
	    .repository = (char *)UPSTREAM,
	    .head_sha = (char *)head,
	    .ref = (char *)"refs/heads/main",
	    .title = (char *)"The tip",
	    .starts_round = true,
	    .event_type = "nightly",
	    .sent_action = "",
	    .original_action = (char *)"",
	    .wants = wants,
	    .n_wants = 2,
	};
	struct start_schedule_run o = {
	    .run_id = run_id,
	    .plan = &p,
	    .guid = guid,
	    .body = "{\"after\":\"x\"}",
	    .body_bytes = 13,
	    .source = source ? &s : NULL,
	    .now_ms = now_ms,
	};

	snprintf(guid, sizeof(guid), "nightly-%d", ++n);
	DO_OK(store_start_schedule_run, &o);
	o.plan = NULL;
	o.guid = NULL;
	o.source = NULL;
	return o;
}

/* The run that the last look started. */
static int64_t open_run(void)
{
	assert_int_not_equal(found_run, 0);
	return found_run;
}

static const char *const *silent; /* as in the configuration */

/* Both runners report this. */
static void finish_tests(struct test_result *tests, size_t n_tests, int64_t now_ms)
{
	struct claim_dispatch c = claim("npu-1", "c", now_ms - T0);
	struct change_view *v = rig_view_of(0, silent ? HEAD_B : HEAD_A);

	lease_offer_release(&c.offer);
	for (size_t i = 0; i < v->n_accelerators; i++)
		for (size_t k = 0; k < v->accelerators[i].n_dispatches; k++) {
			struct dispatch_view *x = &v->accelerators[i].dispatches[k];
			struct job_report j = {
			    .status = JOB_COMPLETED,
			    .conclusion = (char *)(tests[0].status == TEST_FAIL ? "failure" : "success"),
			    .workflow = (char *)x->runner,
			    .name = (char *)"tests",
			    .run_id = (char *)x->id,
			    .run_attempt = 1,
			    .url = (char *)"https://ci.example.org/1",
			    .tests = tests,
			    .n_tests = n_tests,
			};
			struct report_job op = {.dispatch_id = x->id,
			    .accelerator = "npu",
			    .report = &j,
			    .silent = silent,
			    .now_ms = now_ms};

			if (!x->is_current)
				continue;
			DO_OK(store_report_job, &op);
			assert_int_equal(op.outcome, silent ? REPORT_IGNORED_LEVEL : REPORT_RECORDED);
		}
	change_view_free(v);
}

static void finish_all(enum test_status status, int64_t now_ms)
{
	finish_tests(
	    &(struct test_result){.suite = (char *)"model", .name = (char *)"llama3", .status = status}, 1, now_ms);
}

/* ---- when ---- */

static void a_due_time_starts_one_run(void **state)
{
	int64_t next_ms;

	(void)state;
	free(look(NPU, 1, T0, &next_ms));
	assert_int_equal(next_ms, DUE);
	ASSERT_NEWEST("npu", "none");
	ASSERT_LOOK(NPU, DUE - 1, "0 0");
	ASSERT_LOOK(NPU, DUE, "1 0 npu");
	ASSERT_NEWEST("npu", "schedule reading - -");
	/* After a crash, runs without an owner are returned again. */
	ASSERT_LOOK(NPU, DUE + 1, "0 0 npu");
	rig_reopen();
	ASSERT_LOOK(NPU, DUE + MINUTE, "0 0 npu");
}

static void missed_due_times_start_one_run(void **state)
{
	int64_t next_ms;

	(void)state;
	ASSERT_LOOK(NPU, T0, "0 0");
	rig_reopen();
	free(look(NPU, 1, T0 + 9 * DAY, &next_ms));
	assert_int_equal(next_ms, DUE + 9 * DAY);
	ASSERT_NEWEST("npu", "caught_up reading - -");
	ASSERT_LOOK(NPU, T0 + 9 * DAY + 1, "0 0 npu");
}

static void finish_open(int64_t now_ms)
{
	struct fail_schedule_run f = {.run_id = open_run(), .reason = "-", .now_ms = now_ms};

	DO_OK(store_fail_schedule_run, &f);
}

static void a_new_schedule_has_no_missed_times(void **state)
{
	static const struct who later[] = {{"npu", "0 11 * * *"}};
	static const struct who none[] = {{"xpu", "0 11 * * *"}};
	int64_t next_ms;

	(void)state;
	ASSERT_LOOK(NPU, T0, "0 0");
	/* 11:00 was an hour ago, but was not in the schedule then. */
	free(look(later, 1, T0, &next_ms));
	assert_int_equal(next_ms, T0 + 23 * HOUR);
	/* Edited while 11:00 of the next day passed: the run was due by the old schedule. */
	ASSERT_LOOK(NPU, T0 + DAY, "1 0 npu");
	ASSERT_NEWEST("npu", "caught_up reading - -");
	ASSERT_LOOK(later, T0 + DAY + 1, "0 0 npu");
	finish_open(T0 + DAY + 2);
	/* The schedule is removed for days and restored. */
	ASSERT_LOOK(none, T0 + DAY + MINUTE, "0 0");
	ASSERT_LOOK(later, T0 + 5 * DAY, "0 0");
	ASSERT_LOOK(later, T0 + 5 * DAY + 23 * HOUR, "1 0 npu");
}

static void a_clock_that_is_set_back_repeats_no_run(void **state)
{
	(void)state;
	ASSERT_LOOK(NPU, T0, "0 0");
	ASSERT_LOOK(NPU, DUE, "1 0 npu");
	assert_int_equal(start_of(open_run(), HEAD_A, NULL, DUE).step, SCHEDULE_DISPATCHED);
	finish_all(TEST_FAIL, DUE + HOUR);
	ASSERT_LOOK(NPU, T0 - DAY, "0 0");
	ASSERT_LOOK(NPU, DUE - DAY, "1 0 npu"); /* that day was before all */
	assert_int_equal(start_of(open_run(), HEAD_A, NULL, DUE).step, SCHEDULE_DISPATCHED);
	finish_all(TEST_FAIL, DUE + HOUR);
	ASSERT_LOOK(NPU, DUE, "0 0");
	ASSERT_LOOK(NPU, DUE + DAY, "1 0 npu");
}

/* ---- outcomes of a run ---- */

static void a_run_names_both_heads(void **state)
{
	struct lease_offer o;
	struct claim_outbox c;

	(void)state;
	ASSERT_LOOK(NPU, T0, "0 0");
	ASSERT_LOOK(NPU, DUE, "1 0 npu");
	assert_int_equal(start_of(open_run(), HEAD_A, SRC1, DUE).step, SCHEDULE_DISPATCHED);
	ASSERT_NEWEST("npu", "schedule dispatched - -");
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu queued*");
	o = take("npu-1", "c1", DUE - T0);
	assert_string_equal(o.event_type, "nightly");
	assert_int_equal(o.kind, CHANGE_NIGHTLY);
	assert_string_equal(o.ref, "refs/heads/main");
	assert_string_equal(o.head_sha, HEAD_A);
	assert_string_equal(o.source_sha, SRC1);
	assert_string_equal(o.source_branch, "main");
	assert_string_equal(o.source_git_url, "https://example.org/npu.git");
	lease_offer_release(&o);
	c = rig_claim(REQUESTS, DUE);
	assert_int_equal(c.n, 1);
	assert_string_equal(c.rows[0].event_type, "nightly");
	assert_int_equal(c.rows[0].n_sources, 1);
	assert_string_equal(c.rows[0].sources[0].sha, SRC1);
	claim_outbox_release(&c);
}

static void a_due_time_is_skipped_while_a_run_is_going(void **state)
{
	struct ask_schedule_run ask = {.accelerator = "npu", .now_ms = DUE + HOUR};

	(void)state;
	ASSERT_LOOK(NPU, T0, "0 0");
	ASSERT_LOOK(NPU, DUE, "1 0 npu");
	assert_int_equal(start_of(open_run(), HEAD_A, NULL, DUE).step, SCHEDULE_DISPATCHED);
	assert_int_equal(DO(store_ask_schedule_run, &ask), ERR_CONFLICT);
	assert_string_equal(ask.op.why.text, "the run of 2026-11-21T02:00:00Z is still going");
	ASSERT_LOOK(NPU, DUE + DAY, "0 1");
	ASSERT_NEWEST("npu", "schedule skipped skipped the run of 2026-11-21T02:00:00Z is still going");
	finish_all(TEST_PASS, DUE + DAY + HOUR);
	ASSERT_LOOK(NPU, DUE + 2 * DAY, "1 0 npu");
}

static void a_run_of_unchanged_heads_is_skipped(void **state)
{
	struct start_schedule_run r;
	struct ask_schedule_run ask = {.accelerator = "npu", .now_ms = DUE + DAY + HOUR};

	(void)state;
	ASSERT_LOOK(NPU, T0, "0 0");
	ASSERT_LOOK(NPU, DUE, "1 0 npu");
	assert_int_equal(start_of(open_run(), HEAD_A, SRC1, DUE).step, SCHEDULE_DISPATCHED);
	finish_all(TEST_PASS, DUE + HOUR);
	ASSERT_NEWEST("npu", "schedule done green -");
	ASSERT_LOOK(NPU, DUE + DAY, "1 0 npu");
	r = start_of(open_run(), HEAD_A, SRC1, DUE + DAY);
	assert_int_equal(r.step, SCHEDULE_NOTHING_NEW);
	assert_string_equal(r.reason, "nothing new since the green run of 2026-11-21T02:00:00Z");
	ASSERT_NEWEST("npu", "schedule skipped skipped nothing new since the green run of 2026-11-21T02:00:00Z");
	ASSERT_DISPATCHES(HEAD_A, "npu done*, npu done*");
	/* An operator requests the run all the same. */
	DO_OK(store_ask_schedule_run, &ask);
	r = start_of(ask.run_id, HEAD_A, SRC1, DUE + DAY + HOUR);
	assert_int_equal(r.step, SCHEDULE_DISPATCHED);
	finish_all(TEST_FAIL, DUE + DAY + 2 * HOUR);
	ASSERT_NEWEST("npu", "operator done red -");
	/* The newest run was red: another run of the same heads may give more information. */
	ASSERT_LOOK(NPU, DUE + 2 * DAY, "1 0 npu");
	assert_int_equal(start_of(open_run(), HEAD_A, SRC1, DUE + 2 * DAY).step, SCHEDULE_DISPATCHED);
	finish_all(TEST_PASS, DUE + 2 * DAY + HOUR);
	/* A newer source alone is a reason for a run. */
	ASSERT_LOOK(NPU, DUE + 3 * DAY, "1 0 npu");
	assert_int_equal(start_of(open_run(), HEAD_A, SRC2, DUE + 3 * DAY).step, SCHEDULE_DISPATCHED);
}

/* Its failures have no cause, so nothing waits for one. */
static void a_run_with_thousands_of_failures_ends_with_its_reports(void **state)
{
	enum { N_RED = 2500 };
	struct test_result *tests = xcalloc(N_RED, sizeof(*tests));

	(void)state;
	for (int i = 0; i < N_RED; i++)
		tests[i] = (struct test_result){
		    .suite = (char *)"model", .name = xasprintf("t%d", i), .status = TEST_FAIL, .duration_ms = -1};
	ASSERT_LOOK(NPU, T0, "0 0");
	ASSERT_LOOK(NPU, DUE, "1 0 npu");
	assert_int_equal(start_of(open_run(), HEAD_A, NULL, DUE).step, SCHEDULE_DISPATCHED);
	finish_tests(tests, N_RED, DUE + HOUR);
	ASSERT_NEWEST("npu", "schedule done red -");
	for (int i = 0; i < N_RED; i++)
		free(tests[i].name);
	free(tests);
}

static void an_operator_skips_one_run(void **state)
{
	struct skip_schedule skip = {.accelerator = "npu"}, other = {.accelerator = "xpu"};

	(void)state;
	assert_int_equal(DO(store_skip_schedule, &other), ERR_NOT_FOUND);
	ASSERT_LOOK(NPU, T0, "0 0");
	DO_OK(store_skip_schedule, &skip);
	assert_int_equal(skip.next_ms, DUE);
	assert_false(skip.was_skipped);
	DO_OK(store_skip_schedule, &skip);
	assert_true(skip.was_skipped);
	ASSERT_LOOK(NPU, DUE, "0 1");
	ASSERT_NEWEST("npu", "schedule skipped skipped skipped by an operator");
	ASSERT_LOOK(NPU, DUE + DAY, "1 0 npu");
}

static void a_run_fails_when_its_heads_cannot_be_read(void **state)
{
	struct fail_schedule_run f = {.reason = "no such branch", .now_ms = DUE + HOUR};

	(void)state;
	ASSERT_LOOK(NPU, T0, "0 0");
	ASSERT_LOOK(NPU, DUE, "1 0 npu");
	f.run_id = open_run();
	DO_OK(store_fail_schedule_run, &f);
	ASSERT_NEWEST("npu", "schedule failed failed no such branch");
	/* A late result changes nothing. */
	assert_int_equal(start_of(f.run_id, HEAD_A, NULL, DUE).step, SCHEDULE_GONE);
	ASSERT_NEWEST("npu", "schedule failed failed no such branch");
	ASSERT_LOOK(NPU, DUE + DAY, "1 0 npu");
}

static void finish_silently(int64_t now_ms)
{
	static const char *const names[] = {"npu", NULL};

	silent = names;
	finish_all(TEST_PASS, now_ms);
	silent = NULL;
}

/* L1 is never shown, so its runs are not judged: they end with their dispatches all the same. */
static void runs_of_silent_accelerators_end_too(void **state)
{
	struct expire_dispatches e = {.now_ms = DUE + 12 * HOUR};
	struct get_nightly g = {.n_days = 2, .limit = 10, .state = HISTORY_NONE};

	(void)state;
	mirror(LEVEL_1);
	ASSERT_LOOK(NPU, T0, "0 0");
	ASSERT_LOOK(NPU, DUE, "1 0 npu");
	assert_int_equal(start_of(open_run(), HEAD_A, NULL, DUE).step, SCHEDULE_DISPATCHED);
	DO_OK(store_expire_dispatches, &e);
	assert_int_equal(e.n_expired, 2);
	ASSERT_NEWEST("npu", "schedule done - -");
	ASSERT_LOOK(NPU, DUE + DAY, "1 0 npu");
	assert_int_equal(start_of(open_run(), HEAD_B, NULL, DUE + DAY).step, SCHEDULE_DISPATCHED);
	finish_silently(DUE + DAY + HOUR);
	ASSERT_NEWEST("npu", "schedule done - -");
	/* At a higher level, nothing from that time is shown. */
	mirror(LEVEL_2);
	g.last_day = (DUE + DAY) / DAY;
	ASK_OK(store_get_nightly, &g);
	assert_int_equal(g.view->accelerators[0].runs[0].id, 0);
	assert_int_equal(g.view->accelerators[0].runs[1].id, 0);
	nightly_view_free(g.view);
}

/* A self-report about a commit of a run belongs to that run, which ends with its dispatches. */
static void a_self_report_of_a_scheduled_commit_belongs_to_the_run(void **state)
{
	struct test_result test = {.suite = (char *)"unit", .name = (char *)"add", .status = TEST_PASS};
	struct job_report j = {
	    .status = JOB_COMPLETED,
	    .conclusion = (char *)"success",
	    .workflow = (char *)"nightly",
	    .name = (char *)"a",
	    .run_id = (char *)"1",
	    .run_attempt = 1,
	    .tests = &test,
	    .n_tests = 1,
	};
	struct report_nightly o = {
	    .repository = UPSTREAM,
	    .target = "Ascend/pytorch",
	    .accelerator = "npu",
	    .head_sha = HEAD_A,
	    .report = &j,
	    .now_ms = DUE + HOUR,
	};

	(void)state;
	ASSERT_LOOK(NPU, T0, "0 0");
	ASSERT_LOOK(NPU, DUE, "1 0 npu");
	assert_int_equal(start_of(open_run(), HEAD_A, NULL, DUE).step, SCHEDULE_DISPATCHED);
	DO_OK(store_report_nightly, &o);
	ASSERT_NEWEST("npu", "schedule dispatched - -");
	finish_all(TEST_FAIL, DUE + 2 * HOUR);
	ASSERT_NEWEST("npu", "schedule done red -");
	ASSERT_LOOK(NPU, DUE + DAY, "1 0 npu");
}

static void self_reports_are_runs(void **state)
{
	struct job_report j = {
	    .status = JOB_COMPLETED,
	    .conclusion = (char *)"success",
	    .workflow = (char *)"nightly",
	    .name = (char *)"a",
	    .run_id = (char *)"1",
	    .run_attempt = 1,
	};
	struct report_nightly o = {
	    .repository = UPSTREAM,
	    .target = "Ascend/pytorch",
	    .accelerator = "npu",
	    .head_sha = HEAD_A,
	    .report = &j,
	    .now_ms = DUE,
	};
	struct list_schedules l = {.accelerator = "npu"};

	(void)state;
	DO_OK(store_report_nightly, &o);
	ASSERT_NEWEST("npu", "self_report done green -");
	j.name = (char *)"b";
	j.digest[0] = 1;
	o.now_ms = DUE + HOUR;
	DO_OK(store_report_nightly, &o);
	ASK_OK(store_list_schedules, &l);
	assert_int_equal(l.list[0].due_ms, DUE); /* the same run */
	assert_null(l.list[0].crons);
	assert_string_equal(l.list[0].upstream_sha, HEAD_A);
	list_schedules_release(&l);
	j.run_id = (char *)"2";
	j.digest[0] = 2;
	o.now_ms = DUE + DAY;
	DO_OK(store_report_nightly, &o);
	ASK_OK(store_list_schedules, &l);
	assert_int_equal(l.list[0].due_ms, DUE + DAY);
	list_schedules_release(&l);
}

/* The newest attempt of a job shows. A green run with a lower attempt number takes nothing away from it. */
static void a_green_attempt_that_is_not_shown_is_no_run(void **state)
{
	struct test_result test = {.suite = (char *)"unit", .name = (char *)"add", .status = TEST_FAIL};
	struct job_report j = {
	    .status = JOB_COMPLETED,
	    .conclusion = (char *)"failure",
	    .workflow = (char *)"nightly",
	    .name = (char *)"a",
	    .run_id = (char *)"1",
	    .run_attempt = 2,
	    .tests = &test,
	    .n_tests = 1,
	};
	struct report_nightly o = {
	    .repository = UPSTREAM,
	    .target = "Ascend/pytorch",
	    .accelerator = "npu",
	    .head_sha = HEAD_A,
	    .report = &j,
	    .now_ms = DUE,
	};
	struct list_schedules l = {.accelerator = "npu"};

	(void)state;
	DO_OK(store_report_nightly, &o);
	ASSERT_NEWEST("npu", "self_report done red -");
	j.run_id = (char *)"2";
	j.run_attempt = 1;
	j.conclusion = (char *)"success";
	j.digest[0] = 1;
	test.status = TEST_PASS;
	o.now_ms = DUE + DAY;
	DO_OK(store_report_nightly, &o);
	ASK_OK(store_list_schedules, &l);
	assert_int_equal(l.list[0].due_ms, DUE);
	list_schedules_release(&l);
}

/* ---- kills ---- */

static void in_a_child(void (*act)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		rig_loop = loop_new();
		rig_open();
		act();
		raise(SIGKILL);
	}
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void act_look(void) { free(look(NPU, 1, DUE, NULL)); }

static void act_start(void) { start_of(open_run(), HEAD_A, SRC1, DUE); }

static void act_ask(void)
{
	struct ask_schedule_run ask = {.accelerator = "npu", .now_ms = DUE + HOUR};

	DO_OK(store_ask_schedule_run, &ask);
}

static void a_kill_neither_loses_nor_repeats_a_run(void **state)
{
	(void)state;
	ASSERT_LOOK(NPU, T0, "0 0");
	rig_close();
	in_a_child(act_look);
	in_a_child(act_look);
	rig_open();
	ASSERT_LOOK(NPU, DUE + MINUTE, "0 0 npu");
	rig_close();
	in_a_child(act_start);
	rig_open();
	ASSERT_LOOK(NPU, DUE + MINUTE, "0 0");
	ASSERT_NEWEST("npu", "schedule dispatched - -");
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu queued*");
	ASSERT_SENT(DUE + MINUTE, "github_dispatch Ascend/pytorch[npu] ");
	finish_all(TEST_PASS, DUE + 30 * MINUTE);
	rig_close();
	in_a_child(act_ask);
	rig_open();
	ASSERT_LOOK(NPU, DUE + HOUR, "0 0 npu");
	ASSERT_NEWEST("npu", "operator reading - -");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_due_time_starts_one_run),
	    TEST(missed_due_times_start_one_run),
	    TEST(a_new_schedule_has_no_missed_times),
	    TEST(a_clock_that_is_set_back_repeats_no_run),
	    TEST(a_run_names_both_heads),
	    TEST(a_due_time_is_skipped_while_a_run_is_going),
	    TEST(a_run_of_unchanged_heads_is_skipped),
	    TEST(a_run_with_thousands_of_failures_ends_with_its_reports),
	    TEST(an_operator_skips_one_run),
	    TEST(a_run_fails_when_its_heads_cannot_be_read),
	    TEST(runs_of_silent_accelerators_end_too),
	    TEST(self_reports_are_runs),
	    TEST(a_self_report_of_a_scheduled_commit_belongs_to_the_run),
	    TEST(a_kill_neither_loses_nor_repeats_a_run),
	    TEST(a_green_attempt_that_is_not_shown_is_no_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
