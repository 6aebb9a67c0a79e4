/* The clocks, and RFC 3339 in and out. */
#include <setjmp.h>

#include <cmocka.h>

static void test_format(void **state)
{
	char out[RFC3339_BYTES];

	(void)state;
	assert_string_equal(rfc3339_format(0, out), "1970-01-01T00:00:00Z");
	assert_string_equal(rfc3339_format(1795176000999, out), "2026-11-20T12:00:00Z");
	assert_string_equal(rfc3339_format(4107542399000, out), "2100-02-28T23:59:59Z");
	/* No time text of a peer may break the line in which it is logged. */
	assert_true(strlen(rfc3339_format(INT64_MAX, out)) < RFC3339_BYTES);
	assert_true(strlen(rfc3339_format(INT64_MIN, out)) < RFC3339_BYTES);
}

static void test_follow(void **state)
{
	int64_t hour_ms = 3600 * 1000, before_ms = clock_wall_ms(), ahead_ms = before_ms - clock_mono_ms();

	(void)state;
	clock_follow(ahead_ms + hour_ms);
	assert_true(clock_wall_ms() >= before_ms + hour_ms - 1);
	clock_follow(ahead_ms - hour_ms);
	assert_true(clock_wall_ms() < before_ms);
	clock_follow(0);
	assert_true(clock_wall_ms() >= before_ms);
}

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int64_t wall_ms;
	} right[] = {
	    {"1970-01-01T00:00:00Z", 0},
	    {"2026-11-20T12:00:00Z", 1795176000000},
	    {"2026-11-20t12:00:00z", 1795176000000},
	    {"2026-11-20T12:00:00.5Z", 1795176000500},
	    {"2026-11-20T12:00:00.123456789Z", 1795176000123},
	    {"2026-11-20T14:00:00+02:00", 1795176000000},
	    {"2026-11-20T06:30:00-05:30", 1795176000000},
	    {"2024-02-29T00:00:00Z", 1709164800000},
	    {"2000-02-29T00:00:00Z", 951782400000},
	    {"1969-12-31T23:59:59Z", -1000},
	    {"2016-12-31T23:59:60Z", 1483228800000},
	};
	static const char *const wrong[] = {"", "2026", "2026-11-20", "2026-11-20T12:00:00", "2026-11-20T12:00Z",
	    "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-11-31T00:00:00Z", "2026-02-29T00:00:00Z",
	    "2100-02-29T00:00:00Z", "2026-11-20T24:00:00Z", "2026-11-20T12:60:00Z", "2026-11-20T12:00:61Z",
	    "2026-11-20T12:00:00.Z", "2026-11-20T12:00:00+2:00", "2026-11-20T12:00:00+0200",
	    "2026-11-20T12:00:00+02:00x", "2026-11-20T12:00:00+24:00", "2026-11-20T12:00:00Z ", "+026-11-20T12:00:00Z",
	    "2026-11-20T12:00:00.000000000000000000000000Z"};
	int64_t wall_ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(right); i++) {
		if (rfc3339_parse(right[i].text, &wall_ms))
			fail_msg("%s is refused", right[i].text);
		assert_int_equal(wall_ms, right[i].wall_ms);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (rfc3339_parse(wrong[i], &wall_ms) != ERR_INVALID)
			fail_msg("\"%s\" is accepted", wrong[i]);
}

static void test_format_and_parse_agree(void **state)
{
	(void)state;
	for (int64_t day = 0; day < 200 * 366; day++) {
		char text[RFC3339_BYTES];
		int64_t at = day * 86400000 + day % 86400 * 1000, back;

		assert_int_equal(rfc3339_parse(rfc3339_format(at, text), &back), 0);
		assert_int_equal(back, at);
	}
}

static void test_clocks(void **state)
{
	int64_t before = clock_mono_ms();

	(void)state;
	assert_true(clock_wall_ms() > 1700000000000);
	assert_true(clock_mono_ms() >= before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_format),
	    cmocka_unit_test(test_follow),
	    cmocka_unit_test(test_parse),
	    cmocka_unit_test(test_format_and_parse_agree),
	    cmocka_unit_test(test_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
