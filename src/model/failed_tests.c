#include "model/failed_tests.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

enum { ENTRIES_MAX = 1000, DURATION_MAX_BYTES = 32 };
static const char SUITE[] = "unit";

/* Owned by the caller: json_decref(). NULL: no list. */
static json_t *list_of(const json_t *workflow)
{
	static const char *const keys[] = {
	    "failed_tests_detail", "failed_tests_json", "failed_tests"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		json_t *v = json_object_get(workflow, keys[i]), *parsed = NULL;

		if (json_is_array(v))
			return json_incref(v);
		if (!json_is_string(v) ||
		    json_parse(json_string_value(v), json_string_length(v), &parsed, NULL))
			continue;
		if (json_is_array(parsed))
			return parsed;
		json_decref(parsed);
	}
	return NULL;
}

/* "classname.name", as of a JUnit report in a suite of that name. NULL: there is no name. */
static char *name_of(const json_t *entry)
{
	char *name = report_text(entry, "name", REPORT_NAME_MAX_BYTES);
	char *class_name = report_text(entry, "classname", REPORT_NAME_MAX_BYTES);
	char *both = NULL;

	if (name && name[strspn(name, " ")] && class_name && !str_eq(class_name, SUITE)) {
		char *whole = xasprintf("%s.%s", class_name, name);

		both = report_line(whole, REPORT_NAME_MAX_BYTES);
		free(whole);
	} else if (name && name[strspn(name, " ")]) {
		both = xstrdup(name);
	}
	free(name);
	free(class_name);
	return both;
}

/* Seconds, as a number or as the text of one. */
static int64_t duration_of(const json_t *entry)
{
	const json_t *v = json_object_get(entry, "duration");
	const char *text = json_string_value(v);
	char *end;
	double seconds;

	if (json_is_number(v))
		return report_duration_ms(json_number_value(v));
	if (!text || !*text || strlen(text) > DURATION_MAX_BYTES ||
	    strspn(text, "0123456789.") != strlen(text))
		return -1;
	seconds = strtod(text, &end);
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
		char *name = name_of(entry);

		if (!name)
			continue;
		tests[(*ret_n)++] = (struct test_result){
		    .suite = xstrdup(SUITE),
		    .name = name,
		    .status = TEST_FAIL,
		    .duration_ms = duration_of(entry),
		    .message = report_text(entry, "message", REPORT_MESSAGE_MAX_BYTES),
		    .trace = stack ? report_lines(stack, REPORT_TRACE_MAX_BYTES) : NULL,
		};
	}
	json_decref(list);
	return tests;
}
