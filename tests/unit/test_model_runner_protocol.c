#include <setjmp.h>

#include <cmocka.h>

#include "model/runner_protocol.h"

static const char CLAIM[] =
    "{\"name\": \"npu-17\", \"accelerator\": \"ascend-npu\", \"claim_id\": \"b3c1-9\", \"labels\": "
    "[\"npu\", \"910b\"], \"wait\": 30, \"version\": \"0.1.0\"}";

/* The offer in the documentation of the protocol, with one part replaced. */
static char *offer_with(const char *part, const char *instead)
{
	static const char OFFER[] = "{\"lease_id\": \"l1\", \"lease_ms\": 60000, \"attempt\": 1, \"job_id\": 42, "
				    "\"dispatch_id\": \"d1\", \"accelerator\": \"ascend-npu\", \"runner\": \"farm\", "
				    "\"run_id\": \"d1\", \"visibility\": \"public\", \"change\": {\"kind\": "
				    "\"pull_request\", \"repository\": \"pytorch/pytorch\", \"head_sha\": "
				    "\"0123456789012345678901234567890123456789\", \"number\": 151234, \"ref\": null, "
				    "\"title\": \"a title\", \"author\": \"alice\", \"base_ref\": \"main\", "
				    "\"base_sha\": \"9876543210987654321098765432109876543210\", \"event_type\": "
				    "\"pull_request\", \"action\": \"synchronize\", \"delivery_id\": \"g-1\", "
				    "\"change_url\": \"https://o/pulls/151234\"}}";
	const char *at = strstr(OFFER, part);

	assert_non_null(at);
	return xasprintf("%.*s%s%s", (int)(at - OFFER), OFFER, instead, at + strlen(part));
}

static void assert_offer_refused(const char *part, const char *instead, const char *why)
{
	char *text = offer_with(part, instead);
	struct lease_offer o;
	struct error e = {0};

	assert_int_equal(lease_offer_parse(text, strlen(text), &o, &e), ERR_INVALID);
	if (!strstr(e.text, why))
		fail_msg("\"%s\" does not say \"%s\"", e.text, why);
	free(text);
}

static void claims_are_read_back_unchanged(void **state)
{
	struct claim_request c, again;
	char *text;

	(void)state;
	assert_int_equal(claim_request_parse(CLAIM, strlen(CLAIM), &c, NULL), 0);
	assert_string_equal(c.name, "npu-17");
	assert_string_equal(c.claim_id, "b3c1-9");
	assert_string_equal(c.labels[1], "910b");
	assert_null(c.labels[2]);
	assert_int_equal(c.wait_s, 30);
	text = claim_request_text(&c);
	assert_int_equal(claim_request_parse(text, strlen(text), &again, NULL), 0);
	assert_string_equal(again.version, "0.1.0");
	assert_string_equal(again.accelerator, "ascend-npu");
	assert_int_equal(strv_len((const char *const *)again.labels), 2);
	free(text);
	claim_request_release(&c);
	claim_request_release(&again);
}

static void a_claim_needs_no_labels_and_no_wait(void **state)
{
	static const char text[] = "{\"name\": \"a\", \"claim_id\": \"b\"}";
	struct claim_request c;

	(void)state;
	assert_int_equal(claim_request_parse(text, strlen(text), &c, NULL), 0);
	assert_non_null(c.labels);
	assert_null(c.labels[0]);
	assert_null(c.version);
	assert_null(c.accelerator);
	assert_int_equal(c.wait_s, CLAIM_WAIT_MAX_S);
	claim_request_release(&c);
}

static void wrong_claims_name_the_field(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
	    {"[]", "the claim must be a JSON object"},
	    {"{", "line 1"},
	    {"{\"claim_id\": \"b\"}", "name is missing"},
	    {"{\"name\": 1, \"claim_id\": \"b\"}", "name must be text"},
	    {"{\"name\": \"a b\", \"claim_id\": \"b\"}", "name must be letters"},
	    {"{\"name\": \"a\", \"claim_id\": \"\"}", "claim_id must be 1 to 64 bytes, not 0"},
	    {"{\"name\": \"a\", \"claim_id\": \"../x\"}", "claim_id must be letters"},
	    {"{\"name\": \"a\", \"claim_id\": \"b\", \"wait\": 31}", "wait must be"},
	    {"{\"name\": \"a\", \"claim_id\": \"b\", \"wait\": \"1\"}", "wait must be"},
	    {"{\"name\": \"a\", \"claim_id\": \"b\", \"labels\": {}}", "labels must be"},
	    {"{\"name\": \"a\", \"claim_id\": \"b\", \"labels\": [\"x\", 1]}", "labels must be"},
	    {"{\"name\": \"a\", \"claim_id\": \"b\", \"labels\": [\"x\\u0007\"]}", "labels must be"},
	    {"{\"name\": \"a\", \"claim_id\": \"b\", \"name\": \"c\"}", "duplicate"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct claim_request c;
		struct error e = {0};

		assert_int_equal(claim_request_parse(wrong[i].text, strlen(wrong[i].text), &c, &e), ERR_INVALID);
		if (!strstr(e.text, wrong[i].why))
			fail_msg("\"%s\" does not say \"%s\"", e.text, wrong[i].why);
		assert_null(c.name);
		assert_null(c.labels);
	}
}

static void offers_are_read_back_unchanged(void **state)
{
	char *text = offer_with("", ""), *written, *rewritten;
	struct lease_offer o, again;

	(void)state;
	assert_int_equal(lease_offer_parse(text, strlen(text), &o, NULL), 0);
	assert_string_equal(o.lease_id, "l1");
	assert_int_equal(o.job_id, 42);
	assert_int_equal(o.kind, CHANGE_PULL_REQUEST);
	assert_int_equal(o.number, 151234);
	assert_null(o.ref);
	assert_string_equal(o.change_url, "https://o/pulls/151234");
	written = lease_offer_text(&o);
	assert_int_equal(lease_offer_parse(written, strlen(written), &again, NULL), 0);
	rewritten = lease_offer_text(&again);
	assert_string_equal(written, rewritten);
	free(text);
	free(written);
	free(rewritten);
	lease_offer_release(&o);
	lease_offer_release(&again);
}

/* As GitHub has it: a push has no action. */
static void an_empty_optional_text_is_absent(void **state)
{
	char *text = offer_with("\"action\": \"synchronize\"", "\"action\": \"\"");
	struct lease_offer o;

	(void)state;
	assert_int_equal(lease_offer_parse(text, strlen(text), &o, NULL), 0);
	assert_null(o.action);
	lease_offer_release(&o);
	free(text);
}

static void a_silent_accelerator_has_no_job(void **state)
{
	char *text = offer_with("\"job_id\": 42", "\"job_id\": null"), *written;
	struct lease_offer o;

	(void)state;
	assert_int_equal(lease_offer_parse(text, strlen(text), &o, NULL), 0);
	assert_int_equal(o.job_id, 0);
	written = lease_offer_text(&o);
	assert_non_null(strstr(written, "\"job_id\":null"));
	free(text);
	free(written);
	lease_offer_release(&o);
}

static void steps_do_not_see_the_lease(void **state)
{
	char *text = offer_with("", ""), *change;
	struct lease_offer o;
	json_t *v;

	(void)state;
	assert_int_equal(lease_offer_parse(text, strlen(text), &o, NULL), 0);
	change = lease_offer_change_text(&o);
	assert_int_equal(json_parse(change, strlen(change), &v, NULL), 0);
	assert_null(json_object_get(v, "lease_id"));
	assert_string_equal(json_get_str(v, "dispatch_id"), "d1");
	assert_string_equal(json_get_str(json_object_get(v, "change"), "head_sha"), o.head_sha);
	json_decref(v);
	free(change);
	free(text);
	lease_offer_release(&o);
}

#define SHA "0123456789012345678901234567890123456789"

/* An offer of an experiment, with one part of its object replaced. */
static char *experiment_with(const char *part, const char *instead)
{
	static const char EXPERIMENT[] =
	    "\"experiment\": {\"id\": 7, \"of\": \"d0\", \"side\": \"base\", \"sha\": \"" SHA "\", "
	    "\"tests\": [\"unit/a\", \"-k/$(reboot)\\nb\"], \"jobs\": [\"linux\"], "
	    "\"environment\": {\"device\": \"910B\"}}, \"change\": {\"kind\": \"experiment\"";
	const char *at = strstr(EXPERIMENT, part);
	char *experiment, *text;

	assert_non_null(at);
	experiment = xasprintf("%.*s%s%s", (int)(at - EXPERIMENT), EXPERIMENT, instead, at + strlen(part));
	text = offer_with("\"change\": {\"kind\": \"pull_request\"", experiment);
	free(experiment);
	return text;
}

static void experiments_are_read_back_unchanged(void **state)
{
	char *text = experiment_with("", ""), *written, *rewritten;
	struct lease_offer o, again;

	(void)state;
	assert_int_equal(lease_offer_parse(text, strlen(text), &o, NULL), 0);
	assert_int_equal(o.kind, CHANGE_EXPERIMENT);
	assert_int_equal(o.experiment->id, 7);
	assert_string_equal(o.experiment->of, "d0");
	assert_int_equal(o.experiment->side, EXPERIMENT_BASE);
	assert_string_equal(o.experiment->sha, SHA);
	assert_string_equal(o.experiment->tests[0], "unit/a");
	assert_string_equal(o.experiment->tests[1], "-k/$(reboot)\nb");
	assert_null(o.experiment->tests[2]);
	assert_string_equal(o.experiment->jobs[0], "linux");
	assert_string_equal(o.experiment->environment, "{\"device\":\"910B\"}");
	written = lease_offer_text(&o);
	assert_int_equal(lease_offer_parse(written, strlen(written), &again, NULL), 0);
	rewritten = lease_offer_text(&again);
	assert_string_equal(written, rewritten);
	free(rewritten);
	rewritten = lease_offer_change_text(&o); /* steps read it as well */
	assert_non_null(strstr(rewritten, "\"experiment\":{\"id\":7"));
	free(text);
	free(written);
	free(rewritten);
	lease_offer_release(&o);
	lease_offer_release(&again);
}

static void assert_experiment_refused(const char *part, const char *instead, const char *why)
{
	char *text = experiment_with(part, instead);
	struct lease_offer o;
	struct error e = {0};

	assert_int_equal(lease_offer_parse(text, strlen(text), &o, &e), ERR_INVALID);
	if (!strstr(e.text, why))
		fail_msg("\"%s\" does not say \"%s\"", e.text, why);
	assert_null(o.experiment);
	free(text);
}

/* A list of n texts of the given length. free() */
static char *list_of(size_t n, int length)
{
	struct buf text = BUF_INIT(1 << 20);

	buf_append_str(&text, "\"tests\": [");
	for (size_t i = 0; i < n; i++)
		buf_appendf(&text, "%s\"%0*zu\"", i ? "," : "", length, i);
	buf_append_str(&text, "]");
	return buf_detach(&text);
}

static void wrong_experiments_name_the_field(void **state)
{
	static const char TESTS[] = "\"tests\": [\"unit/a\", \"-k/$(reboot)\\nb\"]";
	struct lease_offer o;
	char *list, *text;

	(void)state;
	assert_experiment_refused("\"id\": 7", "\"id\": 0", "id must be");
	assert_experiment_refused("\"d0\"", "\"../x\"", "of must be letters");
	assert_experiment_refused("\"base\"", "\"both\"", "side must be head or base");
	assert_experiment_refused("\"base\"", "1", "side must be head or base");
	assert_experiment_refused("\"sha\": \"0", "\"sha\": \"-", "sha must be");
	assert_experiment_refused("\"sha\": \"0", "\"sha\": \"1", "head_sha must be the experiment's");
	assert_experiment_refused(TESTS, "\"x\": 1", "tests must be a list of texts");
	assert_experiment_refused(TESTS, "\"tests\": []", "tests must not be empty");
	assert_experiment_refused(TESTS, "\"tests\": [\"a\", 1]", "tests must be a list of texts");
	assert_experiment_refused(TESTS, "\"tests\": [\"a\", \"\"]", "tests[1] must be 1 to 385 bytes");
	assert_experiment_refused("[\"linux\"]", "null", "jobs must be a list of texts");
	assert_experiment_refused("{\"device\": \"910B\"}", "[]", "environment must be an object");
	assert_experiment_refused("unit/a", "unit/\\u0000", "NUL");
	assert_experiment_refused("\"experiment\": {", "\"x\": {", "experiment is missing");
	assert_experiment_refused(
	    "\"kind\": \"experiment\"", "\"kind\": \"push\"", "only a change of kind experiment has experiment");
	list = list_of(1, EXPERIMENT_TEST_MAX_BYTES + 1);
	assert_experiment_refused(TESTS, list, "tests[0] must be 1 to 385 bytes, not 386");
	free(list);
	list = list_of(EXPERIMENT_TESTS_MAX + 1, 1);
	assert_experiment_refused(TESTS, list, "tests has more than 500 entries");
	free(list);
	list = list_of(EXPERIMENT_TESTS_MAX, EXPERIMENT_TEST_MAX_BYTES);
	text = experiment_with(TESTS, list);
	assert_true(strlen(text) < LEASE_OFFER_MAX_BYTES / 2); /* room for escapes */
	assert_int_equal(lease_offer_parse(text, strlen(text), &o, NULL), 0);
	lease_offer_release(&o);
	free(text);
	free(list);
}

/* A shell, a C program or Python would read these names as several lines. */
static void only_one_line_names_are_accepted(void **state)
{
	static const char *const lines[] = {
	    "unit/a", "unit/a b\\n$(x)`;\"'", "-rf/--", "модель/тест", "unit/\u00a0x", "unit/\u2027x"};
	static const char *const others[] = {"unit/a\nb", "unit/a\rb", "\tunit/a", "unit/\033[2J", "unit/\177",
	    "unit/\xc2\x85"
	    "b",
	    "unit/a\u2028b", "unit/a\u2029b", "unit/a\vb", "unit/a\x1e"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		assert_true(experiment_test_is_line(lines[i]));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(experiment_test_is_line(others[i]));
}

static void wrong_offers_name_the_field(void **state)
{
	(void)state;
	assert_offer_refused("\"l1\"", "\"../../x\"", "lease_id must be letters");
	assert_offer_refused("\"dispatch_id\": \"d1\"", "\"x\": 1", "dispatch_id is missing");
	assert_offer_refused("60000", "0", "lease_ms must be");
	assert_offer_refused("60000", "1e9", "lease_ms must be");
	assert_offer_refused("\"attempt\": 1", "\"attempt\": 0", "attempt must be");
	assert_offer_refused("42", "-1", "job_id must be");
	assert_offer_refused("\"public\"", "\"secret\"", "visibility must be");
	assert_offer_refused("\"public\"", "null", "visibility must be");
	assert_offer_refused("pull_request", "merge", "kind must be");
	assert_offer_refused("pytorch/pytorch", "pytorch", "repository must be owner/name");
	assert_offer_refused("0123456789012345", "-upload-pack=x;", "head_sha must be");
	assert_offer_refused("151234", "0", "number must be");
	assert_offer_refused("\"main\"", "\"a\\u0085b\"", "base_ref must be one line");
	assert_offer_refused("\"change\": {", "\"x\": {", "change must be an object");
}

static void titles_are_sanitized(void **state)
{
	char *long_title, *text = offer_with("a title", "a\\u000a\\u0085\\u001b[31mtitle");
	struct lease_offer o;

	(void)state;
	assert_int_equal(lease_offer_parse(text, strlen(text), &o, NULL), 0);
	assert_string_equal(o.title, "a    [31mtitle");
	lease_offer_release(&o);
	free(text);
	long_title = xmalloc(4001);
	for (size_t i = 0; i < 4000; i += 2)
		memcpy(long_title + i, "\xc3\xa4", 2);
	long_title[4000] = '\0';
	text = offer_with("a title", long_title);
	assert_int_equal(lease_offer_parse(text, strlen(text), &o, NULL), 0);
	assert_true(strlen(o.title) <= 1024 && utf8_is_valid(o.title, strlen(o.title)));
	lease_offer_release(&o);
	free(text);
	free(long_title);
	text = offer_with("a title", "");
	assert_int_equal(lease_offer_parse(text, strlen(text), &o, NULL), 0);
	assert_null(o.title);
	lease_offer_release(&o);
	free(text);
}

static void heartbeat_answers_are_read_back_unchanged(void **state)
{
	static const struct lease_answer all[] = {
	    {LEASE_ACTIVE, 60000, NULL},
	    {LEASE_CANCELLED, 0, (char *)(uintptr_t) "superseded by abc"},
	    {LEASE_LOST, 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		char *text = lease_answer_text(&all[i]);
		struct lease_answer a;

		assert_int_equal(lease_answer_parse(text, strlen(text), &a, NULL), 0);
		assert_int_equal(a.word, all[i].word);
		assert_int_equal(a.lease_ms, all[i].lease_ms);
		assert_true(str_eq(a.reason, all[i].reason));
		lease_answer_release(&a);
		free(text);
	}
}

static void wrong_answers_are_refused(void **state)
{
	static const char *const wrong[] = {"", "{}", "{\"lease\": \"gone\"}", "{\"lease\": \"active\"}",
	    "{\"lease\": \"active\", \"lease_ms\": 86400001}", "{\"lease\": \"lost\", \"reason\": 3}"};
	struct lease_answer a;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(lease_answer_parse(wrong[i], strlen(wrong[i]), &a, NULL), ERR_INVALID);
}

static const char STATUS[] =
    "{\"version\": \"0.1.0\", \"name\": \"npu-17\", \"accelerator\": \"ascend-npu\", \"time\": "
    "\"2026-11-20T12:00:00Z\", \"runners\": [{\"name\": \"farm\", \"labels\": [\"npu\"], "
    "\"max_parallel\": 2, \"waiting\": 3, \"active\": 1}]}";

static void statuses_are_read_back_unchanged(void **state)
{
	struct runner_status a, b;
	char *text;

	(void)state;
	assert_int_equal(runner_status_parse(STATUS, strlen(STATUS), &a, NULL), 0);
	text = runner_status_text(&a);
	assert_int_equal(runner_status_parse(text, strlen(text), &b, NULL), 0);
	assert_string_equal(b.version, "0.1.0");
	assert_string_equal(b.name, "npu-17");
	assert_string_equal(b.accelerator, "ascend-npu");
	assert_int_equal(b.time_ms, INT64_C(1795176000000));
	assert_int_equal(b.n_runners, 1);
	assert_string_equal(b.runners[0].labels[0], "npu");
	assert_null(b.runners[0].labels[1]);
	assert_int_equal(b.runners[0].n_waiting, 3);
	runner_status_release(&a);
	runner_status_release(&b);
	free(text);
}

static void wrong_statuses_are_refused(void **state)
{
	static const char *const parts[][2] = {{"\"0.1.0\"", "1"}, {"2026-11", "2026-13"}, {"\"farm\"", "\"fa rm\""},
	    {"[\"npu\"]", "\"npu\""}, {"\"waiting\": 3", "\"waiting\": -1"}, {"[{", "{\"a\": [{"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		const char *at = strstr(STATUS, parts[i][0]);
		struct runner_status s;
		char *text;

		assert_non_null(at);
		text = xasprintf("%.*s%s%s", (int)(at - STATUS), STATUS, parts[i][1], at + strlen(parts[i][0]));
		assert_int_equal(runner_status_parse(text, strlen(text), &s, NULL), ERR_INVALID);
		assert_null(s.runners);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(claims_are_read_back_unchanged),
	    cmocka_unit_test(a_claim_needs_no_labels_and_no_wait),
	    cmocka_unit_test(wrong_claims_name_the_field),
	    cmocka_unit_test(offers_are_read_back_unchanged),
	    cmocka_unit_test(an_empty_optional_text_is_absent),
	    cmocka_unit_test(a_silent_accelerator_has_no_job),
	    cmocka_unit_test(steps_do_not_see_the_lease),
	    cmocka_unit_test(experiments_are_read_back_unchanged),
	    cmocka_unit_test(wrong_experiments_name_the_field),
	    cmocka_unit_test(only_one_line_names_are_accepted),
	    cmocka_unit_test(wrong_offers_name_the_field),
	    cmocka_unit_test(titles_are_sanitized),
	    cmocka_unit_test(heartbeat_answers_are_read_back_unchanged),
	    cmocka_unit_test(wrong_answers_are_refused),
	    cmocka_unit_test(statuses_are_read_back_unchanged),
	    cmocka_unit_test(wrong_statuses_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
