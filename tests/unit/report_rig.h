/* Report documents in tests: read from tests/data/reports or from a string, and printed line by line as "STATUS
 * suite/name (seconds) message". */
#pragma once

#include <setjmp.h>

#include <cmocka.h>

#include "documents/report_file.h"

static inline struct report_file report_of(enum report_format f, const char *text)
{
	struct error why = {0};
	struct report_file r;
	int rc = report_file_parse(f, text, strlen(text), &r, &why);

	if (rc)
		print_error("%s\n", why.text);
	assert_int_equal(rc, 0);
	return r;
}

static inline struct report_file report_of_file(const char *name)
{
	struct buf text = BUF_INIT(REPORT_FILE_MAX_BYTES);
	char *path = path_join("tests/data/reports", name);
	struct report_file r;

	assert_int_equal(file_read(path, &text, NULL), 0);
	r = report_of(report_format_guess(buf_str(&text), text.len), buf_str(&text));
	free(path);
	buf_release(&text);
	return r;
}

static inline const struct test_result *report_case(const struct report_file *r, const char *name)
{
	for (size_t i = 0; i < r->n_tests; i++)
		if (!strcmp(r->tests[i].name, name))
			return &r->tests[i];
	fail_msg("no case %s", name);
	return NULL;
}

static inline void report_print(const struct report_file *r, struct buf *out)
{
	for (size_t i = 0; i < r->n_tests; i++) {
		const struct test_result *t = &r->tests[i];

		buf_appendf(out, "%s %s/%s", test_status_name(t->status), t->suite, t->name);
		if (t->duration_ms > 0)
			buf_appendf(out, " (%g)", (double)t->duration_ms / 1000);
		if (t->message)
			buf_appendf(out, " %s", t->message);
		buf_append_char(out, '\n');
	}
}

static inline void assert_report(struct report_file *r, const char *expected)
{
	struct buf printed = BUF_INIT(1 << 24);

	report_print(r, &printed);
	assert_string_equal(buf_str(&printed), expected);
	buf_release(&printed);
	report_file_release(r);
}

/* The document must be refused, and the explanation must contain `needle`. */
static inline void assert_refused(enum report_format f, const char *text, size_t n, int code, const char *needle)
{
	struct error why = {0};
	struct report_file r;
	int rc = report_file_parse(f, text, n, &r, &why);

	if (rc != code || !strstr(why.text, needle))
		print_error("%.200s\n→ %d %s\n", text, rc, why.text);
	assert_int_equal(rc, code);
	assert_non_null(strstr(why.text, needle));
	report_file_release(&r);
}
