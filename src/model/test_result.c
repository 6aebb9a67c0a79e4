#include "model/test_result.h"

#include <math.h>

/* One line: breaks and tabs become spaces, other control characters go. */
static void clean_line(char *s)
{
	size_t n = strlen(s), len = 0;
	bool has_control = false;

	/* Most texts have none, and the compiler makes this loop look at many bytes at once. */
	for (size_t i = 0; i < n; i++)
		has_control |= (unsigned char)s[i] < 0x20 || s[i] == 0x7f;
	if (!has_control)
		return;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '\n' || c == '\t')
			s[len++] = ' ';
		else if (c >= 0x20 && c != 0x7f)
			s[len++] = (char)c;
	}
	s[len] = '\0';
}

/* Breaks and tabs stay; other control characters go, and the blanks around the text. */
static void clean_lines(char *s)
{
	size_t len = 0;

	for (const char *p = s; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if ((c == '\n' && len > 0) || c == '\t' || (c >= 0x20 && c != 0x7f))
			s[len++] = (char)c;
	}
	while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\n' || s[len - 1] == '\t'))
		len--;
	s[len] = '\0';
}

char *report_line(const char *s, size_t max_bytes)
{
	char *out = xstrndup(s, utf8_cut(s, strlen(s), max_bytes));

	clean_line(out);
	return out;
}

char *report_lines(const char *s, size_t max_bytes)
{
	s += strspn(s, "\n\r");
	char *out = xstrndup(s, utf8_cut(s, strlen(s), max_bytes));

	clean_lines(out);
	if (!*out)
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

static bool is_link(const char *s)
{
	if (!s || strncasecmp(s, "https://", 8) != 0 || strlen(s) > REPORT_URL_MAX_BYTES)
		return false;
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p == 0x7f)
			return false;
	return true;
}

char *report_link(const char *s) { return is_link(s) ? xstrdup(s) : NULL; }

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

/* The path as it is kept, or NULL. */
static const char *place_of(const struct test_result *t, const char *path)
{
	while (path && str_has_prefix(path, "./"))
		path += 2;
	return path && test_status_is_red(t->status) && is_path_in_tree(path) ? path : NULL;
}

static int64_t line_of(int64_t line) { return line >= 1 && line <= REPORT_LINE_MAX ? line : 0; }

void test_result_locate(struct test_result *t, const char *path, int64_t line)
{
	path = place_of(t, path);
	if (!path)
		return;
	free(t->file);
	t->file = xstrdup(path);
	t->line = line_of(line);
}

/* ---- an entry of `tests` ---- */

const char *const TEST_MEMBERS[N_TEST_MEMBERS + 1] = {[MEMBER_SUITE] = "suite",
    [MEMBER_NAME] = "name",
    [MEMBER_STATUS] = "status",
    [MEMBER_DURATION] = "duration",
    [MEMBER_DTYPE] = "dtype",
    [MEMBER_MESSAGE] = "message",
    [MEMBER_TRACE] = "trace",
    [MEMBER_LOG_URL] = "log_url",
    [MEMBER_FILE] = "file",
    [MEMBER_NUMBER] = "number",
    [MEMBER_LINE] = "line"};

static int bad(struct error *e, const char *where, const char *key, const char *what)
{
	return error_set(e, ERR_INVALID, "%s.%s %s", where, key, what);
}

static bool is_given(const struct test_value *v) { return v->kind != VALUE_IS_ABSENT && v->kind != VALUE_IS_NULL; }

/* The first n bytes of the text as one that the result owns, or has in the block of its report. */
static char *keep_text(const struct test_entry *m, char *s, size_t n)
{
	if (!m->is_borrowed)
		return xstrndup(s, n);
	s[n] = '\0';
	return s;
}

static void drop_text(const struct test_entry *m, char **s)
{
	if (!m->is_borrowed)
		free(*s);
	*s = NULL;
}

/* As report_line(). NULL: it is absent, not text or empty then. */
static char *keep_line(const struct test_entry *m, const struct test_value *v, size_t max_bytes)
{
	char *line;

	if (v->kind != VALUE_IS_TEXT)
		return NULL;
	line = keep_text(m, v->text, utf8_cut(v->text, strlen(v->text), max_bytes));
	clean_line(line);
	if (!*line)
		drop_text(m, &line);
	return line;
}

/* As report_lines(). */
static char *keep_lines(const struct test_entry *m, const struct test_value *v, size_t max_bytes)
{
	char *from, *lines;

	if (v->kind != VALUE_IS_TEXT)
		return NULL;
	from = v->text + strspn(v->text, "\n\r");
	lines = keep_text(m, from, utf8_cut(from, strlen(from), max_bytes));
	clean_lines(lines);
	if (!*lines)
		drop_text(m, &lines);
	return lines;
}

static int keep_required(const struct test_entry *m, enum test_member member, const char *where, size_t max_bytes,
    char **ret, struct error *e)
{
	const struct test_value *v = &m->of[member];

	if (is_given(v) && v->kind != VALUE_IS_TEXT)
		return bad(e, where, TEST_MEMBERS[member], "must be text");
	if (!is_given(v))
		return bad(e, where, TEST_MEMBERS[member], "is missing");
	*ret = keep_line(m, v, max_bytes);
	if (!*ret || (*ret)[strspn(*ret, " ")] == '\0')
		return bad(e, where, TEST_MEMBERS[member], "is empty");
	return 0;
}

static int fill_number(const struct test_entry *m, const char *where, struct test_result *t, struct error *e)
{
	if (!is_given(&m->of[MEMBER_NUMBER]))
		return 0;
	if (m->number.kind != VALUE_IS_NUMBER || !isfinite(m->number.number))
		return bad(e, where, "number.value", "must be a number");
	if (is_given(&m->unit) && m->unit.kind != VALUE_IS_TEXT)
		return bad(e, where, "number.unit", "must be text");
	t->has_number = true;
	t->number = m->number.number;
	t->unit = keep_line(m, &m->unit, REPORT_UNIT_MAX_BYTES);
	return 0;
}

int test_result_fill(const struct test_entry *m, const char *where, struct test_result *t, struct error *e)
{
	static const enum test_member texts[] = {
	    MEMBER_DTYPE, MEMBER_MESSAGE, MEMBER_TRACE, MEMBER_LOG_URL, MEMBER_FILE};
	const struct test_value *v = m->of, *line = &v[MEMBER_LINE];
	const char *path;

	*t = (struct test_result){.duration_ms = -1, .is_borrowed = m->is_borrowed};
	int rc = keep_required(m, MEMBER_SUITE, where, REPORT_SUITE_MAX_BYTES, &t->suite, e);
	if (!rc)
		rc = keep_required(m, MEMBER_NAME, where, REPORT_NAME_MAX_BYTES, &t->name, e);
	if (rc)
		return rc;
	t->status = test_status_parse(v[MEMBER_STATUS].text);
	if (t->status == N_TEST_STATUSES)
		return bad(e, where, "status", "must be FAIL, ERROR, MISS, PASS, DONE or SKIP");
	if (is_given(&v[MEMBER_DURATION])) {
		t->duration_ms = report_duration_ms(v[MEMBER_DURATION].number);
		if (v[MEMBER_DURATION].kind != VALUE_IS_NUMBER || t->duration_ms < 0)
			return bad(e, where, "duration", "must be a number of seconds");
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (is_given(&v[texts[i]]) && v[texts[i]].kind != VALUE_IS_TEXT)
			return bad(e, where, TEST_MEMBERS[texts[i]], "must be text");
	t->dtype = keep_line(m, &v[MEMBER_DTYPE], REPORT_UNIT_MAX_BYTES);
	t->message = keep_line(m, &v[MEMBER_MESSAGE], REPORT_MESSAGE_MAX_BYTES);
	t->trace = keep_lines(m, &v[MEMBER_TRACE], REPORT_TRACE_MAX_BYTES);
	if (is_link(v[MEMBER_LOG_URL].text))
		t->log_url = keep_text(m, v[MEMBER_LOG_URL].text, strlen(v[MEMBER_LOG_URL].text));
	rc = fill_number(m, where, t, e);
	if (rc)
		return rc;
	/* 12.0 is 12, as JSON Schema has it */
	if (is_given(line) && (line->kind != VALUE_IS_NUMBER || line->number < 1 || line->number > REPORT_LINE_MAX ||
				  line->number != (double)(int64_t)line->number))
		return bad(e, where, "line", "must be a line number, 1 to 10000000");
	path = place_of(t, v[MEMBER_FILE].text);
	if (path) {
		t->file = keep_text(m, v[MEMBER_FILE].text + (path - v[MEMBER_FILE].text), strlen(path));
		t->line = line_of((int64_t)line->number);
	}
	return 0;
}

static struct test_value value_of(const json_t *v)
{
	if (!v)
		return (struct test_value){.kind = VALUE_IS_ABSENT};
	if (json_is_null(v))
		return (struct test_value){.kind = VALUE_IS_NULL};
	if (json_is_number(v))
		return (struct test_value){.kind = VALUE_IS_NUMBER, .number = json_number_value(v)};
	if (json_is_string(v)) /* test_result_fill() copies it */
		return (struct test_value){.kind = VALUE_IS_TEXT, .text = (char *)(uintptr_t)json_string_value(v)};
	return (struct test_value){.kind = VALUE_IS_OTHER};
}

int test_result_parse(const json_t *entry, const char *where, struct test_result *t, struct error *e)
{
	const json_t *number = json_object_get(entry, "number");
	struct test_entry m = {.is_borrowed = false};

	*t = (struct test_result){.duration_ms = -1};
	if (!json_is_object(entry))
		return error_set(e, ERR_INVALID, "%s must be an object", where);
	for (size_t i = 0; i < N_TEST_MEMBERS; i++)
		m.of[i] = value_of(json_object_get(entry, TEST_MEMBERS[i]));
	m.number = value_of(json_object_get(number, "value"));
	m.unit = value_of(json_object_get(number, "unit"));
	return test_result_fill(&m, where, t, e);
}

void test_result_release(struct test_result *t)
{
	if (!t->is_borrowed)
		FREE_ALL(t->suite, t->name, t->dtype, t->message, t->trace, t->log_url, t->file, t->unit);
	*t = (struct test_result){0};
}

void test_result_own(struct test_result *t)
{
	char **const texts[] = {
	    &t->suite, &t->name, &t->dtype, &t->message, &t->trace, &t->log_url, &t->file, &t->unit};

	for (size_t i = 0; t->is_borrowed && i < ARRAY_LEN(texts); i++)
		*texts[i] = xstrdup_or_null(*texts[i]);
	t->is_borrowed = false;
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
