/* From deliveries on disk to dispatches: order, files, holds, commands, failures. */
#include "dispatch_rig.h"

#include "dispatch/dispatch_internal.h"
#include "replaces.h"
#include "views/change.h"

REPLACES(timer_start);
extern __typeof__(timer_start) real_timer_start __asm__("__real_timer_start");

static struct timer *sweep_timer; /* the planner's: the first one-minute timer that starts after a test clears this */

void timer_start(struct timer *t, int64_t after_ms)
{
	if (after_ms == 60 * 1000 && !sweep_timer)
		sweep_timer = t;
	real_timer_start(t, after_ms);
}

static bool all_is_planned(struct rig *r)
{
	struct dispatch_counters n = rig_counters(r);

	return n.n_planning == 0 && n.n_deliveries_planned + n.n_deliveries_ignored + n.n_deliveries_failed > 0;
}

static int64_t n_expected;

static bool so_many_are_planned(struct rig *r)
{
	struct dispatch_counters n = rig_counters(r);

	return n.n_planning == 0 && n.n_sending == 0 &&
	       n.n_deliveries_planned + n.n_deliveries_ignored + n.n_deliveries_failed >= n_expected;
}

static void wait_planned(struct rig *r, int64_t n)
{
	n_expected = n;
	rig_wait_until(r, so_many_are_planned);
}

static void plans_waiting_deliveries_at_the_start(void **state)
{
	struct rig *r = *state;

	rig_start_store(r);
	rig_pull(r, "g-1", .action = "opened");
	rig_start_dispatch(r);
	wait_planned(r, 1);
	rig_expect_delivery(r, "g-1", "planned", NULL);
	assert_int_equal(rig_counters(r).n_dispatches_made, 3);
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	assert_int_equal(rig_counters(r).n_github_sent, 1); /* gh and picky share one */
	assert_int_equal(rig_counters(r).n_webhooks_sent, 1);
}

static bool planner_is_at_rest(struct rig *r) { return planner_is_idle(r->dispatch->planner); }

static void plans_a_new_delivery_without_reading_it(void **state)
{
	struct rig *r = *state;
	const struct rig_pull pulls[] = {{.action = "opened"}, {.action = "opened", .sha = SHA_B, .number = 8}};
	char *bodies[] = {rig_pull_body(&pulls[0]), rig_pull_body(&pulls[1])};
	struct delivery new = {.id = 1, .body = bodies[0]};

	rig_start_store(r);
	rig_deliver(r, "g-1", "pull_request", bodies[0]);
	rig_start_dispatch(r);
	dispatch_accept(r->dispatch, &new); /* older ones may wait in the database */
	assert_non_null(new.body);
	wait_planned(r, 1);
	rig_wait_until(r, planner_is_at_rest);
	assert_true(rig_deliver(r, "g-2", "pull_request", bodies[1]));
	wait_planned(r, 2);
	rig_expect_delivery(r, "g-1", "planned", NULL);
	rig_expect_delivery(r, "g-2", "planned", NULL);
	assert_int_equal(rig_counters(r).n_dispatches_made, 6);
	assert_int_equal(rig_n_dispatches(r), 2);
	assert_int_equal(rig_n_hooks(r), 2);
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		free(bodies[i]);
}

/* As one whose node ended behind its commit, before it could pass it on or announce it. */
static void plans_a_delivery_that_no_node_announced(void **state)
{
	struct rig *r = *state;
	const struct rig_pull pull = {.action = "opened"};
	char *body = rig_pull_body(&pull);
	struct put_delivery put = {.op.done = rig_op_on_done,
	    .guid = "g-1",
	    .event = "pull_request",
	    .action = "opened",
	    .repository = UPSTREAM,
	    .body = body,
	    .body_bytes = strlen(body),
	    .now_ms = clock_wall_ms(),
	    .is_passed_on = true};

	rig_start_store(r);
	sweep_timer = NULL;
	rig_start_dispatch(r);
	rig_wait_until(r, planner_is_at_rest);
	rig_op_is_done = false;
	assert_int_equal(store_put_delivery(r->store, &put), 0);
	loop_run_until(r->gh->loop, &rig_op_is_done);
	assert_int_equal(put.op.err, 0);
	timer_start(sweep_timer, 0);
	wait_planned(r, 1);
	rig_expect_delivery(r, "g-1", "planned", NULL);
	free(body);
}

/* A sweep may read a delivery before intake learns of its commit. */
static void does_not_plan_a_delivery_that_a_sweep_has_read(void **state)
{
	struct rig *r = *state;
	const struct rig_pull pull = {.action = "opened"};
	struct delivery late = {
	    .id = 1, .guid = (char *)"g-1", .event = (char *)"pull_request", .body = rig_pull_body(&pull)};
	char *body = late.body;

	rig_start_store(r);
	rig_deliver(r, "g-1", "pull_request", body);
	rig_start_dispatch(r);
	wait_planned(r, 1);
	rig_wait_until(r, planner_is_at_rest);
	late.body_len = strlen(body);
	dispatch_accept(r->dispatch, &late);
	assert_ptr_equal(late.body, body);
	rig_wait_until(r, planner_is_at_rest);
	assert_int_equal(rig_counters(r).n_deliveries_planned, 1);
	free(body);
}

static void does_not_plan_twice(void **state)
{
	struct rig *r = *state;

	rig_start_store(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened");
	rig_pull(r, "g-2", .action = "opened");
	wait_planned(r, 2);
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	rig_stop(r);
	rig_start_store(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-3", .action = "opened");
	wait_planned(r, 1);
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	assert_int_equal(rig_n_dispatches(r), 1);
	assert_int_equal(rig_n_hooks(r), 1);
}

static void asks_for_files_once(void **state)
{
	struct rig *r = *state;

	fake_set(r->gh, answer, rig_github_answer);
	the_rig->files = "[{\"filename\":\"aten/x.cpp\"}]";
	rig_start_store(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened");
	rig_pull(r, "g-2", .action = "labeled");
	rig_pull(r, "g-3", .action = "synchronize");
	wait_planned(r, 3);
	assert_int_equal(fake_count(r->gh, "GET /repos/" UPSTREAM "/pulls/7/files"), 1);
	rig_expect_states(r, "gh:sent hook:acknowledged pathy:sent picky:sent");
	/* A body without the label that `labeled` requires is not a valid webhook. */
	rig_expect_delivery(r, "g-2", "failed", "label.name is missing");
}

static void plans_without_the_file_list_when_github_fails(void **state)
{
	struct rig *r = *state;

	r->files = NULL;
	rig_start_store(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened");
	wait_planned(r, 1);
	assert_int_equal(rig_counters(r).n_files_unread, 1);
	rig_expect_states(r, "gh:sent hook:acknowledged pathy:sent picky:sent");
}

/* A hundred deliveries of three PRs at once: each PR ends with its last head. */
static void keeps_the_order_of_a_pull_request(void **state)
{
	struct rig *r = *state;

	rig_start_store(r);
	for (int i = 0; i < 99; i++) {
		char guid[16], sha[41], at[32];

		snprintf(guid, sizeof(guid), "g-%d", i);
		snprintf(sha, sizeof(sha), "%040x", i + 1);
		snprintf(at, sizeof(at), "2026-01-01T00:%02d:00Z", i / 3);
		rig_pull(r, guid, .action = i < 3 ? "opened" : "synchronize", .sha = sha, .number = i % 3 + 1,
		    .updated_at = at);
	}
	rig_start_dispatch(r);
	wait_planned(r, 99);
	for (int number = 1; number <= 3; number++) {
		struct get_change q = {
		    .now_ms = clock_wall_ms(), .q.done = rig_query_on_done, .repository = UPSTREAM, .number = number};
		char sha[41];

		rig_query_is_done = false;
		assert_int_equal(store_get_change(r->store, &q), 0);
		loop_run_until(r->gh->loop, &rig_query_is_done);
		snprintf(sha, sizeof(sha), "%040x", 96 + number);
		assert_string_equal(q.view->head_sha, sha);
		change_view_free(q.view);
	}
	assert_int_equal(rig_counters(r).n_deliveries_failed, 0);
}

static void marks_deliveries_that_it_cannot_plan(void **state)
{
	struct rig *r = *state;

	rig_start_store(r);
	rig_start_dispatch(r);
	rig_deliver(r, "g-1", "pull_request", "{\"action\":\"opened\"");
	rig_deliver(r, "g-2", "pull_request", "{\"action\":\"opened\"}");
	rig_deliver(r, "g-3", "installation", "{\"action\":\"created\"}");
	rig_deliver(r, "g-4", "push",
	    "{\"ref\":\"refs/heads/feature\",\"before\":\"" SHA_A "\",\"after\":\"" SHA_B "\","
	    "\"deleted\":false,\"repository\":{\"full_name\":\"" UPSTREAM "\"}}");
	wait_planned(r, 4);
	rig_expect_delivery(r, "g-1", "failed", NULL);
	rig_expect_delivery(r, "g-2", "failed", NULL);
	rig_expect_delivery(r, "g-3", "ignored", NULL);
	rig_expect_delivery(r, "g-4", "ignored", "a push to a branch that upstream.branches does not list");
	assert_int_equal(rig_counters(r).n_deliveries_failed, 2);
	assert_int_equal(rig_counters(r).n_deliveries_ignored, 2);
}

static void plans_a_replayed_delivery_again(void **state)
{
	struct rig *r = *state;
	struct replay_delivery replay = {.op.done = rig_op_on_done, .guid = "g-1"};

	rig_start_store(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened");
	rig_pull(r, "g-2", .action = "opened", .number = 8, .sha = SHA_B);
	wait_planned(r, 2);
	rig_op_is_done = false;
	assert_int_equal(store_replay_delivery(r->store, &replay), 0);
	wait_planned(r, 3);
	assert_int_equal(replay.op.err, 0);
	rig_expect_delivery(r, "g-1", "planned", NULL);
	rig_expect_states(r, "gh:sent gh:sent hook:acknowledged hook:acknowledged picky:sent picky:sent");
	assert_int_equal(rig_n_dispatches(r), 2);
}

static void comment(struct rig *r, const char *guid, const char *association, const char *type, const char *text)
{
	static int id;
	char *body = xasprintf("{\"action\":\"created\",\"issue\":{\"number\":7,\"user\":{\"login\":\"alice\"},"
			       "\"pull_request\":{}},\"comment\":{\"id\":%d,\"body\":\"%s\",\"user\":{\"login\":"
			       "\"bob\",\"type\":\"%s\"},\"author_association\":\"%s\",\"created_at\":"
			       "\"2026-01-01T01:00:00Z\"},\"repository\":{\"full_name\":\"" UPSTREAM "\"}}",
	    ++id, text, type, association);

	rig_deliver(r, guid, "issue_comment", body);
	free(body);
}

static void releases_held_dispatches(void **state)
{
	struct rig *r = *state;

	rig_start_store(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened", .association = "NONE");
	comment(r, "c-1", "CONTRIBUTOR", "User", "@outpost-test ok-to-test");
	comment(r, "c-2", "MEMBER", "Bot", "@outpost-test ok-to-test");
	comment(r, "c-3", "MEMBER", "User", "> @outpost-test ok-to-test");
	comment(r, "c-4", "MEMBER", "User", "nice");
	wait_planned(r, 5);
	assert_int_equal(rig_n_dispatches(r) + rig_n_hooks(r), 0);
	rig_expect_states(r, "gh:held hook:held picky:held");
	rig_expect_delivery(r, "c-1", "ignored", "commands are for the author and members");
	rig_expect_delivery(r, "c-2", "ignored", "comments of bots are not read");
	rig_expect_delivery(r, "c-3", "ignored", "no command");
	rig_expect_delivery(r, "c-4", "ignored", "no command");

	comment(r, "c-5", "MEMBER", "User", "@outpost-test ok-to-test " SHA_B);
	wait_planned(r, 6);
	rig_expect_delivery(r, "c-5", "ignored", "ok-to-test, but nothing is held");
	comment(r, "c-6", "MEMBER", "User", "Fine.\\r\\n@outpost-test ok-to-test\\r\\n");
	wait_planned(r, 7);
	rig_expect_delivery(r, "c-6", "planned", NULL);
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	assert_int_equal(rig_n_dispatches(r), 1);
}

/* The PR as GitHub's API gives it. */
#define PULL(state, at)                                                                                                \
	"{\"number\":7,\"title\":\"T\",\"state\":\"" state "\",\"draft\":false,\"labels\":[],"                         \
	"\"user\":{\"login\":\"alice\"},\"author_association\":\"MEMBER\",\"updated_at\":\"" at                        \
	"\",\"head\":{\"sha\":\"" SHA_A "\"},\"base\":{\"sha\":\"" SHA_BASE "\",\"ref\":\"main\","                     \
	"\"repo\":{\"full_name\":\"" UPSTREAM "\"}}}"

static json_t *last_payload(struct rig *r)
{
	json_t *last = json_array_get(r->dispatches, json_array_size(r->dispatches) - 1);

	return json_object_get(last, "client_payload");
}

/* A busy machine may repeat a request, so these look at the last one. */
static bool last_dispatch_is_closed(struct rig *r)
{
	bool is_closed;

	pthread_mutex_lock(&r->gh->lock);
	is_closed = str_eq(json_string_value(json_at(last_payload(r), "payload", "action", NULL)), "closed");
	pthread_mutex_unlock(&r->gh->lock);
	return is_closed;
}

static bool last_hook_has(struct rig *r, const char *text)
{
	bool has;
	size_t n;

	pthread_mutex_lock(&r->lock);
	n = strv_len((const char *const *)r->hooks);
	has = n > 0 && strstr(r->hooks[n - 1], text);
	pthread_mutex_unlock(&r->lock);
	return has;
}

static void retests(void **state)
{
	struct rig *r = *state;
	char *guid;

	r->pull = PULL("open", "2026-01-01T02:00:00Z");
	rig_start_store(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened", .association = "MEMBER");
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	comment(r, "c-1", "MEMBER", "User", "@outpost-test cancel");
	rig_expect_states(r, "gh:cancelled hook:cancelled picky:cancelled");
	rig_wait_until(r, last_dispatch_is_closed);
	assert_true(rig_n_dispatches(r) >= 2);
	assert_string_equal(json_string_value(json_at(last_payload(r), "outpost", "action", NULL)), "cancel");
	guid = xstrdup(json_get_str(last_payload(r), "delivery_id"));
	assert_string_not_equal(guid, "g-1");
	free(guid);
	/* A word that names no accelerator, and an accelerator that does not test this change. */
	comment(r, "c-2", "MEMBER", "User", "@outpost-test retest please");
	comment(r, "c-3", "MEMBER", "User", "@outpost-test retest pathy");
	comment(r, "c-3b", "MEMBER", "User", "@outpost-test stress s/t on gamma"); /* finding 24 */
	wait_planned(r, 5);
	rig_expect_delivery(r, "c-2", "ignored", "a command for an unknown accelerator");
	rig_expect_delivery(r, "c-3b", "ignored", "a command for an unknown accelerator");
	rig_expect_delivery(r, "c-3", "ignored", "retest of an accelerator that does not test this");
	comment(r, "c-4", "MEMBER", "User", "@outpost-test retest gh");
	rig_expect_states(r, "gh:cancelled gh:sent hook:cancelled picky:cancelled");
	assert_string_equal(json_string_value(json_at(last_payload(r), "payload", "action", NULL)), "synchronize");
	assert_string_equal(json_string_value(json_at(last_payload(r), "outpost", "action", NULL)), "retest");
	rig_expect_delivery(r, "c-4", "planned", NULL);
}

static bool last_hook_is_a_retest(struct rig *r) { return last_hook_has(r, "\"retest\""); }

/* GitHub is down: Outpost sends the last request again. */
static void retests_while_github_is_down(void **state)
{
	struct rig *r = *state;

	r->pull = "nothing";
	rig_start_store(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened", .association = "MEMBER");
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	comment(r, "c-1", "MEMBER", "User", "@outpost-test cancel\\n@outpost-test retest hook");
	rig_expect_states(r, "gh:cancelled hook:acknowledged hook:cancelled picky:cancelled");
	rig_wait_until(r, last_hook_is_a_retest);
	assert_true(rig_n_hooks(r) >= 3);
}

static void ignores_commands_on_a_closed_pull_request(void **state)
{
	struct rig *r = *state;

	r->pull = PULL("closed", "2026-01-01T02:00:00Z");
	rig_start_store(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened", .association = "MEMBER");
	comment(r, "c-1", "MEMBER", "User", "@outpost-test retest");
	wait_planned(r, 2);
	rig_expect_delivery(r, "c-1", "ignored", "the pull request is closed");
}

static bool last_hook_is_a_cancel(struct rig *r) { return last_hook_has(r, "X-Outpost-Event: cancel\r\n"); }

static void handles_closes_and_drafts(void **state)
{
	struct rig *r = *state;

	rig_start_store(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened");
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	rig_pull(r, "g-2", .action = "converted_to_draft", .is_draft = true, .updated_at = "2026-01-01T00:01:00Z");
	wait_planned(r, 2);
	rig_expect_states(r, "gh:sent hook:cancelled picky:sent");
	rig_wait_until(r, last_hook_is_a_cancel);
	assert_true(rig_n_hooks(r) >= 2);
	rig_pull(r, "g-3", .action = "closed", .state = "closed", .updated_at = "2026-01-01T00:02:00Z");
	wait_planned(r, 3);
	rig_expect_states(r, "gh:cancelled hook:cancelled picky:cancelled");
	rig_wait_until(r, last_dispatch_is_closed);
	assert_true(rig_n_dispatches(r) >= 2);
}

static void closes_while_it_works(void **state)
{
	struct rig *r = *state;

	r->files = NULL; /* it waits before the next request */
	rig_start_store(r);
	for (int i = 0; i < 20; i++) {
		char guid[16];

		snprintf(guid, sizeof(guid), "g-%d", i);
		rig_pull(r, guid, .action = "opened", .number = i % 10 + 1);
	}
	rig_start_dispatch(r);
	rig_stop(r);
	r->files = "[]";
	rig_start_store(r);
	rig_start_dispatch(r);
	wait_planned(r, 20);
	assert_true(all_is_planned(r));
	assert_int_equal(rig_counters(r).n_deliveries_failed, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_set_up, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(plans_waiting_deliveries_at_the_start),
	    TEST(plans_a_new_delivery_without_reading_it),
	    TEST(plans_a_delivery_that_no_node_announced),
	    TEST(does_not_plan_a_delivery_that_a_sweep_has_read),
	    TEST(does_not_plan_twice),
	    TEST(asks_for_files_once),
	    TEST(plans_without_the_file_list_when_github_fails),
	    TEST(keeps_the_order_of_a_pull_request),
	    TEST(marks_deliveries_that_it_cannot_plan),
	    TEST(plans_a_replayed_delivery_again),
	    TEST(releases_held_dispatches),
	    TEST(retests),
	    TEST(retests_while_github_is_down),
	    TEST(ignores_commands_on_a_closed_pull_request),
	    TEST(handles_closes_and_drafts),
	    TEST(closes_while_it_works),
	};

	return cmocka_run_group_tests_name("dispatch_planner", tests, NULL, NULL);
}
