/* CTRF (ctrf.io), the common JSON of test reporters: results.tests, results.environment. What is
 * not named here, above all `summary`, is not read. */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "report/case_list.h"
#include "report/json_slice.h"
#include "report/report_out.h"
#include "report/report_parse.h"

enum { WHERE_BYTES = 64, SUITES_MAX = 16, OS_MAX_BYTES = 256 };
static const int64_t CUT_MAX = INT64_C(1) << 40;

static int wrong(struct error *e, const char *where, const char *what)
{
	return error_set(e, ERR_INVALID, "%s%s", where, what);
}

/* N_TEST_STATUSES: none of CTRF's. `other` is what its tool could not judge. */
static enum test_status status_of(const char *name)
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

static bool is_blank(const char *s)
{
	return !s || s[strspn(s, " \t\r\n")] == '\0';
}

/* free() */
static char *line_or(const char *s, size_t max_bytes, const char *fallback)
{
	char *line = report_line(s ? s : "", max_bytes);

	if (!is_blank(line))
		return line;
	free(line);
	return xstrdup(fallback);
}

/* The outermost suite is ours; those in it stand before the name, so that no two tests get one
 * name that had two. free() both. */
static int parse_names(const json_t *entry, const char *where, const char *tool,
    struct test_result *t, struct error *e)
{
	const json_t *suite = json_object_get(entry, "suite");
	const char *name = json_get_str(entry, "name"), *outer = json_string_value(suite);
	struct buf full = BUF_INIT(4 * REPORT_NAME_MAX_BYTES);
	size_t n = json_array_size(suite);

	if (is_blank(name))
		return wrong(e, where, ".name is missing");
	if (suite && !json_is_null(suite) && !json_is_string(suite) && !json_is_array(suite))
		return wrong(e, where, ".suite must be text or an array of text");
	for (size_t i = 0; i < n && i < SUITES_MAX; i++) {
		const char *part = json_string_value(json_array_get(suite, i));

		if (!part)
			return wrong(e, where, ".suite must be text or an array of text");
		if (i == 0)
			outer = part;
		else if (!is_blank(part))
			buf_appendf(&full, "%.*s > ",
			    (int)utf8_cut(part, strlen(part), REPORT_NAME_MAX_BYTES), part);
	}
	buf_appendf(&full, "%.*s", (int)utf8_cut(name, strlen(name), REPORT_NAME_MAX_BYTES), name);
	t->suite = line_or(outer, REPORT_SUITE_MAX_BYTES, tool);
	t->name = line_or(buf_str(&full), REPORT_NAME_MAX_BYTES, "(unnamed)");
	buf_release(&full);
	return 0;
}

/* free() */
static char *flaky_remark(const char *message)
{
	char *remark = message ? xasprintf("passed when it was run again; before: %.*s",
				     REPORT_MESSAGE_MAX_BYTES, message)
			       : xstrdup("passed when it was run again");
	char *out = report_line(remark, REPORT_MESSAGE_MAX_BYTES);

	free(remark);
	return out;
}

static int parse_details(
    const json_t *entry, const char *where, struct test_result *t, struct error *e)
{
	const json_t *duration = json_object_get(entry, "duration");
	const char *trace = json_get_str(entry, "trace");

	t->status = status_of(json_get_str(entry, "status"));
	if (t->status == N_TEST_STATUSES)
		return wrong(e, where, ".status must be passed, failed, skipped, pending or other");
	t->duration_ms = -1;
	if (duration && !json_is_null(duration)) {
		t->duration_ms = report_duration_ms(json_number_value(duration) / 1000);
		if (!json_is_number(duration) || t->duration_ms < 0)
			return wrong(e, where, ".duration must be a number of milliseconds");
	}
	t->message = report_text(entry, "message", REPORT_MESSAGE_MAX_BYTES);
	if (trace && test_status_is_red(t->status))
		t->trace = report_lines(trace, REPORT_TRACE_MAX_BYTES);
	test_result_locate(t, json_get_str(entry, "filePath"), json_get_int(entry, "line", 0));
	if (t->status == TEST_PASS && json_get_bool(entry, "flaky", false)) {
		char *remark = flaky_remark(t->message);

		free(t->message);
		t->message = remark;
	}
	return 0;
}

/* What CTRF has no word or place for, as our own writer puts it there (ctrf_out.c): a status refines
 * CTRF's, it never overrules it. */
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
		rc = wrong(e, where, " must be an object");
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

static int parse_tests(
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

/* CTRF knows machines, not devices: those stand in its `extra`, under our names. */
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

/* What a test without a suite is filed under. free() *ret. */
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

/* How many tests our own writer says were left out. */
static int parse_cut(struct json_slice extra, size_t *ret, struct error *e)
{
	static const char *const keys[] = {"cut", NULL};
	json_t *v;
	int64_t n;
	int rc;

	rc = json_slice_load_members(extra, "results.extra", keys, &v, e);
	n = json_get_int(v, "cut", 0);
	*ret = n > 0 && n <= CUT_MAX ? (size_t)n : 0;
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
		rc = parse_tests(v[1], tool, &cases, e);
	if (!rc) {
		case_list_finish(&cases, &ret->tests, &ret->n_tests, &ret->n_cut);
		ret->n_cut += n_cut_before;
	}
	free(tool);
	case_list_release(&cases);
	return rc;
}
