#include <setjmp.h>

#include <cmocka.h>

#include "github/budget.h"

enum { S = 1000, MINUTE = 60 * S, HOUR = 60 * MINUTE };

static const int64_t WALL = INT64_C(1700000000000);

static struct budget_signs signs(int status)
{
	return (struct budget_signs){.status = status, .remaining = -1, .retry_after_ms = -1};
}

static void test_window(void **state)
{
	struct budget_window w;

	(void)state;
	budget_window_init(&w, 3, MINUTE);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(budget_window_wait_ms(&w, w.n, i * S), 0);
		budget_window_add(&w, i * S);
	}
	assert_int_equal(budget_window_wait_ms(&w, w.n, 2 * S), MINUTE - 2 * S);
	assert_int_equal(budget_window_wait_ms(&w, w.n, MINUTE), 0);
	budget_window_add(&w, MINUTE);
	assert_int_equal(budget_window_wait_ms(&w, w.n, MINUTE), S);

	budget_window_resize(&w, 2); /* the two newest count */
	assert_int_equal(budget_window_wait_ms(&w, w.n, MINUTE), 2 * S);
	budget_window_resize(&w, 5);
	assert_int_equal(budget_window_wait_ms(&w, w.n, MINUTE), 0);
	budget_window_release(&w);
}

static void test_dispatches_do_not_count_as_content(void **state)
{
	struct budget b;

	(void)state;
	budget_init(&b, 80);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(budget_wait_ms(&b, BUDGET_PLAIN, 0), 0);
		budget_spend(&b, BUDGET_PLAIN, 0);
	}
	assert_int_equal(budget_wait_ms(&b, BUDGET_CONTENT, 0), 0);
	budget_release(&b);
}

/* Writes as fast as the budget allows, and never more than the limits in any window. */
static void test_content_limits(void **state)
{
	enum { N = 1200, PER_MINUTE = 30 };
	static int64_t at[N];
	struct budget b;
	int64_t now = 0;

	(void)state;
	budget_init(&b, PER_MINUTE);
	for (int i = 0; i < N; i++) {
		now += budget_wait_ms(&b, BUDGET_CONTENT, now);
		assert_int_equal(budget_wait_ms(&b, BUDGET_CONTENT, now), 0);
		budget_spend(&b, BUDGET_CONTENT, now);
		at[i] = now;
		assert_true(i < 1 || now - at[i - 1] >= S);
		assert_true(i < PER_MINUTE || now - at[i - PER_MINUTE] >= MINUTE);
		assert_true(i < 500 || now - at[i - 500] >= HOUR);
		assert_int_equal(budget_wait_ms(&b, BUDGET_PLAIN, now), 0);
	}
	assert_true(now < 3 * (int64_t)HOUR);
	budget_release(&b);
}

/* Up to GitHub's limit a second lies between two writes; a server without the limit takes them faster. */
static void test_gap_between_writes(void **state)
{
	struct budget b;

	(void)state;
	assert_int_equal(budget_gap_ms(1), S);
	assert_int_equal(budget_gap_ms(80), S);
	assert_in_range(budget_gap_ms(81), 900, S - 1);
	assert_int_equal(budget_gap_ms(100000), 0);
	budget_init(&b, 8000);
	budget_spend(&b, BUDGET_CONTENT, 0);
	assert_int_equal(budget_wait_ms(&b, BUDGET_CONTENT, 0), 10);
	assert_int_equal(budget_wait_ms(&b, BUDGET_CONTENT, 10), 0);
	budget_release(&b);
}

static void test_primary_limit(void **state)
{
	struct budget b;
	struct budget_signs s = signs(200);

	(void)state;
	budget_init(&b, 80);
	s.remaining = 17;
	s.reset_wall_ms = WALL + 10 * MINUTE;
	assert_int_equal(budget_learn(&b, &s, 0, WALL), 0);
	assert_int_equal(b.remaining, 17);
	assert_int_equal(budget_wait_ms(&b, BUDGET_PLAIN, 0), 0);
	s.remaining = 0; /* the answer that used the last request is valid, the next request waits */
	assert_int_equal(budget_learn(&b, &s, 0, WALL), 0);
	assert_int_equal(budget_wait_ms(&b, BUDGET_PLAIN, 0), 10 * MINUTE + S);
	s.status = 403;
	assert_int_equal(budget_learn(&b, &s, 0, WALL), 10 * MINUTE + S);
	assert_int_equal(budget_wait_ms(&b, BUDGET_CONTENT, 10 * MINUTE + S), 0);

	s.reset_wall_ms = WALL - HOUR; /* a clock that is ahead */
	assert_int_equal(budget_learn(&b, &s, 0, WALL), S);
	s.reset_wall_ms = WALL + 1000 * (int64_t)HOUR;
	assert_int_equal(budget_learn(&b, &s, 0, WALL), HOUR);
	budget_release(&b);
}

static void test_secondary_limit(void **state)
{
	struct budget b;
	struct budget_signs s = signs(403);

	(void)state;
	budget_init(&b, 80);
	assert_int_equal(budget_learn(&b, &s, 0, WALL), 0); /* a plain no */
	s.retry_after_ms = 72 * S;
	assert_int_equal(budget_learn(&b, &s, 0, WALL), 72 * S);
	s.retry_after_ms = 0;
	assert_int_equal(budget_learn(&b, &s, 0, WALL), S);
	s.retry_after_ms = -1;
	s.is_secondary = true; /* no time in the answer: a minute, and longer each time */
	assert_int_equal(budget_learn(&b, &s, 0, WALL), MINUTE);
	assert_int_equal(budget_learn(&b, &s, 0, WALL), 2 * MINUTE);
	for (int i = 0; i < 100; i++)
		assert_true(budget_learn(&b, &s, 0, WALL) <= 16 * MINUTE);
	assert_int_equal(budget_learn(&b, &s, 0, WALL), 16 * MINUTE);
	assert_int_equal(budget_wait_ms(&b, BUDGET_PLAIN, 0), 16 * MINUTE);
	s = signs(204);
	assert_int_equal(budget_learn(&b, &s, 20 * MINUTE, WALL), 0);
	s = signs(429);
	assert_int_equal(budget_learn(&b, &s, 20 * MINUTE, WALL), MINUTE);
	s = signs(503);
	assert_int_equal(budget_learn(&b, &s, 20 * MINUTE, WALL), 0);
	budget_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_window),
	    cmocka_unit_test(test_dispatches_do_not_count_as_content),
	    cmocka_unit_test(test_content_limits),
	    cmocka_unit_test(test_gap_between_writes),
	    cmocka_unit_test(test_primary_limit),
	    cmocka_unit_test(test_secondary_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
