/* Silence ends, and a clock that jumps ends nothing. */
#include "dispatch_rig.h"

#include "dispatch/deadlines.h"

static void tells_jumps_from_drift(void **state)
{
	struct clock_watch w = {0};

	(void)state;
	assert_int_equal(clock_watch_look(&w, 1000000, 50), 0); /* the first look knows nothing */
	assert_int_equal(clock_watch_look(&w, 1005000, 5050), 0);
	assert_int_equal(clock_watch_look(&w, 1015000, 10050), 0); /* five seconds are no jump */
	assert_int_equal(clock_watch_look(&w, 1025001, 15050), 5001);
	assert_int_equal(clock_watch_look(&w, 1030001, 20050), 0);
	assert_int_equal(clock_watch_look(&w, 35001, 25050), -1000000);
	assert_int_equal(clock_watch_look(&w, 40001, 30050), 0);
	for (int64_t t = 0, wall = 40001; t < 3600; t++) /* a clock that is slewed by an hour */
		assert_int_equal(clock_watch_look(&w, wall += 2000, 30050 + (t + 1) * 1000), 0);
}

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
	    cmocka_unit_test(tells_jumps_from_drift),
	    TEST(silence_expires),
	    TEST(silence_expires_while_nobody_looks),
	};

	return cmocka_run_group_tests_name("dispatch_deadlines", tests, NULL, NULL);
}
