#include "report_rig.h"

static void a_document_is_read(void **state)
{
	struct report_file r = report_of_file("ctrf.json");

	(void)state;
	assert_string_equal(
	    report_case(&r, "llama3 > backward")->trace, "Error: expected 0.1\n    at model.test.ts:12:3");
	assert_string_equal(r.environment, "{\"os\":\"linux 6.1.0 Debian 12\",\"device\":\"Ascend 910B\","
					   "\"torch\":\"2.10.0a0+gitabc\","
					   "\"extension\":{\"name\":\"torch_npu\",\"version\":\"2.10\"}}");
	assert_report(&r, "PASS model/llama3 > bf16 > forward (1.25)\n"
			  "FAIL model/llama3 > backward (0.301) expected 0.1 to be near 0.2\n"
			  "PASS unit/saves (0.012) passed when it was run again; before: disk was slow\n"
			  "SKIP unit/two devices one device only\n"
			  "SKIP vitest/later\n"
			  "ERROR vitest/hangs (60) no answer in 60 s\n");
}

static void places_are_read(void **state)
{
	struct report_file r = report_of(REPORT_CTRF,
	    "{\"results\":{\"tests\":["
	    "{\"name\":\"a\",\"status\":\"failed\",\"filePath\":\"src/a.test.ts\",\"line\":12},"
	    "{\"name\":\"b\",\"status\":\"failed\",\"filePath\":\"src/b.test.ts\",\"line\":\"x\"},"
	    "{\"name\":\"c\",\"status\":\"failed\",\"filePath\":[],\"line\":3},"
	    "{\"name\":\"d\",\"status\":\"passed\",\"filePath\":\"src/d.test.ts\"}]}}");

	(void)state;
	assert_string_equal(report_case(&r, "a")->file, "src/a.test.ts");
	assert_int_equal(report_case(&r, "a")->line, 12);
	assert_string_equal(report_case(&r, "b")->file, "src/b.test.ts");
	assert_int_equal(report_case(&r, "b")->line, 0);
	assert_null(report_case(&r, "c")->file);
	assert_null(report_case(&r, "d")->file);
	report_file_release(&r);
}

static void unnamed_tests_get_names(void **state)
{
	static const struct {
		const char *entry, *expected;
	} table[] = {
	    {"\"name\":\"a\"", "PASS tests/a\n"},
	    {"\"name\":\"a\",\"suite\":null", "PASS tests/a\n"},
	    {"\"name\":\"a\",\"suite\":[]", "PASS tests/a\n"},
	    {"\"name\":\"a\",\"suite\":[\" \",\"b\"]", "PASS tests/b > a\n"},
	    {"\"name\":\"a\",\"suite\":[\"s\",\"\",\"b\"]", "PASS s/b > a\n"},
	    {"\"name\":\"\\u0001\",\"suite\":\"\\u0001\"", "PASS tests/(unnamed)\n"},
	    {"\"n\\u0061me\":\"a\"", "PASS tests/a\n"},
	    {"\"name\":\"a\",\"flaky\":true", "PASS tests/a passed when it was run again\n"},
	    {"\"name\":\"a\",\"message\":7,\"trace\":[],\"flaky\":\"yes\"", "PASS tests/a\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *text = xasprintf("{\"results\":{\"tests\":[{\"status\":\"passed\",%s}]}}", table[i].entry);
		struct report_file r = report_of(REPORT_CTRF, text);

		assert_null(r.environment);
		assert_report(&r, table[i].expected);
		free(text);
	}
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *text, *why;
	} table[] = {
	    {"[]", "it must be an object"},
	    {"{}", "results must be an object"},
	    {"{\"results\":[]}", "results must be an object"},
	    {"{\"results\":{},\"results\":{}}", "results appears twice"},
	    {"{\"results\":{}}", "results.tests must be an array"},
	    {"{\"results\":{\"tests\":{}}}", "results.tests must be an array"},
	    {"{\"results\":{\"tests\":[]}}", "no test case"},
	    {"{\"results\":{\"tests\":[1]}}", "results.tests[0] must be an object"},
	    {"{\"results\":{\"tests\":[{\"status\":\"passed\"}]}}", "results.tests[0].name is missing"},
	    {"{\"results\":{\"tests\":[{\"name\":\"a\",\"status\":\"passed\"},"
	     "{\"name\":\"a\",\"status\":\"PASS\"}]}}",
		"results.tests[1].status must be passed, failed, skipped, pending or other"},
	    {"{\"results\":{\"tests\":[{\"name\":\"a\"}]}}", "results.tests[0].status must be"},
	    {"{\"results\":{\"tests\":[{\"name\":\"a\",\"status\":\"passed\","
	     "\"suite\":{}}]}}",
		"results.tests[0].suite must be"},
	    {"{\"results\":{\"tests\":[{\"name\":\"a\",\"status\":\"passed\","
	     "\"suite\":[1]}]}}",
		"results.tests[0].suite must be"},
	    {"{\"results\":{\"tests\":[{\"name\":\"a\",\"status\":\"passed\","
	     "\"duration\":\"1\"}]}}",
		"results.tests[0].duration must be a number of milliseconds"},
	    {"{\"results\":{\"tests\":[{\"name\":\"a\",\"name\":\"b\"}]}}", "results.tests[0].name appears twice"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_refused(REPORT_CTRF, table[i].text, strlen(table[i].text), ERR_INVALID, table[i].why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_document_is_read),
	    cmocka_unit_test(places_are_read),
	    cmocka_unit_test(unnamed_tests_get_names),
	    cmocka_unit_test(mistakes_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
