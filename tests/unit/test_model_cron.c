/* Cron texts: which are accepted, and their next due times. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/schedule.h"

static void test_next(void **state)
{
	static const struct {
		const char *text, *after, *next;
	} cases[] = {
	    {"* * * * *", "2026-11-20T12:00:00Z", "2026-11-20T12:01:00Z"},
	    {"* * * * *", "2026-11-20T12:00:59Z", "2026-11-20T12:01:00Z"},
	    {"0 2 * * *", "2026-11-20T01:59:59Z", "2026-11-20T02:00:00Z"},
	    {"0 2 * * *", "2026-11-20T02:00:00Z", "2026-11-21T02:00:00Z"},
	    {"0 2 * * *", "2026-12-31T02:00:00Z", "2027-01-01T02:00:00Z"},
	    {"*/15 * * * *", "2026-11-20T12:44:00Z", "2026-11-20T12:45:00Z"},
	    {"*/15 * * * *", "2026-11-20T12:45:00Z", "2026-11-20T13:00:00Z"},
	    {"5-10/5,40 3,22-23 * * *", "2026-11-20T03:10:00Z", "2026-11-20T03:40:00Z"},
	    {"5-10/5,40 3,22-23 * * *", "2026-11-20T03:40:00Z", "2026-11-20T22:05:00Z"},
	    {"0 0 31 * *", "2026-02-01T00:00:00Z", "2026-03-31T00:00:00Z"},
	    {"0 0 29 2 *", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
	    {"0 0 29 feb *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
	    /* 2026-11-20 is a Friday */
	    {"0 0 * * 0", "2026-11-20T00:00:00Z", "2026-11-22T00:00:00Z"},
	    {"0 0 * * 7", "2026-11-20T00:00:00Z", "2026-11-22T00:00:00Z"},
	    {"0 0 * * sun", "2026-11-20T00:00:00Z", "2026-11-22T00:00:00Z"},
	    {"0 0 * * MON-Fri", "2026-11-20T00:00:00Z", "2026-11-23T00:00:00Z"},
	    {"0 0 * * 5-7", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"},
	    {"0 0 25 * mon", "2026-11-20T00:00:00Z", "2026-11-23T00:00:00Z"},
	    {"0 0 25 * mon", "2026-11-23T00:00:00Z", "2026-11-25T00:00:00Z"},
	    {"0 0 */2 * mon", "2026-11-20T00:00:00Z", "2026-11-23T00:00:00Z"},
	    {"0 0 1 jan,jul *", "2026-11-20T00:00:00Z", "2027-01-01T00:00:00Z"},
	    {"@hourly", "2026-11-20T12:30:00Z", "2026-11-20T13:00:00Z"},
	    {"@daily", "2026-11-20T12:30:00Z", "2026-11-21T00:00:00Z"},
	    {"@midnight", "2026-11-20T12:30:00Z", "2026-11-21T00:00:00Z"},
	    {"@weekly", "2026-11-20T12:30:00Z", "2026-11-22T00:00:00Z"},
	    {"@monthly", "2026-11-20T12:30:00Z", "2026-12-01T00:00:00Z"},
	    {"@yearly", "2026-11-20T12:30:00Z", "2027-01-01T00:00:00Z"},
	    {"@Annually", "2026-11-20T12:30:00Z", "2027-01-01T00:00:00Z"},
	    {"  0\t2  * * *  ", "2026-11-20T00:00:00Z", "2026-11-20T02:00:00Z"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct error e = {0};
		char text[RFC3339_BYTES];
		struct cron c;
		int64_t after;

		if (cron_parse(cases[i].text, &c, &e))
			fail_msg("%s: %s", cases[i].text, e.text);
		assert_int_equal(rfc3339_parse(cases[i].after, &after), 0);
		assert_string_equal(rfc3339_format(cron_next(&c, after), text), cases[i].next);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
	    {"", "five fields are needed: minute hour day-of-month month day-of-week"},
	    {"0 2 * *", "five fields are needed: minute hour day-of-month month day-of-week"},
	    {"0 2 * * * *", "text follows the fifth field"},
	    {"60 2 * * *", "the minute goes from 0 to 59"},
	    {"0 24 * * *", "the hour goes from 0 to 23"},
	    {"0 2 0 * *", "the day of month goes from 1 to 31"},
	    {"0 2 * 13 *", "the month goes from 1 to 12"},
	    {"0 2 * * 8", "the day of week goes from 0 to 7"},
	    {"x 2 * * *", "the minute is not a number"},
	    {"-1 2 * * *", "the minute is not a number"},
	    {"1, 2 * * *", "the minute is not a number"},
	    {"0 2 * foo *", "the month is neither a number nor a name such as feb"},
	    {"0 2 * january *", "the month is neither a number nor a name such as feb"},
	    {"0 mon * * *", "the hour is not a number"},
	    {"99999999999 * * * *", "the minute goes from 0 to 59"},
	    {"0 2 * * mon-", "the day of week is neither a number nor a name such as mon"},
	    {"10-5 * * * *", "the minute's range runs backwards"},
	    {"*/0 * * * *", "a step is written */n or a-b/n with n from 1 to 59"},
	    {"*/60 * * * *", "a step is written */n or a-b/n with n from 1 to 59"},
	    {"*/x * * * *", "a step is written */n or a-b/n with n from 1 to 59"},
	    {"5/15 * * * *", "a step is written */n or a-b/n with n from 1 to 59"},
	    {"5x * * * *", "the minute is not understood"},
	    {"** * * * *", "the minute is not understood"},
	    {"0 0 30 2 *", "that day never comes"},
	    {"0 0 31 4,6,9,11 *", "that day never comes"},
	    {"@reboot", "only @hourly, @daily, @midnight, @weekly, @monthly, @yearly and "
			"@annually are known"},
	};
	struct cron c;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct error e = {0};

		if (cron_parse(cases[i].text, &c, &e) != ERR_INVALID)
			fail_msg("%s is accepted", cases[i].text);
		assert_string_equal(e.text, cases[i].why);
	}
	assert_int_equal(cron_parse("bad", &c, NULL), ERR_INVALID);
}

/* At any time between two due times, the later one is the next. */
static void test_next_time_from_any_time(void **state)
{
	static const char *const texts[] = {"17 */5 1-7 * 3", "0 0 13 * 5", "59 23 24-31 12 *", "30 4 */10 2 *"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct cron c;
		int64_t at;

		assert_int_equal(cron_parse(texts[i], &c, NULL), 0);
		assert_int_equal(rfc3339_parse("2027-01-01T00:00:00Z", &at), 0);
		for (int n = 0; n < 200; n++) {
			int64_t next = cron_next(&c, at);

			assert_true(next > at);
			assert_int_equal(next % 60000, 0);
			assert_int_equal(cron_next(&c, next - 1), next);
			assert_int_equal(cron_next(&c, (at + next) / 2), next);
			at = next;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_next),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_next_time_from_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
