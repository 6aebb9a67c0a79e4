#include "report_rig.h"

static struct report_file junit(const char *text) { return report_of(REPORT_JUNIT, text); }

/* ---- reports of real tools ---- */

static void pytest_reports_are_read(void **state)
{
	struct report_file r = report_of_file("pytest.xml");

	(void)state;
	assert_non_null(strstr(report_case(&r, "test_sample.test_both")->trace, "def test_both(leaves)"));
	assert_report(&r, "PASS pytest/test_sample.test_adds\n"
			  "FAIL pytest/test_sample.test_wrong (0.001) AssertionError: the device   is @someone's "
			  "<b>npu</b> assert 'npu' == 'cpu'   - cpu   + npu\n"
			  "ERROR pytest/test_sample.test_setup failed on setup with \"RuntimeError: no device "
			  "0\"\n"
			  "ERROR pytest/test_sample.test_teardown failed on teardown with \"RuntimeError: cannot "
			  "free\"\n"
			  "FAIL pytest/test_sample.test_both assert False\n"
			  "SKIP pytest/test_sample.test_skipped no bf16 here\n"
			  "SKIP pytest/test_sample.test_xfail known\n"
			  "FAIL pytest/test_sample.test_xpass [XPASS(strict)] fixed\n"
			  "PASS pytest/test_sample.test_param[fp32]\n"
			  "PASS pytest/test_sample.test_param[bf16]\n"
			  "PASS pytest/test_sample.test_param[a/b[c]]\n"
			  "PASS pytest/test_sample.TestModel.test_in_class\n"
			  "FAIL pytest/test_sample.test_control ValueError: bell #x07 and escape #x1B[31m "
			  "ends\n");
}

static void gtest_reports_are_read(void **state)
{
	struct report_file r = report_of_file("gtest.xml");

	(void)state;
	assert_string_equal(report_case(&r, "IsWrong")->trace,
	    "g.cc:4\nExpected equality of these values:\n  3\n  1 + 1\n    Which is: 2\nsum");
	assert_report(&r, "PASS Add/Works\n"
			  "FAIL Add/IsWrong g.cc:4 Expected equality of these values:   3   1 + 1     Which is: "
			  "2 sum\n"
			  "SKIP Add/DISABLED_Later\n"
			  "SKIP Add/NoDevice g.cc:6 no device 0\n"
			  "PASS All/Dtype/Casts/0\n"
			  "PASS All/Dtype/Casts/1\n"
			  "FAIL All/Dtype/Casts/2 g.cc:8 Expected: (GetParam()) < (2), actual: 2 vs 2\n");
}

static void places_are_read(void **state)
{
	struct report_file r = report_of_file("gtest.xml");

	(void)state;
	assert_string_equal(report_case(&r, "IsWrong")->file, "g.cc");
	assert_int_equal(report_case(&r, "IsWrong")->line, 4);
	assert_null(report_case(&r, "Works")->file);
	report_file_release(&r);
	r = junit("<testsuite name='pytest'>"
		  "<testcase name='a' file='test/a.py' line='0'><failure/></testcase>"
		  "<testcase name='b' file='test/b.py'><failure/></testcase>"
		  "<testcase name='c' file='test/c.py' line='x'><failure/></testcase>"
		  "<testcase name='d' file='/root/d.py' line='7'><failure/></testcase>"
		  "<testcase name='e' line='7'><failure/></testcase>"
		  "<testsuite name='unit'>"
		  "<testcase name='f' file='test/f.py' line='7'><error/></testcase>"
		  "<testcase name='g' file='test/g.py' line='99999999999999999999'><error/></testcase>"
		  "</testsuite></testsuite>");
	assert_string_equal(report_case(&r, "a")->file, "test/a.py");
	assert_int_equal(report_case(&r, "a")->line, 1);
	assert_int_equal(report_case(&r, "b")->line, 0);
	assert_int_equal(report_case(&r, "c")->line, 0);
	assert_string_equal(report_case(&r, "c")->file, "test/c.py");
	assert_null(report_case(&r, "d")->file);
	assert_null(report_case(&r, "e")->file);
	assert_int_equal(report_case(&r, "f")->line, 7);
	assert_int_equal(report_case(&r, "g")->line, 0);
	report_file_release(&r);
}

static void surefire_reports_are_read(void **state)
{
	struct report_file r = report_of_file("surefire.xml");

	(void)state;
	assert_non_null(strstr(report_case(&r, "reuses")->trace, "AllocatorTest.java:40"));
	assert_null(strstr(report_case(&r, "reuses")->trace, "again"));
	assert_null(report_case(&r, "frees")->trace);
	assert_report(&r, "PASS org.example.npu.AllocatorTest/allocates (1200.5)\n"
			  "PASS org.example.npu.AllocatorTest/frees (0.25) passed when it was run again; before: "
			  "expected: <0> but was: <4096>\n"
			  "FAIL org.example.npu.AllocatorTest/reuses (0.5) expected: <true> but was: <false>\n"
			  "ERROR org.example.npu.AllocatorTest/survives (0.001) "
			  "java.lang.IllegalStateException\n"
			  "SKIP org.example.npu.AllocatorTest/grows needs two devices\n"
			  "PASS org.example.npu.AllocatorTest/org.example.npu.SharedTest.sharesWithOthers (3)\n");
}

static void node_reports_are_read(void **state)
{
	struct report_file r = report_of_file("node.xml");

	(void)state;
	assert_report(&r, "PASS test/adds (0.001)\n"
			  "FAIL test/top fails (0.001) one is nottwo1 !== 2\n"
			  "PASS kernels/test.add\n"
			  "SKIP kernels/test.mul no device\n"
			  "SKIP kernels/test.later (0.001) true\n"
			  "FAIL nested/test.div by zero <0>\n"
			  "PASS nested/test.div\n"
			  "PASS with parts/test.part\n"
			  "FAIL with parts/test.bad part (0.01) The expression evaluated to a falsy value:  "
			  "assert.ok(false)\n");
}

static void the_worst_case_of_a_name_counts(void **state)
{
	struct report_file r = report_of_file("gradle-retry.xml");

	(void)state;
	assert_report(&r, "FAIL org.example.npu.StreamTest/waits (0.1) timed out\n"
			  "FAIL org.example.npu.StreamTest/orders (0.1) out of order\n");
	/* pytest -n2 --dist=each: two devices, and the second one is fine */
	r = junit("<testsuite name='unit'>"
		  "<testcase classname='t' name='a'><failure message='gw0'/></testcase>"
		  "<testcase classname='t' name='a'/>"
		  "<testcase classname='t' name='a'><skipped message='gw2'/></testcase>"
		  "<testcase classname='t' name='b'><failure message='f'/></testcase>"
		  "<testcase classname='t' name='b'><error message='e'/></testcase>"
		  "<testcase classname='t' name='c'/>"
		  "<testcase classname='t' name='c'><skipped/></testcase></testsuite>");
	assert_report(&r, "FAIL unit/t.a gw0\nFAIL unit/t.b f\nPASS unit/t.c\n");
	/* A test of the same name in another suite is another test. */
	r = junit("<testsuites><testsuite name='a'><testcase name='x'><failure/></testcase>"
		  "</testsuite><testsuite name='a'><testcase name='x'/></testsuite></testsuites>");
	assert_report(&r, "FAIL a/x\nPASS a/x\n");
}

static void changed_names_stay_distinct(void **state)
{
	struct buf text = BUF_INIT(1 << 16);
	struct report_file r;

	(void)state;
	buf_append_str(&text, "<testsuite name='a'>");
	for (int i = 0; i < 2; i++) {
		buf_append_str(&text, "<testcase name='");
		for (int k = 0; k < 300; k++)
			buf_append_char(&text, 'x');
		buf_appendf(&text, "%d'>%s</testcase>", i, i ? "" : "<failure/>");
	}
	buf_append_str(&text, "</testsuite>");
	r = junit(buf_str(&text));
	assert_int_equal(r.n_tests, 2);
	assert_int_equal(r.tests[0].status, TEST_FAIL);
	assert_int_equal(strlen(r.tests[0].name), REPORT_NAME_MAX_BYTES);
	report_file_release(&r);
	buf_release(&text);
	r = junit("<testsuite name='a'><testcase name='x&#9;y'/>"
		  "<testcase name='x y'/></testsuite>");
	assert_int_equal(r.n_tests, 2);
	report_file_release(&r);
}

/* ---- the mapping ---- */

static void outcomes_are_mapped(void **state)
{
	static const struct {
		const char *inside, *expected;
	} table[] = {
	    {"", "PASS s/t\n"},
	    {"<failure message='m'/>", "FAIL s/t m\n"},
	    {"<failure>\n\n  first\nsecond</failure>", "FAIL s/t first\n"},
	    {"<failure type='Oops'/>", "FAIL s/t Oops\n"},
	    {"<failure/>", "FAIL s/t\n"},
	    {"<error message='e'/><failure message='f'/>", "FAIL s/t f\n"},
	    {"<failure message='f'/><error message='e'/>", "FAIL s/t f\n"},
	    {"<failure message='one'/><failure message='two'/>", "FAIL s/t one\n"},
	    {"<skipped/>", "SKIP s/t\n"},
	    {"<skipped>why</skipped>", "SKIP s/t why\n"},
	    {"<skipped message='s'/><error message='e'/>", "ERROR s/t e\n"},
	    {"<rerunFailure message='r'/>", "FAIL s/t r\n"},
	    {"<rerunError message='r'/>", "ERROR s/t r\n"},
	    {"<flakyError message='r'/>", "PASS s/t passed when it was run again; before: r\n"},
	    {"<flakyFailure/>", "PASS s/t passed when it was run again\n"},
	    {"<flakyFailure message='r'/><failure message='f'/>", "FAIL s/t f\n"},
	    {"<system-out>FAILED <failure/></system-out>", "PASS s/t\n"},
	    {"<properties><failure/></properties>", "PASS s/t\n"},
	    {"<failure><system-out>noise</system-out>real</failure>", "FAIL s/t real\n"},
	    {"<unknown attribute='x'>text</unknown>", "PASS s/t\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *text =
		    xasprintf("<testsuite name='s'><testcase name='t'>%s</testcase></testsuite>", table[i].inside);
		struct report_file r = junit(text);

		assert_report(&r, table[i].expected);
		free(text);
	}
}

static void attributes_of_the_case_decide_too(void **state)
{
	static const struct {
		const char *attributes, *expected;
	} table[] = {
	    {"name='t' status='run' result='completed'", "PASS s/t\n"},
	    {"name='t' status='notrun' result='suppressed'", "SKIP s/t\n"},
	    {"name='t' status='disabled'", "SKIP s/t\n"},
	    {"name='t' result='Skipped'", "SKIP s/t\n"},
	    {"name='t' status='FAILED'", "FAIL s/t\n"},
	    {"name='t' status='error'", "ERROR s/t\n"},
	    {"name='t' status='passed' result='failed'", "FAIL s/t\n"},
	    {"name='t' classname='s'", "PASS s/t\n"},
	    {"name='t' classname=''", "PASS s/t\n"},
	    {"name='t' classname='c'", "PASS s/c.t\n"},
	    {"classname='c'", "PASS s/c\n"},
	    {"", "PASS s/(unnamed)\n"},
	    {"name='&#127;'", "PASS s/(unnamed)\n"},
	    {"name='t' time='1.5'", "PASS s/t (1.5)\n"},
	    {"name='t' time='1e3'", "PASS s/t (1000)\n"},
	    {"name='t' time='1,234.5'", "PASS s/t (1234.5)\n"},
	    {"name='t' time='-1'", "PASS s/t\n"},
	    {"name='t' time='nan'", "PASS s/t\n"},
	    {"name='t' time='1e999'", "PASS s/t\n"},
	    {"name='t' time='0x10'", "PASS s/t\n"},
	    {"name='t' time='1.2.3'", "PASS s/t\n"},
	    {"name='t' time=''", "PASS s/t\n"},
	    {"name='t' time='11111111111111111111111111111111111111111'", "PASS s/t\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *text = xasprintf("<testsuite name='s'><testcase %s/></testsuite>", table[i].attributes);
		struct report_file r = junit(text);

		assert_report(&r, table[i].expected);
		free(text);
	}
}

static void suites_nest(void **state)
{
	struct report_file r =
	    junit("<testsuites name='all' failures='9'><testcase name='top'/>"
		  "<testsuite name='outer'><testcase name='a'/><testsuite name='inner'>"
		  "<testcase name='b'/></testsuite><testsuite name=' '><testcase name='c'/></testsuite>"
		  "<testcase name='d'/></testsuite></testsuites>");

	(void)state;
	assert_report(&r, "PASS all/top\nPASS outer/a\nPASS inner/b\nPASS outer/c\nPASS outer/d\n");
	r = junit("<testsuites><testcase name='t' classname='c'/><testcase name='u'/>"
		  "</testsuites>");
	assert_report(&r, "PASS c/t\nPASS tests/u\n");
	r = junit("<testsuite name='s'><testcase name='t'/><error message='the hook broke'>at 1"
		  "</error><properties><error/></properties></testsuite>");
	assert_report(&r, "PASS s/t\nERROR s/(suite) the hook broke\n");
}

/* ---- hostile ---- */

static void mistakes_have_a_line(void **state)
{
	static const struct {
		const char *text, *why;
	} table[] = {
	    {"", "empty"},
	    {"\n\n", "line 3: not valid XML"},
	    {"hello", "line 1: not valid XML"},
	    {"<html>\n</html>", "line 1: the root must be testsuites or testsuite, it is html"},
	    {"<testsuite>\n<testcase name='a'>\n</testsuite>", "line 3: not valid XML: mismatched tag"},
	    {"<testsuite>\n<testcase name='a'/>", "was the file cut off?"},
	    {"<testsuite>\n\n<testcase name='a&b'/></testsuite>", "line 3: not valid XML"},
	    {"<testsuite>\n<testcase name='\x01'/></testsuite>", "line 2: not valid XML"},
	    {"<testsuite>\n<testcase name='\xff'/></testsuite>", "line 2: not valid XML"},
	    {"<testsuite><testcase name='&#0;'/></testsuite>", "line 1: not valid XML"},
	    {"<testsuite><testcase name='&unknown;'/></testsuite>", "undefined entity"},
	    {"<?xml version='1.0' encoding='shift_jis'?>\n<testsuite/>", "write the report as UTF-8"},
	    {"<testsuites/>", "no test case"},
	    {"<testsuite tests='5' failures='0'/>", "no test case"},
	    {"<!DOCTYPE testsuites [\n<!ENTITY a 'b'>]>\n<testsuites/>",
		"line 1: declarations (<!DOCTYPE … [) are not read"},
	    {"<!DOCTYPE t [<!ATTLIST testcase name CDATA 'default'>]><testsuite><testcase/>"
	     "</testsuite>",
		"not read"},
	};
	static const char nul[] = "<testsuite>\n<testcase name='a\0b'/></testsuite>";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_refused(REPORT_JUNIT, table[i].text, strlen(table[i].text), ERR_INVALID, table[i].why);
	assert_refused(REPORT_JUNIT, nul, sizeof(nul) - 1, ERR_INVALID, "line 2: not valid XML");
}

static void entity_expansion_is_refused(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	struct report_file r;

	(void)state;
	buf_append_str(&text, "<?xml version='1.0'?>\n<!DOCTYPE testsuites [\n<!ENTITY e0 'ha'>\n");
	for (int i = 1; i < 30; i++)
		buf_appendf(&text, "<!ENTITY e%d '&e%d;&e%d;&e%d;&e%d;'>\n", i, i - 1, i - 1, i - 1, i - 1);
	buf_append_str(&text, "]>\n<testsuites><testcase name='&e29;'>&e29;</testcase></testsuites>");
	assert_refused(REPORT_JUNIT, buf_str(&text), text.len, ERR_INVALID, "line 2: declarations");
	buf_release(&text);
	/* A document type alone declares no entity, and nothing is fetched. */
	r = junit("<!DOCTYPE testsuites SYSTEM 'file:///etc/passwd'><testsuites>"
		  "<testcase name='a'>&outside;<failure>&outside;</failure></testcase>"
		  "</testsuites>");
	assert_report(&r, "FAIL tests/a\n");
}

static void encodings_that_xml_names_are_read(void **state)
{
	static const char utf16[] = "\xff\xfe<\0t\0e\0s\0t\0s\0u\0i\0t\0e\0>\0<\0t\0e\0s\0t\0c\0a\0s\0"
				    "e\0 \0n\0a\0m\0e\0=\0'\0\xe9\0'\0/\0>\0<\0/\0t\0e\0s\0t\0s\0u\0"
				    "i\0t\0e\0>\0";
	struct report_file r = junit("<?xml version='1.0' encoding='ISO-8859-1'?><testsuite>"
				     "<testcase name='\xe9'/></testsuite>");

	(void)state;
	assert_report(&r, "PASS tests/é\n");
	assert_int_equal(report_format_guess(utf16, sizeof(utf16) - 1), REPORT_JUNIT);
	assert_int_equal(report_file_parse(REPORT_JUNIT, utf16, sizeof(utf16) - 1, &r, NULL), 0);
	assert_report(&r, "PASS tests/é\n");
}

static void nesting_is_bounded(void **state)
{
	struct buf text = BUF_INIT(1 << 24);

	(void)state;
	buf_append_str(&text, "<testsuite>\n");
	for (int i = 0; i < 1000000; i++)
		buf_append_str(&text, "<testsuite>");
	assert_refused(
	    REPORT_JUNIT, buf_str(&text), text.len, ERR_INVALID, "line 2: elements are nested deeper than 64");
	buf_clear(&text);
	buf_append_str(&text, "<testsuite><testcase><failure>");
	for (int i = 0; i < 1000; i++)
		buf_append_str(&text, "<a>");
	assert_refused(REPORT_JUNIT, buf_str(&text), text.len, ERR_INVALID, "nested deeper than 64");
	buf_clear(&text);
	buf_append_str(&text, "<testsuite><testcase name='a'>\n<testcase name='b'><failure/>"
			      "</testcase></testcase></testsuite>");
	assert_refused(
	    REPORT_JUNIT, buf_str(&text), text.len, ERR_INVALID, "line 2: a testcase must not contain testcase");
	buf_release(&text);
}

static void report_text_is_not_interpreted_as_markup(void **state)
{
	struct report_file r = junit("<testsuite name='&lt;script>'><testcase name='[x](https://a.example)|@all'>"
				     "<failure message='&lt;img src=x>&#10;&#9;@everyone&#13;|#1'><![CDATA["
				     "\n\n<b>bold</b>\r\n\tline two\n\n]]></failure></testcase></testsuite>");

	(void)state;
	assert_string_equal(r.tests[0].trace, "<b>bold</b>\n\tline two");
	assert_report(&r, "FAIL <script>/[x](https://a.example)|@all <img src=x>  @everyone|#1\n");
}

static void long_text_is_cut_between_characters(void **state)
{
	struct buf text = BUF_INIT(1 << 24);
	struct report_file r;

	(void)state;
	buf_append_str(&text, "<testsuite><testcase name='t'><failure message='x");
	for (int i = 0; i < 100000; i++)
		buf_append_str(&text, "€");
	buf_append_str(&text, "'>x");
	for (int i = 0; i < 100000; i++)
		buf_append_str(&text, i % 100 ? "€" : "\n");
	buf_append_str(&text, "</failure></testcase></testsuite>");
	r = junit(buf_str(&text));
	assert_in_range(strlen(r.tests[0].message), REPORT_MESSAGE_MAX_BYTES - 3, REPORT_MESSAGE_MAX_BYTES);
	assert_in_range(strlen(r.tests[0].trace), REPORT_TRACE_MAX_BYTES - 3, REPORT_TRACE_MAX_BYTES);
	report_file_release(&r);
	buf_release(&text);
}

/* A long name that every case repeats must not be scanned for each of them. */
static void a_long_suite_name_costs_once(void **state)
{
	struct buf text = BUF_INIT(REPORT_FILE_MAX_BYTES);
	struct report_file r;

	(void)state;
	buf_append_str(&text, "<testsuite name='");
	for (int i = 0; i < 12000000; i++)
		buf_append_char(&text, 'x');
	buf_append_str(&text, "'>");
	for (int i = 0; i < 100000; i++)
		buf_append_str(&text, "<testcase/>");
	buf_append_str(&text, "</testsuite>");
	r = junit(buf_str(&text));
	assert_int_equal(r.n_tests, REPORT_TESTS_MAX);
	assert_int_equal(r.n_cut, 100000 - REPORT_TESTS_MAX);
	assert_int_equal(strlen(r.tests[0].suite), REPORT_SUITE_MAX_BYTES);
	report_file_release(&r);
	buf_release(&text);
}

/* expat stores each name, so a report that consists of new names must not fill the memory. */
static void the_number_of_names_is_bounded(void **state)
{
	struct buf text = BUF_INIT(REPORT_FILE_MAX_BYTES);

	(void)state;
	buf_append_str(&text, "<testsuite>\n<testcase name='a'/>");
	for (size_t i = 0; text.len + 64 < text.max; i++)
		buf_appendf(&text, "<e%zx/>", i);
	buf_append_str(&text, "</testsuite>");
	assert_refused(REPORT_JUNIT, buf_str(&text), text.len, ERR_INVALID, "line 2: more different names");
	buf_release(&text);
}

/* An attribute as long as the whole document is only cut. */
static void the_longest_attribute_is_read(void **state)
{
	struct buf text = BUF_INIT(REPORT_FILE_MAX_BYTES);
	struct report_file r;

	(void)state;
	buf_append_str(&text, "<testsuite><testcase name='");
	while (text.len + 128 < text.max)
		buf_append_str(&text, "0123456789012345678901234567890123456789");
	buf_append_str(&text, "'/></testsuite>");
	r = junit(buf_str(&text));
	assert_int_equal(strlen(r.tests[0].name), REPORT_NAME_MAX_BYTES);
	report_file_release(&r);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pytest_reports_are_read),
	    cmocka_unit_test(gtest_reports_are_read),
	    cmocka_unit_test(places_are_read),
	    cmocka_unit_test(surefire_reports_are_read),
	    cmocka_unit_test(node_reports_are_read),
	    cmocka_unit_test(the_worst_case_of_a_name_counts),
	    cmocka_unit_test(changed_names_stay_distinct),
	    cmocka_unit_test(outcomes_are_mapped),
	    cmocka_unit_test(attributes_of_the_case_decide_too),
	    cmocka_unit_test(suites_nest),
	    cmocka_unit_test(mistakes_have_a_line),
	    cmocka_unit_test(entity_expansion_is_refused),
	    cmocka_unit_test(encodings_that_xml_names_are_read),
	    cmocka_unit_test(nesting_is_bounded),
	    cmocka_unit_test(report_text_is_not_interpreted_as_markup),
	    cmocka_unit_test(long_text_is_cut_between_characters),
	    cmocka_unit_test(a_long_suite_name_costs_once),
	    cmocka_unit_test(the_number_of_names_is_bounded),
	    cmocka_unit_test(the_longest_attribute_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
