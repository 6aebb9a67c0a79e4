#include <setjmp.h>

#include <cmocka.h>

#include "model/client_payload.h"
#include "model/job_report.h"
#include "secret_of.h"

static int parse(const char *text, struct job_report *r, struct error *e)
{
	json_t *v;
	int rc;

	assert_int_equal(json_parse(text, strlen(text), &v, NULL), 0);
	rc = job_report_parse(v, NULL, r, e);
	json_decref(v);
	return rc;
}

static void crcr_reports_are_read(void **state)
{
	struct job_report r;

	(void)state;
	assert_int_equal(parse("{\"schema_version\":\"1\",\"status\":\"completed\",\"conclusion\":\"failure\","
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

#define COMPLETED "{\"status\":\"completed\",\"name\":\"CI\",\"run_id\":1,"

/* test-infra#8545: the action's input is the text of an array; other senders send the array. */
static void failed_tests_of_crcr_are_rows(void **state)
{
	static const char *const keys[] = {"failed_tests_detail", "failed_tests_json", "failed_tests"};
	static const char list[] =
	    "[{\"name\":\"test_add\",\"classname\":\"test_ops.TestOps\",\"message\":\"1 != 2\\n\","
	    "\"stacktrace\":\"a\\nb\",\"duration\":1.5},"
	    "{\"name\":\"plain\"},{\"name\":\"same\",\"classname\":\"unit\",\"duration\":\"0.25\"},"
	    "{\"classname\":\"no name\"},{\"name\":\" \"},7,\"text\",null,"
	    "{\"name\":\"odd\",\"classname\":3,\"message\":{},\"stacktrace\":[],\"duration\":\"x\"}"
	    "]";
	json_t *as_text = json_string(list);
	char *quoted = json_dumps(as_text, JSON_ENCODE_ANY);

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(keys); i++) {
		char *text = xasprintf("%s\"%s\":%s}", COMPLETED, keys[i / 2], i % 2 ? quoted : list);
		struct job_report r;

		assert_int_equal(parse(text, &r, NULL), 0);
		assert_int_equal(r.n_tests, 4);
		assert_string_equal(r.tests[0].suite, "unit");
		assert_string_equal(r.tests[0].name, "test_ops.TestOps.test_add");
		assert_int_equal(r.tests[0].status, TEST_FAIL);
		assert_string_equal(r.tests[0].message, "1 != 2 ");
		assert_string_equal(r.tests[0].trace, "a\nb");
		assert_int_equal(r.tests[0].duration_ms, 1500);
		assert_string_equal(r.tests[1].name, "plain");
		assert_null(r.tests[1].message);
		assert_string_equal(r.tests[2].name, "same");
		assert_int_equal(r.tests[2].duration_ms, 250);
		assert_string_equal(r.tests[3].name, "odd");
		assert_int_equal(r.tests[3].duration_ms, -1);
		job_report_release(&r);
		free(text);
	}
	free(quoted);
	json_decref(as_text);
}

static void failed_tests_are_bounded_and_tests_count_before_them(void **state)
{
	static const char *const none[] = {"\"failed_tests\":3}", "\"failed_tests\":\"[{\"}", "\"failed_tests\":\"7\"}",
	    "\"failed_tests_detail\":\"\"}", "\"failed_tests\":[]}", "\"failed_tests_json\":{}}"};
	struct buf many = BUF_INIT(16 << 20);
	uint8_t digest[SHA256_BYTES];
	struct job_report r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		char *text = xasprintf("%s%s", COMPLETED, none[i]);

		assert_int_equal(parse(text, &r, NULL), 0);
		assert_int_equal(r.n_tests, 0);
		job_report_release(&r);
		free(text);
	}
	buf_append_str(&many, COMPLETED "\"failed_tests\":[");
	for (int i = 0; i < 1003; i++)
		buf_appendf(&many, "%s{\"name\":\"t%d\",\"message\":\"%01500d\",\"stacktrace\":\"%05000d\"}",
		    i ? "," : "", i, i, i);
	buf_append_str(&many, "]}");
	assert_int_equal(parse(buf_str(&many), &r, NULL), 0);
	assert_int_equal(r.n_tests, 1000);
	assert_int_equal(r.n_cut, 3);
	assert_int_equal(strlen(r.tests[999].message), 1024);
	assert_int_equal(strlen(r.tests[999].trace), 4096);
	job_report_release(&r);
	buf_release(&many);

	assert_int_equal(parse(COMPLETED "\"tests\":[{\"suite\":\"model\",\"name\":\"a\",\"status\":\"PASS\"}],"
					 "\"failed_tests\":[{\"name\":\"b\"}]}",
			     &r, NULL),
	    0);
	assert_int_equal(r.n_tests, 1);
	assert_string_equal(r.tests[0].name, "a");
	job_report_release(&r);
	assert_int_equal(parse(COMPLETED "\"tests\":[],\"failed_tests\":[{\"name\":\"b\"}]}", &r, NULL), 0);
	assert_int_equal(r.n_tests, 1);
	memcpy(digest, r.digest, sizeof(digest));
	job_report_release(&r);
	assert_int_equal(parse(COMPLETED "\"tests\":[],\"failed_tests\":[{\"name\":\"c\"}]}", &r, NULL), 0);
	assert_memory_not_equal(digest, r.digest, sizeof(digest));
	job_report_release(&r);
}

#define TRIAGE(rest) COMPLETED "\"triage_verdict\":{\"schema_version\":1,\"confidence\":\"high\"," rest "}}"

/* test-infra#8673 and its validation. */
static void a_triage_verdict_is_kept_whole_or_not_at_all(void **state)
{
	static const struct {
		const char *text, *expected;
	} table[] = {
	    {TRIAGE("\"category\":\"infra\",\"summary\":\" the disk \\u0007is full\\nagain "
		    "\",\"more\":1"),
		"{\"category\":\"infra\",\"confidence\":\"high\",\"summary\":\"the disk is "
		"full\\nagain\"}"},
	    {COMPLETED "\"triage_verdict\":{\"schema_version\":\"1\",\"confidence\":\"low\","
		       "\"category\":\"flake\",\"summary\":\"s\",\"evidence\":null}}",
		"{\"category\":\"flake\",\"confidence\":\"low\",\"summary\":\"s\"}"},
	    {TRIAGE("\"category\":\"upstream\",\"summary\":\"s\",\"suspected_upstream\":{\"pr\":7,"
		    "\"commit\":\"abcdef0\",\"reason\":\"it moved\"},\"reproduced_on_retry\":true,"
		    "\"analyzer\":{\"name\":\"n\",\"model\":\"m\"},\"analyzed_at\":\"2026-09-01T10:"
		    "00:00Z\","
		    "\"evidence\":[{\"job\":\"j\",\"test\":\"t\",\"excerpt\":\"a\\nb\","
		    "\"log_url\":\"https://x.example/l?a=@\"}]"),
		"{\"category\":\"upstream\",\"confidence\":\"high\",\"summary\":\"s\","
		"\"suspected_upstream\":{\"pr\":7,\"commit\":\"abcdef0\",\"reason\":\"it moved\"},"
		"\"evidence\":[{\"job\":\"j\",\"test\":\"t\",\"excerpt\":\"a\\nb\","
		"\"log_url\":\"https://x.example/"
		"l?a=@\"}],\"analyzer\":{\"name\":\"n\",\"model\":\"m\"},"
		"\"reproduced_on_retry\":true,\"analyzed_at\":\"2026-09-01T10:00:00Z\"}"},
	    {TRIAGE("\"category\":\"unknown\",\"summary\":\"s\",\"analyzed_at\":\"2026-09-01\""),
		"{\"category\":\"unknown\",\"confidence\":\"high\",\"summary\":\"s\","
		"\"analyzed_at\":\"2026-09-01\"}"},
	    /* each of these breaks a rule */
	    {TRIAGE("\"category\":\"nobody\",\"summary\":\"s\""), NULL},
	    {TRIAGE("\"category\":\"infra\""), NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":\" \""), NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":true"), NULL},
	    {COMPLETED "\"triage_verdict\":{\"schema_version\":2,\"confidence\":\"high\","
		       "\"category\":\"infra\",\"summary\":\"s\"}}",
		NULL},
	    {COMPLETED "\"triage_verdict\":{\"schema_version\":1,\"confidence\":\"sure\","
		       "\"category\":\"infra\",\"summary\":\"s\"}}",
		NULL},
	    {COMPLETED "\"triage_verdict\":\"infra\"}", NULL},
	    {COMPLETED "\"triage_verdict\":[]}", NULL},
	    {TRIAGE("\"category\":\"backend\",\"summary\":\"s\",\"suspected_upstream\":{\"pr\":7}"), NULL},
	    {TRIAGE("\"category\":\"upstream\",\"summary\":\"s\",\"suspected_upstream\":{"
		    "\"reason\":\"r\"}"),
		NULL},
	    {TRIAGE("\"category\":\"upstream\",\"summary\":\"s\",\"suspected_upstream\":{\"pr\":"
		    "true}"),
		NULL},
	    {TRIAGE("\"category\":\"upstream\",\"summary\":\"s\",\"suspected_upstream\":{\"pr\":0}"), NULL},
	    {TRIAGE("\"category\":\"upstream\",\"summary\":\"s\",\"suspected_upstream\":{"
		    "\"commit\":\"main\"}"),
		NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":\"s\",\"evidence\":{}"), NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":\"s\",\"evidence\":[7]"), NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":\"s\",\"evidence\":[{\"log_url\":"
		    "\"javascript:alert(1)\"}]"),
		NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":\"s\",\"evidence\":[{\"log_url\":\"https://"
		    "github.com@evil.example/\"}]"),
		NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":\"s\",\"evidence\":[{\"log_url\":\"https://"
		    "x.example/ y\"}]"),
		NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":\"s\",\"reproduced_on_retry\":1"), NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":\"s\",\"analyzer\":\"me\""), NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":\"s\",\"analyzer\":{\"name\":1}"), NULL},
	    {TRIAGE("\"category\":\"infra\",\"summary\":\"s\",\"analyzed_at\":\"yesterday\""), NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct job_report r;

		assert_int_equal(parse(table[i].text, &r, NULL), 0);
		if (!table[i].expected && r.triage)
			fail_msg("%s gives %s", table[i].text, r.triage);
		if (table[i].expected)
			assert_string_equal(r.triage ? r.triage : "none", table[i].expected);
		job_report_release(&r);
	}
}

static void a_triage_verdict_is_cut_and_bounded(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	struct job_report r;
	json_t *v;

	(void)state;
	buf_append_str(&text, COMPLETED "\"triage_verdict\":{\"schema_version\":1,\"confidence\":\"low\","
					"\"category\":\"infra\",\"summary\":\"");
	for (int i = 0; i < 1200; i++)
		buf_append_str(&text, "\xc3\xa4");
	buf_append_str(&text, "\",\"evidence\":[");
	for (int i = 0; i < 12; i++)
		buf_appendf(&text, "%s{\"job\":\"j\",\"excerpt\":\"%01000d\"}", i ? "," : "", i);
	buf_append_str(&text, "]}}");
	assert_int_equal(parse(buf_str(&text), &r, NULL), 0);
	assert_non_null(r.triage);
	assert_int_equal(json_parse(r.triage, strlen(r.triage), &v, NULL), 0);
	assert_int_equal(json_string_length(json_object_get(v, "summary")), 2000);
	assert_int_equal(json_array_size(json_object_get(v, "evidence")), 10);
	json_decref(v);
	job_report_release(&r);
	buf_release(&text);

	text = (struct buf)BUF_INIT(1 << 20);
	buf_appendf(&text,
	    COMPLETED "\"triage_verdict\":{\"schema_version\":1,\"confidence\":\"low\","
		      "\"category\":\"infra\",\"summary\":\"s\",\"more\":\"%016384d\"}}",
	    0);
	assert_int_equal(parse(buf_str(&text), &r, NULL), 0);
	assert_null(r.triage);
	job_report_release(&r);
	buf_release(&text);
}

static void impossible_counts_are_dropped(void **state)
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
	    {"{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"tests\":{}}", "workflow.tests must be an array"},
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

/* One test more than the limit, with the red one last. */
static void the_worst_of_too_many_tests_are_kept(void **state)
{
	struct buf text = BUF_INIT(4 << 20);
	struct job_report r;

	(void)state;
	buf_appendf(&text, "{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"tests\":[");
	for (int i = 0; i <= REPORT_TESTS_MAX; i++)
		buf_appendf(&text, "%s{\"suite\":\"s\",\"name\":\"t%d\",\"status\":\"%s\"}", i ? "," : "", i,
		    i < REPORT_TESTS_MAX ? i % 2 ? "PASS" : "SKIP" : "FAIL");
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

static void ignored_fields_do_not_change_the_digest(void **state)
{
	struct job_report r, s;

	(void)state;
	assert_int_equal(parse("{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"conclusion\":\"success\","
			       "\"artifact_url\":5,\"test_results\":\"many\"}",
			     &r, NULL),
	    0);
	assert_int_equal(
	    parse("{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"conclusion\":\"success\"}", &s, NULL), 0);
	assert_memory_equal(r.digest, s.digest, sizeof(r.digest));
	job_report_release(&r);
	job_report_release(&s);
}

static void vendor_text_is_cut_and_cleaned(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	struct job_report r;

	(void)state;
	buf_append_str(&text, "{\"status\":\"completed\",\"name\":\"a\\u0001b\\nc\",\"run_id\":\"r\","
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
	buf_append_str(&text, "{\"status\":\"completed\",\"name\":\"a\",\"run_id\":\"r\",\"conclusion\":\"failure\","
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
	buf_append_str(&text, "{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"message\":[\"ill-typed\"]}");
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
	parse("{\"run_id\":\"1\",\"status\":\"completed\",\"name\":\"a\",\"conclusion\":\"success\","
	      "\"completed_at\":\"2026-02-01T00:00:00Z\"}",
	    &b, NULL);
	parse("{\"status\":\"completed\",\"name\":\"a\",\"run_id\":1,\"conclusion\":\"failure\"}", &c, NULL);
	assert_memory_equal(a.digest, b.digest, sizeof(a.digest));
	assert_memory_not_equal(a.digest, c.digest, sizeof(a.digest));
	job_report_release(&a);
	job_report_release(&b);
	job_report_release(&c);
}

/* An older version made the digest of a stored report from a tree, and the vendor may send that report again. */
static void the_digest_is_the_same_without_a_tree(void **state)
{
	static const char *const path[] = {"tests", NULL};
	static const char *const reports[] = {
	    COMPLETED "\"tests\":[{\"suite\":\"a\",\"name\":\"b\",\"status\":\"PASS\"}]}",
	    COMPLETED
	    "\"conclusion\":\"failure\",\"tests\" : [ {\"status\":\"FAIL\",\"name\":\"b\",\"suite\":\"a\","
	    "\"message\":\"\\u00e9\\n\",\"duration\":7},{\"suite\":\"a\",\"name\":\"c\",\"status\":\"PASS\"}],"
	    "\"test_results\":{\"passed\":1},\"artifact_url\":\"https://example.org/a\",\"z\":1}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(reports); i++) {
		struct job_report with_tree, without;
		struct test_array read;
		json_t *rest;

		assert_int_equal(parse(reports[i], &with_tree, NULL), 0);
		assert_true(test_array_read(reports[i], strlen(reports[i]), path, true, &read));
		assert_int_equal(json_parse(read.rest.data, read.rest.len, &rest, NULL), 0);
		assert_int_equal(job_report_parse(rest, &read, &without, NULL), 0);
		assert_int_equal(without.n_tests, with_tree.n_tests);
		assert_memory_equal(with_tree.digest, without.digest, sizeof(without.digest));
		job_report_release(&with_tree);
		job_report_release(&without);
		test_array_release(&read);
		json_decref(rest);
	}
}

static void tokens_are_bound_to_a_dispatch_and_expire(void **state)
{
	struct secret *key = secret_of("key"), *other = secret_of("kez");
	char *token = callback_token_make(key, "dispatch1", "npu", 10000), *who, *bad;

	(void)state;
	assert_int_equal(callback_token_check(key, token, "dispatch1", 9000, &who), 0);
	assert_string_equal(who, "npu");
	free(who);
	assert_int_equal(callback_token_check(key, token, "dispatch1", 11000, &who), ERR_TIMEOUT);
	assert_int_equal(callback_token_check(key, token, "dispatch2", 9000, &who), ERR_AUTH);
	assert_int_equal(callback_token_check(other, token, "dispatch1", 9000, &who), ERR_AUTH);
	assert_int_equal(callback_token_check(key, "", "dispatch1", 9000, &who), ERR_AUTH);
	for (size_t i = 0; i < strlen(token); i++) {
		bad = xstrdup(token);
		bad[i] = bad[i] == 'x' ? 'y' : 'x';
		assert_int_equal(callback_token_check(key, bad, "dispatch1", 9000, &who), ERR_AUTH);
		bad[i] = '\0';
		assert_int_equal(callback_token_check(key, bad, "dispatch1", 9000, &who), ERR_AUTH);
		free(bad);
	}
	free(token);
	secret_unref(key);
	secret_unref(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(crcr_reports_are_read),
	    cmocka_unit_test(failed_tests_of_crcr_are_rows),
	    cmocka_unit_test(failed_tests_are_bounded_and_tests_count_before_them),
	    cmocka_unit_test(a_triage_verdict_is_kept_whole_or_not_at_all),
	    cmocka_unit_test(a_triage_verdict_is_cut_and_bounded),
	    cmocka_unit_test(impossible_counts_are_dropped),
	    cmocka_unit_test(mistakes_are_named),
	    cmocka_unit_test(the_worst_of_too_many_tests_are_kept),
	    cmocka_unit_test(ignored_fields_do_not_change_the_digest),
	    cmocka_unit_test(vendor_text_is_cut_and_cleaned),
	    cmocka_unit_test(a_trace_keeps_its_lines_and_a_message_does_not),
	    cmocka_unit_test(times_do_not_change_the_digest),
	    cmocka_unit_test(the_digest_is_the_same_without_a_tree),
	    cmocka_unit_test(tokens_are_bound_to_a_dispatch_and_expire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
