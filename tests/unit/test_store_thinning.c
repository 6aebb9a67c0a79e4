/* Runners that test the newest push of each interval: which push starts at once, which waits and which is dropped;
 * the same after a restart, for requests and for machines that claim. */
#include "lease_rig.h"

#define MAIN  "refs/heads/main"
#define EVERY (30 * MINUTE)

static const char *sha_of(char letter)
{
	static char text[16][41];
	static int next;
	char *sha = text[next++ % 16];

	memset(sha, letter, 40);
	sha[40] = '\0';
	return sha;
}

static struct plan_want pull_want(void)
{
	struct plan_want w = PULL_WANT("npu", "farm");

	w.every_ms = EVERY;
	return w;
}

static struct plan_want github_want(const char *name, int64_t every_ms)
{
	struct plan_want w = GITHUB_WANT(name, "Shared/ci");

	w.every_ms = every_ms;
	return w;
}

struct pushed {
	char before, head;
	const char *ref;
	bool starts_round;
	struct plan_want *wants;
	size_t n_wants;
};

static int push_with(const struct pushed *a, int64_t at)
{
	char nothing[] = "", guid[64];
	struct push_commit commit = {(char *)sha_of(a->head), nothing, nothing, T0, NULL};
	struct plan p = {
	    .kind = PLAN_START,
	    .change_kind = CHANGE_PUSH,
	    .repository = (char *)UPSTREAM,
	    .head_sha = commit.sha,
	    .before = (char *)sha_of(a->before),
	    .ref = (char *)(a->ref ? a->ref : MAIN),
	    .commits = &commit,
	    .n_commits = 1,
	    .event_type = "push",
	    .sent_action = "",
	    .starts_round = a->starts_round,
	    .wants = a->wants,
	    .n_wants = a->n_wants,
	};
	struct apply_plan op = {.plan = &p, .guid = guid, .body = "{}", .body_bytes = 2};

	snprintf(guid, sizeof(guid), "push-%d", ++rig_n_guids);
	op.now_ms = T0 + at;
	DO_OK(store_apply_plan, &op);
	return op.n_new_dispatches;
}

/* head follows the letter before it. */
static int push(char head, int64_t at)
{
	struct plan_want w = pull_want();

	return push_with(&(struct pushed){head - 1, head, .wants = &w, .n_wants = 1}, at);
}

static void expect(char head, const char *expected)
{
	char *text = rig_dispatches(sha_of(head));

	assert_string_equal(text, expected);
	free(text);
}

/* The letter of the SHA that a machine gets, or 0. */
static char taken(const char *claim_id, int64_t at)
{
	static const struct claim_choice farm = {"farm", 100};
	struct claim_dispatch c =
	    claim_with(&(struct claim_dispatch){.choices = &farm, .n_choices = 1}, "npu-1", claim_id, at);
	char letter = c.is_found ? c.offer.head_sha[0] : '\0';

	lease_offer_release(&c.offer);
	return letter;
}

static int64_t turn(int64_t at)
{
	struct claim_dispatch c = claim("npu-1", "turn", at);

	assert_false(c.is_found);
	return c.next_ms ? c.next_ms - T0 : 0;
}

static void each_interval_tests_its_newest_push(void **state)
{
	(void)state;
	assert_int_equal(push('b', 0), 1); /* after a quiet time: at once */
	assert_int_equal(taken("1", 1), 'b');
	assert_int_equal(push('c', 5 * MINUTE), 1);
	assert_true(turn(6 * MINUTE) == EVERY);
	assert_int_equal(push('d', 10 * MINUTE), 1);
	expect('c', "npu superseded*");
	assert_int_equal(push('e', 29 * MINUTE), 1);
	expect('d', "npu superseded*");
	assert_true(turn(EVERY - 1) == EVERY);
	rig_reopen();
	assert_int_equal(taken("2", EVERY), 'e');
	assert_int_equal(push('f', EVERY + MINUTE), 1);
	assert_true(turn(2 * EVERY - 1) == 2 * EVERY);
	assert_int_equal(taken("3", 2 * EVERY), 'f');
	assert_true(turn(2 * EVERY) == 0);
	assert_int_equal(push('g', 3 * EVERY), 1); /* quiet again */
	assert_int_equal(taken("4", 3 * EVERY), 'g');
}

static void duplicate_and_late_pushes_take_no_turn(void **state)
{
	(void)state;
	push('b', 0);
	push('d', MINUTE);
	assert_int_equal(push('d', 2 * MINUTE), 0);
	push('e', 3 * MINUTE);
	expect('d', "npu superseded*");
	assert_int_equal(push('d', 4 * MINUTE), 0); /* redelivered */
	assert_int_equal(push('c', 5 * MINUTE), 0); /* late */
	expect('e', "npu queued*");
	expect('d', "npu superseded*");
	assert_int_equal(taken("1", EVERY), 'e');
	assert_int_equal(push('d', EVERY + 1), 0); /* its time is over */
}

static void branches_and_retests_have_their_own_turns(void **state)
{
	struct plan_want w = pull_want();

	(void)state;
	push('b', 0);
	push('c', 1);
	push_with(&(struct pushed){'5', '6', "refs/heads/release/1", .wants = &w, .n_wants = 1}, 2);
	assert_int_equal(taken("1", 3), '6');
	assert_int_equal(taken("2", 4), 'b');
	assert_int_equal(taken("3", 5), '\0');
	push_with(&(struct pushed){'a', 'b', NULL, true, &w, 1}, 6);
	assert_int_equal(taken("4", 7), 'b');
	expect('c', "npu queued*");
}

static void deadlines_count_from_the_turn(void **state)
{
	struct expire_dispatches x = {.now_ms = T0 + 2 * HOUR + EVERY - 1};

	(void)state;
	push('b', 0);
	assert_int_equal(taken("1", 1), 'b');
	push('c', MINUTE);
	DO_OK(store_expire_dispatches, &x);
	assert_int_equal(x.n_expired, 0);
	assert_true(x.next_due_ms == T0 + 2 * HOUR + EVERY);
	x.now_ms++;
	DO_OK(store_expire_dispatches, &x);
	assert_int_equal(x.n_expired, 1);
	expect('c', "npu expired*");
}

static void a_clock_jump_moves_the_turns(void **state)
{
	struct shift_clock shift = {.delta_ms = -DAY, .now_ms = T0 - DAY + 2 * MINUTE};

	(void)state;
	push('b', 0);
	push('c', MINUTE);
	rig_topics = 0;
	DO_OK(store_shift_clock, &shift);
	assert_true(rig_topics & STORE_QUEUE);
	assert_int_equal(taken("1", 2 * MINUTE - DAY), 'b');
	assert_true(turn(3 * MINUTE - DAY) == EVERY - DAY);
	assert_int_equal(push('d', 4 * MINUTE - DAY), 1);
	assert_int_equal(taken("2", EVERY - DAY), 'd');
	/* a start time in the future counts as now */
	assert_int_equal(push('e', -2 * DAY), 1);
	assert_true(turn(-2 * DAY) == EVERY - 2 * DAY);
}

/* ---- requests ---- */

static size_t requests(int64_t at, char **ret_accelerators)
{
	struct claim_outbox c = {.kinds = 1u << OUTBOX_GITHUB_DISPATCH, .limit = 10, .now_ms = T0 + at};
	struct buf text = BUF_INIT(256);
	size_t n;

	DO_OK(store_claim_outbox, &c);
	n = c.n;
	for (size_t i = 0; i < c.n; i++) {
		struct outbox_done done = {
		    .id = c.rows[i].id, .epoch = c.rows[i].epoch, .result = OUTBOX_OK, .now_ms = T0 + at};

		buf_appendf(&text, "%s%c:", i ? " " : "", c.rows[i].head_sha[0]);
		for (char **a = c.rows[i].accelerators; *a; a++)
			buf_appendf(&text, "%s%s", a == c.rows[i].accelerators ? "" : ",", *a);
		DO_OK(store_outbox_done, &done);
	}
	claim_outbox_release(&c);
	*ret_accelerators = buf_detach(&text);
	return n;
}

static void expect_requests(int64_t at, const char *expected)
{
	char *text;

	requests(at, &text);
	assert_string_equal(text, expected);
	free(text);
}

static void push_shared(char head, int64_t at)
{
	struct plan_want wants[] = {github_want("each", 0), github_want("one", EVERY), github_want("two", EVERY)};

	push_with(&(struct pushed){head - 1, head, .wants = wants, .n_wants = 3}, at);
}

static void a_shared_repository_gets_one_request_for_accelerators_with_the_same_turn(void **state)
{
	(void)state;
	push_shared('b', 0);
	expect_requests(1, "b:each,one,two");
	push_shared('c', MINUTE);
	expect_requests(2 * MINUTE, "c:each");
	push_shared('d', 3 * MINUTE);
	expect_requests(4 * MINUTE, "d:each");
	expect_requests(EVERY - 1, "");
	rig_reopen();
	expect_requests(EVERY, "d:one,two");
	expect_requests(3 * EVERY, "");
	expect('c', "each sent*, one superseded*, two superseded*");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(each_interval_tests_its_newest_push),
	    TEST(duplicate_and_late_pushes_take_no_turn),
	    TEST(branches_and_retests_have_their_own_turns),
	    TEST(deadlines_count_from_the_turn),
	    TEST(a_clock_jump_moves_the_turns),
	    TEST(a_shared_repository_gets_one_request_for_accelerators_with_the_same_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
