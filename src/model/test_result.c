#include "model/test_result.h"

#include <math.h>

char *report_line(const char *s, size_t max_bytes)
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

char *report_lines(const char *s, size_t max_bytes)
{
	s += strspn(s, "\n\r");
	size_t n = utf8_cut(s, strlen(s), max_bytes), len = 0;
	char *out = xmalloc(n + 1);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c == '\n' && len > 0) || c == '\t' || (c >= 0x20 && c != 0x7f))
			out[len++] = (char)c;
	}
	while (len > 0 && (out[len - 1] == ' ' || out[len - 1] == '\n' || out[len - 1] == '\t'))
		len--;
	out[len] = '\0';
	if (len == 0)
		FREE_AND_NULL(out);
	return out;
}

char *report_text(const json_t *obj, const char *key, size_t max_bytes)
{
	const char *s = json_get_str(obj, key);
	char *text = s ? report_line(s, max_bytes) : NULL;

	if (text && !*text)
		FREE_AND_NULL(text);
	return text;
}

char *report_link(const char *s)
{
	if (!s || strncasecmp(s, "https://", 8) != 0 || strlen(s) > REPORT_URL_MAX_BYTES)
		return NULL;
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p == 0x7f)
			return NULL;
	return xstrdup(s);
}

char *report_url(const json_t *obj, const char *key) { return report_link(json_get_str(obj, key)); }

int64_t report_duration_ms(double seconds)
{
	return seconds >= 0 && seconds < 1e9 ? (int64_t)(seconds * 1000 + 0.5) : -1;
}

/* Whether the path stays in the tree. */
static bool is_path_in_tree(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > REPORT_PATH_MAX_BYTES || s[0] == '/' || s[n - 1] == '/' || (n > 1 && s[1] == ':'))
		return false;
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f || *p == '\\')
			return false;
	for (const char *part = s; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0'))
			return false;
	}
	return true;
}

void test_result_locate(struct test_result *t, const char *path, int64_t line)
{
	while (path && str_has_prefix(path, "./"))
		path += 2;
	if (!path || !test_status_is_red(t->status) || !is_path_in_tree(path))
		return;
	free(t->file);
	t->file = xstrdup(path);
	t->line = line >= 1 && line <= REPORT_LINE_MAX ? line : 0;
}

static int bad(struct error *e, const char *where, const char *key, const char *what)
{
	return error_set(e, ERR_INVALID, "%s.%s %s", where, key, what);
}

/* Absent or null is fine: *ret is false then. */
static int is_given_text(const json_t *obj, const char *where, const char *key, bool *ret, struct error *e)
{
	const json_t *v = json_object_get(obj, key);

	*ret = v && !json_is_null(v);
	if (*ret && !json_is_string(v))
		return bad(e, where, key, "must be text");
	return 0;
}

static int required_text(
    const json_t *entry, const char *where, const char *key, size_t max_bytes, char **ret, struct error *e)
{
	bool is_given;
	int rc = is_given_text(entry, where, key, &is_given, e);

	if (rc)
		return rc;
	if (!is_given)
		return bad(e, where, key, "is missing");
	*ret = report_line(json_get_str(entry, key), max_bytes);
	if ((*ret)[strspn(*ret, " ")] == '\0')
		return bad(e, where, key, "is empty");
	return 0;
}

static int parse_number(const json_t *entry, const char *where, struct test_result *t, struct error *e)
{
	const json_t *number = json_object_get(entry, "number"), *value = json_object_get(number, "value");
	bool is_given;

	if (!number || json_is_null(number))
		return 0;
	if (!json_is_number(value) || !isfinite(json_number_value(value)))
		return bad(e, where, "number.value", "must be a number");
	if (is_given_text(number, where, "unit", &is_given, NULL))
		return bad(e, where, "number.unit", "must be text");
	t->has_number = true;
	t->number = json_number_value(value);
	t->unit = report_text(number, "unit", REPORT_UNIT_MAX_BYTES);
	return 0;
}

int test_result_parse(const json_t *entry, const char *where, struct test_result *t, struct error *e)
{
	static const char *const texts[] = {"dtype", "message", "trace", "log_url", "file"};
	const json_t *duration = json_object_get(entry, "duration"), *line = json_object_get(entry, "line");
	const char *trace = json_get_str(entry, "trace");
	double n = json_number_value(line);

	*t = (struct test_result){.duration_ms = -1};
	if (!json_is_object(entry))
		return error_set(e, ERR_INVALID, "%s must be an object", where);
	int rc = required_text(entry, where, "suite", REPORT_SUITE_MAX_BYTES, &t->suite, e);
	if (!rc)
		rc = required_text(entry, where, "name", REPORT_NAME_MAX_BYTES, &t->name, e);
	if (rc)
		return rc;
	t->status = test_status_parse(json_get_str(entry, "status"));
	if (t->status == N_TEST_STATUSES)
		return bad(e, where, "status", "must be FAIL, ERROR, MISS, PASS, DONE or SKIP");
	if (duration && !json_is_null(duration)) {
		t->duration_ms = report_duration_ms(json_number_value(duration));
		if (!json_is_number(duration) || t->duration_ms < 0)
			return bad(e, where, "duration", "must be a number of seconds");
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		bool is_given;

		rc = is_given_text(entry, where, texts[i], &is_given, e);
		if (rc)
			return rc;
	}
	t->dtype = report_text(entry, "dtype", REPORT_UNIT_MAX_BYTES);
	t->message = report_text(entry, "message", REPORT_MESSAGE_MAX_BYTES);
	t->trace = trace ? report_lines(trace, REPORT_TRACE_MAX_BYTES) : NULL;
	t->log_url = report_url(entry, "log_url");
	rc = parse_number(entry, where, t, e);
	if (rc)
		return rc;
	/* 12.0 is 12, as JSON Schema has it */
	if (line && !json_is_null(line) &&
	    (!json_is_number(line) || n < 1 || n > REPORT_LINE_MAX || n != (double)(int64_t)n))
		return bad(e, where, "line", "must be a line number, 1 to 10000000");
	test_result_locate(t, json_get_str(entry, "file"), (int64_t)n);
	return 0;
}

void test_result_release(struct test_result *t)
{
	FREE_ALL(t->suite, t->name, t->dtype, t->message, t->trace, t->log_url, t->file, t->unit);
	*t = (struct test_result){0};
}

enum { ENTRIES_MAX = 1000, DURATION_MAX_BYTES = 32 };
static const char SUITE[] = "unit";

/* A new reference; NULL: there is no list. */
static json_t *list_of(const json_t *workflow)
{
	static const char *const keys[] = {"failed_tests_detail", "failed_tests_json", "failed_tests"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		json_t *v = json_object_get(workflow, keys[i]), *parsed = NULL;

		if (json_is_array(v))
			return json_incref(v);
		if (!json_is_string(v) || json_parse(json_string_value(v), json_string_length(v), &parsed, NULL))
			continue;
		if (json_is_array(parsed))
			return parsed;
		json_decref(parsed);
	}
	return NULL;
}

/* Seconds, as a number or as the text of one. */
static int64_t duration_of(const json_t *entry)
{
	const json_t *v = json_object_get(entry, "duration");
	const char *text = json_string_value(v);
	char *end;

	if (json_is_number(v))
		return report_duration_ms(json_number_value(v));
	if (!text || !*text || strlen(text) > DURATION_MAX_BYTES || strspn(text, "0123456789.") != strlen(text))
		return -1;
	double seconds = strtod(text, &end);
	return *end ? -1 : report_duration_ms(seconds);
}

struct test_result *failed_tests_parse(const json_t *workflow, size_t *ret_n, size_t *ret_n_cut)
{
	json_t *list = list_of(workflow);
	size_t n = json_array_size(list), n_read = n < ENTRIES_MAX ? n : ENTRIES_MAX;
	struct test_result *tests = n_read ? xcalloc(n_read, sizeof(*tests)) : NULL;

	*ret_n = 0;
	*ret_n_cut = n - n_read;
	for (size_t i = 0; i < n_read; i++) {
		const json_t *entry = json_array_get(list, i);
		const char *stack = json_get_str(entry, "stacktrace");
		char *text = report_text(entry, "name", REPORT_NAME_MAX_BYTES), *name = NULL;
		char *class_name = report_text(entry, "classname", REPORT_NAME_MAX_BYTES);

		/* "classname.name", as for a JUnit report, unless the suite has the name of the class */
		if (text && text[strspn(text, " ")]) {
			bool needs_class = class_name && !str_eq(class_name, SUITE);
			char *whole = xasprintf("%s%s%s", needs_class ? class_name : "", needs_class ? "." : "", text);

			name = report_line(whole, REPORT_NAME_MAX_BYTES);
			free(whole);
		}
		FREE_ALL(text, class_name);
		if (!name)
			continue;
		tests[(*ret_n)++] = (struct test_result){.suite = xstrdup(SUITE),
		    .name = name,
		    .status = TEST_FAIL,
		    .duration_ms = duration_of(entry),
		    .message = report_text(entry, "message", REPORT_MESSAGE_MAX_BYTES),
		    .trace = stack ? report_lines(stack, REPORT_TRACE_MAX_BYTES) : NULL};
	}
	json_decref(list);
	return tests;
}
