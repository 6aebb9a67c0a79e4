/* CTRF (ctrf.io, specification 1.0), the common JSON of test reporters. The reader takes results.tests and
 * results.environment; it does not trust `summary`. CTRF's statuses are coarser than ours: the writer puts
 * our status into `rawStatus` and everything else without a place in CTRF into `extra`, and the reader takes
 * both back. */

#include "documents/formats.h"

enum { WHERE_BYTES = 64, SUITES_MAX = 16, OS_MAX_BYTES = 256 };

/* "passed", "failed", "skipped" or "other". */
static const char *ctrf_status(enum test_status status)
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

/* The outermost suite becomes the suite; the inner ones go before the name, so that two tests with different
 * suites keep different names. free() both. */
static int parse_names(const json_t *entry, const char *where, const char *tool, struct test_result *t, struct error *e)
{
	const json_t *suite = json_object_get(entry, "suite");
	const char *name = json_get_str(entry, "name"), *outer = json_string_value(suite);
	struct buf full = BUF_INIT(4 * REPORT_NAME_MAX_BYTES);
	size_t n = json_array_size(suite);

	if (text_is_blank(name))
		return error_set(e, ERR_INVALID, "%s.name is missing", where);
	if (suite && !json_is_null(suite) && !json_is_string(suite) && !json_is_array(suite))
		return error_set(e, ERR_INVALID, "%s.suite must be text or an array of text", where);
	for (size_t i = 0; i < n && i < SUITES_MAX; i++) {
		const char *part = json_string_value(json_array_get(suite, i));

		if (!part)
			return error_set(e, ERR_INVALID, "%s.suite must be text or an array of text", where);
		if (i == 0)
			outer = part;
		else if (!text_is_blank(part))
			buf_appendf(&full, "%.*s > ", (int)utf8_cut(part, strlen(part), REPORT_NAME_MAX_BYTES), part);
	}
	buf_appendf(&full, "%.*s", (int)utf8_cut(name, strlen(name), REPORT_NAME_MAX_BYTES), name);
	t->suite = line_or(outer, REPORT_SUITE_MAX_BYTES, tool);
	t->name = line_or(buf_str(&full), REPORT_NAME_MAX_BYTES, "(unnamed)");
	buf_release(&full);
	return 0;
}

static int parse_details(const json_t *entry, const char *where, struct test_result *t, struct error *e)
{
	/* `other` means that the tool could not judge the test. */
	static const struct {
		const char *name;
		enum test_status status;
	} statuses[] = {{"passed", TEST_PASS}, {"failed", TEST_FAIL}, {"skipped", TEST_SKIP}, {"pending", TEST_SKIP},
	    {"other", TEST_ERROR}};
	const json_t *duration = json_object_get(entry, "duration");
	const char *trace = json_get_str(entry, "trace"), *word = json_get_str(entry, "status");
	size_t i = 0;

	while (word && i < ARRAY_LEN(statuses) && !str_eq(word, statuses[i].name))
		i++;
	if (!word || i == ARRAY_LEN(statuses))
		return error_set(e, ERR_INVALID, "%s.status must be passed, failed, skipped, pending or other", where);
	t->status = statuses[i].status;
	t->duration_ms = -1;
	if (duration && !json_is_null(duration)) {
		t->duration_ms = report_duration_ms(json_number_value(duration) / 1000);
		if (!json_is_number(duration) || t->duration_ms < 0)
			return error_set(e, ERR_INVALID, "%s.duration must be a number of milliseconds", where);
	}
	t->message = report_text(entry, "message", REPORT_MESSAGE_MAX_BYTES);
	if (trace && test_status_is_red(t->status))
		t->trace = report_lines(trace, REPORT_TRACE_MAX_BYTES);
	test_result_locate(t, json_get_str(entry, "filePath"), json_get_int(entry, "line", 0));
	if (t->status == TEST_PASS && json_get_bool(entry, "flaky", false))
		test_result_mark_flaky(t);
	return 0;
}

/* Reads the members that our own writer adds. Its status may refine the status of CTRF, but not contradict it. */
static int parse_extra(
    struct json_slice value, const char *where, const char *word, struct test_result *t, struct error *e)
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

static int parse_ctrf_tests(struct json_slice value, const char *tool, struct case_list *cases, struct error *e)
{
	static const char *const keys[] = {
	    "name", "status", "duration", "suite", "message", "trace", "flaky", "filePath", "line", NULL};
	struct json_slice key, entry;
	struct json_iter it;
	char where[WHERE_BYTES];
	json_t *object;
	size_t i = 0;
	int rc = 0;

	if (!json_iter_init(&it, value, '['))
		return error_set(e, ERR_INVALID, "results.tests must be an array");
	while (!rc && json_iter_next(&it, &key, &entry)) {
		struct test_result t = {0};

		snprintf(where, sizeof(where), "results.tests[%zu]", i++);
		rc = json_slice_load_members(entry, where, keys, &object, e);
		if (!rc && !json_is_object(object))
			rc = error_set(e, ERR_INVALID, "%s must be an object", where);
		if (!rc)
			rc = parse_names(object, where, tool, &t, e);
		if (!rc)
			rc = parse_details(object, where, &t, e);
		if (!rc)
			rc = parse_extra(entry, where, json_get_str(object, "status"), &t, e);
		if (!rc)
			case_list_add(cases, &t, CASE_ALONE);
		test_result_release(&t);
		json_decref(object);
	}
	return rc;
}

/* CTRF has keys for machines but not for devices; those are in its `extra`, under our names. */
static int parse_environment(struct json_slice value, char **ret, struct error *e)
{
	static const char *const parts[] = {"osPlatform", "osRelease", "osVersion"};
	static const char *const ours[] = {
	    "accelerator", "device", "os", "driver", "torch", "torch_commit", "extension"};
	struct buf os = BUF_INIT(OS_MAX_BYTES);
	json_t *from, *to = json_object();
	const json_t *extra;
	int rc = 0;

	if (!value.p)
		goto out;
	rc = json_slice_load(value, "results.environment", &from, e);
	if (rc)
		goto out;
	/* "linux 6.1 Debian 12" */
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		char *part = report_text(from, parts[i], REPORT_UNIT_MAX_BYTES);

		if (part)
			buf_appendf(&os, "%s%s", os.len ? " " : "", part);
		free(part);
	}
	if (os.len)
		json_set_str(to, "os", buf_str(&os));
	buf_release(&os);
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

int ctrf_parse(const char *text, size_t n, struct report_file *ret, struct error *e)
{
	static const char *const top_keys[] = {"results", NULL};
	static const char *const keys[] = {"tool", "tests", "environment", "extra", NULL};
	static const char *const tool_keys[] = {"name", NULL}, *const cut_keys[] = {"cut", NULL};
	struct case_list cases = {0};
	struct json_slice whole, results, v[4];
	json_t *inner = NULL, *extra = NULL;
	char *tool = NULL;
	int64_t n_cut;

	int rc = json_slice_check(text, n, &whole, e);
	if (!rc)
		rc = json_slice_members(whole, "", top_keys, &results, e);
	if (!rc)
		rc = json_slice_members(results, "results", keys, v, e);
	if (!rc)
		rc = json_slice_load_members(v[0], "results.tool", tool_keys, &inner, e);
	/* the suite of tests that have none */
	tool = line_or(json_get_str(inner, "name"), REPORT_SUITE_MAX_BYTES, "tests");
	if (!rc)
		rc = parse_environment(v[2], &ret->environment, e);
	if (!rc)
		rc = json_slice_load_members(v[3], "results.extra", cut_keys, &extra, e);
	if (!rc)
		rc = parse_ctrf_tests(v[1], tool, &cases, e);
	if (!rc) {
		/* The number of tests that the writer of the document left out; only our own writer records it. */
		n_cut = json_get_int(extra, "cut", 0);
		case_list_finish(&cases, &ret->tests, &ret->n_tests, &ret->n_cut);
		ret->n_cut += n_cut > 0 && n_cut <= REPORT_CUT_MAX ? (size_t)n_cut : 0;
	}
	free(tool);
	json_decref(inner);
	json_decref(extra);
	case_list_release(&cases);
	return rc;
}

static json_t *ctrf_test_json(const struct report_out *o, const struct test_result *t)
{
	json_t *v = json_object(), *extra = json_object();

	report_set_text(extra, "dtype", t->dtype);
	report_set_text(extra, "log_url", o->detail < REPORT_BARE ? t->log_url : NULL);
	report_set_number(extra, t);
	json_set_foreign_text(v, "name", t->name);
	json_object_set_new(v, "suite", json_pack("[o]", json_foreign_text(t->suite)));
	json_set_str(v, "status", ctrf_status(t->status));
	json_set_str(v, "rawStatus", test_status_name(t->status));
	json_set_int(v, "duration", t->duration_ms > 0 ? t->duration_ms : 0);
	report_set_text(v, "message", report_out_message(o, t));
	report_set_text(v, "trace", report_out_trace(o, t));
	report_set_text(v, "filePath", t->file);
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
	static const char *const words[] = {"passed", "failed", "skipped", "pending", "other"};
	const struct job_detail *d = o->job;
	json_t *tool = json_pack("{s:s, s:s}", "name", "outpost", "version", OUTPOST_VERSION);
	json_t *summary = json_object(), *environment = json_object(), *extra = NULL;

	json_set_int(summary, "tests", (int64_t)o->n_tests);
	for (size_t w = 0; w < ARRAY_LEN(words); w++) {
		int64_t n = 0;

		for (size_t i = 0; i < o->n_tests; i++)
			n += strcmp(ctrf_status(o->tests[i].status), words[w]) == 0;
		json_set_int(summary, words[w], n);
	}
	json_set_int(summary, "start", d->job.started_ms);
	json_set_int(summary, "stop", d->job.completed_ms);
	report_set_text(environment, "reportName", d->accelerator);
	report_set_text(environment, "buildName", d->job.workflow);
	report_set_text(environment, "buildId", d->job.run_id);
	report_set_text(environment, "buildUrl", d->job.url);
	report_set_text(environment, "repositoryName", d->repository);
	report_set_text(environment, "commit", d->head_sha);
	/* osPlatform is for other readers; `extra` has our whole environment. */
	if (d->environment && !json_parse(d->environment, strlen(d->environment), &extra, NULL)) {
		report_set_text(environment, "osPlatform", json_get_str(extra, "os"));
		json_object_set_new(environment, "extra", extra);
	}
	buf_append_str(out,
	    "{\"reportFormat\":\"CTRF\",\"specVersion\":\"1.0.0\",\"generatedBy\":\"outpost\",\"results\":{\"tool\":");
	put_json(out, tool, 15);
	buf_append_str(out, ",\"summary\":");
	put_json(out, summary, 15);
	buf_append_str(out, ",\"environment\":");
	put_json(out, environment, 15);
	if (d->job.n_cut)
		buf_appendf(out, ",\"extra\":{\"cut\":%lld}", (long long)d->job.n_cut);
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
