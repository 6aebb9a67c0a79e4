/* Range headers, valid and invalid. */
#include <setjmp.h>

#include <cmocka.h>

#include "web/job_log.h"

static const struct {
	const char *text;
	int64_t bytes;
	enum byte_range kind;
	int64_t from, to;
} TABLE[] = {
    {NULL, 100, BYTE_RANGE_NONE, 0, 0},
    {"", 100, BYTE_RANGE_NONE, 0, 0},
    {"bytes=", 100, BYTE_RANGE_NONE, 0, 0},
    {"bytes=-", 100, BYTE_RANGE_NONE, 0, 0},
    {"bytes=5", 100, BYTE_RANGE_NONE, 0, 0},
    {"lines=0-5", 100, BYTE_RANGE_NONE, 0, 0},
    {"bytes=x-5", 100, BYTE_RANGE_NONE, 0, 0},
    {"bytes=0-5x", 100, BYTE_RANGE_NONE, 0, 0},
    {"bytes=0-1,5-6", 100, BYTE_RANGE_NONE, 0, 0},
    {"bytes=6-5", 100, BYTE_RANGE_NONE, 0, 0},
    {"bytes=--5", 100, BYTE_RANGE_NONE, 0, 0},
    {"bytes=0-0", 100, BYTE_RANGE_PART, 0, 1},
    {"Bytes=0-0", 100, BYTE_RANGE_PART, 0, 1},
    {"bytes=0-99", 100, BYTE_RANGE_PART, 0, 100},
    {"bytes=0-100", 100, BYTE_RANGE_PART, 0, 100},
    {"bytes=99-", 100, BYTE_RANGE_PART, 99, 100},
    {"bytes=10-19", 100, BYTE_RANGE_PART, 10, 20},
    {"bytes=10-99999999999999999999999999", 100, BYTE_RANGE_PART, 10, 100},
    {"bytes=-1", 100, BYTE_RANGE_PART, 99, 100},
    {"bytes=-100", 100, BYTE_RANGE_PART, 0, 100},
    {"bytes=-99999999999999999999999999", 100, BYTE_RANGE_PART, 0, 100},
    {"bytes=100-", 100, BYTE_RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=99999999999999999999999999-", 100, BYTE_RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=-0", 100, BYTE_RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=0-", 0, BYTE_RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=-5", 0, BYTE_RANGE_UNSATISFIABLE, 0, 0},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(TABLE); i++) {
		int64_t from = 0, to = 0;
		enum byte_range kind = byte_range_parse(TABLE[i].text, TABLE[i].bytes, &from, &to);

		if (kind != TABLE[i].kind || from != TABLE[i].from || to != TABLE[i].to)
			fail_msg("%s: %d %lld %lld", TABLE[i].text, kind, (long long)from, (long long)to);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
