/* A dispatch without a report ends at its deadline. */
#include "dispatch_rig.h"

static void hasty(struct rig *r)
{
	rig_write_accelerator("hasty", "runners: [{name: ci, github: {repository: vendor/hasty}}]\n"
				       "deadlines: {acknowledge: 300ms, start: 1h, finish: 2h}\n");
	rig_start_store(r);
}

static void silence_expires(void **state)
{
	struct rig *r = *state;
	int64_t began;

	hasty(r);
	rig_start_dispatch(r);
	began = clock_mono_ms();
	rig_pull(r, "g-1", .action = "opened");
	rig_expect_states(r, "gh:sent hasty:expired hook:acknowledged picky:sent");
	assert_true(clock_mono_ms() - began >= 300);
	assert_int_equal(rig_counters(r).n_expired, 1);
	assert_int_equal(rig_counters(r).n_clock_jumps, 0);
}

static void silence_expires_while_nobody_looks(void **state)
{
	struct rig *r = *state;

	hasty(r);
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened");
	rig_expect_states(r, "gh:sent hasty:sent hook:acknowledged picky:sent");
	rig_stop(r);
	rig_start_store(r);
	rig_run_ms(r, 400);
	rig_expect_states(r, "gh:sent hasty:sent hook:acknowledged picky:sent");
	rig_start_dispatch(r);
	rig_expect_states(r, "gh:sent hasty:expired hook:acknowledged picky:sent");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_set_up, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(silence_expires),
	    TEST(silence_expires_while_nobody_looks),
	};

	return cmocka_run_group_tests_name("dispatch_deadlines", tests, NULL, NULL);
}
