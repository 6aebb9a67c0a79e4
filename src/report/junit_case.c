#include "report/junit_case.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

/* What is held of an element's text: more than is kept, because blank lines around it go. */
enum {
	TEXT_MAX_BYTES = 2 * REPORT_TRACE_MAX_BYTES,
	TIME_MAX_BYTES = 32,
	NAME_HELD_MAX_BYTES = 1024
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

/* Seconds; Surefire groups the thousands with commas. */
static int64_t parse_time(const char *s)
{
	char digits[TIME_MAX_BYTES], *end;
	size_t n = 0;
	double seconds;

	for (; s && *s; s++) {
		if (*s == ',')
			continue;
		if (!strchr("0123456789.eE+-", *s) || n + 1 == sizeof(digits))
			return -1;
		digits[n++] = *s;
	}
	digits[n] = '\0';
	seconds = strtod(digits, &end);
	return n > 0 && *end == '\0' ? report_duration_ms(seconds) : -1;
}

/* gtest says `status="notrun" result="suppressed"` of a disabled test and nothing in it; others
 * have words of their own. An unknown one decides nothing. */
static enum junit_outcome outcome_of_word(const char *word)
{
	static const struct {
		const char *word;
		enum junit_outcome outcome;
	} words[] = {
	    {"notrun", JUNIT_SKIPPED},
	    {"disabled", JUNIT_SKIPPED},
	    {"suppressed", JUNIT_SKIPPED},
	    {"skipped", JUNIT_SKIPPED},
	    {"ignored", JUNIT_SKIPPED},
	    {"pending", JUNIT_SKIPPED},
	    {"error", JUNIT_ERROR},
	    {"broken", JUNIT_ERROR},
	    {"failed", JUNIT_FAILURE},
	    {"failure", JUNIT_FAILURE},
	    {"fail", JUNIT_FAILURE},
	};

	for (size_t i = 0; word && i < ARRAY_LEN(words); i++)
		if (strcasecmp(word, words[i].word) == 0)
			return words[i].outcome;
	return JUNIT_SILENT;
}

/* NULL when there is none, or one that is too long to be a place. free(). */
static char *file_of(const char *const *attributes)
{
	const char *s = junit_attribute(attributes, "file");

	return s && strlen(s) <= REPORT_PATH_MAX_BYTES ? xstrdup(s) : NULL;
}

static int64_t line_of(const char *const *attributes)
{
	const char *s = junit_attribute(attributes, "line");
	int64_t line;

	return s && parse_int64(s, &line) == 0 && line >= 0 && line <= REPORT_LINE_MAX ? line : -1;
}

void junit_case_open(struct junit_case *c, const char *const *attributes)
{
	static const char *const deciding[] = {"status", "result"};

	*c = (struct junit_case){
	    .name = junit_name(attributes, "name"),
	    .class_name = junit_name(attributes, "classname"),
	    .duration_ms = parse_time(junit_attribute(attributes, "time")),
	    .file = file_of(attributes),
	    .line = line_of(attributes),
	    .text = BUF_INIT(TEXT_MAX_BYTES),
	};
	for (size_t i = 0; i < ARRAY_LEN(deciding); i++) {
		enum junit_outcome outcome =
		    outcome_of_word(junit_attribute(attributes, deciding[i]));

		if (outcome > c->outcome)
			c->outcome = outcome;
	}
}

enum junit_outcome junit_outcome_of(const char *element)
{
	static const struct {
		const char *element;
		enum junit_outcome outcome;
	} elements[] = {
	    {"failure", JUNIT_FAILURE},
	    {"rerunFailure", JUNIT_FAILURE},
	    {"error", JUNIT_ERROR},
	    {"rerunError", JUNIT_ERROR},
	    {"skipped", JUNIT_SKIPPED},
	    {"disabled", JUNIT_SKIPPED},
	    {"flakyFailure", JUNIT_FLAKY},
	    {"flakyError", JUNIT_FLAKY},
	};

	for (size_t i = 0; i < ARRAY_LEN(elements); i++)
		if (str_eq(element, elements[i].element))
			return elements[i].outcome;
	return JUNIT_SILENT;
}

bool junit_case_decide(
    struct junit_case *c, enum junit_outcome outcome, const char *const *attributes)
{
	const char *message = junit_attribute(attributes, "message");

	/* An attribute of the case may have said the same before, without a message. */
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

	/* Blank lines at its beginning would use the room up. */
	if (c->text.len == 0)
		for (; taken > 0 && (*s == '\n' || *s == '\r'); s++)
			taken--;
	if (!c->is_text_full)
		buf_append(&c->text, s, taken);
	c->is_text_full = c->is_text_full || room < n;
}

static bool is_blank(const char *s)
{
	return s[strspn(s, " \t\r\n")] == '\0';
}

/* free() */
static char *line_or(const char *s, size_t max_bytes, const char *fallback)
{
	char *line = report_line(s, max_bytes);

	if (!is_blank(line))
		return line;
	free(line);
	return xstrdup(fallback);
}

/* "module.Class.test", as the contract puts it together. free(). */
static char *full_name(const struct junit_case *c, const char *suite, bool *ret_is_whole)
{
	bool has_class = *c->class_name && !str_eq(c->class_name, suite);
	const char *name = *c->name ? c->name : has_class ? c->class_name : "(unnamed)";
	char *full =
	    has_class && *c->name ? xasprintf("%s.%s", c->class_name, name) : xstrdup(name);
	char *line = line_or(full, REPORT_NAME_MAX_BYTES, "(unnamed)");

	*ret_is_whole = *c->name && str_eq(line, full);
	free(full);
	return line;
}

/* The element's message attribute, else the first line of its text. NULL when there is none. */
static char *message_of(const struct junit_case *c, const char *trace)
{
	char *first, *out;

	if (c->message && !is_blank(c->message))
		return xstrdup(c->message);
	if (!trace)
		return NULL;
	trace += strspn(trace, " \t\n");
	first = xstrndup(trace, strcspn(trace, "\n"));
	out = report_line(first, REPORT_MESSAGE_MAX_BYTES);
	free(first);
	return out;
}

/* Passed in the end: what went wrong before is kept as a remark. free(). */
static char *flaky_message(char *message)
{
	char *remark = message ? xasprintf("passed when it was run again; before: %s", message)
			       : xstrdup("passed when it was run again");
	char *out = report_line(remark, REPORT_MESSAGE_MAX_BYTES);

	free(remark);
	free(message);
	return out;
}

void junit_case_close(
    struct junit_case *c, const char *suite, struct test_result *ret, bool *ret_is_whole)
{
	static const enum test_status statuses[] = {
	    [JUNIT_SILENT] = TEST_PASS,
	    [JUNIT_FLAKY] = TEST_PASS,
	    [JUNIT_SKIPPED] = TEST_SKIP,
	    [JUNIT_ERROR] = TEST_ERROR,
	    [JUNIT_FAILURE] = TEST_FAIL,
	};
	bool is_red = c->outcome == JUNIT_ERROR || c->outcome == JUNIT_FAILURE;

	if (!suite)
		suite = c->class_name;
	junit_facts_strip(&c->facts, c->name);
	*ret = (struct test_result){
	    .suite = line_or(suite, REPORT_SUITE_MAX_BYTES, "tests"),
	    .name = full_name(c, suite, ret_is_whole),
	    .status = statuses[c->outcome],
	    .duration_ms = c->duration_ms,
	    .trace = report_lines(buf_str(&c->text), REPORT_TRACE_MAX_BYTES),
	};
	/* pytest (xunit1) counts lines from 0; it calls its suite so unless it is told otherwise */
	test_result_locate(ret, c->file, str_eq(suite, "pytest") ? c->line + 1 : c->line);
	ret->message = message_of(c, ret->trace);
	junit_facts_apply(&c->facts, ret);
	if (c->outcome == JUNIT_FLAKY)
		ret->message = flaky_message(ret->message);
	if (!is_red)
		FREE_AND_NULL(ret->trace);
	junit_case_release(c);
}

void junit_case_release(struct junit_case *c)
{
	free(c->name);
	free(c->class_name);
	free(c->file);
	free(c->message);
	junit_facts_release(&c->facts);
	buf_release(&c->text);
	*c = (struct junit_case){0};
}
