/* The lists of states equal the words in the rows, and these are their legal steps. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/record_states.h"

static void names_are_printed_and_parsed(void **state)
{
	(void)state;
	for (int i = 0; i < N_OUTBOX_STATES; i++)
		assert_int_equal(words_find(&outbox_state_words, outbox_state_name((enum outbox_state)i)), i);
	for (int i = 0; i < N_DELIVERY_STATES; i++)
		assert_int_equal(words_find(&delivery_state_words, delivery_state_name((enum delivery_state)i)), i);
	for (int i = 0; i < N_SCHEDULE_RUN_STATES; i++)
		assert_int_equal(
		    words_find(&schedule_run_state_words, schedule_run_state_name((enum schedule_run_state)i)), i);
	for (int i = 0; i < N_LEASE_STATES; i++)
		assert_int_equal(words_find(&lease_state_words, lease_state_name((enum lease_state)i)), i);
	assert_int_equal(words_find(&outbox_state_words, "Due"), N_OUTBOX_STATES);
	for (int i = 0; i < N_EXPERIMENT_STATES; i++)
		assert_int_equal(experiment_state_parse(experiment_state_name((enum experiment_state)i)), i);
	assert_int_equal(words_find(&lease_state_words, NULL), N_LEASE_STATES);
	assert_int_equal(experiment_state_parse("gone"), N_EXPERIMENT_STATES);
}

/* Rows of a table: from one state; each letter: to one ('x' legal), in the order of the list. */
#define ASSERT_STEPS(n, may_enter, type, ...)                                                                          \
	do {                                                                                                           \
		const char *const legal[n] = {__VA_ARGS__};                                                            \
		for (int from = 0; from < (n); from++) {                                                               \
			assert_int_equal(strlen(legal[from]), (n));                                                    \
			for (int to = 0; to < (n); to++)                                                               \
				assert_int_equal(may_enter((type)from, (type)to), legal[from][to] == 'x');             \
		}                                                                                                      \
	} while (0)

static void every_step_is_as_designed(void **state)
{
	(void)state;
	/* due, waiting, sending, sent, dead, cancelled */
	ASSERT_STEPS(N_OUTBOX_STATES, outbox_may_enter, enum outbox_state, "x.xx.x", "xxxx.x", "xxxxxx", "x..x..",
	    "x...x.", ".....x");
	/* accepted, planned, ignored, failed */
	ASSERT_STEPS(N_DELIVERY_STATES, delivery_may_enter, enum delivery_state, "xxxx", "xxxx", "xxxx", "xxxx");
	/* reading, dispatched, done, skipped, failed */
	ASSERT_STEPS(N_SCHEDULE_RUN_STATES, schedule_run_may_enter, enum schedule_run_state, "xx.xx", ".xx..", "..x..",
	    "...x.", "....x");
	/* active, done, returned, expired, cancelled */
	ASSERT_STEPS(N_LEASE_STATES, lease_may_enter, enum lease_state, "xxxxx", ".x...", "..x..", "x..x.", "....x");
	/* planned, started, done, cancelled, expired, void */
	ASSERT_STEPS(N_EXPERIMENT_STATES, experiment_may_enter, enum experiment_state, "xx.xx.", "xxxxxx", "..xxxx",
	    "...x..", "..xxxx", "..xxxx");
	/* open, ended, closed */
	ASSERT_STEPS(N_RED_EPISODE_STATES, red_episode_may_enter, enum red_episode_state, "xx.", ".xx", "..x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_are_printed_and_parsed),
	    cmocka_unit_test(every_step_is_as_designed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
