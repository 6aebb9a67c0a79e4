#include <setjmp.h>

#include <cmocka.h>

#include "runners/submission.h"

#define GUID             "0b989ba4-242f-11e5-81e1-c7b6966d2516"
#define DISPATCH         "abcdefghijklmnopqrstuvwxyz"
#define SHA              "AbcdeF0123456789abcdef0123456789abcdef01"
#define WORKFLOW(status) "\"workflow\":{\"status\":\"" status "\",\"name\":\"ci\",\"run_id\":7}"

static void parse_ok(const char *body, struct callback_request *ret)
{
	struct error e = {0};
	int err = callback_request_parse(body, strlen(body), ret, &e);

	if (err)
		fail_msg("%s: %s", e.text, body);
}

static void test_reads_crcrs_body(void **state)
{
	struct callback_request r;

	(void)state;
	parse_ok("{\"event_type\":\"pull_request\",\"delivery_id\":\"" GUID "\",\"payload\":{\"number\":1},"
		 "\"outpost\":{\"dispatch_id\":\"" DISPATCH "\"}," WORKFLOW("in_progress") "}",
	    &r);
	assert_string_equal(r.delivery_id, GUID);
	assert_string_equal(r.dispatch_id, DISPATCH);
	assert_false(r.is_nightly);
	assert_int_equal(r.report.status, JOB_IN_PROGRESS);
	assert_string_equal(r.report.run_id, "7");
	callback_request_release(&r);
	parse_ok("{\"delivery_id\":\"" GUID "\"," WORKFLOW("completed") "}", &r);
	assert_null(r.dispatch_id);
	callback_request_release(&r);
}

static void test_finds_the_echoed_dispatch(void **state)
{
	static const struct {
		const char *field, *expected;
	} table[] = {
	    {"\"client_payload\":{\"outpost\":{\"dispatch_id\":\"" DISPATCH "\"}}", DISPATCH},
	    {"\"payload\":{\"outpost\":{\"dispatch_id\":\"" DISPATCH "\"}}", DISPATCH},
	    {"\"outpost\":{\"dispatch_id\":\"" DISPATCH "\"},\"payload\":{\"outpost\":{\"dispatch_id\":7}}", DISPATCH},
	    {"\"outpost\":{\"dispatch_id\":\"" DISPATCH "a\"}", NULL},
	    {"\"outpost\":{\"dispatch_id\":\"ABCDEFGHIJKLMNOPQRSTUVWXYZ\"}", NULL},
	    {"\"outpost\":{\"dispatch_id\":[]}", NULL},
	    {"\"outpost\":\"" DISPATCH "\",\"payload\":[],\"client_payload\":null", NULL},
	    {"\"dispatch_id\":\"" DISPATCH "\"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *body = xasprintf("{\"delivery_id\":\"" GUID "\",%s," WORKFLOW("completed") "}", table[i].field);
		struct callback_request r;

		parse_ok(body, &r);
		if (table[i].expected)
			assert_string_equal(r.dispatch_id, table[i].expected);
		else
			assert_null(r.dispatch_id);
		callback_request_release(&r);
		free(body);
	}
}

#define LOWER "abcdef0123456789abcdef0123456789abcdef01"
#define OTHER "1111111111111111111111111111111111111111"

static void test_knows_self_reports(void **state)
{
	static const struct {
		const char *fields;
		bool is_nightly, is_self_report;
		const char *tested;
	} table[] = {
	    {"\"event_type\":\"nightly\",\"delivery_id\":\"" SHA "\"", true, true, LOWER},
	    {"\"event_type\":\"periodic\",\"delivery_id\":\"" SHA "\"", true, true, LOWER},
	    {"\"event_type\":\"nightly\",\"delivery_id\":\"" GUID "\"", true, false, ""},
	    {"\"event_type\":\"push\",\"delivery_id\":\"" SHA "\"", false, false, ""},
	    {"\"event_type\":7,\"delivery_id\":\"" SHA "\"", false, false, ""},
	    {"\"event_type\":null,\"delivery_id\":\"" SHA "\"", false, false, ""},
	    {"\"event_type\":\"nightly\",\"delivery_id\":\"x" SHA "\"", true, false, ""},
	    /* vLLM's Buildkite pipeline */
	    {"\"event_type\":\"nightly\",\"delivery_id\":\"buildkite-89983-" GUID "\",\"pytorch_head_sha\":\"" SHA "\"",
		true, false, LOWER},
	    {"\"event_type\":\"nightly\",\"delivery_id\":\"a/b_2026.09:1\","
	     "\"payload\":{\"head_sha\":\"" SHA "\",\"after\":\"" OTHER "\"}",
		true, false, LOWER},
	    {"\"event_type\":\"nightly\",\"delivery_id\":\"a\",\"pytorch_head_sha\":\"main\","
	     "\"payload\":{\"head_sha\":7,\"after\":\"" OTHER "\"}",
		true, false, OTHER},
	    {"\"event_type\":\"nightly\",\"delivery_id\":\"a\","
	     "\"payload\":{\"pull_request\":{\"head\":{\"sha\":\"" OTHER "\"}}}",
		true, false, OTHER},
	    {"\"event_type\":\"nightly\",\"delivery_id\":\"" SHA "\",\"pytorch_head_sha\":\"" OTHER "\"", true, true,
		LOWER},
	    {"\"event_type\":\"pull_request\",\"delivery_id\":\"a\",\"pytorch_head_sha\":\"" OTHER "\"", false, false,
		""},
	    {"\"event_type\":\"nightly\",\"delivery_id\":\"a\",\"pytorch_head_sha\":[],"
	     "\"payload\":{\"head_sha\":\"\",\"after\":null,\"pull_request\":[]}",
		true, false, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *body = xasprintf("{%s," WORKFLOW("completed") "}", table[i].fields);
		struct callback_request r;

		parse_ok(body, &r);
		assert_int_equal(r.is_nightly, table[i].is_nightly);
		assert_int_equal(callback_request_is_self_report(&r), table[i].is_self_report);
		assert_string_equal(r.tested_sha, table[i].tested);
		callback_request_release(&r);
		free(body);
	}
}

static void test_names_the_mistake(void **state)
{
	static const struct {
		const char *body, *names;
	} table[] = {
	    {"", "body"},
	    {"[]", "body"},
	    {"7", "body"},
	    {"{", "body"},
	    {"{\"delivery_id\":\"a\",\"delivery_id\":\"b\"}", "body"},
	    {"{" WORKFLOW("completed") "}", "delivery_id is missing"},
	    {"{\"delivery_id\":7," WORKFLOW("completed") "}", "delivery_id"},
	    {"{\"delivery_id\":\"\"," WORKFLOW("completed") "}", "delivery_id"},
	    {"{\"delivery_id\":\"a b\"," WORKFLOW("completed") "}", "delivery_id"},
	    {"{\"delivery_id\":\"" GUID GUID GUID GUID "\"," WORKFLOW("completed") "}", "delivery_id"},
	    {"{\"delivery_id\":\"" GUID "\"}", "workflow is missing"},
	    {"{\"delivery_id\":\"" GUID "\",\"workflow\":\"ci\"}", "workflow"},
	    {"{\"delivery_id\":\"" GUID "\",\"workflow\":{}}", "workflow.status"},
	    {"{\"delivery_id\":\"" GUID "\"," WORKFLOW("queued") "}", "workflow.status"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct callback_request r;
		struct error e = {0};

		assert_int_equal(callback_request_parse(table[i].body, strlen(table[i].body), &r, &e), ERR_INVALID);
		if (!strstr(e.text, table[i].names))
			fail_msg("%s: %s", table[i].body, e.text);
		callback_request_release(&r);
	}
}

static void test_reads_a_bare_workflow(void **state)
{
	static const char good[] = "{\"status\":\"completed\",\"name\":\"ci\",\"run_id\":\"b-7\"}";
	struct callback_request r;
	struct error e = {0};

	(void)state;
	assert_int_equal(callback_request_parse_workflow(good, strlen(good), &r, &e), 0);
	assert_string_equal(r.report.run_id, "b-7");
	callback_request_release(&r);
	assert_int_equal(callback_request_parse_workflow("[]", 2, &r, &e), ERR_INVALID);
	callback_request_release(&r);
	assert_int_equal(callback_request_parse_workflow("{}", 2, &r, NULL), ERR_INVALID);
	callback_request_release(&r);
}

/* The usual text needs no tree. The escaped key is the same key, and needs one. */
static void test_the_digest_does_not_depend_on_how_the_tests_are_read(void **state)
{
	static const char *const keys[] = {"tests", "t\\u0065sts"};
	struct callback_request r[ARRAY_LEN(keys)];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		char *body =
		    xasprintf("{\"delivery_id\":\"" GUID "\",\"workflow\":{\"status\":\"completed\",\"name\":\"ci\","
			      "\"run_id\":7,\"conclusion\":\"failure\",\"%s\":[{\"suite\":\"unit\",\"name\":\"a\","
			      "\"status\":\"FAIL\",\"duration\":1.50}]}}",
			keys[i]);

		parse_ok(body, &r[i]);
		assert_int_equal(r[i].report.n_tests, 1);
		assert_int_equal(r[i].report.texts != NULL, i == 0);
		free(body);
	}
	assert_memory_equal(r[0].report.digest, r[1].report.digest, SHA256_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		callback_request_release(&r[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_reads_crcrs_body),
	    cmocka_unit_test(test_finds_the_echoed_dispatch),
	    cmocka_unit_test(test_knows_self_reports),
	    cmocka_unit_test(test_names_the_mistake),
	    cmocka_unit_test(test_reads_a_bare_workflow),
	    cmocka_unit_test(test_the_digest_does_not_depend_on_how_the_tests_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
