/* A jump of the wall clock is not drift. */
#include <setjmp.h>

#include <cmocka.h>

#include "loop/bell.h"

static void jumps_are_not_drift(void **state)
{
	struct clock_offset o = {0};

	(void)state;
	assert_int_equal(clock_offset_jump(&o, 1000000, 50), 0); /* nothing to compare with */
	assert_int_equal(clock_offset_jump(&o, 1005000, 5050), 0);
	assert_int_equal(clock_offset_jump(&o, 1015000, 10050), 0); /* five seconds are no jump */
	assert_int_equal(clock_offset_jump(&o, 1025001, 15050), 5001);
	assert_int_equal(clock_offset_jump(&o, 1030001, 20050), 0);
	assert_int_equal(clock_offset_jump(&o, 35001, 25050), -1000000);
	assert_int_equal(clock_offset_jump(&o, 40001, 30050), 0);
	for (int64_t t = 0, wall = 40001; t < 3600; t++) /* a clock that is slewed by an hour */
		assert_int_equal(clock_offset_jump(&o, wall += 2000, 30050 + (t + 1) * 1000), 0);
}

static void no_jump(int64_t by_ms, void *owner)
{
	(void)by_ms;
	(void)owner;
	fail_msg("no clock jumped");
}

static void a_watch_may_end_at_any_time(void **state)
{
	struct loop *l = loop_new();
	struct clock_watch *w = clock_watch_new(l, no_jump, NULL);

	(void)state;
	clock_watch_look(w);
	clock_watch_free(w);
	clock_watch_free(NULL);
	loop_stop(l);
	loop_run(l);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(jumps_are_not_drift),
	    cmocka_unit_test(a_watch_may_end_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
