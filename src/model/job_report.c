#include "model/job_report.h"

#include <math.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

enum {
	CONCLUSION_MAX_BYTES = 64,
	SUITE_MAX_BYTES = 128,
	UNIT_MAX_BYTES = 32,
	COUNT_MAX = 1000000000
};

/* A copy without control characters (a line break becomes a space), cut to max_bytes. */
static char *clean_text(const char *s, size_t max_bytes)
{
	size_t n = utf8_cut(s, strlen(s), max_bytes), len = 0;
	char *out = xmalloc(n + 1);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '\n' || c == '\t')
			out[len++] = ' ';
		else if (c >= 0x20 && c != 0x7f)
			out[len++] = (char)c;
	}
	out[len] = '\0';
	return out;
}

static char *optional_text(const json_t *obj, const char *key, size_t max_bytes)
{
	const char *s = json_get_str(obj, key);

	return s && *s ? clean_text(s, max_bytes) : NULL;
}

/* Only https is ever shown as a link; anything else is dropped, not refused. */
static char *optional_url(const json_t *obj, const char *key)
{
	const char *s = json_get_str(obj, key);

	if (!s || strncasecmp(s, "https://", 8) != 0 || strlen(s) > REPORT_URL_MAX_BYTES)
		return NULL;
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p == 0x7f)
			return NULL;
	return xstrdup(s);
}

static int required_text(const json_t *obj, const char *key, char **ret, struct error *e)
{
	const json_t *v = json_object_get(obj, key);
	char *text;

	if (!v || json_is_null(v))
		return error_set(e, ERR_INVALID, "workflow.%s is missing", key);
	if (!json_is_string(v))
		return error_set(e, ERR_INVALID, "workflow.%s must be text", key);
	text = clean_text(json_string_value(v), REPORT_NAME_MAX_BYTES);
	if (!*text) {
		free(text);
		return error_set(e, ERR_INVALID, "workflow.%s is empty", key);
	}
	*ret = text;
	return 0;
}

/* Text or a whole number: the forms in which clients send ids. NULL when neither. */
static char *id_text(const json_t *v)
{
	if (json_is_string(v) && *json_string_value(v))
		return clean_text(json_string_value(v), REPORT_NAME_MAX_BYTES);
	if (json_is_integer(v))
		return xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(v));
	return NULL;
}

static int parse_run_id(const json_t *workflow, char **ret, struct error *e)
{
	const json_t *v = json_object_get(workflow, "run_id");

	if (!v || json_is_null(v))
		return error_set(e, ERR_INVALID, "workflow.run_id is missing");
	*ret = id_text(v);
	if (!*ret)
		return error_set(e, ERR_INVALID, "workflow.run_id must be text or a whole number");
	return 0;
}

static int64_t parse_attempt(const json_t *workflow)
{
	const json_t *v = json_object_get(workflow, "run_attempt");
	int64_t n = 1;

	if (json_is_integer(v))
		n = json_integer_value(v);
	else if (json_is_string(v) && parse_int64(json_string_value(v), &n))
		n = 1;
	return n >= 1 && n <= 1000000 ? n : 1;
}

static int64_t optional_time(const json_t *obj, const char *key)
{
	const char *s = json_get_str(obj, key);
	int64_t ms;

	return s && !rfc3339_parse(s, &ms) && ms > 0 ? ms : 0;
}

/* -1: not a number of tests that could be one. */
static int64_t count_of(const json_t *counts, const char *key, int64_t fallback)
{
	int64_t n = json_get_int(counts, key, fallback);

	return n >= 0 && n <= COUNT_MAX ? n : -1;
}

static void parse_counts(const json_t *workflow, struct job_report *r)
{
	const json_t *counts = json_object_get(workflow, "test_results");

	if (!json_is_object(counts))
		return;
	r->n_passed = count_of(counts, "passed", 0);
	r->n_failed = count_of(counts, "failed", 0);
	r->n_skipped = count_of(counts, "skipped", 0);
	r->n_total = count_of(counts, "total", r->n_passed + r->n_failed + r->n_skipped);
	r->has_counts =
	    r->n_passed >= 0 && r->n_failed >= 0 && r->n_skipped >= 0 && r->n_total >= 0;
}

static int bad_test(struct error *e, size_t i, const char *what)
{
	return error_set(e, ERR_INVALID, "workflow.tests[%zu]%s", i, what);
}

static int parse_number(const json_t *test, size_t i, struct test_result *t, struct error *e)
{
	const json_t *number = json_object_get(test, "number"), *value;

	if (!number || json_is_null(number))
		return 0;
	value = json_object_get(number, "value");
	if (!json_is_number(value) || !isfinite(json_number_value(value)))
		return bad_test(e, i, ".number.value must be a number");
	t->has_number = true;
	t->number = json_number_value(value);
	t->unit = optional_text(number, "unit", UNIT_MAX_BYTES);
	return 0;
}

static int parse_test(const json_t *test, size_t i, struct test_result *t, struct error *e)
{
	const json_t *duration = json_object_get(test, "duration");
	const json_t *message = json_object_get(test, "message");
	double seconds;

	t->duration_ms = -1;
	if (!json_is_object(test))
		return bad_test(e, i, " must be an object");
	t->suite = optional_text(test, "suite", SUITE_MAX_BYTES);
	if (!t->suite)
		return bad_test(e, i, ".suite is missing");
	t->name = optional_text(test, "name", REPORT_NAME_MAX_BYTES);
	if (!t->name)
		return bad_test(e, i, ".name is missing");
	t->status = test_status_parse(json_get_str(test, "status"));
	if (t->status == N_TEST_STATUSES)
		return bad_test(e, i, ".status must be FAIL, ERROR, MISS, PASS, DONE or SKIP");
	if (duration && !json_is_null(duration)) {
		seconds = json_number_value(duration);
		if (!json_is_number(duration) || !(seconds >= 0 && seconds < 1e9))
			return bad_test(e, i, ".duration must be a number of seconds");
		t->duration_ms = (int64_t)(seconds * 1000 + 0.5);
	}
	if (message && !json_is_null(message) && !json_is_string(message))
		return bad_test(e, i, ".message must be text");
	t->message = optional_text(test, "message", REPORT_MESSAGE_MAX_BYTES);
	t->dtype = optional_text(test, "dtype", UNIT_MAX_BYTES);
	t->log_url = optional_url(test, "log_url");
	return parse_number(test, i, t, e);
}

static int parse_tests(const json_t *workflow, struct job_report *r, struct error *e)
{
	const json_t *tests = json_object_get(workflow, "tests");
	size_t n = json_array_size(tests);
	int rc = 0;

	if (!tests || json_is_null(tests))
		return 0;
	if (!json_is_array(tests))
		return error_set(e, ERR_INVALID, "workflow.tests must be an array");
	if (n > REPORT_TESTS_MAX)
		return error_set(e, ERR_INVALID, "workflow.tests has %zu entries; %d are the most",
		    n, REPORT_TESTS_MAX);
	r->tests = xcalloc(n, sizeof(*r->tests));
	for (size_t i = 0; i < n && !rc; i++) {
		r->n_tests++;
		rc = parse_test(json_array_get(tests, i), i, &r->tests[i], e);
	}
	return rc;
}

/* What makes two `completed` the same report; times do not count. */
static void compute_digest(const json_t *workflow, struct job_report *r)
{
	static const char *const keys[] = {"conclusion", "tests", "test_results", "artifact_url"};
	json_t *content = json_object();
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		json_t *v = json_object_get(workflow, keys[i]);

		if (v && !json_is_null(v))
			json_object_set(content, keys[i], v);
	}
	text = json_dumps(content, JSON_COMPACT | JSON_SORT_KEYS);
	sha256(text, strlen(text), r->digest);
	free(text);
	json_decref(content);
}

int job_report_parse(const json_t *workflow, struct job_report *r, struct error *e)
{
	const char *status;
	int rc;

	*r = (struct job_report){0};
	if (!json_is_object(workflow))
		return error_set(e, ERR_INVALID, "workflow must be an object");
	status = json_get_str(workflow, "status");
	if (!json_object_get(workflow, "status"))
		return error_set(e, ERR_INVALID, "workflow.status is missing");
	r->status = job_status_parse(status);
	if (r->status == N_JOB_STATUSES)
		return error_set(
		    e, ERR_INVALID, "workflow.status must be in_progress or completed");
	rc = required_text(workflow, "name", &r->workflow, e);
	if (!rc)
		rc = parse_run_id(workflow, &r->run_id, e);
	if (!rc)
		rc = parse_tests(workflow, r, e);
	if (rc)
		return rc;
	if (r->status == JOB_COMPLETED)
		r->conclusion = optional_text(workflow, "conclusion", CONCLUSION_MAX_BYTES);
	r->name = optional_text(workflow, "job_name", REPORT_NAME_MAX_BYTES);
	if (!r->name)
		r->name = xstrdup(r->workflow);
	r->run_attempt = parse_attempt(workflow);
	r->url = optional_url(workflow, "url");
	r->artifact_url = optional_url(workflow, "artifact_url");
	r->check_run_id = id_text(json_object_get(workflow, "check_run_id"));
	r->started_ms = optional_time(workflow, "started_at");
	r->completed_ms = optional_time(workflow, "completed_at");
	r->accelerator = optional_text(workflow, "accelerator", REPORT_NAME_MAX_BYTES);
	parse_counts(workflow, r);
	compute_digest(workflow, r);
	return 0;
}

void test_result_release(struct test_result *t)
{
	free(t->suite);
	free(t->name);
	free(t->dtype);
	free(t->message);
	free(t->trace);
	free(t->log_url);
	free(t->unit);
}

void job_report_release(struct job_report *r)
{
	for (size_t i = 0; i < r->n_tests; i++)
		test_result_release(&r->tests[i]);
	free(r->tests);
	free(r->conclusion);
	free(r->workflow);
	free(r->name);
	free(r->run_id);
	free(r->url);
	free(r->artifact_url);
	free(r->check_run_id);
	free(r->message);
	free(r->accelerator);
	*r = (struct job_report){0};
}
