#include "report/report_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "report/case_list.h"
#include "report/json_slice.h"
#include "report/report_parse.h"

static const struct {
	const char *name;
	int (*parse)(const char *text, size_t n, struct report_file *ret, struct error *e);
} formats[N_REPORT_FORMATS] = {
    [REPORT_JUNIT] = {"junit", junit_parse},
    [REPORT_CTRF] = {"ctrf", ctrf_parse},
    [REPORT_OUTPOST] = {"outpost", outpost_report_parse},
};

const char *report_format_name(enum report_format f)
{
	return formats[f].name;
}

enum report_format report_format_parse(const char *name)
{
	for (int f = 0; f < N_REPORT_FORMATS; f++)
		if (str_eq(name, formats[f].name))
			return (enum report_format)f;
	return N_REPORT_FORMATS;
}

/* ---- which format ---- */

static enum report_format guess_json(const char *text, size_t n)
{
	static const char *const keys[] = {"results", "reportFormat", "schema", "tests", NULL};
	struct json_slice whole, v[4];
	int rc;

	rc = json_slice_check(text, n, &whole, NULL);
	if (!rc)
		rc = json_slice_members(whole, "", keys, v, NULL);
	/* Where it is no JSON, either reader says so. */
	if (!rc && (v[0].p || v[1].p) && !v[2].p && !v[3].p)
		return REPORT_CTRF;
	return REPORT_OUTPOST;
}

enum report_format report_format_guess(const char *text, size_t n)
{
	size_t i = 0;

	if (n >= 4 && (memcmp(text, "\xff\xfe<\0", 4) == 0 || memcmp(text, "\xfe\xff\0<", 4) == 0))
		return REPORT_JUNIT;
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		i = 3;
	while (i < n && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r'))
		i++;
	if (i < n && text[i] == '<')
		return REPORT_JUNIT;
	return i < n && text[i] == '{' ? guess_json(text, n) : N_REPORT_FORMATS;
}

/* ---- in ---- */

int report_file_parse(
    enum report_format f, const char *text, size_t n, struct report_file *ret, struct error *e)
{
	int rc;

	*ret = (struct report_file){0};
	if (n > REPORT_FILE_MAX_BYTES)
		return error_set(e, ERR_TOO_BIG, "the report has %zu bytes; %d are the most", n,
		    REPORT_FILE_MAX_BYTES);
	if (n == 0)
		return error_set(e, ERR_INVALID, "line 1: the report is empty");
	if (f == N_REPORT_FORMATS)
		return error_set(e, ERR_INVALID,
		    "line 1: a report is JUnit XML, CTRF JSON or Outpost JSON; this begins like "
		    "neither XML nor a JSON object");
	rc = formats[f].parse(text, n, ret, e);
	if (!rc && ret->n_tests == 0)
		rc = error_set(e, ERR_INVALID,
		    "there is no test case in it; a report without one proves nothing");
	return rc;
}

static void move_cases(struct case_list *l, struct report_file *from)
{
	for (size_t i = 0; i < from->n_tests; i++)
		case_list_add(l, &from->tests[i], CASE_ALONE);
	l->n_cut += from->n_cut;
	FREE_AND_NULL(from->tests);
	from->n_tests = from->n_cut = 0;
}

void report_file_merge(struct report_file *to, struct report_file *more)
{
	struct case_list all = {0};

	move_cases(&all, to);
	move_cases(&all, more);
	case_list_finish(&all, &to->tests, &to->n_tests, &to->n_cut);
	if (!to->environment) {
		to->environment = more->environment;
		more->environment = NULL;
	}
	report_file_release(more);
}

void report_file_release(struct report_file *r)
{
	for (size_t i = 0; i < r->n_tests; i++)
		test_result_release(&r->tests[i]);
	free(r->tests);
	free(r->environment);
	*r = (struct report_file){0};
}

/* ---- out ---- */

/* How much is written, the most first. */
enum detail { WITH_TRACES, WITH_MESSAGES, WITH_LINKS, BARE };

static void set_given(json_t *obj, const char *key, const char *text)
{
	if (text && *text)
		json_set_str(obj, key, text);
}

static json_t *test_json(const struct test_result *t, enum detail detail)
{
	json_t *obj = json_object();

	json_set_str(obj, "suite", t->suite);
	json_set_str(obj, "name", t->name);
	json_set_str(obj, "status", test_status_name(t->status));
	if (t->duration_ms >= 0)
		json_object_set_new(obj, "duration", json_real((double)t->duration_ms / 1000));
	set_given(obj, "dtype", t->dtype);
	if (detail <= WITH_MESSAGES)
		set_given(obj, "message", t->message);
	if (detail <= WITH_TRACES)
		set_given(obj, "trace", t->trace);
	if (detail <= WITH_LINKS) {
		set_given(obj, "log_url", t->log_url);
		set_given(obj, "file", t->file);
		if (t->line)
			json_set_int(obj, "line", t->line);
	}
	if (t->has_number) {
		json_t *number = json_object();

		json_object_set_new(number, "value", json_real(t->number));
		set_given(number, "unit", t->unit);
		json_object_set_new(obj, "number", number);
	}
	return obj;
}

/* 31.2 and not 31.199999999999999, where that is the same number. */
static char *dump(const json_t *obj, double number)
{
	char text[32];
	size_t digits = 15;

	snprintf(text, sizeof(text), "%.15g", number);
	if (strtod(text, NULL) != number)
		digits = 17;
	return json_dumps(obj, JSON_COMPACT | JSON_REAL_PRECISION(digits));
}

static int write_text(const struct report_file *r, enum detail detail, struct buf *out)
{
	buf_clear(out);
	buf_append_str(out, "{\"schema\":1");
	if (r->environment)
		buf_appendf(out, ",\"environment\":%s", r->environment);
	if (r->n_cut)
		buf_appendf(out, ",\"cut\":%zu", r->n_cut);
	buf_append_str(out, ",\"tests\":[");
	for (size_t i = 0; i < r->n_tests && !out->is_overflow; i++) {
		json_t *obj = test_json(&r->tests[i], detail);
		char *text = dump(obj, r->tests[i].number);

		buf_append_str(out, i ? ",\n" : "\n");
		buf_append_str(out, text);
		free(text);
		json_decref(obj);
	}
	buf_append_str(out, "\n]}\n");
	return buf_status(out);
}

char *report_file_text(const struct report_file *r, size_t *ret_bytes)
{
	struct buf out = BUF_INIT(REPORT_FILE_MAX_BYTES);
	enum detail detail = WITH_TRACES;
	int rc;

	/* 20,000 bare cases fit by far. */
	do
		rc = write_text(r, detail, &out);
	while (rc && detail++ < BARE);
	*ret_bytes = out.len;
	return buf_take(&out);
}
