/* CTRF (ctrf.io, specification 1.0), the common JSON of test reporters. The reader takes results.tests and
 * results.environment; it does not trust `summary`. CTRF's statuses are coarser than ours: the writer puts
 * our status into `rawStatus` and everything else without a place in CTRF into `extra`, and the reader takes
 * both back. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "documents/formats.h"
#include "documents/json_slice.h"

enum { WHERE_BYTES = 64, SUITES_MAX = 16, OS_MAX_BYTES = 256 };

/* ---- read ---- */

static int ctrf_wrong(struct error *e, const char *where, const char *what)
{
	return error_set(e, ERR_INVALID, "%s%s", where, what);
}

/* N_TEST_STATUSES: not one of CTRF's words. `other` means that the tool could not judge the test. */
static enum test_status status_of_ctrf(const char *name)
{
	static const struct {
		const char *name;
		enum test_status status;
	} statuses[] = {
	    {"passed", TEST_PASS},
	    {"failed", TEST_FAIL},
	    {"skipped", TEST_SKIP},
	    {"pending", TEST_SKIP},
	    {"other", TEST_ERROR},
	};

	for (size_t i = 0; name && i < ARRAY_LEN(statuses); i++)
		if (str_eq(name, statuses[i].name))
			return statuses[i].status;
	return N_TEST_STATUSES;
}

/* The outermost suite becomes the suite; the inner ones go before the name, so that two tests with different
 * suites keep different names. free() both. */
static int parse_names(const json_t *entry, const char *where, const char *tool,
    struct test_result *t, struct error *e)
{
	const json_t *suite = json_object_get(entry, "suite");
	const char *name = json_get_str(entry, "name"), *outer = json_string_value(suite);
	struct buf full = BUF_INIT(4 * REPORT_NAME_MAX_BYTES);
	size_t n = json_array_size(suite);

	if (text_is_blank(name))
		return ctrf_wrong(e, where, ".name is missing");
	if (suite && !json_is_null(suite) && !json_is_string(suite) && !json_is_array(suite))
		return ctrf_wrong(e, where, ".suite must be text or an array of text");
	for (size_t i = 0; i < n && i < SUITES_MAX; i++) {
		const char *part = json_string_value(json_array_get(suite, i));

		if (!part)
			return ctrf_wrong(e, where, ".suite must be text or an array of text");
		if (i == 0)
			outer = part;
		else if (!text_is_blank(part))
			buf_appendf(&full, "%.*s > ",
			    (int)utf8_cut(part, strlen(part), REPORT_NAME_MAX_BYTES), part);
	}
	buf_appendf(&full, "%.*s", (int)utf8_cut(name, strlen(name), REPORT_NAME_MAX_BYTES), name);
	t->suite = line_or(outer, REPORT_SUITE_MAX_BYTES, tool);
	t->name = line_or(buf_str(&full), REPORT_NAME_MAX_BYTES, "(unnamed)");
	buf_release(&full);
	return 0;
}

static int parse_details(
    const json_t *entry, const char *where, struct test_result *t, struct error *e)
{
	const json_t *duration = json_object_get(entry, "duration");
	const char *trace = json_get_str(entry, "trace");

	t->status = status_of_ctrf(json_get_str(entry, "status"));
	if (t->status == N_TEST_STATUSES)
		return ctrf_wrong(
		    e, where, ".status must be passed, failed, skipped, pending or other");
	t->duration_ms = -1;
	if (duration && !json_is_null(duration)) {
		t->duration_ms = report_duration_ms(json_number_value(duration) / 1000);
		if (!json_is_number(duration) || t->duration_ms < 0)
			return ctrf_wrong(e, where, ".duration must be a number of milliseconds");
	}
	t->message = report_text(entry, "message", REPORT_MESSAGE_MAX_BYTES);
	if (trace && test_status_is_red(t->status))
		t->trace = report_lines(trace, REPORT_TRACE_MAX_BYTES);
	test_result_locate(t, json_get_str(entry, "filePath"), json_get_int(entry, "line", 0));
	if (t->status == TEST_PASS && json_get_bool(entry, "flaky", false)) {
		char *remark = flaky_message(t->message);

		free(t->message);
		t->message = remark;
	}
	return 0;
}

/* Reads the members that our own writer adds. Its status may refine the status of CTRF, but not contradict it. */
static int parse_extra(struct json_slice value, const char *where, const char *word,
    struct test_result *t, struct error *e)
{
	static const char *const outer_keys[] = {"rawStatus", "extra", NULL};
	static const char *const keys[] = {"dtype", "number", "log_url", NULL};
	struct json_slice v[2];
	json_t *raw = NULL, *extra = NULL;
	const json_t *number;
	enum test_status status;
	int rc = json_slice_members(value, where, outer_keys, v, e);

	if (!rc && v[0].p)
		rc = json_slice_load(v[0], where, &raw, e);
	if (!rc && v[1].p)
		rc = json_slice_load_members(v[1], where, keys, &extra, e);
	if (rc)
		goto out;
	status = test_status_parse(json_string_value(raw));
	if (status != N_TEST_STATUSES && str_eq(ctrf_status(status), word))
		t->status = status;
	number = json_object_get(extra, "number");
	t->dtype = report_text(extra, "dtype", REPORT_UNIT_MAX_BYTES);
	t->log_url = report_url(extra, "log_url");
	t->has_number = json_is_number(json_object_get(number, "value"));
	if (t->has_number) {
		t->number = json_number_value(json_object_get(number, "value"));
		t->unit = report_text(number, "unit", REPORT_UNIT_MAX_BYTES);
	}
out:
	json_decref(raw);
	json_decref(extra);
	return rc;
}

static int parse_entry(struct json_slice value, const char *where, const char *tool,
    struct case_list *cases, struct error *e)
{
	static const char *const keys[] = {"name", "status", "duration", "suite", "message",
	    "trace", "flaky", "filePath", "line", NULL};
	struct test_result t = {0};
	json_t *entry;
	int rc;

	rc = json_slice_load_members(value, where, keys, &entry, e);
	if (!rc && !json_is_object(entry))
		rc = ctrf_wrong(e, where, " must be an object");
	if (!rc)
		rc = parse_names(entry, where, tool, &t, e);
	if (!rc)
		rc = parse_details(entry, where, &t, e);
	if (!rc)
		rc = parse_extra(value, where, json_get_str(entry, "status"), &t, e);
	if (!rc)
		case_list_add(cases, &t, CASE_ALONE);
	test_result_release(&t);
	json_decref(entry);
	return rc;
}

static int parse_ctrf_tests(
    struct json_slice value, const char *tool, struct case_list *cases, struct error *e)
{
	struct json_slice key, entry;
	struct json_iter it;
	char where[WHERE_BYTES];
	size_t i = 0;
	int rc = 0;

	if (!json_iter_init(&it, value, '['))
		return error_set(e, ERR_INVALID, "results.tests must be an array");
	while (!rc && json_iter_next(&it, &key, &entry)) {
		snprintf(where, sizeof(where), "results.tests[%zu]", i++);
		rc = parse_entry(entry, where, tool, cases, e);
	}
	return rc;
}

/* "linux 6.1 Debian 12" */
static void set_os(const json_t *from, json_t *to)
{
	static const char *const keys[] = {"osPlatform", "osRelease", "osVersion"};
	struct buf os = BUF_INIT(OS_MAX_BYTES);

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		char *part = report_text(from, keys[i], REPORT_UNIT_MAX_BYTES);

		if (part)
			buf_appendf(&os, "%s%s", os.len ? " " : "", part);
		free(part);
	}
	if (os.len)
		json_set_str(to, "os", buf_str(&os));
	buf_release(&os);
}

/* CTRF has keys for machines but not for devices; those are in its `extra`, under our names. */
static int parse_environment(struct json_slice value, char **ret, struct error *e)
{
	static const char *const ours[] = {
	    "accelerator", "device", "os", "driver", "torch", "torch_commit", "extension"};
	json_t *from, *to = json_object();
	const json_t *extra;
	int rc = 0;

	if (!value.p)
		goto out;
	rc = json_slice_load(value, "results.environment", &from, e);
	if (rc)
		goto out;
	set_os(from, to);
	extra = json_object_get(from, "extra");
	for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
		json_t *v = json_object_get(extra, ours[i]);

		if (json_is_string(v) || (json_is_object(v) && str_eq(ours[i], "extension")))
			json_object_set(to, ours[i], v);
	}
	json_decref(from);
	if (json_object_size(to))
		rc = environment_text(to, ret, e);
out:
	json_decref(to);
	return rc;
}

/* The suite of tests that have none. free() *ret. */
static int parse_tool(struct json_slice value, char **ret, struct error *e)
{
	static const char *const keys[] = {"name", NULL};
	json_t *tool;
	int rc;

	rc = json_slice_load_members(value, "results.tool", keys, &tool, e);
	*ret = line_or(json_get_str(tool, "name"), REPORT_SUITE_MAX_BYTES, "tests");
	json_decref(tool);
	return rc;
}

/* The number of tests that the writer of the document left out; only our own writer records it. */
static int parse_cut(struct json_slice extra, size_t *ret, struct error *e)
{
	static const char *const keys[] = {"cut", NULL};
	json_t *v;
	int64_t n;
	int rc;

	rc = json_slice_load_members(extra, "results.extra", keys, &v, e);
	n = json_get_int(v, "cut", 0);
	*ret = n > 0 && n <= REPORT_CUT_MAX ? (size_t)n : 0;
	json_decref(v);
	return rc;
}

int ctrf_parse(const char *text, size_t n, struct report_file *ret, struct error *e)
{
	static const char *const top_keys[] = {"results", NULL};
	static const char *const keys[] = {"tool", "tests", "environment", "extra", NULL};
	struct case_list cases = {0};
	struct json_slice whole, results, v[4];
	size_t n_cut_before = 0;
	char *tool = NULL;
	int rc;

	rc = json_slice_check(text, n, &whole, e);
	if (!rc)
		rc = json_slice_members(whole, "", top_keys, &results, e);
	if (!rc)
		rc = json_slice_members(results, "results", keys, v, e);
	if (!rc)
		rc = parse_tool(v[0], &tool, e);
	if (!rc)
		rc = parse_environment(v[2], &ret->environment, e);
	if (!rc)
		rc = parse_cut(v[3], &n_cut_before, e);
	if (!rc)
		rc = parse_ctrf_tests(v[1], tool, &cases, e);
	if (!rc) {
		case_list_finish(&cases, &ret->tests, &ret->n_tests, &ret->n_cut);
		ret->n_cut += n_cut_before;
	}
	free(tool);
	case_list_release(&cases);
	return rc;
}

/* ---- write ---- */

const char *ctrf_status(enum test_status status)
{
	static const char *const words[N_TEST_STATUSES] = {
	    [TEST_FAIL] = "failed",
	    [TEST_ERROR] = "failed",
	    [TEST_MISS] = "other",
	    [TEST_PASS] = "passed",
	    [TEST_DONE] = "passed",
	    [TEST_SKIP] = "skipped",
	};

	return words[status];
}

static json_t *summary_json(const struct report_out *o)
{
	static const char *const words[] = {"passed", "failed", "skipped", "pending", "other"};
	const struct job_view *j = &o->job->job;
	json_t *v = json_object();

	json_set_int(v, "tests", (int64_t)o->n_tests);
	for (size_t w = 0; w < ARRAY_LEN(words); w++) {
		int64_t n = 0;

		for (size_t i = 0; i < o->n_tests; i++)
			n += strcmp(ctrf_status(o->tests[i].status), words[w]) == 0;
		json_set_int(v, words[w], n);
	}
	json_set_int(v, "start", j->started_ms);
	json_set_int(v, "stop", j->completed_ms);
	return v;
}

static void ctrf_set_text(json_t *obj, const char *key, const char *text)
{
	if (text && *text)
		json_set_foreign_text(obj, key, text);
}

/* osPlatform is for other readers; `extra` has our whole environment. */
static json_t *environment_json(const struct job_detail *d)
{
	json_t *v = json_object(), *extra = NULL;
	const char *text = d->environment;

	ctrf_set_text(v, "reportName", d->accelerator);
	ctrf_set_text(v, "buildName", d->job.workflow);
	ctrf_set_text(v, "buildId", d->job.run_id);
	ctrf_set_text(v, "buildUrl", d->job.url);
	ctrf_set_text(v, "repositoryName", d->repository);
	ctrf_set_text(v, "commit", d->head_sha);
	if (text && !json_parse(text, strlen(text), &extra, NULL)) {
		ctrf_set_text(v, "osPlatform", json_get_str(extra, "os"));
		json_object_set_new(v, "extra", extra);
	}
	return v;
}

static json_t *extra_json(const struct report_out *o, const struct test_result *t)
{
	json_t *v = json_object();

	ctrf_set_text(v, "dtype", t->dtype);
	ctrf_set_text(v, "log_url", o->detail < REPORT_BARE ? t->log_url : NULL);
	if (t->has_number) {
		json_t *number = json_object();

		json_object_set_new(number, "value", json_real(t->number));
		ctrf_set_text(number, "unit", t->unit);
		json_object_set_new(v, "number", number);
	}
	return v;
}

static json_t *ctrf_test_json(const struct report_out *o, const struct test_result *t)
{
	json_t *v = json_object(), *extra = extra_json(o, t);

	json_set_foreign_text(v, "name", t->name);
	json_object_set_new(v, "suite", json_pack("[o]", json_foreign_text(t->suite)));
	json_set_str(v, "status", ctrf_status(t->status));
	json_set_str(v, "rawStatus", test_status_name(t->status));
	json_set_int(v, "duration", t->duration_ms > 0 ? t->duration_ms : 0);
	ctrf_set_text(v, "message", report_out_message(o, t));
	ctrf_set_text(v, "trace", report_out_trace(o, t));
	ctrf_set_text(v, "filePath", t->file);
	if (t->file && t->line)
		json_set_int(v, "line", t->line);
	if (json_object_size(extra))
		json_object_set(v, "extra", extra);
	json_decref(extra);
	return v;
}

static void put_json(struct buf *out, const json_t *v, int digits)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(digits));

	buf_append_str(out, text);
	free(text);
}

/* Writes the tests one by one: a JSON tree of 20,000 tests would take many times their size. */
void ctrf_out(const struct report_out *o, struct buf *out)
{
	json_t *tool = json_pack("{s:s, s:s}", "name", "outpost", "version", OUTPOST_VERSION);
	json_t *summary = summary_json(o), *environment = environment_json(o->job);

	buf_append_str(out, "{\"reportFormat\":\"CTRF\",\"specVersion\":\"1.0.0\","
			    "\"generatedBy\":\"outpost\",\"results\":{\"tool\":");
	put_json(out, tool, 15);
	buf_append_str(out, ",\"summary\":");
	put_json(out, summary, 15);
	buf_append_str(out, ",\"environment\":");
	put_json(out, environment, 15);
	if (o->job->job.n_cut)
		buf_appendf(out, ",\"extra\":{\"cut\":%lld}", (long long)o->job->job.n_cut);
	buf_append_str(out, ",\"tests\":[");
	for (size_t i = 0; i < o->n_tests && !out->is_overflow; i++) {
		json_t *v = ctrf_test_json(o, &o->tests[i]);

		buf_append_str(out, i ? ",\n" : "\n");
		put_json(out, v, report_number_text(o->tests[i].number, NULL));
		json_decref(v);
	}
	buf_append_str(out, "\n]}}\n");
	json_decref(tool);
	json_decref(summary);
	json_decref(environment);
}
