/* The 72-hour rule and the circuit breaker: results in and out of order, attribution, reruns, branches, and the
 * notifications. */
#include "history/red_episodes.h"
#include "store_rig.h"
#include "views/dashboard.h"
#include "views/feed_events.h"

/* Commit n of main is the SHA of n's digit, 40 times. */
static const char *sha(char n)
{
	static char text[4][41];
	static int next;
	char *s = text[next++ % 4];

	memset(s, n, 40);
	return s;
}

struct pushed {
	char n; /* its commit; the one before it is n - 1 */
	const char *ref;
	int64_t now_ms;
	const char *before; /* NULL: n - 1 */
};

static void push(const struct pushed *x)
{
	static int n;
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	const char *head = sha(x->n);
	struct push_commit commit = {
	    .sha = (char *)head, .author = (char *)"alice", .title = (char *)"A commit", .at_ms = x->now_ms};
	struct plan p = {.kind = PLAN_START,
	    .change_kind = CHANGE_PUSH,
	    .repository = (char *)UPSTREAM,
	    .head_sha = (char *)head,
	    .before = (char *)(x->before ? x->before : sha((char)(x->n - 1))),
	    .ref = (char *)(x->ref ? x->ref : "refs/heads/main"),
	    .commits = &commit,
	    .n_commits = 1,
	    .event_type = "push",
	    .wants = wants,
	    .n_wants = 1};
	char guid[64];
	struct apply_plan op = {.guid = guid, .body = "{}", .body_bytes = 2, .plan = &p, .now_ms = x->now_ms};

	snprintf(guid, sizeof(guid), "push-%c-%d", x->n, ++n);
	DO_OK(store_apply_plan, &op);
}

static void report_as(const char *head, enum test_status status, int run_attempt, const char *message, int64_t now_ms)
{
	struct test_result test = {.suite = (char *)"model",
	    .name = (char *)"llama3",
	    .status = status,
	    .duration_ms = -1,
	    .message = (char *)message};
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)(test_status_is_red(status) ? "failure" : "success"),
	    .workflow = (char *)"CI",
	    .name = (char *)"test",
	    .run_id = (char *)"1",
	    .run_attempt = run_attempt,
	    .tests = &test,
	    .n_tests = 1};
	char *id = rig_dispatch_id(head, "npu");
	struct report_job op = {.dispatch_id = id, .report = &j, .now_ms = now_ms};

	j.digest[0] = (uint8_t)(1 + run_attempt);
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
}

static void report(char n, enum test_status status, int64_t now_ms)
{
	report_as(sha(n), status, 1, "it broke", now_ms);
}

static struct red_episode *episode(int64_t id)
{
	struct get_red_episode g = {.id = id};
	int rc = ASK(store_get_red_episode, &g);

	assert_true(rc == 0 || rc == ERR_NOT_FOUND);
	return g.episode;
}

#define ASSERT_EPISODE(id, first_bad, last_good, is_ended)                                                             \
	do {                                                                                                           \
		struct red_episode *e_ = episode(id);                                                                  \
		assert_non_null(e_);                                                                                   \
		assert_string_equal(e_->first_bad_sha, sha(first_bad));                                                \
		if (last_good)                                                                                         \
			assert_string_equal(e_->last_good_sha, sha(last_good));                                        \
		else                                                                                                   \
			assert_null(e_->last_good_sha);                                                                \
		assert_int_equal(e_->ended_ms != 0, is_ended);                                                         \
		red_episode_free(e_);                                                                                  \
	} while (0)

static void assert_none(int64_t id) { assert_null(episode(id)); }

static int64_t red_since(void)
{
	struct get_figures g = {.now_ms = T0 + DAY};
	int64_t since;

	ASK_OK(store_get_figures, &g);
	since = g.list[0].quality.red_since_ms;
	get_figures_release(&g);
	return since;
}

/* Pushes 1 to n, an hour apart. */
static void push_all(char last)
{
	for (char n = '1'; n <= last; n++)
		push(&(struct pushed){.n = n, .now_ms = T0 + (n - '1') * HOUR});
}

static void an_episode_begins_red_and_ends_green(void **state)
{
	struct red_episode *e;

	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('4');
	report('1', TEST_PASS, T0 + 5 * HOUR);
	assert_none(1);
	report('2', TEST_FAIL, T0 + 6 * HOUR);
	ASSERT_EPISODE(1, '2', '1', false);
	assert_int_equal(red_since(), T0 + 6 * HOUR);
	report('3', TEST_ERROR, T0 + 7 * HOUR);
	ASSERT_EPISODE(1, '2', '1', false);
	assert_int_equal(red_since(), T0 + 6 * HOUR);
	report('4', TEST_PASS, T0 + 8 * HOUR);
	ASSERT_EPISODE(1, '2', '1', true);
	assert_none(2);
	assert_int_equal(red_since(), 0);
	e = episode(1);
	assert_string_equal(e->accelerator, "npu");
	assert_string_equal(e->repository, UPSTREAM);
	assert_string_equal(e->ref, "main");
	assert_int_equal(e->first_bad_ms, T0 + 6 * HOUR);
	assert_int_equal(e->ended_ms, T0 + 8 * HOUR);
	assert_string_equal(e->ended_sha, sha('4'));
	assert_int_equal(e->n_tests, 1);
	assert_string_equal(e->tests[0], "model/llama3");
	assert_int_equal(e->notified_ms + e->reminded_ms + e->overdue_ms + e->closed_ms, 0);
	red_episode_free(e);
	push(&(struct pushed){.n = '5', .now_ms = T0 + 9 * HOUR});
	report('5', TEST_MISS, T0 + 9 * HOUR);
	ASSERT_EPISODE(2, '5', '4', false);
}

static void results_may_arrive_in_any_order(void **state)
{
	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('6');
	report('5', TEST_FAIL, T0 + 6 * HOUR);
	ASSERT_EPISODE(1, '5', 0, false);
	report('3', TEST_FAIL, T0 + 7 * HOUR); /* an older one was red, too */
	ASSERT_EPISODE(1, '3', 0, false);
	assert_int_equal(red_since(), T0 + 6 * HOUR); /* since when that is known */
	report('2', TEST_PASS, T0 + 8 * HOUR);
	ASSERT_EPISODE(1, '3', '2', false);
	report('1', TEST_FAIL, T0 + 9 * HOUR); /* before the green one: a separate episode, which has ended */
	ASSERT_EPISODE(1, '3', '2', false);
	report('4', TEST_PASS, T0 + 10 * HOUR); /* it was green between */
	ASSERT_EPISODE(1, '5', '4', false);
	report('6', TEST_PASS, T0 + 11 * HOUR);
	ASSERT_EPISODE(1, '5', '4', true);
	assert_none(2);
}

static void a_late_red_does_not_reopen_an_episode_that_a_newer_green_ended(void **state)
{
	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('4');
	report('1', TEST_FAIL, T0 + 5 * HOUR);
	report('4', TEST_PASS, T0 + 6 * HOUR);
	ASSERT_EPISODE(1, '1', 0, true);
	report('2', TEST_FAIL, T0 + 7 * HOUR);
	report('3', TEST_FAIL, T0 + 8 * HOUR);
	assert_none(2);
	assert_int_equal(red_since(), 0);
}

/* Deliveries may arrive in any order, too: the order of the branch counts. */
static void the_order_of_the_branch_counts(void **state)
{
	(void)state;
	rig_register_npu(LEVEL_2);
	push(&(struct pushed){.n = '1', .now_ms = T0});
	push(&(struct pushed){.n = '3', .now_ms = T0 + HOUR}); /* the webhook of 2 was lost */
	push(&(struct pushed){.n = '2', .now_ms = T0 + 2 * HOUR});
	report('3', TEST_PASS, T0 + 3 * HOUR);
	report('2', TEST_FAIL, T0 + 4 * HOUR);
	assert_none(1);
	report('1', TEST_PASS, T0 + 5 * HOUR);
	assert_none(1);
}

static void each_branch_has_its_own_episode(void **state)
{
	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('2');
	push(&(struct pushed){.n = '7', .ref = "refs/heads/release/2.9", .now_ms = T0});
	report('1', TEST_FAIL, T0 + HOUR);
	report('7', TEST_PASS, T0 + 2 * HOUR);
	ASSERT_EPISODE(1, '1', 0, false);
	push(&(struct pushed){.n = '8', .ref = "refs/heads/release/2.9", .now_ms = T0 + 3 * HOUR});
	report('8', TEST_FAIL, T0 + 4 * HOUR);
	ASSERT_EPISODE(2, '8', '7', false);
	report('2', TEST_PASS, T0 + 5 * HOUR);
	ASSERT_EPISODE(1, '1', 0, true);
	ASSERT_EPISODE(2, '8', '7', false);
	assert_int_equal(red_since(), T0 + 4 * HOUR);
}

static void another_attempt_replaces_the_first(void **state)
{
	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('1');
	report('1', TEST_FAIL, T0 + HOUR);
	ASSERT_EPISODE(1, '1', 0, false);
	report_as(sha('1'), TEST_PASS, 2, NULL, T0 + 2 * HOUR);
	ASSERT_EPISODE(1, '1', 0, true);
}

/* The red commit has no red test any more and nothing newer passed: the episode ends, and nothing is green. */
static void an_end_without_a_pass_is_not_green(void **state)
{
	struct red_episode *e;

	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('2');
	report('1', TEST_PASS, T0 + HOUR);
	report('2', TEST_FAIL, T0 + 2 * HOUR);
	ASSERT_EPISODE(1, '2', '1', false);
	report_as(sha('2'), TEST_SKIP, 2, NULL, T0 + 3 * HOUR);
	ASSERT_EPISODE(1, '2', '1', true);
	e = episode(1);
	assert_false(e->has_green_again);
	assert_null(e->ended_sha);
	red_episode_free(e);
}

static void a_run_with_only_skips_changes_nothing(void **state)
{
	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('3');
	report('1', TEST_FAIL, T0 + HOUR);
	report('2', TEST_SKIP, T0 + 2 * HOUR);
	ASSERT_EPISODE(1, '1', 0, false);
}

static void a_missing_report_is_red(void **state)
{
	struct expire_dispatches e = {.now_ms = T0 + 3 * HOUR};
	struct list_feed_events l = {0};
	struct red_episode *one;

	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('1');
	DO_OK(store_expire_dispatches, &e);
	assert_int_equal(e.n_expired, 1);
	ASSERT_EPISODE(1, '1', 0, false);
	one = episode(1);
	assert_string_equal(one->tests[0], "dispatch/ci");
	assert_true(one->is_silence);
	red_episode_free(one);
	ASK_OK(store_list_feed_events, &l);
	assert_true(l.list[0].is_silence);
	list_feed_events_release(&l);
	report('1', TEST_FAIL, T0 + 4 * HOUR); /* late */
	one = episode(1);
	assert_false(one->is_silence);
	red_episode_free(one);
	report_as(sha('1'), TEST_PASS, 2, NULL, T0 + 5 * HOUR);
	ASSERT_EPISODE(1, '1', 0, true);
}

static struct dashboard *dashboard(int64_t now_ms)
{
	struct get_dashboard g = {.repository = UPSTREAM, .branch = "main", .now_ms = now_ms};

	ASK_OK(store_get_dashboard, &g);
	return g.view;
}

#define ASSERT_SHOWN(now, tested, silent, is_silence)                                                                  \
	do {                                                                                                           \
		struct dashboard *v_ = dashboard(now);                                                                 \
		const struct dashboard_row *row_ = &v_->rows[0];                                                       \
		assert_string_equal(row_->at.sha, sha(tested));                                                        \
		assert_string_equal(v_->sha, sha(tested));                                                             \
		assert_int_equal(v_->n_tested, 1);                                                                     \
		if (silent)                                                                                            \
			assert_string_equal(row_->at.silent_sha, sha(silent));                                         \
		else                                                                                                   \
			assert_null(row_->at.silent_sha);                                                              \
		assert_int_equal(row_->at.facts.is_red_in_silence, is_silence);                                        \
		dashboard_free(v_);                                                                                    \
	} while (0)

/* The newest tested commit stays shown; a flag says whether it is red by its results or by a missing report. */
static void a_missing_report_does_not_become_the_shown_commit(void **state)
{
	struct expire_dispatches e = {.now_ms = T0 + 3 * HOUR};

	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('2');
	report('1', TEST_PASS, T0 + HOUR);
	ASSERT_SHOWN(T0 + 2 * HOUR, '1', 0, false);
	DO_OK(store_expire_dispatches, &e);
	assert_int_equal(e.n_expired, 1);
	ASSERT_SHOWN(T0 + 4 * HOUR, '1', '2', true);
	report('2', TEST_FAIL, T0 + 5 * HOUR); /* late */
	ASSERT_SHOWN(T0 + 6 * HOUR, '2', 0, false);
}

static void an_accelerator_without_any_report_is_shown(void **state)
{
	struct expire_dispatches e = {.now_ms = T0 + 3 * HOUR};
	struct dashboard *v;

	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('2');
	DO_OK(store_expire_dispatches, &e);
	assert_int_equal(e.n_expired, 2);
	v = dashboard(T0 + 4 * HOUR);
	assert_null(v->sha);
	assert_null(v->rows[0].at.sha);
	assert_string_equal(v->rows[0].at.silent_sha, sha('2'));
	assert_int_equal(v->rows[0].n_suites, 0);
	assert_true(v->rows[0].at.facts.is_red_in_silence);
	dashboard_free(v);
}

/* A failure of another branch, which has ended, does not affect this one. */
static void a_missing_report_counts_for_its_branch_only(void **state)
{
	struct expire_dispatches e = {.now_ms = T0 + 3 * HOUR};
	struct dashboard *v;

	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('1');
	push(&(struct pushed){.n = '7', .ref = "refs/heads/release/2.9", .now_ms = T0});
	push(&(struct pushed){.n = '8', .ref = "refs/heads/release/2.9", .now_ms = T0});
	report('7', TEST_FAIL, T0 + HOUR);
	report('8', TEST_PASS, T0 + 2 * HOUR);
	DO_OK(store_expire_dispatches, &e);
	assert_int_equal(e.n_expired, 1);
	v = dashboard(T0 + 4 * HOUR);
	assert_true(v->rows[0].at.facts.red_since_ms);
	assert_true(v->rows[0].at.facts.is_red_in_silence);
	dashboard_free(v);
}

static void an_accelerator_at_l1_has_no_episode(void **state)
{
	struct expire_dispatches e = {.now_ms = T0 + 3 * HOUR};

	(void)state;
	rig_register_npu(LEVEL_1);
	push_all('1');
	DO_OK(store_expire_dispatches, &e);
	assert_int_equal(e.n_expired, 1);
	assert_none(1);
}

/* ---- notifications ---- */

static const unsigned RED = 1u << OUTBOX_RED_ISSUE;

static void each_episode_has_one_outbox_row(void **state)
{
	struct note_red_episode notified = {
	    .id = 1, .issue_number = 7, .issue_repository = "Ascend/pytorch", .notified_ms = T0 + HOUR};
	struct note_red_episode nobody = {.id = 4711, .notified_ms = 1};
	struct claim_outbox c;
	struct red_episode *e;

	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('3');
	report('1', TEST_FAIL, T0 + HOUR);
	c = rig_claim(RED, T0 + HOUR);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].number, 1);
	assert_string_equal(c.rows[0].accelerators[0], "npu");
	assert_null(c.rows[0].accelerators[1]);
	DO_OK(store_note_red_episode, &notified);
	assert_int_equal(DO(store_note_red_episode, &nobody), ERR_NOT_FOUND);
	rig_done(&c.rows[0], OUTBOX_AGAIN, T0 + 48 * HOUR);
	claim_outbox_release(&c);
	report('2', TEST_FAIL, T0 + 2 * HOUR); /* the notice was sent, so there is nothing more to send */
	c = rig_claim(RED, T0 + 2 * HOUR);
	assert_int_equal(c.n, 0);
	assert_int_equal(c.next_due_ms, T0 + 48 * HOUR);
	claim_outbox_release(&c);
	report('3', TEST_PASS, T0 + 3 * HOUR);
	c = rig_claim(RED, T0 + 3 * HOUR);
	assert_int_equal(c.n, 1);
	rig_done(&c.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&c);
	e = episode(1);
	assert_int_equal(e->issue_number, 7);
	assert_string_equal(e->issue_repository, "Ascend/pytorch");
	assert_int_equal(e->notified_ms, T0 + HOUR);
	assert_int_equal(e->reminded_ms, 0);
	red_episode_free(e);
}

static void a_notice_is_sent_once(void **state)
{
	struct notice_request notice = {.episode = 1,
	    .event = "red",
	    .accelerator = "npu",
	    .runner = "lab",
	    .url = "https://ci.example.org/hook",
	    .text = "{\"event\":\"red\"}"};
	struct note_red_episode notified = {.id = 1, .notified_ms = T0 + HOUR, .notice = &notice, .now_ms = T0 + HOUR};
	struct claim_outbox c;

	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('1');
	report('1', TEST_FAIL, T0 + HOUR);
	DO_OK(store_note_red_episode, &notified);
	DO_OK(store_note_red_episode, &notified);
	c = rig_claim(1u << OUTBOX_WEBHOOK_NOTICE, T0 + HOUR);
	assert_int_equal(c.n, 1);
	assert_string_equal(c.rows[0].text, "{\"event\":\"red\"}");
	assert_string_equal(c.rows[0].event_type, "red");
	assert_string_equal(c.rows[0].runner, "lab");
	assert_string_equal(c.rows[0].accelerators[0], "npu");
	assert_string_equal(c.rows[0].dispatch_id, "red-1-red");
	rig_done(&c.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&c);
}

static void a_clock_jump_moves_an_open_episode(void **state)
{
	struct shift_clock s = {.delta_ms = 3 * DAY, .now_ms = T0 + 3 * DAY};

	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('1');
	report('1', TEST_FAIL, T0 + HOUR);
	DO_OK(store_shift_clock, &s);
	assert_int_equal(red_since(), T0 + HOUR + 3 * DAY);
}

static void an_old_episode_is_deleted_with_the_results(void **state)
{
	struct apply_retention r = {.deliveries_before_ms = T0 + 90 * DAY, .results_before_ms = T0 + 90 * DAY};
	struct claim_outbox c;

	(void)state;
	rig_register_npu(LEVEL_2);
	push_all('2');
	report('1', TEST_FAIL, T0 + HOUR);
	report('2', TEST_PASS, T0 + 2 * HOUR);
	do {
		DO_OK(store_apply_retention, &r);
	} while (r.has_more);
	assert_none(1);
	c = rig_claim(RED, T0 + 200 * DAY);
	assert_int_equal(c.n, 0);
	claim_outbox_release(&c);
}

/* ---- the circuit breaker ---- */

static bool is_unhealthy(const char *head)
{
	struct change_view *v = rig_view_of(0, head);
	bool is = v->accelerators[0].is_unhealthy;

	change_view_free(v);
	return is;
}

/* A PR by an author with one result; the message is generic, so that Outpost learns nothing from it. */
static void pull(int64_t number, const char *head, const char *author, enum test_status status)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	static char *no_labels[] = {NULL};
	char guid[64];
	struct plan p = {.kind = PLAN_START,
	    .change_kind = CHANGE_PULL_REQUEST,
	    .repository = (char *)UPSTREAM,
	    .pull = {.number = number,
		.head_sha = (char *)head,
		.base_ref = (char *)"main",
		.base_sha = (char *)HEAD_C,
		.title = (char *)"A change",
		.author = (char *)author,
		.labels = no_labels,
		.is_open = true,
		.updated_ms = T0 + number},
	    .head_sha = (char *)head,
	    .event_ms = T0 + number,
	    .event_type = "pull_request",
	    .sent_action = "opened",
	    .original_action = (char *)"opened",
	    .wants = wants,
	    .n_wants = 1};
	struct apply_plan op = {.guid = guid, .body = "{}", .body_bytes = 2, .plan = &p, .now_ms = T0 + number};

	snprintf(guid, sizeof(guid), "pull-%s", head);
	DO_OK(store_apply_plan, &op);
	report_as(head, status, 1, "Killed", T0 + number);
}

static void head_of(int n, char out[41]) { snprintf(out, 41, "%040d", n); }

static void pulls(int from, int to, enum test_status status)
{
	char head[41], author[16];

	for (int n = from; n <= to; n++) {
		head_of(n, head);
		snprintf(author, sizeof(author), "author-%d", n);
		pull(n, head, author, status);
	}
}

static void the_breaker_trips_and_recovers(void **state)
{
	char head[41];

	(void)state;
	rig_register_npu(LEVEL_3);
	head_of(1, head);
	pulls(1, 7, TEST_FAIL);
	assert_false(is_unhealthy(head));
	pulls(8, 8, TEST_FAIL);
	assert_true(is_unhealthy(head));
	pulls(9, 10, TEST_PASS);
	assert_true(is_unhealthy(head));
	pulls(11, 11, TEST_PASS);
	assert_false(is_unhealthy(head));
}

static void one_author_cannot_trip_the_breaker(void **state)
{
	char head[41];

	(void)state;
	rig_register_npu(LEVEL_3);
	for (int n = 1; n <= 12; n++) {
		head_of(n, head);
		pull(n, head, "mallory", TEST_FAIL);
	}
	assert_false(is_unhealthy(head));
}

static void a_trip_requests_comments_on_open_pulls(void **state)
{
	struct claim_outbox c;

	(void)state;
	rig_register_npu(LEVEL_3);
	pulls(1, 7, TEST_FAIL);
	c = rig_claim(COMMENTS, T0 + HOUR);
	assert_int_equal(c.n, 7);
	for (size_t i = 0; i < c.n; i++)
		rig_done(&c.rows[i], OUTBOX_OK, 0);
	claim_outbox_release(&c);
	pulls(8, 8, TEST_FAIL);
	c = rig_claim(COMMENTS, T0 + HOUR);
	assert_int_equal(c.n, 8);
	claim_outbox_release(&c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(an_episode_begins_red_and_ends_green),
	    TEST(results_may_arrive_in_any_order),
	    TEST(a_late_red_does_not_reopen_an_episode_that_a_newer_green_ended),
	    TEST(the_order_of_the_branch_counts),
	    TEST(each_branch_has_its_own_episode),
	    TEST(another_attempt_replaces_the_first),
	    TEST(an_end_without_a_pass_is_not_green),
	    TEST(a_run_with_only_skips_changes_nothing),
	    TEST(a_missing_report_is_red),
	    TEST(a_missing_report_does_not_become_the_shown_commit),
	    TEST(an_accelerator_without_any_report_is_shown),
	    TEST(a_missing_report_counts_for_its_branch_only),
	    TEST(an_accelerator_at_l1_has_no_episode),
	    TEST(each_episode_has_one_outbox_row),
	    TEST(a_notice_is_sent_once),
	    TEST(a_clock_jump_moves_an_open_episode),
	    TEST(an_old_episode_is_deleted_with_the_results),
	    TEST(the_breaker_trips_and_recovers),
	    TEST(one_author_cannot_trip_the_breaker),
	    TEST(a_trip_requests_comments_on_open_pulls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
