#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "model/callback_token.h"
#include "model/job_report.h"

static int parse(const char *text, struct job_report *r, struct error *e)
{
	json_t *v;
	int rc;

	assert_int_equal(json_parse(text, strlen(text), &v, NULL), 0);
	rc = job_report_parse(v, r, e);
	json_decref(v);
	return rc;
}

static void crcr_reports_are_understood(void **state)
{
	struct job_report r;

	(void)state;
	assert_int_equal(
	    parse("{\"schema_version\":\"1\",\"status\":\"completed\",\"conclusion\":\"failure\","
		  "\"name\":\"CI\",\"url\":\"https://github.com/o/r/actions/runs/1\","
		  "\"job_name\":\"build\",\"check_run_id\":77,\"run_id\":12345678901,"
		  "\"run_attempt\":\"2\",\"started_at\":\"2026-01-01T00:00:00Z\","
		  "\"completed_at\":\"bogus\",\"test_results\":{\"passed\":3,\"failed\":1,"
		  "\"skipped\":0},\"artifact_url\":\"javascript:alert(1)\"}",
		&r, NULL),
	    0);
	assert_string_equal(r.workflow, "CI");
	assert_string_equal(r.name, "build");
	assert_string_equal(r.run_id, "12345678901");
	assert_int_equal(r.run_attempt, 2);
	assert_string_equal(r.check_run_id, "77");
	assert_int_equal(r.started_ms, INT64_C(1767225600000));
	assert_int_equal(r.completed_ms, 0);
	assert_true(r.has_counts);
	assert_int_equal(r.n_total, 4);
	assert_null(r.artifact_url);
	job_report_release(&r);
}

static void counts_that_cannot_be_are_dropped(void **state)
{
	static const char *const table[] = {
	    "{\"passed\":9223372036854775807,\"failed\":1}",
	    "{\"passed\":9223372036854775807,\"total\":1}",
	    "{\"passed\":-9223372036854775808,\"failed\":-1,\"skipped\":1}",
	    "{\"failed\":-1}",
	    "{\"passed\":1000000000,\"failed\":1}",
	    "{\"total\":1000000001}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *text = xasprintf("{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,"
				       "\"test_results\":%s}",
		    table[i]);
		struct job_report r;

		assert_int_equal(parse(text, &r, NULL), 0);
		assert_false(r.has_counts);
		job_report_release(&r);
		free(text);
	}
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *text, *why;
	} table[] = {
	    {"[]", "workflow must be an object"},
	    {"{}", "workflow.status is missing"},
	    {"{\"status\":1}", "workflow.status must be in_progress or completed"},
	    {"{\"status\":\"completed\"}", "workflow.name is missing"},
	    {"{\"status\":\"completed\",\"name\":5}", "workflow.name must be text"},
	    {"{\"status\":\"completed\",\"name\":\"\\n\\u0007\"}", NULL},
	    {"{\"status\":\"completed\",\"name\":\"a\"}", "workflow.run_id is missing"},
	    {"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":[]}",
		"workflow.run_id must be text or a whole number"},
	    {"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"tests\":{}}",
		"workflow.tests must be an array"},
	    {"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"tests\":[{\"suite\":\"m\","
	     "\"name\":\"x\",\"status\":\"PASS\"},{\"suite\":\"m\",\"name\":\"x\",\"status\":"
	     "\"OK\"}]}",
		"workflow.tests[1].status must be FAIL, ERROR, MISS, PASS, DONE or SKIP"},
	    {"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"tests\":[{\"suite\":\"m\"}]}",
		"workflow.tests[0].name is missing"},
	    {"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"tests\":[{\"suite\":\"m\","
	     "\"name\":\"x\",\"status\":\"PASS\",\"duration\":-1}]}",
		"workflow.tests[0].duration must be a number of seconds"},
	    {"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"tests\":[{\"suite\":\"m\","
	     "\"name\":\" \\n\",\"status\":\"PASS\"}]}",
		"workflow.tests[0].name is empty"},
	    {"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"tests\":[{\"suite\":\"m\","
	     "\"name\":\"x\",\"status\":\"FAIL\",\"trace\":[\"line\"]}]}",
		"workflow.tests[0].trace must be text"},
	    {"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"tests\":[{\"suite\":\"m\","
	     "\"name\":\"x\",\"status\":\"FAIL\",\"number\":{\"value\":1,\"unit\":2}}]}",
		"workflow.tests[0].number.unit must be text"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct error why = {0};
		struct job_report r;
		int rc = parse(table[i].text, &r, &why);

		if (table[i].why) {
			assert_int_equal(rc, ERR_INVALID);
			assert_string_equal(why.text, table[i].why);
		}
		job_report_release(&r);
	}
}

/* One more than are kept, the red one last. */
static void of_too_many_tests_the_worst_are_kept(void **state)
{
	struct buf text = BUF_INIT(4 << 20);
	struct job_report r;

	(void)state;
	buf_appendf(&text, "{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"tests\":[");
	for (int i = 0; i <= REPORT_TESTS_MAX; i++)
		buf_appendf(&text, "%s{\"suite\":\"s\",\"name\":\"t%d\",\"status\":\"%s\"}",
		    i ? "," : "", i, i < REPORT_TESTS_MAX ? i % 2 ? "PASS" : "SKIP" : "FAIL");
	buf_appendf(&text, "]}");
	assert_int_equal(parse(buf_str(&text), &r, NULL), 0);
	assert_int_equal(r.n_tests, REPORT_TESTS_MAX);
	assert_int_equal(r.n_cut, 1);
	assert_string_equal(r.tests[0].name, "t0");
	assert_string_equal(r.tests[REPORT_TESTS_MAX - 2].name, "t19998");
	assert_string_equal(r.tests[REPORT_TESTS_MAX - 1].name, "t20000");
	job_report_release(&r);
	buf_release(&text);
}

static void what_is_ignored_makes_no_other_report(void **state)
{
	struct job_report r, s;

	(void)state;
	assert_int_equal(
	    parse(
		"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"conclusion\":\"success\","
		"\"artifact_url\":5,\"test_results\":\"many\"}",
		&r, NULL),
	    0);
	assert_int_equal(
	    parse(
		"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"conclusion\":\"success\"}",
		&s, NULL),
	    0);
	assert_memory_equal(r.digest, s.digest, sizeof(r.digest));
	job_report_release(&r);
	job_report_release(&s);
}

static void vendor_text_is_cut_and_cleaned(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	struct job_report r;

	(void)state;
	buf_append_str(&text,
	    "{\"status\":\"completed\",\"name\":\"a\\u0001b\\nc\",\"run_id\":\"r\","
	    "\"conclusion\":\"failure\",\"tests\":[{\"suite\":\"model\","
	    "\"name\":\"x\",\"status\":\"FAIL\",\"message\":\"");
	for (int i = 0; i < 1000; i++)
		buf_append_str(&text, "\u00e9\u20ac");
	buf_append_str(&text, "\",\"number\":{\"value\":31.2,\"unit\":\"tokens/s\"}}]}");
	assert_int_equal(parse(buf_str(&text), &r, NULL), 0);
	assert_string_equal(r.workflow, "ab c");
	assert_true(strlen(r.tests[0].message) <= REPORT_MESSAGE_MAX_BYTES);
	assert_true(utf8_is_valid(r.tests[0].message, strlen(r.tests[0].message)));
	assert_true(r.tests[0].has_number);
	assert_string_equal(r.tests[0].unit, "tokens/s");
	job_report_release(&r);
	buf_release(&text);
}

static void a_trace_keeps_its_lines_and_a_message_does_not(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	struct job_report r;

	(void)state;
	buf_append_str(&text,
	    "{\"status\":\"completed\",\"name\":\"a\",\"run_id\":\"r\",\"conclusion\":\"failure\","
	    "\"message\":\"step "
	    "'test'\\nfailed\\u001b[31m\",\"tests\":[{\"suite\":\"model\",\"name\":\"x\","
	    "\"status\":\"FAIL\",\"message\":null,\"trace\":\"\\n\\u0001\\nfirst\\r\\n\\tsecond\\n "
	    "\\n\"},"
	    "{\"suite\":\"model\",\"name\":\"y\",\"status\":\"FAIL\",\"message\":\"\",\"trace\":"
	    "\"a");
	for (int i = 0; i < 3000; i++)
		buf_append_str(&text, "\u20ac");
	buf_append_str(&text, "\"}]}");
	assert_int_equal(parse(buf_str(&text), &r, NULL), 0);
	assert_string_equal(r.message, "step 'test' failed[31m");
	assert_string_equal(r.tests[0].trace, "first\n\tsecond");
	assert_null(r.tests[0].message);
	assert_null(r.tests[1].message);
	assert_int_equal(strlen(r.tests[1].trace), REPORT_TRACE_MAX_BYTES);
	assert_true(utf8_is_valid(r.tests[1].trace, REPORT_TRACE_MAX_BYTES));
	job_report_release(&r);
	buf_clear(&text);
	buf_append_str(&text,
	    "{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"message\":[\"ill-typed\"]}");
	assert_int_equal(parse(buf_str(&text), &r, NULL), 0);
	assert_null(r.message);
	job_report_release(&r);
	buf_release(&text);
}

static void times_do_not_change_the_digest(void **state)
{
	struct job_report a, b, c;

	(void)state;
	parse("{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"conclusion\":\"success\","
	      "\"completed_at\":\"2026-01-01T00:00:00Z\"}",
	    &a, NULL);
	parse(
	    "{\"run_id\":\"1\",\"status\":\"completed\",\"name\":\"a\",\"conclusion\":\"success\","
	    "\"completed_at\":\"2026-02-01T00:00:00Z\"}",
	    &b, NULL);
	parse("{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"conclusion\":\"failure\"}",
	    &c, NULL);
	assert_memory_equal(a.digest, b.digest, sizeof(a.digest));
	assert_memory_not_equal(a.digest, c.digest, sizeof(a.digest));
	job_report_release(&a);
	job_report_release(&b);
	job_report_release(&c);
}

static void tokens_are_bound_and_end(void **state)
{
	char *token = callback_token_make("key", 3, "dispatch1", "npu", 10000), *who, *bad;

	(void)state;
	assert_int_equal(callback_token_check("key", 3, token, "dispatch1", 9000, &who), 0);
	assert_string_equal(who, "npu");
	free(who);
	assert_int_equal(
	    callback_token_check("key", 3, token, "dispatch1", 11000, &who), ERR_TIMEOUT);
	assert_int_equal(callback_token_check("key", 3, token, "dispatch2", 9000, &who), ERR_AUTH);
	assert_int_equal(callback_token_check("kez", 3, token, "dispatch1", 9000, &who), ERR_AUTH);
	assert_int_equal(callback_token_check("key", 3, "", "dispatch1", 9000, &who), ERR_AUTH);
	for (size_t i = 0; i < strlen(token); i++) {
		bad = xstrdup(token);
		bad[i] = bad[i] == 'x' ? 'y' : 'x';
		assert_int_equal(
		    callback_token_check("key", 3, bad, "dispatch1", 9000, &who), ERR_AUTH);
		bad[i] = '\0';
		assert_int_equal(
		    callback_token_check("key", 3, bad, "dispatch1", 9000, &who), ERR_AUTH);
		free(bad);
	}
	free(token);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(crcr_reports_are_understood),
	    cmocka_unit_test(counts_that_cannot_be_are_dropped),
	    cmocka_unit_test(mistakes_are_named),
	    cmocka_unit_test(of_too_many_tests_the_worst_are_kept),
	    cmocka_unit_test(what_is_ignored_makes_no_other_report),
	    cmocka_unit_test(vendor_text_is_cut_and_cleaned),
	    cmocka_unit_test(a_trace_keeps_its_lines_and_a_message_does_not),
	    cmocka_unit_test(times_do_not_change_the_digest),
	    cmocka_unit_test(tokens_are_bound_and_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
