/* Commands: what they start and end, their replies, who may give them and how often. */
#include "commands_rig.h"

#include "model/plan.h"
#include "verdict/known_issues.h"

static struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("xpu"), WEBHOOK_WANT("zpu")};

static struct rig_answer say(enum command_kind kind, int64_t at)
{
	return rig_say(&(struct rig_comment){.kind = kind, .at_ms = T0 + at * 1000, .speaker = SPEAKER_MEMBER});
}

/* A retest of the named accelerators, as the planner passes it to the store. */
static struct plan plan_of(const char *accelerator, const char *suite, int64_t at)
{
	struct plan p = {
	    .kind = PLAN_START,
	    .change_kind = CHANGE_PULL_REQUEST,
	    .repository = xstrdup(UPSTREAM),
	    .pull = {.number = 1, .is_open = true, .updated_ms = T0 + at * 1000},
	    .head_sha = xstrdup(HEAD_A),
	    .event_ms = T0 + at * 1000,
	    .starts_round = true,
	    .event_type = "pull_request",
	    .sent_action = "synchronize",
	    .original_action = xstrdup("retest"),
	    .wants = wants,
	    .n_wants = ARRAY_LEN(wants),
	};

	plan_add_retest(&p, accelerator, NULL, suite);
	return p;
}

static void plan_end(struct plan *p)
{
	p->wants = NULL;
	p->n_wants = 0;
	plan_release(p);
}

static struct rig_answer retest(const char *accelerator, const char *suite, int64_t at)
{
	struct plan p = plan_of(accelerator, suite, at);
	struct rig_answer a = rig_say(&(struct rig_comment){.kind = COMMAND_RETEST,
	    .word = accelerator,
	    .suite = suite,
	    .at_ms = T0 + at * 1000,
	    .speaker = SPEAKER_AUTHOR,
	    .plan = &p});

	plan_end(&p);
	return a;
}

/* The reactions and replies that are due: "eyes", "confused+reply"; free(). They are sent then. */
static char *answers(int64_t at)
{
	struct claim_outbox c = rig_claim(1U << OUTBOX_REACTION | 1U << OUTBOX_REPLY, T0 + at * 1000);
	struct buf out = BUF_INIT(4096);

	for (size_t i = 0; i < c.n; i++) {
		json_t *text = NULL;

		assert_string_equal(c.rows[i].target, UPSTREAM);
		assert_int_equal(c.rows[i].number, 1);
		assert_int_equal(json_parse(c.rows[i].text, strlen(c.rows[i].text), &text, NULL), 0);
		assert_int_equal(json_get_int(text, "comment", 0), rig_comment_id);
		buf_appendf(&out, "%s%s", i ? "+" : "",
		    c.rows[i].kind == OUTBOX_REACTION ? json_get_str(text, "content") : "reply");
		json_decref(text);
		rig_done(&c.rows[i], OUTBOX_OK, T0 + at * 1000);
	}
	claim_outbox_release(&c);
	return out.data ? buf_detach(&out) : xstrdup("");
}

#define ASSERT_ANSWERS(at, expected)                                                                                   \
	do {                                                                                                           \
		char *said = answers(at);                                                                              \
		assert_string_equal(said, expected);                                                                   \
		free(said);                                                                                            \
	} while (0)

/* One job without tests, of the workflow "tests". */
static void report(const char *accelerator, const char *conclusion)
{
	char *id = rig_dispatch_id(HEAD_A, accelerator);
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)conclusion,
	    .workflow = (char *)"tests",
	    .name = (char *)"all",
	    .run_id = (char *)"100",
	    .run_attempt = 1};
	struct report_job op = {.dispatch_id = id, .accelerator = accelerator, .report = &j, .now_ms = T0 + 50000};

	memset(j.digest, conclusion[0], sizeof(j.digest));
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
}

static void cancel_ends_running_dispatches(void **state)
{
	struct change_view *v;
	struct rig_answer a;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 3);
	ASSERT_SENT(T0 + 2000, "github_dispatch Ascend/pytorch[npu] opened; webhook_dispatch "
			       "https://ci.example.org/hook[xpu] opened; webhook_dispatch "
			       "https://ci.example.org/hook[zpu] opened");
	a = say(COMMAND_CANCEL, 10);
	assert_int_equal(a.n_cancelled, 3);
	assert_int_equal(a.result, COMMAND_DONE);
	ASSERT_ANSWERS(11, "eyes");
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*, xpu cancelled*, zpu cancelled*");
	v = rig_view_of(1, NULL);
	assert_string_equal(v->accelerators[0].dispatches[0].last_error, "cancelled by alice");
	change_view_free(v);
	ASSERT_SENT(T0 + 12000, "github_closed Ascend/pytorch[npu] closed; webhook_cancel "
				"https://ci.example.org/hook[xpu] opened; webhook_cancel "
				"https://ci.example.org/hook[zpu] opened");
	a = say(COMMAND_CANCEL, 20);
	assert_int_equal(a.result, COMMAND_NOTHING_RUNS);
	ASSERT_ANSWERS(21, "confused+reply");
	/* Only a new round starts it again. */
	rig_start("labeled", HEAD_A, 30, wants, 3);
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*, xpu cancelled*, zpu cancelled*");
	a = retest(NULL, NULL, 40);
	assert_int_equal(a.n_started, 3);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu cancelled, xpu queued*, xpu cancelled, zpu queued*, zpu cancelled");
	ASSERT_SENT(T0 + 41000, "github_dispatch Ascend/pytorch[npu] synchronize; "
				"webhook_dispatch https://ci.example.org/hook[xpu] synchronize; "
				"webhook_dispatch https://ci.example.org/hook[zpu] synchronize");
}

/* The reports of the accelerator's other runners keep their attribution. */
static void cancel_keeps_the_attribution_of_reported_cells(void **state)
{
	struct plan_want two[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("npu")};
	struct add_known k = {.pattern = "tests/*", .url = "https://example.org/1", .now_ms = T0};
	struct change_view *v;

	(void)state;
	DO_OK(store_add_known, &k);
	rig_start("opened", HEAD_A, 1, two, 2);
	free(rig_send(T0 + 2000));
	report("npu", "failure");
	assert_int_equal(say(COMMAND_CANCEL, 100).n_cancelled, 1);
	v = rig_view_of(1, NULL);
	assert_int_equal(v->n_verdicts, 1);
	assert_int_equal(v->verdicts[0].attribution, ATTRIBUTION_KNOWN);
	change_view_free(v);
}

/* The process was ended while the reply was on its way: it may have arrived. */
static void an_interrupted_reply_is_uncertain(void **state)
{
	struct claim_outbox c;
	struct outbox_done o;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 3);
	say(COMMAND_STATUS, 10);
	c = rig_claim(1U << OUTBOX_REPLY, T0 + 11000);
	assert_int_equal(c.n, 1);
	o = (struct outbox_done){.id = c.rows[0].id,
	    .epoch = c.rows[0].epoch,
	    .result = OUTBOX_NOT_YET,
	    .generation = c.rows[0].generation,
	    .is_uncertain = true,
	    .next_ms = T0 + 11000,
	    .now_ms = T0 + 11000};
	DO_OK(store_outbox_done, &o);
	claim_outbox_release(&c);
	rig_reopen();
	c = rig_claim(1U << OUTBOX_REPLY, T0 + 12000);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].n_attempts, 0);
	assert_true(c.rows[0].is_uncertain);
	claim_outbox_release(&c);
}

static void cancel_keeps_held_dispatches(void **state)
{
	struct plan_want two[] = {wants[0], wants[1]};

	(void)state;
	two[1].held_reason = (char *)"the author is new";
	rig_start("opened", HEAD_A, 1, two, 2);
	assert_int_equal(say(COMMAND_CANCEL, 10).n_cancelled, 1);
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*, xpu held*");
	assert_int_equal(say(COMMAND_OK_TO_TEST, 20).n_released, 1);
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*, xpu queued*");
}

static void retest_starts_what_is_not_green(void **state)
{
	struct rig_answer a;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 3);
	free(rig_send(T0 + 2000));
	report("npu", "success");
	report("xpu", "failure");
	a = retest(NULL, NULL, 100);
	assert_int_equal(a.result, COMMAND_DONE);
	assert_int_equal(a.n_started, 1);
	ASSERT_ANSWERS(101, "eyes");
	ASSERT_DISPATCHES(HEAD_A, "npu done*, xpu queued*, xpu done, zpu acknowledged*");
	/* A running dispatch is not started twice, and a green one only if it is named. */
	a = retest(NULL, NULL, 110);
	assert_int_equal(a.n_started, 0);
	assert_int_equal(a.result, COMMAND_STILL_RUNNING);
	ASSERT_ANSWERS(111, "eyes");
	a = retest("npu", NULL, 120);
	assert_int_equal(a.n_started, 1);
	a = retest("zpu", NULL, 130);
	assert_int_equal(a.result, COMMAND_STILL_RUNNING);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu done, xpu queued*, xpu done, zpu acknowledged*");
}

static void retest_of_a_green_change_says_so(void **state)
{
	struct rig_answer a;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 3);
	free(rig_send(T0 + 2000));
	report("npu", "success");
	report("xpu", "success");
	report("zpu", "success");
	a = retest(NULL, NULL, 100);
	assert_int_equal(a.result, COMMAND_NOTHING_RED);
	assert_non_null(a.ignored);
	ASSERT_ANSWERS(101, "confused+reply");
	a = retest("npu", "nothing", 110);
	assert_int_equal(a.result, COMMAND_NO_SUITE);
	ASSERT_ANSWERS(111, "confused+reply");
	a = retest("npu", "tests", 120); /* a job without tests: its workflow is the suite */
	assert_int_equal(a.result, COMMAND_DONE);
	ASSERT_ANSWERS(121, "eyes");
}

static void retest_releases_nothing(void **state)
{
	struct rig_answer a;

	(void)state;
	wants[0].held_reason = (char *)"the author is new";
	rig_start("opened", HEAD_A, 1, wants, 1);
	a = retest("npu", NULL, 100);
	assert_int_equal(a.result, COMMAND_HELD);
	ASSERT_DISPATCHES(HEAD_A, "npu held*");
	assert_int_equal(say(COMMAND_DECLINE, 110).n_declined, 1);
	a = retest("npu", NULL, 120);
	assert_int_equal(a.result, COMMAND_HELD);
	wants[0].held_reason = NULL;
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*");
}

static void a_comment_is_executed_once(void **state)
{
	struct rig_comment c = {.kind = COMMAND_CANCEL, .at_ms = T0 + 10000, .speaker = SPEAKER_MEMBER, .id = 77};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	assert_int_equal(rig_say(&c).n_cancelled, 1);
	retest(NULL, NULL, 20);
	c.at_ms = T0 + 30000;
	assert_int_equal(rig_say(&c).outcome, COMMANDS_REPEATED);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu cancelled, xpu queued*, zpu queued*");
}

static void members_and_the_author_may_give_commands(void **state)
{
	struct rig_comment c = {.kind = COMMAND_OK_TO_TEST, .at_ms = T0 + 10000};
	struct rig_answer a;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	c.speaker = SPEAKER_AUTHOR;
	a = rig_say(&c);
	assert_int_equal(a.result, COMMAND_FOR_MEMBERS);
	assert_string_equal(a.ignored, "ok-to-test is for members");
	ASSERT_ANSWERS(11, "confused");
	c.speaker = SPEAKER_STRANGER;
	c.kind = COMMAND_CANCEL;
	a = rig_say(&c);
	assert_int_equal(a.outcome, COMMANDS_REFUSED);
	ASSERT_ANSWERS(12, "confused");
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	c.speaker = SPEAKER_AUTHOR;
	assert_int_equal(rig_say(&c).n_cancelled, 1);
	ASSERT_ANSWERS(13, "eyes");
}

static void twenty_commands_an_hour(void **state)
{
	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	/* Strangers do not use up this limit, and get twenty replies at most. */
	for (int i = 0; i < 25; i++) {
		rig_say(&(struct rig_comment){.kind = COMMAND_HELP, .at_ms = T0 + 5000});
		ASSERT_ANSWERS(6, i < 20 ? "confused" : "");
	}
	for (int i = 0; i < 20; i++) {
		assert_int_equal(say(COMMAND_HELP, 10 + i).outcome, COMMANDS_HEARD);
		ASSERT_ANSWERS(40, "eyes+reply");
	}
	assert_int_equal(say(COMMAND_HELP, 50).outcome, COMMANDS_TOO_MANY);
	ASSERT_ANSWERS(51, "confused");
	assert_int_equal(say(COMMAND_CANCEL, 52).outcome, COMMANDS_TOO_MANY);
	ASSERT_ANSWERS(53, "");
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	assert_int_equal(say(COMMAND_CANCEL, 3700).n_cancelled, 1);
	ASSERT_ANSWERS(3701, "eyes");
}

/* Commands from before the clock was set back do not count in this hour. */
/* An author who uses up all commands of a PR does not stop members from ending runs. */
static void members_have_their_own_limit_of_commands(void **state)
{
	struct rig_comment by_author = {
	    .kind = COMMAND_HELP, .login = "Alice", .speaker = SPEAKER_AUTHOR, .at_ms = T0 + 10000};
	struct rig_comment by_member = {
	    .kind = COMMAND_CANCEL, .login = "bob", .speaker = SPEAKER_MEMBER, .at_ms = T0 + 20000};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	for (int i = 0; i < 20; i++)
		assert_int_equal(rig_say(&by_author).outcome, COMMANDS_HEARD);
	assert_int_equal(rig_say(&by_author).outcome, COMMANDS_TOO_MANY);
	/* the author has another name now */
	rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .number = 1,
	    .head = HEAD_A,
	    .event_ms = T0 + 15000,
	    .author = "alicia",
	    .wants = wants,
	    .n_wants = 1});
	assert_int_equal(rig_say(&by_member).n_cancelled, 1);
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*");
	for (int i = 0; i < 19; i++)
		assert_int_equal(rig_say(&by_member).outcome, COMMANDS_HEARD);
	assert_int_equal(rig_say(&by_member).outcome, COMMANDS_TOO_MANY);
}

static void the_limit_holds_when_the_clock_is_set_back(void **state)
{
	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	for (int i = 0; i < 30; i++)
		assert_int_equal(say(COMMAND_HELP, 4 * 3600 + i * 600).outcome, COMMANDS_HEARD);
	for (int i = 0; i < 20; i++)
		assert_int_equal(say(COMMAND_HELP, 10 + i).outcome, COMMANDS_HEARD);
	assert_int_equal(say(COMMAND_HELP, 50).outcome, COMMANDS_TOO_MANY);
}

static void commands_on_a_closed_pull_request_are_ignored(void **state)
{
	struct rig_answer a;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_close_pull(1, HEAD_A, 5);
	a = retest(NULL, NULL, 10);
	assert_int_equal(a.result, COMMAND_CLOSED);
	assert_int_equal(a.n_started, 0);
	ASSERT_ANSWERS(11, "confused");
	assert_int_equal(say(COMMAND_STATUS, 20).result, COMMAND_CLOSED);
	ASSERT_ANSWERS(21, "confused");
}

static void reactions_show_the_outcome(void **state)
{
	struct plan_want held[] = {wants[0]};

	(void)state;
	held[0].held_reason = (char *)"the author is new";
	rig_start("opened", HEAD_A, 1, held, 1);
	say(COMMAND_OK_TO_TEST, 10);
	ASSERT_ANSWERS(11, "rocket");
	say(COMMAND_OK_TO_TEST, 20);
	ASSERT_ANSWERS(21, "confused+reply");
	say(COMMAND_STATUS, 30);
	ASSERT_ANSWERS(31, "eyes+reply");
}

static void a_command_names_a_change_by_its_sha(void **state)
{
	struct find_tested q = {.repository = UPSTREAM, .sha = "aaaaaaa"};

	(void)state;
	assert_int_equal(ASK(store_find_tested, &q), ERR_NOT_FOUND);
	rig_start("opened", HEAD_A, 1, wants, 1);
	ASK_OK(store_find_tested, &q);
	assert_true(q.is_pull && q.is_open);
	assert_int_equal(q.pull_number, 1);
	assert_string_equal(q.head_sha, HEAD_A);
	assert_non_null(q.delivery_guid);
	find_tested_release(&q);
	rig_start("synchronize", HEAD_B, 2, wants, 1);
	ASK_OK(store_find_tested, &q);
	assert_false(q.is_open);
	find_tested_release(&q);
}

static void old_comments_are_deleted(void **state)
{
	struct apply_retention r = {.results_before_ms = T0 + 60000};
	struct rig_comment c = {.kind = COMMAND_HELP, .at_ms = T0 + 10000, .speaker = SPEAKER_MEMBER, .id = 77};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_say(&c);
	rig_comment_id = 77;
	ASSERT_ANSWERS(11, "eyes+reply");
	DO_OK(store_apply_retention, &r);
	assert_int_equal(rig_say(&c).outcome, COMMANDS_HEARD);
	ASSERT_ANSWERS(12, "eyes+reply");
	rig_comment_id = 1000;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(cancel_ends_running_dispatches),
	    TEST(cancel_keeps_the_attribution_of_reported_cells),
	    TEST(an_interrupted_reply_is_uncertain),
	    TEST(cancel_keeps_held_dispatches),
	    TEST(retest_starts_what_is_not_green),
	    TEST(retest_of_a_green_change_says_so),
	    TEST(retest_releases_nothing),
	    TEST(a_comment_is_executed_once),
	    TEST(members_and_the_author_may_give_commands),
	    TEST(twenty_commands_an_hour),
	    TEST(members_have_their_own_limit_of_commands),
	    TEST(the_limit_holds_when_the_clock_is_set_back),
	    TEST(commands_on_a_closed_pull_request_are_ignored),
	    TEST(reactions_show_the_outcome),
	    TEST(a_command_names_a_change_by_its_sha),
	    TEST(old_comments_are_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
