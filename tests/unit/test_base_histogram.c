/* Buckets are cumulative, and every observation is in exactly one count. */
#include <setjmp.h>

#include <cmocka.h>

static void each_bucket_counts_all_shorter_observations(void **state)
{
	struct histogram h = {0};
	struct buf out = BUF_INIT(1 << 16);

	(void)state;
	histogram_add(&h, -5);
	histogram_add(&h, 500);
	histogram_add(&h, 501);
	histogram_add(&h, 2000000);
	histogram_add(&h, INT64_C(90000000));
	histogram_write(&out, &h, "x_seconds", "kind=\"page\"");
	assert_non_null(strstr(buf_str(&out), "x_seconds_bucket{kind=\"page\",le=\"0.0005\"} 2\n"));
	assert_non_null(strstr(buf_str(&out), "x_seconds_bucket{kind=\"page\",le=\"0.001\"} 3\n"));
	assert_non_null(strstr(buf_str(&out), "x_seconds_bucket{kind=\"page\",le=\"1\"} 3\n"));
	assert_non_null(strstr(buf_str(&out), "x_seconds_bucket{kind=\"page\",le=\"60\"} 4\n"));
	assert_non_null(strstr(buf_str(&out), "x_seconds_bucket{kind=\"page\",le=\"+Inf\"} 5\n"));
	assert_non_null(strstr(buf_str(&out), "x_seconds_sum{kind=\"page\"} 92.001001\n"));
	assert_non_null(strstr(buf_str(&out), "x_seconds_count{kind=\"page\"} 5\n"));
	buf_clear(&out);
	histogram_write(&out, &h, "y_seconds", "");
	assert_non_null(strstr(buf_str(&out), "y_seconds_bucket{le=\"0.0005\"} 2\n"));
	assert_non_null(strstr(buf_str(&out), "y_seconds_count 5\n"));
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_bucket_counts_all_shorter_observations)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
