/* Finding 1: two pull requests with one head. They share its results. The author of the second gets no control over
 * the first, by any command and by any change to their own pull request. */
#include "commands_rig.h"

#include "model/plan.h"

/* PR 1 is a member's, PR 2 a stranger's with the same head. npu and xpu trust members, every change
 * waits for a member on zpu. */
enum { FIRST = 1, TWIN = 2 };

struct pair {
	char head[41];
	int64_t first, twin; /* numbers */
	int64_t at;          /* seconds from T0 on */
};

static struct plan_want of_member[] = {WEBHOOK_WANT("npu"), GITHUB_WANT("xpu", "Ascend/pytorch"), WEBHOOK_WANT("zpu")};
static struct plan_want of_stranger[] = {
    WEBHOOK_WANT("npu"), GITHUB_WANT("xpu", "Ascend/pytorch"), WEBHOOK_WANT("zpu")};

static int setup(void **state)
{
	of_member[0].needs = of_member[1].needs = RANK_MEMBER;
	of_stranger[0].needs = of_stranger[1].needs = RANK_MEMBER;
	of_stranger[0].held_reason = of_stranger[1].held_reason = (char *)"the author is not a member";
	of_member[2].needs = of_stranger[2].needs = RANK_UNREACHED;
	of_member[2].held_reason = of_stranger[2].held_reason = (char *)"every change waits here";
	return rig_setup(state);
}

static struct pair pair_of(int n)
{
	struct pair p = {.first = 1000 + 2 * n, .twin = 1001 + 2 * n, .at = n * 10};

	/* Seven digits alone identify that head. */
	snprintf(p.head, sizeof(p.head), "%07x%033x", 0x1000000 + n, n);
	return p;
}

static struct rig_plan event_of(const struct pair *p, int64_t number, const char *action)
{
	bool is_first = number == p->first;

	return (struct rig_plan){
	    .kind = strcmp(action, "closed") == 0 ? PLAN_CLOSE : PLAN_START,
	    .number = number,
	    .head = p->head,
	    .event_ms = T0 + p->at * 1000,
	    .starts_round = strcmp(action, "reopened") == 0 || strcmp(action, "edited") == 0,
	    .action = action,
	    .sent_action = strcmp(action, "edited") == 0 ? "synchronize" : NULL,
	    .association = is_first ? "MEMBER" : "NONE",
	    .author = is_first ? "alice" : "mallory",
	    .wants = is_first ? of_member : of_stranger,
	    .n_wants = ARRAY_LEN(of_member),
	};
}

static int happens(struct pair *p, int64_t number, const char *action)
{
	struct rig_plan r = event_of(p, number, action);

	p->at++;
	r.event_ms = T0 + p->at * 1000;
	return rig_apply(&r).n_new_dispatches;
}

static void report_job(const char *head, const char *accelerator, const char *name, int attempt, const char *conclusion)
{
	char *id = rig_dispatch_id(head, accelerator);
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)conclusion,
	    .workflow = (char *)"tests",
	    .name = (char *)name,
	    .run_id = (char *)"100",
	    .run_attempt = attempt};
	struct report_job op = {.dispatch_id = id, .accelerator = accelerator, .report = &j, .now_ms = T0};

	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
}

static void report(const char *head, const char *accelerator, const char *conclusion)
{
	report_job(head, accelerator, "all", 1, conclusion);
}

#define SHARED_STATE "npu done*, xpu sent*, zpu held*"

/* The first has run on npu, runs on xpu, and waits on zpu. Then the twin is opened. */
static struct pair open_pair(int n)
{
	struct pair p = pair_of(n);

	happens(&p, p.first, "opened");
	free(rig_send(T0 + 365 * DAY));
	report(p.head, "npu", "success");
	ASSERT_DISPATCHES(p.head, SHARED_STATE);
	assert_int_equal(happens(&p, p.twin, "opened"), 0);
	ASSERT_DISPATCHES(p.head, SHARED_STATE);
	return p;
}

/* ---- all commands of all people ---- */

static const struct {
	enum command_kind kind;
	const char *word;
	int n_digits;
	enum command_result to_author;
	const char *by_member; /* the effect of a member's command */
} COMMANDS[] = {
    {COMMAND_RETEST, NULL, 0, COMMAND_SHARED, SHARED_STATE}, /* clean, running, held: nothing to do */
    {COMMAND_RETEST, "npu", 0, COMMAND_SHARED, "npu queued*, npu done, xpu sent*, zpu held*"},
    {COMMAND_RETEST, "zpu", 0, COMMAND_SHARED, SHARED_STATE}, /* a retest releases nothing */
    {COMMAND_CANCEL, NULL, 0, COMMAND_SHARED, "npu done*, xpu cancelled*, zpu held*"},
    {COMMAND_OK_TO_TEST, NULL, 0, COMMAND_FOR_MEMBERS, "npu done*, xpu sent*, zpu queued*"},
    {COMMAND_OK_TO_TEST, NULL, 7, COMMAND_FOR_MEMBERS, "npu done*, xpu sent*, zpu queued*"},
    {COMMAND_OK_TO_TEST, NULL, 12, COMMAND_FOR_MEMBERS, "npu done*, xpu sent*, zpu queued*"},
    {COMMAND_OK_TO_TEST, NULL, 40, COMMAND_FOR_MEMBERS, "npu done*, xpu sent*, zpu queued*"},
    {COMMAND_DECLINE, NULL, 0, COMMAND_FOR_MEMBERS, "npu done*, xpu sent*, zpu cancelled*"},
    {COMMAND_STATUS, NULL, 0, COMMAND_DONE, SHARED_STATE},
    {COMMAND_HELP, NULL, 0, COMMAND_DONE, SHARED_STATE},
};

static const char *const ASSOCIATIONS[] = {
    "OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR", "FIRST_TIME_CONTRIBUTOR", "FIRST_TIMER", "NONE", "MANNEQUIN"};

enum person { AUTHOR_OF_FIRST, AUTHOR_OF_TWIN, SOMEBODY_ELSE, N_PERSONS };

static enum speaker speaker_of(const char *association, enum person who, int on)
{
	if (association_is_member(association))
		return SPEAKER_MEMBER;
	return who == (on == FIRST ? AUTHOR_OF_FIRST : AUTHOR_OF_TWIN) ? SPEAKER_AUTHOR : SPEAKER_STRANGER;
}

/* The retest uses the plan of the PR on which the command was written. */
static struct rig_answer say(const struct pair *p, size_t command, int on, enum speaker speaker)
{
	static const char *const logins[] = {"alice", "mallory", "bob"};
	char sha[41] = "";
	struct rig_comment c = {
	    .kind = COMMANDS[command].kind,
	    .word = COMMANDS[command].word,
	    .sha = sha,
	    .number = on == FIRST ? p->first : p->twin,
	    .at_ms = T0 + (p->at + 5) * 1000,
	    .speaker = speaker,
	    .login = logins[speaker % 3],
	};
	struct plan plan = {
	    .kind = PLAN_START,
	    .change_kind = CHANGE_PULL_REQUEST,
	    .repository = xstrdup(UPSTREAM),
	    .pull = {.number = c.number,
		.is_open = true,
		.author_association = xstrdup(on == FIRST ? "MEMBER" : "NONE"),
		.updated_ms = c.at_ms},
	    .head_sha = xstrdup(p->head),
	    .event_ms = c.at_ms,
	    .starts_round = true,
	    .event_type = "pull_request",
	    .sent_action = "synchronize",
	    .original_action = xstrdup("retest"),
	    .wants = on == FIRST ? of_member : of_stranger,
	    .n_wants = ARRAY_LEN(of_member),
	};
	struct rig_answer a;

	snprintf(sha, (size_t)COMMANDS[command].n_digits + 1, "%s", p->head);
	plan_add_retest(&plan, c.word, NULL, NULL);
	if (c.kind == COMMAND_RETEST)
		c.plan = &plan;
	a = rig_say(&c);
	plan.wants = NULL;
	plan.n_wants = 0;
	plan_release(&plan);
	return a;
}

static void check_refusal(size_t command, enum speaker speaker, const struct rig_answer *a)
{
	if (speaker == SPEAKER_STRANGER) {
		assert_int_equal(a->outcome, COMMANDS_REFUSED);
		return;
	}
	assert_int_equal(a->outcome, COMMANDS_HEARD);
	assert_int_equal(a->result, COMMANDS[command].to_author);
}

static void check_members(size_t command, int on, int *n)
{
	for (size_t i = 0; i < ARRAY_LEN(ASSOCIATIONS); i++) {
		struct pair p;

		if (speaker_of(ASSOCIATIONS[i], SOMEBODY_ELSE, on) != SPEAKER_MEMBER)
			continue;
		p = open_pair((*n)++);
		say(&p, command, on, SPEAKER_MEMBER);
		ASSERT_DISPATCHES(p.head, COMMANDS[command].by_member);
	}
}

static void check_others(size_t command, int on, int *n)
{
	struct pair p = open_pair((*n)++);

	for (int who = 0; who < N_PERSONS; who++)
		for (size_t i = 0; i < ARRAY_LEN(ASSOCIATIONS); i++) {
			enum speaker s = speaker_of(ASSOCIATIONS[i], (enum person)who, on);
			struct rig_answer a;

			if (s == SPEAKER_MEMBER)
				continue;
			a = say(&p, command, on, s);
			check_refusal(command, s, &a);
		}
	ASSERT_DISPATCHES(p.head, SHARED_STATE);
	ASSERT_CELLS(p.head, "npu tests/all PASS");
}

/* Both PRs, every command, and every association that GitHub reports for the commenter. */
static void only_members_control_a_shared_head(void **state)
{
	int n = 0;

	(void)state;
	for (size_t command = 0; command < ARRAY_LEN(COMMANDS); command++)
		for (int on = FIRST; on <= TWIN; on++) {
			check_members(command, on, &n);
			check_others(command, on, &n);
		}
}

/* ---- one after the other ---- */

enum { RETEST_NPU = 1, CANCEL = 3, RELEASE = 4, DECLINE = 8, STATUS = 9, HELP = 10 };

/* Once the first is closed, only the twin has the head. Its author is not a member, so another round waits; the
 * results of the head stay. */
static void a_held_round_does_not_replace_the_finished_one(void **state)
{
	struct pair p = open_pair(0);
	struct rig_answer a;

	(void)state;
	happens(&p, p.first, "closed");
	ASSERT_DISPATCHES(p.head, SHARED_STATE);
	a = say(&p, RETEST_NPU, TWIN, SPEAKER_AUTHOR);
	assert_int_equal(a.result, COMMAND_HELD);
	ASSERT_DISPATCHES(p.head, "npu held, npu done*, xpu sent*, zpu held*");
	ASSERT_CELLS(p.head, "npu tests/all PASS");
	/* No run is started twice, and another round of all accelerators does not hide the first round either. */
	say(&p, RETEST_NPU, TWIN, SPEAKER_AUTHOR);
	happens(&p, p.twin, "edited");
	ASSERT_DISPATCHES(p.head, "npu held, npu done*, xpu held, xpu sent*, zpu held*");
	ASSERT_CELLS(p.head, "npu tests/all PASS");
	/* A late report of the finished run is accepted. */
	report(p.head, "xpu", "failure");
	ASSERT_CELLS(p.head, "npu tests/all PASS, xpu tests/all FAIL");
	a = say(&p, RELEASE, TWIN, SPEAKER_MEMBER);
	assert_int_equal(a.n_released, 3);
	ASSERT_DISPATCHES(p.head, "npu queued*, npu done, xpu queued*, xpu done, zpu queued*");
}

/* The same without a known twin PR: GitHub lists its head. */
static void an_unknown_pull_with_the_head_counts_as_a_twin(void **state)
{
	struct pair p = pair_of(0);

	(void)state;
	happens(&p, p.first, "opened");
	assert_int_equal(say(&p, RETEST_NPU, TWIN, SPEAKER_AUTHOR).result, COMMAND_SHARED);
}

/* Without another open PR, the author may start and end their own runs. */
static void an_author_may_control_an_unshared_head(void **state)
{
	struct pair p = open_pair(0);

	(void)state;
	happens(&p, p.twin, "closed");
	assert_int_equal(say(&p, RETEST_NPU, FIRST, SPEAKER_AUTHOR).result, COMMAND_DONE);
	assert_int_equal(say(&p, CANCEL, FIRST, SPEAKER_AUTHOR).n_cancelled, 2);
}

/* All events that a stranger can cause on the twin. */
static void events_of_the_twin_change_nothing(void **state)
{
	struct pair p = open_pair(0);
	static const char *const events[] = {"edited", "closed", "reopened", "ready_for_review", "edited", "closed",
	    "opened", "reopened", "synchronize"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		assert_int_equal(happens(&p, p.twin, events[i]), 0);
		ASSERT_DISPATCHES(p.head, SHARED_STATE);
		ASSERT_CELLS(p.head, "npu tests/all PASS");
	}
	ASSERT_SENT(T0 + 365 * DAY, "");
	/* The first's own events start a round as usual. */
	assert_int_equal(happens(&p, p.first, "edited"), 2);
	ASSERT_DISPATCHES(p.head, "npu queued*, npu done, xpu queued*, xpu superseded, zpu held*");
}

/* PR 2 was opened first, by an untrusted author: then a member's PR has the same head. */
static void the_pull_request_of_a_member_leads(void **state)
{
	struct pair p = pair_of(0);

	(void)state;
	happens(&p, p.twin, "opened");
	ASSERT_DISPATCHES(p.head, "npu held*, xpu held*, zpu held*");
	/* A trusted author who opens a PR with a head confirms that it is safe. */
	assert_int_equal(happens(&p, p.first, "opened"), 2);
	ASSERT_DISPATCHES(p.head, "npu queued*, xpu queued*, zpu held*");
	assert_int_equal(happens(&p, p.twin, "edited"), 0);
	assert_int_equal(happens(&p, p.first, "edited"), 2);
}

/* An accelerator that only the twin wants: its author is not trusted, the head is. */
static void a_twin_cannot_hold_or_start_accelerators_that_the_first_does_not_want(void **state)
{
	struct pair p = pair_of(0);
	struct rig_plan r = event_of(&p, p.first, "opened");

	(void)state;
	r.n_wants = 1;
	r.event_ms = T0 + 1000;
	rig_apply(&r);
	p.at = 1;
	assert_int_equal(happens(&p, p.twin, "opened"), 1);
	ASSERT_DISPATCHES(p.head, "npu queued*, zpu held*"); /* zpu waits for a member anyway */
}

static struct rig_plan drop_of(const struct pair *p, const char *action, char **drops)
{
	struct rig_plan r = event_of(p, p->twin, action);

	r.kind = PLAN_UPDATE;
	r.sent_action = "closed";
	r.drops = drops;
	r.n_wants = 0;
	r.event_ms = T0 + (p->at + 1) * 1000;
	return r;
}

static void a_draft_ends_only_runs_that_no_other_pull_wants(void **state)
{
	struct pair p = open_pair(0);
	char *drops[] = {(char *)"npu", (char *)"xpu", NULL};
	struct rig_plan r = drop_of(&p, "converted_to_draft", drops);

	(void)state;
	r.is_draft = true;
	rig_apply(&r);
	ASSERT_DISPATCHES(p.head, SHARED_STATE);
	/* Both are drafts now. */
	p.at++;
	r.number = p.first;
	r.event_ms = T0 + (p.at + 1) * 1000;
	r.association = "MEMBER";
	rig_apply(&r);
	ASSERT_DISPATCHES(p.head, "npu done*, xpu cancelled*, zpu held*");
}

static void a_removed_label_ends_only_runs_that_no_other_pull_has_labelled(void **state)
{
	struct pair p = pair_of(0);
	char *drops[] = {(char *)"xpu", NULL}, *labels[] = {(char *)"ciflow/crcr/XPU", NULL};
	struct rig_plan r = event_of(&p, p.first, "opened");

	(void)state;
	r.labels = labels;
	rig_apply(&r);
	p.at++;
	happens(&p, p.twin, "opened");
	r = drop_of(&p, "unlabeled", drops);
	rig_apply(&r);
	ASSERT_DISPATCHES(p.head, "npu queued*, xpu queued*, zpu held*");
	p.at += 2;
	r = drop_of(&p, "unlabeled", drops);
	r.number = p.first;
	r.association = "MEMBER";
	rig_apply(&r);
	ASSERT_DISPATCHES(p.head, "npu queued*, xpu cancelled*, zpu held*");
}

/* A change has one base: that of the leading PR. */
static void the_base_is_that_of_the_first(void **state)
{
	struct pair p = open_pair(0);
	struct rig_plan r = event_of(&p, p.twin, "edited");
	struct change_view *v;

	(void)state;
	r.base_ref = "release/1.0";
	r.event_ms = T0 + (p.at + 1) * 1000;
	rig_apply(&r);
	v = rig_view_of(0, p.head);
	assert_string_equal(v->base_ref, "main");
	assert_string_equal(v->author, "alice");
	change_view_free(v);
	p.at += 2;
	happens(&p, p.first, "closed");
	v = rig_view_of(p.twin, NULL);
	assert_string_equal(v->base_ref, "release/1.0");
	change_view_free(v);
}

/* The number of the PR in the request to the vendor to end a run; 0: no such request. */
static int64_t number_in_close_request(void)
{
	struct claim_outbox c = rig_claim(REQUESTS, T0 + 365 * DAY);
	int64_t number = 0;

	for (size_t i = 0; i < c.n; i++) {
		if (c.rows[i].kind == OUTBOX_GITHUB_CLOSED)
			number = c.rows[i].number;
		rig_done(&c.rows[i], OUTBOX_OK, 0);
	}
	claim_outbox_release(&c);
	return number;
}

/* The vendor's run belongs to the number of the first, whichever of the two ends it. */
static void the_vendor_is_notified_with_the_number_that_it_knows(void **state)
{
	struct pair p = open_pair(0);

	(void)state;
	assert_int_equal(say(&p, CANCEL, TWIN, SPEAKER_MEMBER).n_cancelled, 1);
	assert_int_equal(number_in_close_request(), p.first);
	p = open_pair(1);
	happens(&p, p.first, "closed");
	assert_int_equal(number_in_close_request(), 0);
	happens(&p, p.twin, "closed");
	assert_int_equal(number_in_close_request(), p.first);
	/* The first has another head by now, and its newer run must continue. */
	p = open_pair(2);
	rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .number = p.first,
	    .head = HEAD_B,
	    .event_ms = T0 + (p.at + 1) * 1000,
	    .action = "synchronize",
	    .wants = of_member,
	    .n_wants = ARRAY_LEN(of_member)});
	free(rig_send(T0 + 365 * DAY));
	p.at += 2;
	assert_int_equal(say(&p, CANCEL, TWIN, SPEAKER_AUTHOR).n_cancelled, 1);
	assert_int_equal(number_in_close_request(), 0);
	happens(&p, p.twin, "closed");
	assert_int_equal(number_in_close_request(), p.twin);
}

static bool has_file(const struct pair *p, const char *name)
{
	struct get_files q = {.repository = UPSTREAM, .head_sha = p->head};
	bool result;

	ASK_OK(store_get_files, &q);
	result = q.files && strv_contains((const char *const *)q.files, name);
	strv_free(q.files);
	return result;
}

/* The changed files of a head are relative to the base of the leading PR. */
static void the_files_are_those_of_the_first(void **state)
{
	struct pair p = open_pair(0);
	static const char *const ours[] = {"aten/a.cpp", NULL}, *const theirs[] = {"README", NULL};
	struct put_files put = {
	    .repository = UPSTREAM, .head_sha = p.head, .number = p.twin, .files = theirs, .now_ms = T0};

	(void)state;
	DO_OK(store_put_files, &put);
	assert_false(has_file(&p, "README"));
	put.number = p.first;
	put.files = ours;
	DO_OK(store_put_files, &put);
	assert_true(has_file(&p, "aten/a.cpp"));
}

/* Many PRs with one head have the same limit of commands as one. */
static void all_pulls_of_a_head_share_the_limit_of_commands(void **state)
{
	struct pair p = open_pair(0);

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(say(&p, HELP, FIRST, SPEAKER_MEMBER).outcome, COMMANDS_HEARD);
		assert_int_equal(say(&p, HELP, TWIN, SPEAKER_MEMBER).outcome, COMMANDS_HEARD);
	}
	assert_int_equal(say(&p, HELP, FIRST, SPEAKER_MEMBER).outcome, COMMANDS_TOO_MANY);
	assert_int_equal(say(&p, CANCEL, TWIN, SPEAKER_MEMBER).outcome, COMMANDS_TOO_MANY);
	ASSERT_DISPATCHES(p.head, SHARED_STATE);
	/* The limit is per person; another person may still give commands. */
	assert_int_equal(say(&p, STATUS, FIRST, SPEAKER_AUTHOR).outcome, COMMANDS_HEARD);
}

/* Re-run and outpostctl name a commit, not a PR: they mean the leading PR. */
static void a_commit_means_the_pull_that_leads(void **state)
{
	struct pair p = pair_of(0);
	struct find_tested t = {.repository = UPSTREAM, .sha = p.head};
	struct find_rerun f = {.repository = UPSTREAM, .head_sha = p.head};

	(void)state;
	happens(&p, p.twin, "opened");
	happens(&p, p.first, "opened");
	ASK_OK(store_find_tested, &t);
	assert_int_equal(t.pull_number, p.first);
	assert_true(t.is_open);
	find_tested_release(&t);
	ASK_OK(store_find_rerun, &f);
	assert_int_equal(f.pull_number, p.first);
	find_rerun_release(&f);
}

static int n_reruns_on(const struct pair *p, const char *accelerator)
{
	struct find_rerun f = {.repository = UPSTREAM, .head_sha = p->head};
	int n = 0;

	ASK_OK(store_find_rerun, &f);
	for (size_t i = 0; i < f.n; i++)
		n += strcmp(f.list[i].accelerator, accelerator) == 0;
	find_rerun_release(&f);
	return n;
}

/* GitHub repeats only the failed jobs of a run, so the others keep their attempt. */
static void a_rerun_names_the_newest_attempt_of_a_run(void **state)
{
	struct pair p = pair_of(0);
	struct find_rerun f = {.repository = UPSTREAM, .head_sha = p.head};

	(void)state;
	happens(&p, p.first, "opened");
	report_job(p.head, "xpu", "build", 1, "success");
	report_job(p.head, "xpu", "test", 1, "failure");
	report_job(p.head, "xpu", "test", 2, "failure");
	ASK_OK(store_find_rerun, &f);
	for (size_t i = 0; i < f.n; i++)
		if (strcmp(f.list[i].accelerator, "xpu") == 0) {
			assert_string_equal(f.list[i].run_id, "100");
			assert_int_equal(f.list[i].run_attempt, 2);
		}
	find_rerun_release(&f);
	assert_int_equal(n_reruns_on(&p, "xpu"), 1);
}

/* Re-run starts nothing that was released for a time and is released no longer. */
static void a_withdrawn_release_is_not_run_again(void **state)
{
	struct pair p = pair_of(0);

	(void)state;
	happens(&p, p.first, "opened");
	assert_int_equal(n_reruns_on(&p, "zpu"), 0);
	say(&p, RELEASE, FIRST, SPEAKER_MEMBER);
	free(rig_send(T0 + 365 * DAY));
	report(p.head, "zpu", "success");
	assert_int_equal(n_reruns_on(&p, "zpu"), 1);
	say(&p, DECLINE, FIRST, SPEAKER_MEMBER);
	assert_int_equal(n_reruns_on(&p, "zpu"), 0);
	assert_int_equal(n_reruns_on(&p, "npu"), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(only_members_control_a_shared_head),
	    TEST(a_held_round_does_not_replace_the_finished_one),
	    TEST(an_unknown_pull_with_the_head_counts_as_a_twin),
	    TEST(an_author_may_control_an_unshared_head),
	    TEST(events_of_the_twin_change_nothing),
	    TEST(the_pull_request_of_a_member_leads),
	    TEST(a_twin_cannot_hold_or_start_accelerators_that_the_first_does_not_want),
	    TEST(a_draft_ends_only_runs_that_no_other_pull_wants),
	    TEST(a_removed_label_ends_only_runs_that_no_other_pull_has_labelled),
	    TEST(the_base_is_that_of_the_first),
	    TEST(the_vendor_is_notified_with_the_number_that_it_knows),
	    TEST(the_files_are_those_of_the_first),
	    TEST(all_pulls_of_a_head_share_the_limit_of_commands),
	    TEST(a_commit_means_the_pull_that_leads),
	    TEST(a_rerun_names_the_newest_attempt_of_a_run),
	    TEST(a_withdrawn_release_is_not_run_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
