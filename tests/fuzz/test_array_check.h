/* test_array_read() against the tree: both give the same tests and the same plain text, or the array is left to the tree. */
#pragma once

#include "model/test_array.h"

static inline void check_same_test(const struct test_result *a, const struct test_result *b)
{
	assert(str_eq(a->suite, b->suite) && str_eq(a->name, b->name) && str_eq(a->dtype, b->dtype));
	assert(str_eq(a->message, b->message) && str_eq(a->trace, b->trace) && str_eq(a->log_url, b->log_url));
	assert(str_eq(a->file, b->file) && str_eq(a->unit, b->unit));
	assert(a->status == b->status && a->duration_ms == b->duration_ms && a->line == b->line);
	assert(a->has_number == b->has_number && a->number == b->number);
}

/* Newer versions of jansson write the shortest form of a number. */
static inline bool writes_17_digits(void)
{
	json_t *tenth = json_real(0.1);
	char *text = json_dumps(tenth, JSON_ENCODE_ANY);
	bool is = str_eq(text, "0.10000000000000001");

	free(text);
	json_decref(tenth);
	return is;
}

/* Returns whether the array was read apart. */
static inline bool check_test_array(const char *text, size_t n)
{
	static const char *const path[] = {"tests", NULL};
	struct test_array a;
	json_t *whole = NULL, *rest = NULL;
	bool is_read = test_array_read(text, n, path, true, &a);

	if (is_read && json_parse(a.rest.data, a.rest.len, &rest, NULL) == 0) {
		const json_t *tests;
		char *plain;

		assert(json_parse(text, n, &whole, NULL) == 0);
		tests = json_object_get(whole, "tests");
		assert(json_array_size(tests) == a.n && json_array_size(json_object_get(rest, "tests")) == 0);
		for (size_t i = 0; i < a.n; i++) {
			struct test_result t;

			assert(test_result_parse(json_array_get(tests, i), "", &t, NULL) == 0);
			check_same_test(&a.tests[i], &t);
			test_result_release(&t);
		}
		plain = json_dumps(tests, JSON_COMPACT | JSON_SORT_KEYS);
		if (writes_17_digits())
			assert(strlen(plain) == a.plain.len && memcmp(plain, a.plain.data, a.plain.len) == 0);
		free(plain);
	}
	if (is_read)
		test_array_release(&a);
	json_decref(whole);
	json_decref(rest);
	return is_read;
}
