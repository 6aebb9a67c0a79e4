#include "model/job_report.h"

#include "model/test_array.h"

enum {
	CONCLUSION_MAX_BYTES = 64,
	COUNT_MAX = 1000000000,
};

static bool is_given(const json_t *v) { return v && !json_is_null(v); }

static int required_text(const json_t *obj, const char *key, char **ret, struct error *e)
{
	const json_t *v = json_object_get(obj, key);

	if (!is_given(v))
		return error_set(e, ERR_INVALID, "workflow.%s is missing", key);
	if (!json_is_string(v))
		return error_set(e, ERR_INVALID, "workflow.%s must be text", key);
	*ret = report_text(obj, key, REPORT_NAME_MAX_BYTES);
	return *ret ? 0 : error_set(e, ERR_INVALID, "workflow.%s is empty", key);
}

/* Clients send ids as text or as whole numbers. NULL: neither. */
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

	if (!is_given(v))
		return error_set(e, ERR_INVALID, "workflow.run_id is missing");
	*ret = id_text(v);
	if (!*ret)
		return error_set(e, ERR_INVALID, "workflow.run_id must be text or a whole number");
	return 0;
}

static int64_t optional_time(const json_t *obj, const char *key)
{
	const char *s = json_get_str(obj, key);
	int64_t ms;

	return s && !rfc3339_parse(s, &ms) && ms > 0 ? ms : 0;
}

/* -1: not a possible number of tests. */
static int64_t count_of(const json_t *counts, const char *key, int64_t fallback)
{
	int64_t n = json_get_int(counts, key, fallback);

	return n >= 0 && n <= COUNT_MAX ? n : -1;
}

/* FAIL, ERROR, MISS; PASS stands for all others. */
static enum test_status rank_of(enum test_status s) { return test_status_is_red(s) ? s : TEST_PASS; }

/* Keeps red results before others, the worst first. The kept ones stay in their order, as in a report file. */
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

/* read: the array `tests`, which is empty in the tree then; or NULL. */
static int parse_reported_tests(const json_t *workflow, struct test_array *read, struct job_report *r, struct error *e)
{
	const json_t *tests = json_object_get(workflow, "tests");
	size_t n = json_array_size(tests);
	char where[48];
	int rc = 0;

	if (read) {
		r->tests = read->tests;
		r->n_tests = read->n;
		r->texts = read->texts;
		read->tests = NULL;
		read->texts = NULL;
		keep_worst(r);
		return 0;
	}
	if (is_given(tests) && !json_is_array(tests))
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

/* Two `completed` reports with the same digest are one report. Times and ignored members do not count. */
static void compute_digest(const json_t *workflow, const struct test_array *read, struct job_report *r)
{
	static const struct {
		const char *key;
		json_type type;
	} parts[] = {{"conclusion", JSON_STRING}, {"tests", JSON_ARRAY}, {"test_results", JSON_OBJECT},
	    {"artifact_url", JSON_STRING}, {"failed_tests_detail", JSON_ARRAY}, {"failed_tests_detail", JSON_STRING},
	    {"failed_tests_json", JSON_ARRAY}, {"failed_tests_json", JSON_STRING}, {"failed_tests", JSON_ARRAY},
	    {"failed_tests", JSON_STRING}};
	json_t *content = json_object();

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		json_t *v = json_object_get(workflow, parts[i].key);

		if (v && json_typeof(v) == parts[i].type)
			json_object_set(content, parts[i].key, v);
	}
	char *text = json_dumps(content, JSON_COMPACT | JSON_SORT_KEYS);
	size_t n = strlen(text);

	/* `tests` is the last key: its own text replaces the "[]" before the brace that closes the object */
	if (read)
		sha256_of_parts(
		    (struct digest_part[]){{text, n - 3}, {read->plain.data, read->plain.len}, {"}", 1}}, 3, r->digest);
	else
		sha256(text, n, r->digest);
	free(text);
	json_decref(content);
}

int job_report_parse(const json_t *workflow, struct test_array *read, struct job_report *r, struct error *e)
{
	int64_t n = 1;

	*r = (struct job_report){0};
	if (!json_is_object(workflow))
		return error_set(e, ERR_INVALID, "workflow must be an object");
	if (!json_object_get(workflow, "status"))
		return error_set(e, ERR_INVALID, "workflow.status is missing");
	r->status = job_status_parse(json_get_str(workflow, "status"));
	if (r->status == N_JOB_STATUSES)
		return error_set(e, ERR_INVALID, "workflow.status must be in_progress or completed");
	int rc = required_text(workflow, "name", &r->workflow, e);
	if (!rc)
		rc = parse_run_id(workflow, &r->run_id, e);
	if (!rc)
		rc = parse_reported_tests(workflow, read, r, e);
	if (rc)
		return rc;
	if (r->status == JOB_COMPLETED)
		r->conclusion = report_text(workflow, "conclusion", CONCLUSION_MAX_BYTES);
	r->name = report_text(workflow, "job_name", REPORT_NAME_MAX_BYTES);
	if (!r->name)
		r->name = xstrdup(r->workflow);
	const json_t *v = json_object_get(workflow, "run_attempt");
	if (json_is_integer(v))
		n = json_integer_value(v);
	else if (json_is_string(v) && parse_int64(json_string_value(v), &n))
		n = 1;
	r->run_attempt = n >= 1 && n <= 1000000 ? n : 1;
	r->url = report_url(workflow, "url");
	r->artifact_url = report_url(workflow, "artifact_url");
	r->check_run_id = id_text(json_object_get(workflow, "check_run_id"));
	r->started_ms = optional_time(workflow, "started_at");
	r->completed_ms = optional_time(workflow, "completed_at");
	r->accelerator = report_text(workflow, "accelerator", REPORT_NAME_MAX_BYTES);
	r->message = report_text(workflow, "message", REPORT_MESSAGE_MAX_BYTES);
	r->triage = triage_verdict_parse(json_object_get(workflow, "triage_verdict"));
	const json_t *counts = json_object_get(workflow, "test_results");
	if (json_is_object(counts)) {
		r->n_passed = count_of(counts, "passed", 0);
		r->n_failed = count_of(counts, "failed", 0);
		r->n_skipped = count_of(counts, "skipped", 0);
		r->n_total = count_of(counts, "total", r->n_passed + r->n_failed + r->n_skipped);
		r->has_counts = r->n_passed >= 0 && r->n_failed >= 0 && r->n_skipped >= 0 && r->n_total >= 0;
	}
	compute_digest(workflow, read, r);
	return 0;
}

void job_report_release(struct job_report *r)
{
	for (size_t i = 0; i < r->n_tests; i++)
		test_result_release(&r->tests[i]);
	FREE_ALL(r->tests, r->texts, r->conclusion, r->workflow, r->name, r->run_id, r->url, r->artifact_url,
	    r->check_run_id, r->message, r->triage, r->accelerator);
	*r = (struct job_report){0};
}

enum {
	BLOCK_MAX_BYTES = 16 * 1024,
	SUMMARY_MAX_CHARS = 1000,
	REASON_MAX_CHARS = 300,
	EXCERPT_MAX_CHARS = 1000,
	SHORT_MAX_CHARS = 200,
	URL_MAX_CHARS = 500,
	EVIDENCE_MAX = 10
};

/* Copies from[key] as text of at most max_chars into to[key]. Returns false for another type, for an empty text, and if
 * is_required for an absent or null one. */
static bool copy_text(const json_t *from, const char *key, size_t max_chars, bool is_required, json_t *to)
{
	const json_t *v = json_object_get(from, key);

	if (!is_given(v))
		return !is_required;
	if (!json_is_string(v))
		return false;
	/* Bytes of the first `max` characters; jansson's texts are valid UTF-8. */
	const char *s = json_string_value(v);
	size_t n = 0;

	for (; s[n]; n++)
		if (((unsigned char)s[n] & 0xc0) != 0x80 && max_chars-- == 0)
			break;
	char *cut = xstrndup(s, n), *text = report_lines(cut + strspn(cut, " \t\r\n"), strlen(cut));
	free(cut);
	if (!text)
		return false;
	json_object_set_new(to, key, json_string(text));
	free(text);
	return true;
}

static bool copy_word(const json_t *from, const char *key, const char *const *words, json_t *to)
{
	const char *text = json_get_str(from, key);

	for (; text && *words; words++)
		if (str_eq(text, *words)) {
			json_object_set_new(to, key, json_string(text));
			return true;
		}
	return false;
}

/* A suspicion has to name a pull request or a commit, which can be compared with the change under test. */
static bool copy_suspect(const json_t *from, json_t *to)
{
	const json_t *v = json_object_get(from, "suspected_upstream"), *pr = json_object_get(v, "pr");
	json_t *suspect = json_object();

	json_object_set_new(to, "suspected_upstream", suspect);
	if (!json_is_object(v) || !str_eq(json_get_str(to, "category"), "upstream"))
		return false;
	if (is_given(pr)) {
		if (!json_is_integer(pr) || json_integer_value(pr) <= 0)
			return false;
		json_object_set_new(suspect, "pr", json_integer(json_integer_value(pr)));
	}
	if (!copy_text(v, "commit", SHORT_MAX_CHARS, false, suspect) ||
	    !copy_text(v, "reason", REASON_MAX_CHARS, false, suspect))
		return false;
	const char *commit = json_get_str(suspect, "commit");
	if (!commit)
		return json_object_get(suspect, "pr") != NULL;
	size_t n = strlen(commit);
	return n >= 7 && n <= 40 && strspn(commit, "0123456789abcdefABCDEF") == n;
}

/* An address without a user name before the host and without invisible characters. */
static bool is_plain_url(const char *s)
{
	size_t n_scheme = strncasecmp(s, "https://", 8) == 0 ? 8 : strncasecmp(s, "http://", 7) == 0 ? 7 : 0;
	size_t n_host = strcspn(s + n_scheme, "/?#");

	for (const char *c = s; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return false;
	return n_scheme && n_host && !memchr(s + n_scheme, '@', n_host);
}

static bool copy_evidence(const json_t *from, json_t *to)
{
	const json_t *v = json_object_get(from, "evidence");
	json_t *list = json_array();

	json_object_set_new(to, "evidence", list);
	if (!json_is_array(v))
		return false;
	for (size_t i = 0; i < json_array_size(v) && i < EVIDENCE_MAX; i++) {
		const json_t *entry = json_array_get(v, i);
		json_t *one = json_object();

		json_array_append_new(list, one);
		if (!json_is_object(entry) || !copy_text(entry, "job", SHORT_MAX_CHARS, false, one) ||
		    !copy_text(entry, "test", SHORT_MAX_CHARS, false, one) ||
		    !copy_text(entry, "excerpt", EXCERPT_MAX_CHARS, false, one) ||
		    !copy_text(entry, "log_url", URL_MAX_CHARS, false, one))
			return false;
		if (json_get_str(one, "log_url") && !is_plain_url(json_get_str(one, "log_url")))
			return false;
	}
	return true;
}

static bool copy_analyzer(const json_t *from, json_t *to)
{
	static const char *const keys[] = {"name", "version", "model", "prompt_version"};
	const json_t *v = json_object_get(from, "analyzer");
	json_t *analyzer = json_object();

	json_object_set_new(to, "analyzer", analyzer);
	if (!json_is_object(v))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!copy_text(v, keys[i], SHORT_MAX_CHARS, false, analyzer))
			return false;
	return true;
}

/* ISO 8601 as CRCR reads it: a day without a time and a time without a zone are UTC. */
static bool is_time(const char *s)
{
	static const char *const ends[] = {"", "Z", "T00:00:00Z"};
	int64_t ms;
	bool is_parsed = false;

	for (size_t i = 0; i < ARRAY_LEN(ends) && !is_parsed; i++) {
		char *text = xasprintf("%s%s", s, ends[i]);

		is_parsed = rfc3339_parse(text, &ms) == 0;
		free(text);
	}
	return is_parsed;
}

static bool copy_rest(const json_t *from, json_t *to)
{
	const json_t *again = json_object_get(from, "reproduced_on_retry");

	if (is_given(again)) {
		if (!json_is_boolean(again))
			return false;
		json_object_set_new(to, "reproduced_on_retry", json_boolean(json_is_true(again)));
	}
	if (!copy_text(from, "analyzed_at", SHORT_MAX_CHARS, false, to))
		return false;
	return !json_get_str(to, "analyzed_at") || is_time(json_get_str(to, "analyzed_at"));
}

/* The number 1, also as text: a step of a workflow has texts only. */
static bool is_version_1(const json_t *v)
{
	return (json_is_integer(v) && json_integer_value(v) == 1) || str_eq(json_string_value(v), "1");
}

static bool is_too_large(const json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT);
	bool is = !text || strlen(text) > BLOCK_MAX_BYTES;

	free(text);
	return is;
}

char *triage_verdict_parse(const json_t *v)
{
	static const char *const categories[] = {"upstream", "backend", "infra", "flake", "unknown", NULL};
	static const char *const confidences[] = {"high", "medium", "low", NULL};
	char *text = NULL;

	if (!json_is_object(v) || is_too_large(v) || !is_version_1(json_object_get(v, "schema_version")))
		return NULL;
	json_t *to = json_object();
	if (copy_word(v, "category", categories, to) && copy_word(v, "confidence", confidences, to) &&
	    copy_text(v, "summary", SUMMARY_MAX_CHARS, true, to) &&
	    (!is_given(json_object_get(v, "suspected_upstream")) || copy_suspect(v, to)) &&
	    (!is_given(json_object_get(v, "evidence")) || copy_evidence(v, to)) &&
	    (!is_given(json_object_get(v, "analyzer")) || copy_analyzer(v, to)) && copy_rest(v, to))
		text = json_dumps(to, JSON_COMPACT);
	json_decref(to);
	return text;
}
