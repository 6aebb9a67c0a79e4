/* A job's documents: their content, and that writing and reading them loses nothing. */
#include "report_rig.h"

#include "../fuzz/document_roundtrip.h"

static struct job_detail job_of(struct report_file *r)
{
	return (struct job_detail){
	    .job = {.id = 42,
		.workflow = BORROWED("nightly"),
		.name = BORROWED("tests"),
		.run_id = BORROWED("7"),
		.status = JOB_COMPLETED,
		.conclusion = BORROWED("failure"),
		.url = BORROWED("https://ci.example/7"),
		.started_ms = 1780000000000,
		.completed_ms = 1780000060000,
		.n_cut = (int64_t)r->n_cut},
	    .accelerator = BORROWED("ascend-npu"),
	    .repository = BORROWED("pytorch/pytorch"),
	    .head_sha = BORROWED("0123456789abcdef0123456789abcdef01234567"),
	    .tests = r->tests,
	    .n_tests = r->n_tests,
	    .environment = r->environment,
	};
}

static const char REPORT[] = "{\"schema\":1,\"cut\":3,\"environment\":{\"device\":\"Ascend 910B\",\"os\":\"Ubuntu "
			     "22.04\",\"extension\":{\"name\":\"torch_npu\",\"version\":\"2.10\"},\"racks\":[1]},"
			     "\"tests\":["
			     "{\"suite\":\"model\",\"name\":\"llama3\",\"status\":\"PASS\",\"duration\":12.5,\"dtype\":"
			     "\"bf16\",\"number\":{\"value\":31.2,\"unit\":\"tokens/s\"}},"
			     "{\"suite\":\"unit\",\"name\":\"test_add\",\"status\":\"FAIL\",\"message\":\"1 < 2 & "
			     "\\\"3\\\"\",\"trace\":\"a\\n]]>\\tb\",\"file\":\"test/a.py\",\"line\":3},"
			     "{\"suite\":\"model\",\"name\":\"llama3\",\"status\":\"MISS\",\"dtype\":\"fp32\","
			     "\"message\":\"the machine went away\"},"
			     "{\"suite\":\"benchmark\",\"name\":\"matmul\",\"status\":\"DONE\",\"duration\":0.25,"
			     "\"number\":{\"value\":0.1}},"
			     "{\"suite\":\"unit\",\"name\":\"test_b\",\"status\":\"SKIP\",\"message\":\"no bf16\"},"
			     "{\"suite\":\"unit\",\"name\":\"test_c\",\"status\":\"ERROR\",\"log_url\":"
			     "\"https://ci.example/c?a=1&b=2\"}]}";

static char *written(enum report_format f, const char *report)
{
	struct report_file r = report_of(REPORT_OUTPOST, report);
	struct job_detail d = job_of(&r);
	size_t n;
	char *text = job_document(f, &d, &n);

	assert_int_equal(strlen(text), n);
	report_file_release(&r);
	return text;
}

static void junit_has_the_form_that_tools_read(void **state)
{
	char *text = written(REPORT_JUNIT, REPORT);

	(void)state;
	assert_string_equal(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
				  "<testsuites name=\"ascend-npu: nightly / tests\" tests=\"6\" failures=\"1\" "
				  "errors=\"2\" skipped=\"1\" time=\"12.750\">\n"
				  "<testsuite name=\"model\" tests=\"2\" failures=\"0\" errors=\"1\" skipped=\"0\" "
				  "time=\"12.500\" timestamp=\"2026-05-28T20:26:40Z\">\n"
				  "<properties><property name=\"outpost.cut\" value=\"3\"/><property "
				  "name=\"outpost.device\" value=\"Ascend 910B\"/><property name=\"outpost.os\" "
				  "value=\"Ubuntu 22.04\"/><property name=\"outpost.extension.name\" "
				  "value=\"torch_npu\"/><property name=\"outpost.extension.version\" "
				  "value=\"2.10\"/></properties>\n"
				  "<testcase classname=\"model\" name=\"llama3 (bf16)\" "
				  "time=\"12.500\"><properties><property name=\"outpost.dtype\" "
				  "value=\"bf16\"/><property name=\"outpost.number\" value=\"31.2\"/><property "
				  "name=\"outpost.unit\" value=\"tokens/s\"/></properties></testcase>\n"
				  "<testcase classname=\"model\" name=\"llama3 (fp32)\"><properties><property "
				  "name=\"outpost.status\" value=\"MISS\"/><property name=\"outpost.dtype\" "
				  "value=\"fp32\"/></properties><error message=\"the machine went "
				  "away\"/></testcase>\n"
				  "</testsuite>\n"
				  "<testsuite name=\"unit\" tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"1\" "
				  "time=\"0.000\" timestamp=\"2026-05-28T20:26:40Z\">\n"
				  "<testcase classname=\"unit\" name=\"test_add\" file=\"test/a.py\" "
				  "line=\"3\"><failure message=\"1 &lt; 2 &amp; "
				  "&quot;3&quot;\">a\n]]&gt;\tb</failure></testcase>\n"
				  "<testcase classname=\"unit\" name=\"test_b\"><skipped message=\"no "
				  "bf16\"/></testcase>\n"
				  "<testcase classname=\"unit\" name=\"test_c\"><properties><property "
				  "name=\"outpost.log_url\" "
				  "value=\"https://ci.example/c?a=1&amp;b=2\"/></properties><error/></testcase>\n"
				  "</testsuite>\n"
				  "<testsuite name=\"benchmark\" tests=\"1\" failures=\"0\" errors=\"0\" "
				  "skipped=\"0\" time=\"0.250\" timestamp=\"2026-05-28T20:26:40Z\">\n"
				  "<testcase classname=\"benchmark\" name=\"matmul\" "
				  "time=\"0.250\"><properties><property name=\"outpost.status\" "
				  "value=\"DONE\"/><property name=\"outpost.number\" "
				  "value=\"0.1\"/></properties></testcase>\n"
				  "</testsuite>\n"
				  "</testsuites>\n");
	free(text);
}

static void ctrf_uses_its_own_words(void **state)
{
	char *text = written(REPORT_CTRF, REPORT);

	(void)state;
	assert_non_null(strstr(text, "\"summary\":{\"tests\":6,\"passed\":2,\"failed\":2,"
				     "\"skipped\":1,\"pending\":0,\"other\":1,\"start\":"
				     "1780000000000,\"stop\":1780000060000}"));
	assert_non_null(strstr(text, "\"osPlatform\":\"Ubuntu 22.04\",\"extra\":{\"device\":"));
	assert_non_null(strstr(text, "{\"name\":\"llama3\",\"suite\":[\"model\"],\"status\":\"passed\",\"rawStatus\":"
				     "\"PASS\",\"duration\":12500,\"extra\":{\"dtype\":\"bf16\",\"number\":{\"value\":"
				     "31.2,\"unit\":\"tokens/s\"}}}"));
	free(text);
}

/* Every format keeps the environment fields of docs/report.md and the number of tests that were cut. */
static void the_environment_is_read_back(void **state)
{
	(void)state;
	for (int f = 0; f < N_REPORT_FORMATS; f++) {
		char *text = written((enum report_format)f, REPORT);
		struct report_file r = report_of((enum report_format)f, text);

		assert_int_equal(r.n_cut, 3);
		assert_non_null(strstr(r.environment, "\"device\":\"Ascend 910B\""));
		assert_non_null(strstr(r.environment, "\"os\":\"Ubuntu 22.04\""));
		assert_non_null(strstr(r.environment, "\"extension\":{\"name\":\"torch_npu\",\"version\":\"2.10\"}"));
		report_file_release(&r);
		free(text);
	}
}

/* ---- jobs without tests ---- */

static void a_job_without_tests_is_one_row(void **state)
{
	static const struct {
		const char *conclusion, *message, *expected;
	} table[] = {
	    {"success", NULL, "PASS nightly/tests the job ended with success\n"},
	    {"failure", NULL, "FAIL nightly/tests the job ended with failure\n"},
	    {"failure", "no disk", "FAIL nightly/tests no disk\n"},
	    {"timed_out", NULL, "MISS nightly/tests the job ended with timed_out\n"},
	    {"skipped", NULL, "SKIP nightly/tests the job ended with skipped\n"},
	};
	struct report_file none = {0}, r;
	struct job_detail d = job_of(&none);
	size_t n;
	char *text;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		d.job.conclusion = BORROWED(table[i].conclusion);
		d.message = BORROWED(table[i].message);
		text = job_document(REPORT_OUTPOST, &d, &n);
		r = report_of(REPORT_OUTPOST, text);
		assert_report(&r, table[i].expected);
		free(text);
	}
	d.job.status = JOB_IN_PROGRESS;
	assert_null(job_document(REPORT_JUNIT, &d, &n));
}

static void a_red_job_of_green_tests_has_its_row(void **state)
{
	struct report_file r = report_of(
	    REPORT_OUTPOST, "{\"schema\":1,\"tests\":[{\"suite\":\"unit\",\"name\":\"a\",\"status\":\"PASS\"}]}");
	struct job_detail d = job_of(&r);
	struct report_file out;
	size_t n;
	char *text = job_document(REPORT_CTRF, &d, &n);

	(void)state;
	out = report_of(REPORT_CTRF, text);
	assert_report(&out, "PASS unit/a\nFAIL nightly/tests the job ended with failure\n");
	free(text);
	report_file_release(&r);
}

/* ---- reports that vendors write by hand ---- */

/* pytest's record_property("outpost.dtype", "bf16") */
static void properties_carry_what_junit_lacks(void **state)
{
	struct report_file r =
	    report_of(REPORT_JUNIT, "<testsuite name='benchmark'><properties><property name='outpost.device' "
				    "value='910B'/><property name='outpost.device' value='other'/><property "
				    "name='torch' value='x'/></properties>"
				    "<testcase name='matmul'><properties><property name='outpost.dtype' value='bf16'/>"
				    "<property name='outpost.number' value='101.5'/><property name='outpost.unit' "
				    "value='TFLOP/s'/><property name='outpost.status' value='DONE'/></properties>"
				    "</testcase>"
				    "<testcase name='matmul'><properties><property name='outpost.dtype' value='fp32'/>"
				    "<property name='outpost.number' value='many'/></properties></testcase>"
				    "<testcase name='b'><properties><property name='outpost.status' value='DONE'/>"
				    "<property name='outpost.log_url' value='javascript:x'/></properties><failure/>"
				    "</testcase>"
				    "<testcase name='c'><properties><property name='outpost.status' value='MISS'/>"
				    "</properties></testcase></testsuite>");

	(void)state;
	assert_int_equal(r.n_tests, 4);
	assert_string_equal(r.environment, "{\"device\":\"910B\"}");
	assert_string_equal(r.tests[0].dtype, "bf16");
	assert_true(r.tests[0].has_number && r.tests[0].number == 101.5);
	assert_string_equal(r.tests[0].unit, "TFLOP/s");
	assert_int_equal(r.tests[0].status, TEST_DONE);
	assert_string_equal(r.tests[1].dtype, "fp32");
	assert_false(r.tests[1].has_number);
	assert_int_equal(r.tests[2].status, TEST_FAIL); /* the status is never better than the one in the file */
	assert_null(r.tests[2].log_url);
	assert_int_equal(r.tests[3].status, TEST_PASS);
	report_file_release(&r);
}

static void a_raw_status_only_refines(void **state)
{
	struct report_file r =
	    report_of(REPORT_CTRF, "{\"results\":{\"tool\":{\"name\":\"t\"},\"tests\":["
				   "{\"name\":\"a\",\"status\":\"failed\",\"rawStatus\":\"PASS\"},"
				   "{\"name\":\"b\",\"status\":\"passed\",\"rawStatus\":\"DONE\"},"
				   "{\"name\":\"c\",\"status\":\"other\",\"rawStatus\":\"MISS\"},"
				   "{\"name\":\"d\",\"status\":\"other\",\"rawStatus\":\"FAIL\"},"
				   "{\"name\":\"e\",\"status\":\"failed\",\"rawStatus\":7,\"extra\":[1]},"
				   "{\"name\":\"f\",\"status\":\"passed\",\"extra\":{\"number\":5,\"dtype\":{}}}]}}");

	(void)state;
	assert_report(&r, "FAIL t/a\nDONE t/b\nMISS t/c\nERROR t/d\nFAIL t/e\nPASS t/f\n");
}

/* ---- any job ---- */

static uint64_t seed;

static unsigned pick(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

/* free() */
static char *random_text(unsigned max_pieces)
{
	static const char *const pieces[] = {"a", "Z", "0", " ", "<", ">", "&", "\"", "'", "]]>", "\n", "\t", "{", "}",
	    "\\", "/", ".", "(bf16)", "<!--", "-->", "&amp;", "\xc3\xa9", "\xe2\x80\xae", "\xf0\x9f\x94\xa5",
	    "\xef\xbf\xbe", "\xef\xbf\xbf", "\xc2\x85", "%s", "\x01", "\x1b[31m", "\x7f", "\r\n", "u0000"};
	struct buf out = BUF_INIT(1 << 16);

	for (unsigned n = 1 + pick(max_pieces); n > 0; n--)
		buf_append_str(&out, pieces[pick(ARRAY_LEN(pieces))]);
	return buf_detach(&out);
}

static char *random_line(unsigned max_pieces, size_t max_bytes)
{
	char *raw = random_text(max_pieces), *line = report_line(raw, max_bytes);

	free(raw);
	if (!line[strspn(line, " ")]) {
		free(line);
		return NULL;
	}
	return line;
}

static char *or_x(char *s) { return s ? s : xstrdup("x"); }

static void random_test(struct test_result *t)
{
	static const char *const suites[] = {"unit", "model", "pytest", "test", NULL, NULL};
	const char *suite = suites[pick(ARRAY_LEN(suites))];
	char *raw = random_text(40);

	*t = (struct test_result){
	    .suite = suite ? xstrdup(suite) : or_x(random_line(60, REPORT_SUITE_MAX_BYTES)),
	    .name = or_x(pick(3) ? random_line(3, REPORT_NAME_MAX_BYTES) : random_line(200, REPORT_NAME_MAX_BYTES)),
	    .dtype = pick(2) ? random_line(2, REPORT_UNIT_MAX_BYTES) : NULL,
	    .status = (enum test_status)pick(N_TEST_STATUSES),
	    .duration_ms = (int64_t)pick(1000000) - 1,
	    .message = pick(2) ? random_line(500, REPORT_MESSAGE_MAX_BYTES) : NULL,
	    .trace = pick(2) ? report_lines(raw, REPORT_TRACE_MAX_BYTES) : NULL,
	    .log_url = pick(4) ? NULL : xstrdup("https://ci.example/?a=1&b=\"<'>"),
	    .has_number = pick(2),
	};
	free(raw);
	if (t->has_number) {
		t->number = (double)((int64_t)pick(2000001) - 1000000) / (1 + pick(1000));
		t->unit = pick(2) ? random_line(3, REPORT_UNIT_MAX_BYTES) : NULL;
	}
	test_result_locate(t, "test/a <b>&.py", pick(100));
}

static void every_job_is_read_back_from_every_format(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		struct report_file r = {0};
		struct job_detail d;

		seed = (uint64_t)round + 1;
		r.n_tests = 1 + pick(40);
		r.n_cut = pick(3);
		r.tests = xcalloc(r.n_tests, sizeof(*r.tests));
		for (size_t i = 0; i < r.n_tests; i++)
			random_test(&r.tests[i]);
		/* another test covers the row of the job */
		d = job_of(&r);
		d.job.conclusion = BORROWED("success");
		for (int f = 0; f < N_REPORT_FORMATS; f++)
			check_document(&d, (enum report_format)f);
		report_file_release(&r);
	}
}

/* A document over the limit loses explanations, but no test. */
static void the_largest_job_fits(void **state)
{
	struct report_file r = {.n_tests = REPORT_TESTS_MAX};
	char *trace = xmalloc(REPORT_TRACE_MAX_BYTES + 1);
	struct job_detail d;

	(void)state;
	memset(trace, '"', REPORT_TRACE_MAX_BYTES);
	trace[0] = '&';
	trace[REPORT_TRACE_MAX_BYTES] = '\0';
	r.tests = xcalloc(r.n_tests, sizeof(*r.tests));
	for (size_t i = 0; i < r.n_tests; i++)
		r.tests[i] = (struct test_result){
		    .suite = xasprintf("s%zu", i % 50),
		    .name = xasprintf("test_%zu", i / 2),
		    .status = TEST_FAIL,
		    .duration_ms = -1,
		    .message = xstrndup(trace, REPORT_MESSAGE_MAX_BYTES),
		    .trace = xstrdup(trace),
		};
	d = job_of(&r);
	for (int f = 0; f < N_REPORT_FORMATS; f++) {
		struct error why = {0};
		struct report_file back;
		size_t n;
		char *text = job_document((enum report_format)f, &d, &n);

		assert_in_range(n, 1, REPORT_FILE_MAX_BYTES);
		assert_int_equal(report_file_parse((enum report_format)f, text, n, &back, &why), 0);
		assert_int_equal(back.n_tests, REPORT_TESTS_MAX);
		report_file_release(&back);
		free(text);
	}
	report_file_release(&r);
	free(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(junit_has_the_form_that_tools_read),
	    cmocka_unit_test(ctrf_uses_its_own_words),
	    cmocka_unit_test(the_environment_is_read_back),
	    cmocka_unit_test(a_job_without_tests_is_one_row),
	    cmocka_unit_test(a_red_job_of_green_tests_has_its_row),
	    cmocka_unit_test(properties_carry_what_junit_lacks),
	    cmocka_unit_test(a_raw_status_only_refines),
	    cmocka_unit_test(every_job_is_read_back_from_every_format),
	    cmocka_unit_test(the_largest_job_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
