/* How the targets of a lane share its places, with a fake clock. */
#include <setjmp.h>

#include <cmocka.h>

#include "outbox/lane.h"
#include "replaces.h"

REPLACES(clock_mono_ms);

enum { EFFECTS_MAX = 32 };

static int64_t mono_ms;
static struct lane lane;
static struct effect effects[EFFECTS_MAX];
static int n_effects;

int64_t clock_mono_ms(void) { return mono_ms; }

static int set_up(void **state)
{
	(void)state;
	mono_ms = 1000 * 1000;
	n_effects = 0;
	memset(effects, 0, sizeof(effects));
	lane_init(&lane, (struct lane_limits){.claimed = 16, .begun = 4, .begun_per_target = 2});
	return 0;
}

/* Each test removes its effects, so that the sanitizer finds a target that the lane keeps. */
static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < n_effects; i++)
		if (effects[i].target)
			lane_remove(&lane, &effects[i]);
	assert_int_equal(lane.n_claimed, 0);
	assert_true(TAILQ_EMPTY(&lane.targets));
	return 0;
}

/* Claims a row of the target. Returns whether it may wait for its turn. */
static bool claim_one(const char *target)
{
	struct effect *e = &effects[n_effects++];

	e->row.target = (char *)target;
	lane_add(&lane, e, xstrdup(target));
	return lane_park(&lane, e);
}

/* How many of n rows may wait. */
static int claim(const char *target, int n)
{
	int n_parked = 0;

	for (int i = 0; i < n; i++)
		n_parked += claim_one(target);
	return n_parked;
}

static void end_next(bool is_good)
{
	struct effect *e = lane_next(&lane);

	assert_non_null(e);
	lane_end(&lane, e, is_good);
	lane_remove(&lane, e);
	e->target = NULL;
}

static void assert_room(int room, const char *past)
{
	const char *got;

	assert_int_equal(lane_room(&lane, &got), room);
	if (past)
		assert_string_equal(got, past);
	else
		assert_null(got);
}

static void a_target_that_does_not_answer_gets_half_of_a_lane(void **state)
{
	(void)state;
	assert_int_equal(claim("hanging", 10), 8);
	assert_room(6, NULL);
	assert_true(claim_one("fast"));
	end_next(false);
	assert_false(claim_one("hanging"));
}

static void a_target_that_answers_gets_three_quarters_of_a_lane(void **state)
{
	(void)state;
	assert_true(claim_one("busy"));
	end_next(true);
	assert_true(claim_one("busy")); /* a target without a row is forgotten, with its answer */
	assert_true(claim_one("busy"));
	end_next(true);
	assert_int_equal(claim("busy", 4), 4);
	assert_room(7, NULL);
	assert_int_equal(claim("busy", 8), 7);
	assert_true(claim_one("other"));
}

static void rows_of_a_target_that_fills_a_lane_stay_unclaimed(void **state)
{
	(void)state;
	claim("busy", 2);
	end_next(true);
	claim("busy", 11);
	assert_room(4, "busy"); /* a look past it, for rows of others */
	lane.looked_past_mono_ms = mono_ms;
	assert_room(0, NULL);
	mono_ms += LANE_LOOK_PAST_MS;
	assert_room(4, "busy");
	mono_ms += LANE_LOOK_PAST_MS; /* half a second after its last answer */
	assert_room(4, NULL);
	claim("other", 1);
	assert_room(0, NULL); /* nearly full: one claim for each single row is too many */
}

static void targets_take_turns(void **state)
{
	const char *const order[] = {"a", "b", "a", "c"};

	(void)state;
	claim("a", 3);
	claim("b", 1);
	for (int i = 0; i < 3; i++)
		assert_string_equal(lane_next(&lane)->row.target, order[i]);
	assert_null(lane_next(&lane)); /* two of one target at once */
	claim("c", 2);
	assert_string_equal(lane_next(&lane)->row.target, order[3]);
	assert_null(lane_next(&lane)); /* four at once */
	lane_end(&lane, &effects[3], true);
	lane_unpark(&effects[5]);
	assert_null(lane_next(&lane));
	lane_end(&lane, &effects[0], false);
	assert_ptr_equal(lane_next(&lane), &effects[2]);
}

static void a_new_target_may_answer(void **state)
{
	(void)state;
	claim("a", 2);
	assert_true(lane_target_may_answer(effects[0].target));
	mono_ms += 500;
	assert_false(lane_target_may_answer(effects[0].target));
	end_next(true);
	assert_true(lane_target_may_answer(effects[1].target));
	mono_ms += 500;
	assert_false(lane_target_may_answer(effects[1].target));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(a_target_that_does_not_answer_gets_half_of_a_lane),
	    TEST(a_target_that_answers_gets_three_quarters_of_a_lane),
	    TEST(rows_of_a_target_that_fills_a_lane_stay_unclaimed),
	    TEST(targets_take_turns),
	    TEST(a_new_target_may_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
