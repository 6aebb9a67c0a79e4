#include <setjmp.h>

#include <cmocka.h>

#include "model/schedule.h"
#include "model/states.h"

static void names_are_printed_and_parsed(void **state)
{
	(void)state;
	for (int i = 0; i < N_DISPATCH_STATES; i++)
		assert_int_equal(dispatch_state_parse(dispatch_state_name((enum dispatch_state)i)), i);
	for (int i = 0; i < N_TEST_STATUSES; i++)
		assert_int_equal(test_status_parse(test_status_name((enum test_status)i)), i);
	for (int i = 0; i < N_CHANGE_KINDS; i++)
		assert_int_equal(change_kind_parse(change_kind_name((enum change_kind)i)), i);
	for (int i = 0; i < N_CHANGE_STATES; i++)
		assert_int_equal(change_state_parse(change_state_name((enum change_state)i)), i);
	for (int i = ENDED_OTHERWISE + 1; i < N_ENDED_HOWS; i++)
		assert_int_equal(words_find(&ended_how_words, ended_how_name((enum ended_how)i)), i);
	assert_int_equal(dispatch_state_parse("Held"), N_DISPATCH_STATES);
	assert_int_equal(dispatch_state_parse(NULL), N_DISPATCH_STATES);
	assert_int_equal(test_status_parse("pass"), N_TEST_STATUSES);
	assert_int_equal(job_status_parse("queued"), N_JOB_STATUSES);
}

static void the_text_names_the_person_who_ended_a_dispatch(void **state)
{
	char *declined = ended_how_text(ENDED_DECLINED, "alice"), *cancelled = ended_how_text(ENDED_CANCELLED, "bob");

	(void)state;
	assert_string_equal(declined, "declined by alice");
	assert_string_equal(cancelled, "cancelled by bob");
	assert_null(ended_how_text(ENDED_OTHERWISE, NULL));
	free(declined);
	free(cancelled);
}

/* The whole table: each row is a state, its letters are the next states ('x': legal). */
static void every_step_is_as_designed(void **state)
{
	/*                              h q s a r d S C F E */
	static const char *const legal[N_DISPATCH_STATES] = {
	    [DISPATCH_HELD] = "xxxxxxxxxx",
	    [DISPATCH_QUEUED] = ".xxxxxxxxx",
	    [DISPATCH_SENT] = "..xxxxxxxx",
	    [DISPATCH_ACKNOWLEDGED] = ".x.xxxxxxx",
	    [DISPATCH_RUNNING] = ".x..xxxxxx",
	    [DISPATCH_DONE] = "....xx....",
	    [DISPATCH_SUPERSEDED] = "......x...",
	    [DISPATCH_CANCELLED] = ".......x..",
	    [DISPATCH_FAILED] = "....xx..x.",
	    [DISPATCH_EXPIRED] = "....xx...x",
	};

	(void)state;
	for (int i = 0; i < N_DISPATCH_STATES; i++)
		assert_int_equal(dispatch_is_called_off((enum dispatch_state)i),
		    i == DISPATCH_SUPERSEDED || i == DISPATCH_CANCELLED);
	for (int from = 0; from < N_DISPATCH_STATES; from++)
		for (int to = 0; to < N_DISPATCH_STATES; to++)
			assert_int_equal(dispatch_may_enter((enum dispatch_state)from, (enum dispatch_state)to),
			    legal[from][to] == 'x');
}

static void conclusions_become_statuses(void **state)
{
	(void)state;
	assert_int_equal(test_status_of_conclusion("success"), TEST_PASS);
	assert_int_equal(test_status_of_conclusion("failure"), TEST_FAIL);
	assert_int_equal(test_status_of_conclusion("skipped"), TEST_SKIP);
	assert_int_equal(test_status_of_conclusion("neutral"), TEST_DONE);
	assert_int_equal(test_status_of_conclusion("cancelled"), TEST_MISS);
	assert_int_equal(test_status_of_conclusion("timed_out"), TEST_MISS);
	assert_int_equal(test_status_of_conclusion("invented"), TEST_MISS);
	assert_int_equal(test_status_of_conclusion(NULL), TEST_MISS);
}

static void backoff_grows_and_ends(void **state)
{
	(void)state;
	assert_int_equal(backoff_delay_ms(0, 0, 0.0), BACKOFF_FIRST_MS);
	assert_in_range(backoff_delay_ms(3, 0, 0.5), 4000, 8000);
	for (int i = 0; i < 1000; i++) {
		assert_true(backoff_delay_ms(i, 0, 0.999) <= BACKOFF_LONGEST_MS);
		assert_true(backoff_delay_ms(i, 0, 0.0) >= BACKOFF_FIRST_MS);
	}
	assert_int_equal(backoff_delay_ms(0, 72000, 0.3), 72000);
	assert_false(backoff_is_over(0, BACKOFF_GIVE_UP_MS));
	assert_true(backoff_is_over(0, BACKOFF_GIVE_UP_MS + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_are_printed_and_parsed),
	    cmocka_unit_test(the_text_names_the_person_who_ended_a_dispatch),
	    cmocka_unit_test(every_step_is_as_designed),
	    cmocka_unit_test(conclusions_become_statuses),
	    cmocka_unit_test(backoff_grows_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
