#include <setjmp.h>

#include <cmocka.h>

#include "model/client_payload.h"

static const char *const NAMES[] = {"npu", "hpu", NULL};
static const struct outpost_block BLOCK = {
    .dispatch_id = "abc",
    .action = "labeled",
    .accelerators = NAMES,
    .callback_url = "https://o/github/callback",
    .change_url = "https://o/pulls/7",
};

/* A PR event as GitHub shapes it, with a body text of n bytes and n_urls template URLs. */
static char *pull_event(size_t body_bytes, int n_urls)
{
	char *text = xmalloc(body_bytes + 1), *json;
	json_t *v, *repository;

	memset(text, 'b', body_bytes);
	text[body_bytes] = '\0';
	v = json_pack("{s:s, s:i, s:{s:i, s:s, s:s, s:{s:s, s:s}, s:[]}, s:{s:s}}", "action", "labeled", "number", 7,
	    "pull_request", "number", 7, "body", text, "html_url", "https://g/7", "head", "sha",
	    "0123456789012345678901234567890123456789", "ref", "topic", "labels", "repository", "full_name",
	    "pytorch/pytorch");
	repository = json_object_get(v, "repository");
	for (int i = 0; i < n_urls; i++) {
		char key[32];

		snprintf(key, sizeof(key), "x%d_url", i);
		json_object_set_new(
		    repository, key, json_string("https://api.github.com/repos/pytorch/pytorch/keys{/key_id}"));
	}
	json = json_text(v);
	json_decref(v);
	free(text);
	return json;
}

static json_t *build(const char *body, const char *sent_action, bool is_bounded, size_t *ret_bytes)
{
	struct client_payload *p;
	json_t *v;
	char *text;

	assert_int_equal(
	    client_payload_new("pull_request", "guid-1", sent_action, body, strlen(body), NULL, &p, NULL), 0);
	assert_int_equal(client_payload_text(p, &BLOCK, is_bounded, &text, ret_bytes), 0);
	assert_int_equal(strlen(text), *ret_bytes);
	assert_int_equal(json_parse(text, *ret_bytes, &v, NULL), 0);
	free(text);
	client_payload_free(p);
	return v;
}

static void small_bodies_go_unchanged(void **state)
{
	char *body = pull_event(100, 3);
	json_t *original, *v;
	size_t n;

	(void)state;
	assert_int_equal(json_parse(body, strlen(body), &original, NULL), 0);
	v = build(body, "", true, &n);
	assert_true(json_equal(json_object_get(v, "payload"), original));
	assert_string_equal(json_get_str(v, "event_type"), "pull_request");
	assert_string_equal(json_get_str(v, "delivery_id"), "guid-1");
	assert_int_equal(json_object_size(v), 4);
	assert_null(json_at(v, "outpost", "truncated", NULL));
	assert_string_equal(json_string_value(json_at(v, "outpost", "action", NULL)), "labeled");
	assert_int_equal(json_array_size(json_at(v, "outpost", "accelerators", NULL)), 2);
	json_decref(v);
	v = build(body, "synchronize", true, &n);
	assert_string_equal(json_string_value(json_at(v, "payload", "action", NULL)), "synchronize");
	json_decref(v);
	json_decref(original);
	free(body);
}

static void assert_essentials(const json_t *v, size_t n)
{
	const json_t *payload = json_object_get(v, "payload");

	assert_true(n <= CLIENT_PAYLOAD_MAX_BYTES);
	assert_true(json_is_true(json_at(v, "outpost", "truncated", NULL)));
	assert_string_equal(json_get_str(payload, "action"), "synchronize");
	assert_int_equal(json_integer_value(json_at(payload, "pull_request", "number", NULL)), 7);
	assert_int_equal(strlen(json_string_value(json_at(payload, "pull_request", "head", "sha", NULL))), 40);
	assert_string_equal(json_string_value(json_at(payload, "repository", "full_name", NULL)), "pytorch/pytorch");
}

static void long_texts_are_cut_first(void **state)
{
	char *body = pull_event(70000, 3);
	size_t n;
	json_t *v;

	(void)state;
	v = build(body, "synchronize", true, &n);
	assert_essentials(v, n);
	assert_int_equal(strlen(json_string_value(json_at(v, "payload", "pull_request", "body", NULL))), 256);
	assert_non_null(json_at(v, "payload", "repository", "x0_url", NULL));
	json_decref(v);
	v = build(body, "synchronize", false, &n);
	assert_true(n > 70000);
	json_decref(v);
	free(body);
}

static void template_urls_are_dropped_next(void **state)
{
	char *body = pull_event(100, 1000);
	size_t n;
	json_t *v;

	(void)state;
	v = build(body, "synchronize", true, &n);
	assert_essentials(v, n);
	assert_null(json_at(v, "payload", "repository", "x0_url", NULL));
	assert_string_equal(json_string_value(json_at(v, "payload", "pull_request", "html_url", NULL)), "https://g/7");
	json_decref(v);
	free(body);
}

static void only_essential_fields_stay_in_the_end(void **state)
{
	struct buf body = BUF_INIT(1 << 20);
	char *event = pull_event(10, 0);
	size_t n;
	json_t *v;

	(void)state;
	buf_append(&body, event, strlen(event) - 1);
	buf_append_str(&body, ",\"unknown\":[");
	for (int i = 0; i < 20000; i++)
		buf_appendf(&body, "%s%d", i ? "," : "", i);
	buf_append_str(&body, "]}");
	v = build(buf_str(&body), "synchronize", true, &n);
	assert_essentials(v, n);
	assert_null(json_at(v, "payload", "unknown", NULL));
	json_decref(v);
	buf_release(&body);
	free(event);
}

static void many_targets_share_one_payload(void **state)
{
	char *body = pull_event(59700, 0), *text;
	const char *many[400];
	struct outpost_block big = BLOCK;
	struct client_payload *p;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(many) - 1; i++)
		many[i] = "an-accelerator";
	many[ARRAY_LEN(many) - 1] = NULL;
	big.accelerators = many;
	assert_int_equal(client_payload_new("pull_request", "g", "opened", body, strlen(body), NULL, &p, NULL), 0);
	/* the large text is cut, and a small one after it is complete */
	assert_int_equal(client_payload_text(p, &big, true, &text, &n), 0);
	assert_non_null(strstr(text, "\"truncated\":true"));
	free(text);
	client_payload_free(p);
	free(body);
}

/* An experiment of n tests with hostile names of some 310 bytes, and its body. */
static int build_experiment(size_t n_tests, const char *environment, bool is_bounded, json_t **ret, size_t *ret_bytes)
{
	static const char BODY[] = "{\"repository\":{\"full_name\":\"pytorch/pytorch\"},\"head_sha\":"
				   "\"0123456789012345678901234567890123456789\"}";
	struct experiment_request request = {.id = 9,
	    .of = (char *)"d1",
	    .side = EXPERIMENT_BASE,
	    .sha = (char *)"0123456789012345678901234567890123456789",
	    .tests = xcalloc(n_tests + 1, sizeof(char *)),
	    .jobs = (char *[]){(char *)"linux \"a\"", NULL},
	    .environment = (char *)environment};
	struct outpost_block block = BLOCK;
	struct client_payload *p;
	char *text;
	int rc;

	for (size_t i = 0; i < n_tests; i++)
		request.tests[i] = xasprintf("unit/%0300zu\"$(x)`", i);
	block.experiment = &request;
	rc = client_payload_new("experiment", "g", "experiment", BODY, strlen(BODY), NULL, &p, NULL);
	assert_int_equal(rc, 0);
	rc = client_payload_text(p, &block, is_bounded, &text, ret_bytes);
	*ret = NULL;
	if (!rc)
		assert_int_equal(json_parse(text, *ret_bytes, ret, NULL), 0);
	free(text);
	client_payload_free(p);
	strv_free(request.tests);
	return rc;
}

static void an_experiment_names_commit_and_tests(void **state)
{
	const json_t *e;
	json_t *v;
	size_t n;

	(void)state;
	assert_int_equal(build_experiment(50, "{\"device\":\"910B\"}", true, &v, &n), 0);
	assert_string_equal(json_get_str(v, "event_type"), "experiment");
	assert_string_equal(json_string_value(json_at(v, "payload", "action", NULL)), "experiment");
	assert_null(json_at(v, "outpost", "truncated", NULL));
	e = json_at(v, "outpost", "experiment", NULL);
	assert_int_equal(json_get_int(e, "id", 0), 9);
	assert_string_equal(json_get_str(e, "of"), "d1");
	assert_string_equal(json_get_str(e, "side"), "base");
	assert_string_equal(json_get_str(e, "sha"), "0123456789012345678901234567890123456789");
	assert_int_equal(json_array_size(json_object_get(e, "tests")), 50);
	assert_non_null(strstr(json_string_value(json_array_get(json_object_get(e, "tests"), 7)), "07\"$(x)`"));
	assert_string_equal(json_string_value(json_array_get(json_object_get(e, "jobs"), 0)), "linux \"a\"");
	assert_string_equal(json_string_value(json_at(e, "environment", "device", NULL)), "910B");
	assert_null(json_object_get(e, "truncated"));
	json_decref(v);
}

/* GitHub refuses more than 64 KB. Omitted tests do not run. */
static void a_list_of_too_many_tests_is_halved(void **state)
{
	const json_t *e;
	json_t *v;
	size_t n;

	(void)state;
	assert_int_equal(build_experiment(EXPERIMENT_TESTS_MAX, NULL, true, &v, &n), 0);
	assert_true(n <= CLIENT_PAYLOAD_MAX_BYTES);
	e = json_at(v, "outpost", "experiment", NULL);
	assert_int_equal(json_array_size(json_object_get(e, "tests")), EXPERIMENT_TESTS_MAX / 4);
	assert_true(json_is_true(json_object_get(e, "truncated")));
	assert_null(json_object_get(e, "environment"));
	assert_string_equal(
	    json_string_value(json_at(v, "payload", "head_sha", NULL)), "0123456789012345678901234567890123456789");
	json_decref(v);
	/* a webhook can carry all of them */
	assert_int_equal(build_experiment(EXPERIMENT_TESTS_MAX, NULL, false, &v, &n), 0);
	e = json_at(v, "outpost", "experiment", NULL);
	assert_int_equal(json_array_size(json_object_get(e, "tests")), EXPERIMENT_TESTS_MAX);
	assert_null(json_object_get(e, "truncated"));
	json_decref(v);
}

static void an_invalid_environment_is_left_out(void **state)
{
	static const char *const none[] = {"", "[1]", "{", "text", "{\"a\":1,\"a\":2}"};
	char *big = xmalloc(EXPERIMENT_ENVIRONMENT_MAX_BYTES + 16);
	json_t *v;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		assert_int_equal(build_experiment(1, none[i], true, &v, &n), 0);
		assert_null(json_at(v, "outpost", "experiment", "environment", NULL));
		json_decref(v);
	}
	snprintf(big, EXPERIMENT_ENVIRONMENT_MAX_BYTES + 16, "{\"a\":\"%0*d\"}", EXPERIMENT_ENVIRONMENT_MAX_BYTES, 1);
	assert_int_equal(build_experiment(1, big, true, &v, &n), 0);
	assert_null(json_at(v, "outpost", "experiment", "environment", NULL));
	json_decref(v);
	free(big);
}

static void a_body_that_is_not_an_object_is_refused(void **state)
{
	struct error why = {0};
	struct client_payload *p;

	(void)state;
	assert_int_equal(client_payload_new("push", "g", "", "[1]", 3, NULL, &p, &why), ERR_INVALID);
	assert_null(p);
	assert_int_equal(client_payload_new("push", "g", "", "{\"a\":1", 6, NULL, &p, NULL), ERR_INVALID);
	assert_int_equal(
	    client_payload_new("push", "g", "x", "{\"action\":1,\"action\":2}", 23, NULL, &p, NULL), ERR_INVALID);
}

/* Intake has checked the body, so it goes out byte for byte as GitHub wrote it. */
static void the_body_stays_as_it_is_except_its_action(void **state)
{
	static const struct {
		const char *body, *action, *sent;
	} cases[] = {
	    {"{\"a\":1.50,\"action\":\"labeled\",\"b\":{\"action\":\"x\"}}", "synchronize",
		"{\"a\":1.50,\"action\":\"synchronize\",\"b\":{\"action\":\"x\"}}"},
	    {"{\"a\":\"\\u00fc\\/\"}", "", "{\"a\":\"\\u00fc\\/\"}"},
	    {"{\"a\":1}", "closed", "{\"action\":\"closed\",\"a\":1}"},
	    {"{ }", "closed", "{\"action\":\"closed\" }"},
	    {"{\"\\u0061ction\" : 7 }", "closed", "{\"\\u0061ction\" : \"closed\" }"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *wanted = xasprintf(
			 "{\"event_type\":\"push\",\"delivery_id\":\"g\",\"payload\":%s,\"outpost\":", cases[i].sent),
		     *text;
		struct client_payload *p;
		size_t n;

		assert_int_equal(client_payload_new("push", "g", cases[i].action, cases[i].body, strlen(cases[i].body),
				     NULL, &p, NULL),
		    0);
		assert_int_equal(client_payload_text(p, &BLOCK, true, &text, &n), 0);
		text[strlen(wanted)] = '\0';
		assert_string_equal(text, wanted);
		client_payload_free(p);
		FREE_ALL(text, wanted);
	}
}

/* The caller that has checked the body and knows the place of its action gets the same text. */
static void a_checked_body_gives_the_same_text(void **state)
{
	static const char body[] = "{\"a\":1,\"action\": \"edited\",\"b\":{\"action\":2}}", other[] = "{\"a\":1}";
	const struct json_slice action = {strstr(body, "\"edited\""), strlen("\"edited\"")}, none = {NULL, 0};
	struct client_payload *p[4];
	char *text[4];
	size_t n;

	(void)state;
	assert_int_equal(client_payload_new("e", "g", "opened", body, strlen(body), NULL, &p[0], NULL), 0);
	assert_int_equal(client_payload_new("e", "g", "opened", body, strlen(body), &action, &p[1], NULL), 0);
	assert_int_equal(client_payload_new("e", "g", "opened", other, strlen(other), NULL, &p[2], NULL), 0);
	assert_int_equal(client_payload_new("e", "g", "opened", other, strlen(other), &none, &p[3], NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(p); i++) {
		assert_int_equal(client_payload_text(p[i], &BLOCK, true, &text[i], &n), 0);
		client_payload_free(p[i]);
	}
	assert_string_equal(text[0], text[1]);
	assert_string_equal(text[2], text[3]);
	FREE_ALL(text[0], text[1], text[2], text[3]);
	assert_int_equal(client_payload_new("e", "g", "", " {}", 3, &none, &p[0], NULL), ERR_INVALID);
}

static void a_body_that_must_be_cut_has_each_key_once(void **state)
{
	char *body = xasprintf("{\"a\":1,\"a\":\"%070000d\"}", 1), *text;
	struct client_payload *p;
	size_t n;

	(void)state;
	assert_int_equal(client_payload_new("push", "g", "", body, strlen(body), NULL, &p, NULL), 0);
	assert_int_equal(client_payload_text(p, &BLOCK, true, &text, &n), ERR_INVALID);
	assert_null(text);
	client_payload_free(p);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(small_bodies_go_unchanged),
	    cmocka_unit_test(the_body_stays_as_it_is_except_its_action),
	    cmocka_unit_test(a_checked_body_gives_the_same_text),
	    cmocka_unit_test(a_body_that_must_be_cut_has_each_key_once),
	    cmocka_unit_test(long_texts_are_cut_first),
	    cmocka_unit_test(template_urls_are_dropped_next),
	    cmocka_unit_test(only_essential_fields_stay_in_the_end),
	    cmocka_unit_test(many_targets_share_one_payload),
	    cmocka_unit_test(an_experiment_names_commit_and_tests),
	    cmocka_unit_test(a_list_of_too_many_tests_is_halved),
	    cmocka_unit_test(an_invalid_environment_is_left_out),
	    cmocka_unit_test(a_body_that_is_not_an_object_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
