#include <setjmp.h>

#include <cmocka.h>

#include "runners/runners_internal.h"

static void test_counts_each_name(void **state)
{
	struct rate_limit *l = rate_limit_new(3, 10);
	int wait = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(rate_limit_admit(l, "a/b", 1000 + i, &wait));
	assert_false(rate_limit_admit(l, "A/B", 31000, &wait));
	assert_int_equal(wait, 30);
	assert_true(rate_limit_admit(l, "a/c", 31000, &wait));
	assert_false(rate_limit_admit(l, "a/b", 60999, &wait));
	assert_int_equal(wait, 1);
	for (int i = 0; i < 3; i++)
		assert_true(rate_limit_admit(l, "a/b", 61000, &wait));
	assert_false(rate_limit_admit(l, "a/b", 61000, &wait));
	assert_int_equal(wait, 60);
	rate_limit_free(l);
}

static void test_bounds_names(void **state)
{
	struct rate_limit *l = rate_limit_new(2, 50);
	int wait;

	(void)state;
	for (int window = 0; window < 3; window++)
		for (int i = 0; i < 60; i++) {
			char *key = xasprintf("owner/%d", window * 7 + i);

			assert_int_equal(rate_limit_admit(l, key, window * 60000, &wait), i < 50);
			free(key);
		}
	assert_true(rate_limit_admit(l, "owner/14", 120000, &wait)); /* its second call */
	assert_false(rate_limit_admit(l, "owner/14", 120000, &wait));
	rate_limit_free(l);
	rate_limit_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_counts_each_name),
	    cmocka_unit_test(test_bounds_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
