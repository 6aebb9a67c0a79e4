/* ok-to-test cancel: held dispatches end, a release is withdrawn, sent dispatches continue. */
#include "commands_rig.h"
#include "store/claims.h"
#include "store/commands.h"
#include "store/outbox.h"

#define HELD "the author is new"

static struct plan_want held(struct plan_want w)
{
	w.held_reason = (char *)HELD;
	return w;
}

static struct plan_want pull_want(const char *name)
{
	return (struct plan_want){.accelerator = (char *)name,
	    .runner = (char *)"farm",
	    .kind = RUNNER_PULL,
	    .target = (char *)"",
	    .start_ms = 2 * HOUR,
	    .finish_ms = 6 * HOUR};
}

static int release(int64_t at, int *ret_n) { return rig_release(NULL, T0 + at * 1000, ret_n); }

static int decline(int64_t at, int *ret_n)
{
	struct rig_answer a =
	    rig_say(&(struct rig_comment){.kind = COMMAND_DECLINE, .at_ms = T0 + at * 1000, .speaker = SPEAKER_MEMBER});

	*ret_n = a.n_declined;
	return command_result_is_error(a.result) ? ERR_NOT_FOUND : 0;
}

static bool claim(const char *machine)
{
	const struct claim_choice farm = {.runner = "farm", .max_parallel = 9};
	struct claim_dispatch c = {.accelerator = "npu",
	    .choices = &farm,
	    .n_choices = 1,
	    .machine = machine,
	    .claim_id = machine,
	    .lease_ms = MINUTE,
	    .now_ms = T0 + 60000};

	DO_OK(store_claim_dispatch, &c);
	if (c.is_found)
		lease_offer_release(&c.offer);
	return c.is_found;
}

static void declining_ends_held_dispatches_with_the_reason(void **state)
{
	struct plan_want wants[] = {
	    held(pull_want("npu")), held((struct plan_want)WEBHOOK_WANT("xpu")), WEBHOOK_WANT("zpu")};
	struct change_view *v;
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 3);
	assert_int_equal(decline(5, &n), 0);
	assert_int_equal(n, 2);
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*, xpu cancelled*, zpu queued*");
	v = rig_view_of(1, NULL);
	assert_string_equal(v->accelerators[0].dispatches[0].last_error, "declined by alice");
	assert_null(v->accelerators[0].dispatches[0].held_reason);
	change_view_free(v);
	assert_int_equal(decline(6, &n), ERR_NOT_FOUND);
	assert_false(claim("m1"));
	ASSERT_SENT(T0 + DAY, "webhook_dispatch https://ci.example.org/hook[zpu] opened");
}

static void a_release_is_withdrawn(void **state)
{
	struct plan_want wants[] = {
	    held(pull_want("npu")), held((struct plan_want)WEBHOOK_WANT("xpu")), WEBHOOK_WANT("zpu")};
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 3);
	assert_int_equal(release(5, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(decline(6, &n), 0);
	assert_int_equal(n, 2);
	assert_false(claim("m1"));
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*, xpu cancelled*, zpu queued*");
	ASSERT_SENT(T0 + HOUR, "webhook_dispatch https://ci.example.org/hook[zpu] opened");
	/* Later rounds are held again. */
	rig_start("edited", HEAD_A, 7, wants, 2);
	ASSERT_DISPATCHES(HEAD_A, "npu held*, npu cancelled, xpu held*, xpu cancelled, zpu acknowledged*");
}

static void a_sent_dispatch_continues(void **state)
{
	struct plan_want wants[] = {held(pull_want("npu")), held((struct plan_want)WEBHOOK_WANT("xpu"))};
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	assert_int_equal(release(5, &n), 0);
	assert_true(claim("m1"));
	free(rig_send(T0 + 60000));
	assert_int_equal(decline(70, &n), 0);
	assert_int_equal(n, 0);
	ASSERT_DISPATCHES(HEAD_A, "npu running*, xpu acknowledged*");
	rig_start("edited", HEAD_A, 80, wants, 2);
	/* The held round waits next to the released one. */
	ASSERT_DISPATCHES(HEAD_A, "npu held, npu running*, xpu held, xpu acknowledged*");
	rig_start("edited", HEAD_A, 90, wants, 2);
	ASSERT_DISPATCHES(HEAD_A, "npu held, npu running*, xpu held, xpu acknowledged*");
	assert_int_equal(decline(100, &n), 0);
	assert_int_equal(n, 2);
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled, npu running*, xpu cancelled, xpu acknowledged*");
	assert_int_equal(release(110, &n), 0);
	assert_int_equal(n, 2);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu cancelled, npu superseded, xpu queued*, xpu "
				  "cancelled, xpu superseded");
}

/* One repository with two accelerators: one that is not held and one whose release was withdrawn. */
static void a_shared_repository_starts_one_and_holds_the_other(void **state)
{
	struct plan_want wants[] = {
	    GITHUB_WANT("npu", "Ascend/pytorch"), held((struct plan_want)GITHUB_WANT("zpu", "Ascend/pytorch"))};
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	assert_int_equal(release(5, &n), 0);
	ASSERT_SENT(T0 + 6000, "github_dispatch Ascend/pytorch[npu,zpu] opened");
	assert_int_equal(decline(10, &n), 0);
	rig_start("edited", HEAD_A, 20, wants, 2);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu superseded, npu superseded, zpu held, zpu sent*");
	ASSERT_SENT(T0 + 21000, "github_dispatch Ascend/pytorch[npu] synchronize");
}

/* A request that is being sent, or that may have arrived, cannot be withdrawn. */
static void a_dispatch_that_may_have_been_sent_continues(void **state)
{
	struct plan_want wants[] = {held((struct plan_want)WEBHOOK_WANT("xpu"))};
	struct claim_outbox c;
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	assert_int_equal(release(5, &n), 0);
	c = rig_claim(1U << OUTBOX_WEBHOOK_DISPATCH, T0 + 60000);
	assert_int_equal(c.n, 1);
	assert_int_equal(decline(70, &n), 0);
	assert_int_equal(n, 0);
	rig_done(&c.rows[0], OUTBOX_RETRY, T0 + 90000);
	claim_outbox_release(&c);
	assert_int_equal(decline(71, &n), ERR_NOT_FOUND);
	ASSERT_DISPATCHES(HEAD_A, "xpu queued*");
}

static void a_declined_head_can_be_released_again(void **state)
{
	struct plan_want wants[] = {held(pull_want("npu"))};
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	assert_int_equal(decline(5, &n), 0);
	assert_int_equal(release(6, &n), 0);
	assert_int_equal(n, 1);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu cancelled");
	assert_true(claim("m1"));
}

static void a_closed_or_newer_head_is_not_released_again(void **state)
{
	struct plan_want wants[] = {held(pull_want("npu"))};
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	assert_int_equal(decline(5, &n), 0);
	rig_start("synchronize", HEAD_B, 10, wants, 1);
	ASSERT_DISPATCHES(HEAD_B, "npu held*");
	assert_int_equal(release(9, &n), ERR_NOT_FOUND); /* means A */
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*");
	ASSERT_DISPATCHES(HEAD_B, "npu held*");
	assert_int_equal(decline(11, &n), 0);
	rig_close_pull(1, HEAD_B, 12);
	assert_int_equal(release(13, &n), ERR_NOT_FOUND);
	ASSERT_DISPATCHES(HEAD_B, "npu cancelled*");
}

static void a_head_that_came_later_stays_held(void **state)
{
	struct plan_want wants[] = {held(pull_want("npu"))};
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_start("synchronize", HEAD_B, 10, wants, 1);
	assert_int_equal(decline(9, &n), ERR_NOT_FOUND); /* A was superseded, so it has no held dispatch */
	ASSERT_DISPATCHES(HEAD_B, "npu held*");
}

static void merged_only_stays_held(void **state)
{
	struct plan_want wants[] = {held(pull_want("npu"))};
	int n;

	(void)state;
	wants[0].is_held_for_good = true;
	rig_start("opened", HEAD_A, 1, wants, 1);
	assert_int_equal(decline(5, &n), ERR_NOT_FOUND);
	ASSERT_DISPATCHES(HEAD_A, "npu held*");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(declining_ends_held_dispatches_with_the_reason),
	    TEST(a_release_is_withdrawn),
	    TEST(a_sent_dispatch_continues),
	    TEST(a_shared_repository_starts_one_and_holds_the_other),
	    TEST(a_dispatch_that_may_have_been_sent_continues),
	    TEST(a_declined_head_can_be_released_again),
	    TEST(a_closed_or_newer_head_is_not_released_again),
	    TEST(a_head_that_came_later_stays_held),
	    TEST(merged_only_stays_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
