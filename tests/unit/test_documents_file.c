/* The common parts of the formats: guessing, merging, limits and writing. */
#include "report_rig.h"

static void formats_have_names(void **state)
{
	(void)state;
	for (int f = 0; f < N_REPORT_FORMATS; f++)
		assert_int_equal(report_format_parse(report_format_name((enum report_format)f)), f);
	assert_int_equal(report_format_parse("JUnit"), N_REPORT_FORMATS);
	assert_int_equal(report_format_parse(NULL), N_REPORT_FORMATS);
}

static void the_format_is_guessed(void **state)
{
	static const struct {
		const char *text;
		enum report_format expected;
	} table[] = {
	    {"<testsuites/>", REPORT_JUNIT},
	    {"\xef\xbb\xbf \n<?xml version='1.0'?>", REPORT_JUNIT},
	    {"{\"schema\":1,\"tests\":[]}", REPORT_OUTPOST},
	    {" {\"tests\":[]}", REPORT_OUTPOST},
	    {"{}", REPORT_OUTPOST},
	    {"{\"results\":", REPORT_OUTPOST},
	    {"{\"results\":{}}", REPORT_CTRF},
	    {"{\"reportFormat\":\"CTRF\",\"results\":{\"tests\":[]}}", REPORT_CTRF},
	    {"{\"nested\":{\"schema\":1},\"results\":{\"tests\":[]}}", REPORT_CTRF},
	    {"{\"results\":{\"tests\":[]},\"schema\":1}", REPORT_OUTPOST},
	    {"", N_REPORT_FORMATS},
	    {"  ", N_REPORT_FORMATS},
	    {"[{\"schema\":1}]", N_REPORT_FORMATS},
	    {"TAP version 13", N_REPORT_FORMATS},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(report_format_guess(table[i].text, strlen(table[i].text)), table[i].expected);
	assert_refused(N_REPORT_FORMATS, "TAP", 3, ERR_INVALID, "JUnit XML, CTRF JSON or Outpost JSON");
}

static void a_document_that_is_too_big_is_refused_unread(void **state)
{
	struct report_file r;
	struct error why = {0};

	(void)state;
	assert_int_equal(report_file_parse(REPORT_JUNIT, "<", (size_t)100 << 20, &r, &why), ERR_TOO_BIG);
	assert_string_equal(why.text, "the report has 104857600 bytes; 33554432 are the most");
	report_file_release(&r);
}

/* parse → write → parse loses nothing, and a second round changes nothing. */
static void a_report_that_is_written_and_read_is_unchanged(void **state)
{
	static const char *const names[] = {
	    "outpost.json", "ctrf.json", "pytest.xml", "gtest.xml", "node.xml", "surefire.xml"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct report_file a = report_of_file(names[i]), b;
		struct buf printed = BUF_INIT(1 << 20);
		size_t n, n_again;
		char *text = report_file_text(&a, &n), *again;

		assert_int_equal(strlen(text), n);
		assert_int_equal(report_format_guess(text, n), REPORT_OUTPOST);
		b = report_of(REPORT_OUTPOST, text);
		again = report_file_text(&b, &n_again);
		assert_string_equal(text, again);
		report_print(&a, &printed);
		report_file_release(&a);
		assert_report(&b, buf_str(&printed));
		buf_release(&printed);
		free(text);
		free(again);
	}
}

static void numbers_are_written_with_the_fewest_digits(void **state)
{
	struct report_file r = report_of(REPORT_OUTPOST,
	    "{\"schema\":1,\"cut\":3,\"tests\":[{\"suite\":\"s\",\"name\":\"n\",\"status\":"
	    "\"DONE\",\"duration\":0.1,\"number\":{\"value\":31.2}},{\"suite\":\"s\",\"name\":"
	    "\"m\",\"status\":\"DONE\",\"number\":{\"value\":0.30000000000000004}}]}");
	size_t n;
	char *text = report_file_text(&r, &n);

	(void)state;
	assert_int_equal(r.n_cut, 3);
	assert_string_equal(text, "{\"schema\":1,\"cut\":3,\"tests\":[\n"
				  "{\"suite\":\"s\",\"name\":\"n\",\"status\":\"DONE\",\"duration\":0.1,"
				  "\"number\":{\"value\":31.2}},\n"
				  "{\"suite\":\"s\",\"name\":\"m\",\"status\":\"DONE\","
				  "\"number\":{\"value\":0.30000000000000004}}\n]}\n");
	free(text);
	report_file_release(&r);
}

/* n cases of one suite; every red_each-th of them fails. */
static struct report_file many(size_t n, size_t red_each, const char *extra)
{
	struct buf text = BUF_INIT(REPORT_FILE_MAX_BYTES);
	struct report_file r;

	buf_append_str(&text, "<testsuite>");
	for (size_t i = 0; i < n; i++) {
		buf_appendf(&text, "<testcase name='%zx'", i);
		if (red_each && i % red_each == red_each - 1)
			buf_appendf(&text, "><failure>%s</failure></testcase>", extra);
		else
			buf_append_str(&text, "/>");
	}
	buf_append_str(&text, "</testsuite>");
	assert_false(text.is_overflow);
	r = report_of(REPORT_JUNIT, buf_str(&text));
	buf_release(&text);
	return r;
}

static void the_worst_of_a_million_cases_are_kept(void **state)
{
	struct report_file r = many(1000000, 100000, "why");
	size_t n_red = 0;

	(void)state;
	assert_int_equal(r.n_tests, REPORT_TESTS_MAX);
	assert_int_equal(r.n_cut, 1000000 - REPORT_TESTS_MAX);
	for (size_t i = 0; i < r.n_tests; i++)
		n_red += r.tests[i].status == TEST_FAIL;
	assert_int_equal(n_red, 10);
	/* in their order: the first ones, then the red ones from further on */
	assert_string_equal(r.tests[0].name, "0");
	assert_string_equal(r.tests[REPORT_TESTS_MAX - 1].name, "f423f");
	report_file_release(&r);
}

static void red_cases_are_cut_last(void **state)
{
	struct report_file r = many(60000, 2, "");

	(void)state;
	assert_int_equal(r.n_tests, REPORT_TESTS_MAX);
	assert_int_equal(r.n_cut, 40000);
	for (size_t i = 0; i < r.n_tests; i++)
		assert_int_equal(r.tests[i].status, TEST_FAIL);
	report_file_release(&r);
}

/* The same name long after the first one, with more cases in between than are stored. */
static void cases_of_one_name_are_merged_at_any_distance(void **state)
{
	struct buf text = BUF_INIT(1 << 24);
	struct report_file r;

	(void)state;
	buf_append_str(&text, "<testsuite><testcase name='again'/><testcase name='red'><failure/></testcase>");
	for (int i = 0; i < 50000; i++)
		buf_appendf(&text, "<testcase name='%d'/>", i);
	buf_append_str(&text, "<testcase name='again'><failure/></testcase><testcase name='red'/>"
			      "</testsuite>");
	r = report_of(REPORT_JUNIT, buf_str(&text));
	assert_int_equal(report_case(&r, "again")->status, TEST_FAIL);
	assert_int_equal(report_case(&r, "red")->status, TEST_FAIL);
	assert_int_equal(r.n_tests + r.n_cut, 50002);
	report_file_release(&r);
	buf_release(&text);
}

static void files_are_merged(void **state)
{
	struct report_file all = {0}, more = report_of_file("gradle-retry.xml");
	struct report_file empty = {0};

	(void)state;
	report_file_merge(&all, &more);
	assert_int_equal(more.n_tests, 0);
	assert_null(more.tests);
	more = report_of_file("outpost.json");
	report_file_merge(&all, &more);
	more = report_of_file("ctrf.json");
	report_file_merge(&all, &more);
	report_file_merge(&all, &empty);
	assert_int_equal(all.n_tests, 12);
	assert_non_null(strstr(all.environment, "ascend-npu"));
	assert_string_equal(all.tests[2].name, "llama3");
	report_file_release(&all);
	all = many(15000, 0, "");
	more = many(15000, 3, "");
	report_file_merge(&all, &more);
	assert_int_equal(all.n_tests, REPORT_TESTS_MAX);
	assert_int_equal(all.n_cut, 10000);
	assert_int_equal(all.tests[REPORT_TESTS_MAX - 1].status, TEST_FAIL);
	report_file_release(&all);
}

/* Escaped text of one format may be longer in another. */
static void a_written_report_stays_within_the_limits(void **state)
{
	struct buf trace = BUF_INIT(1 << 16);
	struct report_file all;
	size_t n;
	char *text;

	(void)state;
	for (int i = 0; i < REPORT_TRACE_MAX_BYTES; i++)
		buf_append_char(&trace, i % 2 ? '"' : 'x');
	all = many(6000, 1, buf_str(&trace));
	text = report_file_text(&all, &n);
	assert_true(n <= REPORT_FILE_MAX_BYTES);
	report_file_release(&all);
	all = report_of(REPORT_OUTPOST, text);
	assert_int_equal(all.n_tests, 6000);
	assert_null(all.tests[0].trace);
	assert_non_null(all.tests[0].message);
	report_file_release(&all);
	free(text);
	buf_release(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(formats_have_names),
	    cmocka_unit_test(the_format_is_guessed),
	    cmocka_unit_test(a_document_that_is_too_big_is_refused_unread),
	    cmocka_unit_test(a_report_that_is_written_and_read_is_unchanged),
	    cmocka_unit_test(numbers_are_written_with_the_fewest_digits),
	    cmocka_unit_test(the_worst_of_a_million_cases_are_kept),
	    cmocka_unit_test(red_cases_are_cut_last),
	    cmocka_unit_test(cases_of_one_name_are_merged_at_any_distance),
	    cmocka_unit_test(files_are_merged),
	    cmocka_unit_test(a_written_report_stays_within_the_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
