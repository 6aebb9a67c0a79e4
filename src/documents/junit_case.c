#include "documents/formats.h"

#include <math.h>

enum {
	/* more of an element's text than the result keeps, because blank lines around it are removed later */
	TEXT_MAX_BYTES = 2 * REPORT_TRACE_MAX_BYTES,
	TIME_MAX_BYTES = 32,
	NAME_HELD_MAX_BYTES = 1024,
	VALUE_MAX_BYTES = 512, /* of the environment: eight values stay far below its limit */
};

const struct junit_environment JUNIT_ENVIRONMENT[] = {
    {"outpost.accelerator", NULL, "accelerator"},
    {"outpost.device", NULL, "device"},
    {"outpost.os", NULL, "os"},
    {"outpost.driver", NULL, "driver"},
    {"outpost.torch", NULL, "torch"},
    {"outpost.torch_commit", NULL, "torch_commit"},
    {"outpost.extension.name", "extension", "name"},
    {"outpost.extension.version", "extension", "version"},
    {NULL, NULL, NULL},
};

/* Value of an attribute in expat's list; NULL: absent. */
static const char *junit_attribute(const char *const *attributes, const char *name)
{
	for (; attributes[0]; attributes += 2)
		if (str_eq(attributes[0], name))
			return attributes[1];
	return NULL;
}

char *junit_name(const char *const *attributes, const char *name)
{
	const char *s = junit_attribute(attributes, name);

	return s ? xstrndup(s, utf8_cut(s, strlen(s), NAME_HELD_MAX_BYTES)) : xstrdup("");
}

/* In seconds; Surefire writes commas between thousands. */
static int64_t parse_time(const char *s)
{
	char digits[TIME_MAX_BYTES], *end;
	size_t n = 0;

	for (; s && *s; s++) {
		if (*s == ',')
			continue;
		if (!strchr("0123456789.eE+-", *s) || n + 1 == sizeof(digits))
			return -1;
		digits[n++] = *s;
	}
	digits[n] = '\0';
	double seconds = strtod(digits, &end);
	return n > 0 && *end == '\0' ? report_duration_ms(seconds) : -1;
}

void junit_case_open(struct junit_case *c, const char *const *attributes)
{
	static const char *const deciding[] = {"status", "result"};
	/* gtest marks a disabled test only by `status="notrun" result="suppressed"`; other tools use other words.
	 * An unknown word decides nothing. */
	static const struct {
		const char *word;
		enum junit_outcome outcome;
	} words[] = {{"notrun", JUNIT_SKIPPED}, {"disabled", JUNIT_SKIPPED}, {"suppressed", JUNIT_SKIPPED},
	    {"skipped", JUNIT_SKIPPED}, {"ignored", JUNIT_SKIPPED}, {"pending", JUNIT_SKIPPED}, {"error", JUNIT_ERROR},
	    {"broken", JUNIT_ERROR}, {"failed", JUNIT_FAILURE}, {"failure", JUNIT_FAILURE}, {"fail", JUNIT_FAILURE}};
	const char *file = junit_attribute(attributes, "file");
	const char *line = junit_attribute(attributes, "line");

	*c = (struct junit_case){
	    .name = junit_name(attributes, "name"),
	    .class_name = junit_name(attributes, "classname"),
	    .duration_ms = parse_time(junit_attribute(attributes, "time")),
	    .file = file && strlen(file) <= REPORT_PATH_MAX_BYTES ? xstrdup(file) : NULL,
	    .text = BUF_INIT(TEXT_MAX_BYTES),
	};
	if (!line || parse_int64(line, &c->line) || c->line < 0 || c->line > REPORT_LINE_MAX)
		c->line = -1;
	for (size_t i = 0; i < ARRAY_LEN(deciding); i++) {
		const char *word = junit_attribute(attributes, deciding[i]);

		for (size_t k = 0; word && k < ARRAY_LEN(words); k++)
			if (strcasecmp(word, words[k].word) == 0 && words[k].outcome > c->outcome)
				c->outcome = words[k].outcome;
	}
}

enum junit_outcome junit_outcome_of(const char *element)
{
	static const struct {
		const char *element;
		enum junit_outcome outcome;
	} elements[] = {{"failure", JUNIT_FAILURE}, {"rerunFailure", JUNIT_FAILURE}, {"error", JUNIT_ERROR},
	    {"rerunError", JUNIT_ERROR}, {"skipped", JUNIT_SKIPPED}, {"disabled", JUNIT_SKIPPED},
	    {"flakyFailure", JUNIT_FLAKY}, {"flakyError", JUNIT_FLAKY}};

	for (size_t i = 0; i < ARRAY_LEN(elements); i++)
		if (str_eq(element, elements[i].element))
			return elements[i].outcome;
	return JUNIT_SILENT;
}

bool junit_case_decide(struct junit_case *c, enum junit_outcome outcome, const char *const *attributes)
{
	const char *message = junit_attribute(attributes, "message");

	/* An attribute of the case may have decided the same before, without a message. */
	if (outcome < c->outcome || (outcome == c->outcome && (c->message || c->text.len)))
		return false;
	if (!message || !*message)
		message = junit_attribute(attributes, "type");
	c->outcome = outcome;
	free(c->message);
	c->message = message && *message ? report_line(message, REPORT_MESSAGE_MAX_BYTES) : NULL;
	buf_clear(&c->text);
	c->is_text_full = false;
	return true;
}

void junit_case_text(struct junit_case *c, const char *s, size_t n)
{
	size_t room = c->text.max - c->text.len, taken = utf8_cut(s, n, room);

	/* Blank lines at the beginning would use up the space. */
	if (c->text.len == 0)
		for (; taken > 0 && (*s == '\n' || *s == '\r'); s++)
			taken--;
	if (!c->is_text_full)
		buf_append(&c->text, s, taken);
	c->is_text_full = c->is_text_full || room < n;
}

/* NULL unless the property has a name and a value. */
static const char *property_name(const char *const *attributes, const char **ret_value)
{
	const char *name = junit_attribute(attributes, "name");

	*ret_value = junit_attribute(attributes, "value");
	return *ret_value && **ret_value ? name : NULL;
}

/* The last value counts. NULL when nothing is left of it. */
static void replace_line(char **to, const char *value)
{
	free(*to);
	*to = report_line(value, REPORT_UNIT_MAX_BYTES);
	if (!**to)
		FREE_AND_NULL(*to);
}

void junit_case_add_property(struct junit_case *c, const char *const *attributes)
{
	const char *value, *name = property_name(attributes, &value);

	if (!name)
		return;
	if (str_eq(name, JUNIT_DTYPE)) {
		replace_line(&c->dtype, value);
	} else if (str_eq(name, JUNIT_UNIT)) {
		replace_line(&c->unit, value);
	} else if (str_eq(name, JUNIT_NUMBER)) {
		char *end;
		double number = strtod(value, &end);

		c->has_number = *end == '\0' && isfinite(number);
		c->number = c->has_number ? number : 0;
	} else if (str_eq(name, JUNIT_LOG_URL)) {
		free(c->log_url);
		c->log_url = report_link(value);
	} else if (str_eq(name, JUNIT_STATUS)) {
		c->is_done = str_eq(value, test_status_name(TEST_DONE));
		c->is_miss = str_eq(value, test_status_name(TEST_MISS));
	}
}

void junit_environment_add(json_t **environment, size_t *n_cut, const char *const *attributes)
{
	const char *value, *name = property_name(attributes, &value);
	int64_t n;

	if (!name)
		return;
	if (str_eq(name, JUNIT_CUT) && !parse_int64(value, &n) && n > 0 && n <= REPORT_CUT_MAX - (int64_t)*n_cut)
		*n_cut += (size_t)n;
	for (const struct junit_environment *e = JUNIT_ENVIRONMENT; e->property; e++) {
		if (!str_eq(name, e->property))
			continue;
		if (!*environment)
			*environment = json_object();
		if (e->object && !json_object_get(*environment, e->object))
			json_object_set_new(*environment, e->object, json_object());
		json_t *of = e->object ? json_object_get(*environment, e->object) : *environment;
		char *line = report_line(value, VALUE_MAX_BYTES);
		if (*line && !json_object_get(of, e->key))
			json_set_str(of, e->key, line);
		free(line);
	}
}

/* "module.Class.test", or the parts that exist. free(). */
static char *full_name(const struct junit_case *c, const char *suite, bool *ret_is_whole)
{
	bool has_class = *c->class_name && !str_eq(c->class_name, suite);
	const char *name = *c->name ? c->name : has_class ? c->class_name : "(unnamed)";
	char *full = has_class && *c->name ? xasprintf("%s.%s", c->class_name, name) : xstrdup(name);
	char *line = line_or(full, REPORT_NAME_MAX_BYTES, "(unnamed)");

	*ret_is_whole = *c->name && str_eq(line, full);
	free(full);
	return line;
}

/* The element's message attribute, else the first line of its text, else NULL. */
static char *junit_message(const struct junit_case *c, const char *trace)
{
	char *first, *out;

	if (c->message && !text_is_blank(c->message))
		return xstrdup(c->message);
	if (!trace)
		return NULL;
	trace += strspn(trace, " \t\n");
	first = xstrndup(trace, strcspn(trace, "\n"));
	out = report_line(first, REPORT_MESSAGE_MAX_BYTES);
	free(first);
	return out;
}

void junit_case_close(struct junit_case *c, const char *suite, struct test_result *ret, bool *ret_is_whole)
{
	static const enum test_status statuses[] = {
	    [JUNIT_SILENT] = TEST_PASS,
	    [JUNIT_FLAKY] = TEST_PASS,
	    [JUNIT_SKIPPED] = TEST_SKIP,
	    [JUNIT_ERROR] = TEST_ERROR,
	    [JUNIT_FAILURE] = TEST_FAIL,
	};
	char *tail = c->dtype ? xasprintf(" (%s)", c->dtype) : NULL;

	if (!suite)
		suite = c->class_name;
	/* junit_out.c writes the dtype behind the name as well: "llama3 (bf16)" */
	if (tail && str_has_suffix(c->name, tail) && strlen(c->name) > strlen(tail))
		c->name[strlen(c->name) - strlen(tail)] = '\0';
	free(tail);
	*ret = (struct test_result){
	    .suite = line_or(suite, REPORT_SUITE_MAX_BYTES, "tests"),
	    .name = full_name(c, suite, ret_is_whole),
	    .status = statuses[c->outcome],
	    .duration_ms = c->duration_ms,
	    .trace = report_lines(buf_str(&c->text), REPORT_TRACE_MAX_BYTES),
	};
	/* pytest (xunit1) counts lines from 0; "pytest" is its default name for a suite */
	test_result_locate(ret, c->file, str_eq(suite, "pytest") ? c->line + 1 : c->line);
	ret->message = junit_message(c, ret->trace);
	if (c->is_done && ret->status == TEST_PASS)
		ret->status = TEST_DONE;
	else if (c->is_miss && ret->status == TEST_ERROR)
		ret->status = TEST_MISS;
	ret->dtype = c->dtype;
	ret->log_url = c->log_url;
	ret->has_number = c->has_number;
	ret->number = c->number;
	c->dtype = c->log_url = NULL;
	if (c->has_number) {
		ret->unit = c->unit;
		c->unit = NULL;
	}
	if (c->outcome == JUNIT_FLAKY)
		test_result_mark_flaky(ret);
	if (c->outcome < JUNIT_ERROR)
		FREE_AND_NULL(ret->trace);
	junit_case_release(c);
}

void junit_case_release(struct junit_case *c)
{
	FREE_ALL(c->name, c->class_name, c->file, c->message, c->dtype, c->unit, c->log_url);
	buf_release(&c->text);
	*c = (struct junit_case){0};
}
