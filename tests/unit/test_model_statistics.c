/* Against values that were computed from the definitions with exact integers and double precision elsewhere. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/statistics.h"

static void assert_near(double a, double b)
{
	if (a - b > 1e-6 || b - a > 1e-6)
		fail_msg("%.9f, not %.9f", a, b);
}

static void confidence_intervals_equal_the_reference(void **state)
{
	static const struct {
		struct rate r;
		double low, high;
	} CASES[] = {
	    {{0, 0}, 0, 1},
	    {{0, 10}, 0, 0.2775328},
	    {{10, 10}, 0.7224672, 1},
	    {{1, 100}, 0.0017674, 0.0544862},
	    {{5, 20}, 0.1118617, 0.4687009},
	    {{20, 40}, 0.3519953, 0.6480047},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		double low, high;

		rate_interval(CASES[i].r, &low, &high);
		assert_near(low, CASES[i].low);
		assert_near(high, CASES[i].high);
	}
}

static void probabilities_equal_the_reference(void **state)
{
	static const struct {
		struct rate a, b;
		double p;
	} CASES[] = {
	    {{0, 3}, {5, 100}, 1},
	    {{2, 3}, {0, 100}, 0.0005711},
	    {{2, 3}, {20, 100}, 0.1145088},
	    {{3, 4}, {1, 60}, 0.0003793},
	    {{3, 3}, {3, 3}, 1},
	    {{1, 1}, {0, 0}, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
		assert_near(rate_chance_of_higher(CASES[i].a, CASES[i].b), CASES[i].p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(confidence_intervals_equal_the_reference),
	    cmocka_unit_test(probabilities_equal_the_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
