#include "model/job_report.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "model/failed_tests.h"
#include "model/triage_verdict.h"

enum {
	CONCLUSION_MAX_BYTES = 64,
	COUNT_MAX = 1000000000,
};

static int required_text(const json_t *obj, const char *key, char **ret, struct error *e)
{
	const json_t *v = json_object_get(obj, key);
	char *text;

	if (!v || json_is_null(v))
		return error_set(e, ERR_INVALID, "workflow.%s is missing", key);
	if (!json_is_string(v))
		return error_set(e, ERR_INVALID, "workflow.%s must be text", key);
	text = report_line(json_string_value(v), REPORT_NAME_MAX_BYTES);
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
		return report_line(json_string_value(v), REPORT_NAME_MAX_BYTES);
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

/* FAIL, ERROR, MISS, and all that are not red. */
static enum test_status rank_of(enum test_status s)
{
	return test_status_is_red(s) ? s : TEST_PASS;
}

/* What is red stays before what is not; in their order otherwise, as in a report file. */
static void keep_worst(struct job_report *r)
{
	size_t room[N_TEST_STATUSES] = {0}, left = REPORT_TESTS_MAX, n = 0;

	if (r->n_tests <= REPORT_TESTS_MAX)
		return;
	for (size_t i = 0; i < r->n_tests; i++)
		room[rank_of(r->tests[i].status)]++;
	for (int s = 0; s < N_TEST_STATUSES; s++) {
		if (room[s] > left)
			room[s] = left;
		left -= room[s];
	}
	r->n_cut = r->n_tests - REPORT_TESTS_MAX;
	for (size_t i = 0; i < r->n_tests; i++) {
		size_t *one = &room[rank_of(r->tests[i].status)];

		if (*one) {
			(*one)--;
			r->tests[n++] = r->tests[i];
		} else {
			test_result_release(&r->tests[i]);
		}
	}
	r->n_tests = n;
}

static int parse_tests(const json_t *workflow, struct job_report *r, struct error *e)
{
	const json_t *tests = json_object_get(workflow, "tests");
	size_t n = json_array_size(tests);
	char where[48];
	int rc = 0;

	if (tests && !json_is_null(tests) && !json_is_array(tests))
		return error_set(e, ERR_INVALID, "workflow.tests must be an array");
	if (n == 0) {
		r->tests = failed_tests_parse(workflow, &r->n_tests, &r->n_cut);
		return 0;
	}
	r->tests = xcalloc(n, sizeof(*r->tests));
	for (size_t i = 0; i < n && !rc; i++) {
		snprintf(where, sizeof(where), "workflow.tests[%zu]", i);
		r->n_tests++;
		rc = test_result_parse(json_array_get(tests, i), where, &r->tests[i], e);
	}
	if (!rc)
		keep_worst(r);
	return rc;
}

/* What makes two `completed` the same report; times do not count, nor what is ignored. */
static void compute_digest(const json_t *workflow, struct job_report *r)
{
	static const struct {
		const char *key;
		json_type type;
	} parts[] = {{"conclusion", JSON_STRING}, {"tests", JSON_ARRAY},
	    {"test_results", JSON_OBJECT}, {"artifact_url", JSON_STRING},
	    {"failed_tests_detail", JSON_ARRAY}, {"failed_tests_detail", JSON_STRING},
	    {"failed_tests_json", JSON_ARRAY}, {"failed_tests_json", JSON_STRING},
	    {"failed_tests", JSON_ARRAY}, {"failed_tests", JSON_STRING}};
	json_t *content = json_object();
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		json_t *v = json_object_get(workflow, parts[i].key);

		if (v && json_typeof(v) == parts[i].type)
			json_object_set(content, parts[i].key, v);
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
		r->conclusion = report_text(workflow, "conclusion", CONCLUSION_MAX_BYTES);
	r->name = report_text(workflow, "job_name", REPORT_NAME_MAX_BYTES);
	if (!r->name)
		r->name = xstrdup(r->workflow);
	r->run_attempt = parse_attempt(workflow);
	r->url = report_url(workflow, "url");
	r->artifact_url = report_url(workflow, "artifact_url");
	r->check_run_id = id_text(json_object_get(workflow, "check_run_id"));
	r->started_ms = optional_time(workflow, "started_at");
	r->completed_ms = optional_time(workflow, "completed_at");
	r->accelerator = report_text(workflow, "accelerator", REPORT_NAME_MAX_BYTES);
	r->message = report_text(workflow, "message", REPORT_MESSAGE_MAX_BYTES);
	r->triage = triage_verdict_parse(json_object_get(workflow, "triage_verdict"));
	parse_counts(workflow, r);
	compute_digest(workflow, r);
	return 0;
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
	free(r->triage);
	free(r->accelerator);
	*r = (struct job_report){0};
}
