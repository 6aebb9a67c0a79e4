/* When a comment may be written again; the time is an argument. */
#include <setjmp.h>

#include <cmocka.h>

#include "outbox/pacing.h"

#define NOW INT64_C(1795176000000)
#define S   INT64_C(1000)

static struct debounce_question ask(int64_t written_ms)
{
	return (struct debounce_question){
	    .number = 1, .now_wall_ms = NOW, .written_wall_ms = written_ms, .min_interval_ms = 60 * S};
}

static void test_waits_for_the_interval(void **state)
{
	static struct debounce d;
	struct debounce_question q = ask(0);

	(void)state;
	assert_int_equal(debounce_due_ms(&d, &q), NOW);
	q = ask(NOW - 10 * S);
	assert_int_equal(debounce_due_ms(&d, &q), NOW + 50 * S);
	q = ask(NOW - 60 * S);
	assert_int_equal(debounce_due_ms(&d, &q), NOW);
}

static void test_first_red_is_sent_at_once(void **state)
{
	static struct debounce d;
	struct debounce_question q = ask(NOW - S);

	(void)state;
	q.has_red = true;
	assert_int_equal(debounce_due_ms(&d, &q), NOW);
	q.had_red = true;
	assert_int_equal(debounce_due_ms(&d, &q), NOW + 59 * S);
}

static void test_last_result_is_sent_at_once_within_an_allowance(void **state)
{
	static struct debounce d;
	struct debounce_question q = ask(NOW - S);

	(void)state;
	q.is_complete = true;
	for (int i = 0; i < DEBOUNCE_ALLOWANCE; i++)
		assert_int_equal(debounce_due_ms(&d, &q), NOW);
	assert_int_equal(debounce_due_ms(&d, &q), NOW + 59 * S);
	q.number = 2; /* another pull request has its own interval */
	assert_int_equal(debounce_due_ms(&d, &q), NOW);
	q.number = 1;
	q.now_wall_ms = NOW + DEBOUNCE_WINDOW_MS;
	q.written_wall_ms = q.now_wall_ms - S;
	assert_int_equal(debounce_due_ms(&d, &q), q.now_wall_ms);
}

static void test_a_clock_that_is_set_back_delays_no_edit(void **state)
{
	static struct debounce d;
	struct debounce_question q = ask(NOW + 24 * 3600 * S);

	(void)state;
	assert_int_equal(debounce_due_ms(&d, &q), NOW);
}

static void test_many_pulls_take_turns(void **state)
{
	static struct debounce d;

	(void)state;
	for (int64_t number = 1; number <= 3 * DEBOUNCE_PULLS; number++) {
		struct debounce_question q = ask(NOW - S);

		q.number = number;
		q.is_complete = true;
		assert_int_equal(debounce_due_ms(&d, &q), NOW);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_waits_for_the_interval),
	    cmocka_unit_test(test_first_red_is_sent_at_once),
	    cmocka_unit_test(test_last_result_is_sent_at_once_within_an_allowance),
	    cmocka_unit_test(test_a_clock_that_is_set_back_delays_no_edit),
	    cmocka_unit_test(test_many_pulls_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
