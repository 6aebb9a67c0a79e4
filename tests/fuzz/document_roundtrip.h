/* A job's documents (documents/report_file.h) that are written and read again keep their content, except the losses
 * that the contract of each format lists. */
#pragma once

#include "documents/report_file.h"

/* A literal in place of an allocated text. */
#define BORROWED(s) ((char *)(uintptr_t)(s))

/* XML has no U+FFFE and U+FFFF. free() */
static inline char *as_xml_has_it(const char *s)
{
	char *out = xstrdup(s);

	for (char *p = out; *p; p++)
		if (!memcmp(p, "\xef\xbf\xbe", strnlen(p, 3)) || !memcmp(p, "\xef\xbf\xbf", strnlen(p, 3)))
			p[2] = '\xbd';
	return out;
}

/* The message that the reader uses when there is none. free() */
static inline char *first_line(const char *trace)
{
	char *first, *line;

	trace += strspn(trace, " \t\n");
	first = xstrndup(trace, strcspn(trace, "\n"));
	line = report_line(first, REPORT_MESSAGE_MAX_BYTES);
	free(first);
	return line;
}

static inline bool says_something(const char *s) { return s && s[strspn(s, " \t\r\n")]; }

/* One test as the format `f` can express it. free() */
static inline char *print_test(const struct test_result *t, enum report_format f)
{
	bool is_red = test_status_is_red(t->status), is_lossy = f != REPORT_OUTPOST;
	bool is_junit = f == REPORT_JUNIT, has_message = is_red || t->status == TEST_SKIP;
	const char *trace = is_lossy && !is_red ? NULL : t->trace;
	const char *message = is_junit && !has_message ? NULL : t->message;
	int64_t ms = f == REPORT_CTRF && t->duration_ms < 0 ? 0 : t->duration_ms;
	char *found = NULL, *all, *out;

	if (is_junit && !says_something(message)) {
		found = trace ? first_line(trace) : NULL;
		message = found && *found ? found : NULL;
	}
	all = xasprintf("%s|%s|%s|%s|%lld|%s|%s|%s|%s|%lld|%d|%.17g|%s", test_status_name(t->status), t->suite, t->name,
	    t->dtype ? t->dtype : "", (long long)ms, message ? message : "", trace ? trace : "",
	    t->log_url ? t->log_url : "", t->file ? t->file : "", (long long)t->line, t->has_number,
	    t->has_number ? t->number : 0, t->has_number && t->unit ? t->unit : "");
	out = is_junit ? as_xml_has_it(all) : xstrdup(all);
	free(found);
	free(all);
	return out;
}

static inline int compare_printed(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static inline char **print_tests(const struct test_result *tests, size_t n, enum report_format f)
{
	char **list = xcalloc(n + 1, sizeof(*list));

	for (size_t i = 0; i < n; i++)
		list[i] = print_test(&tests[i], f);
	if (f == REPORT_JUNIT) /* this format groups the tests by suite */
		qsort(list, n, sizeof(*list), compare_printed);
	return list;
}

static inline void check_document(const struct job_detail *d, enum report_format f)
{
	struct report_file r;
	struct error why = {0};
	size_t n;
	char *text = job_document(f, d, &n), **before, **after;
	int rc = report_file_parse(f, text, n, &r, &why);

	if (rc)
		fprintf(stderr, "%s: %s\n%.2000s\n", report_format_name(f), why.text, text);
	assert(!rc && report_format_guess(text, n) == f && utf8_is_valid(text, n));
	before = print_tests(d->tests, d->n_tests, f);
	after = print_tests(r.tests, r.n_tests, f);
	if (r.n_tests != d->n_tests)
		fprintf(stderr, "%s: %zu of %zu\n%.3000s\n", report_format_name(f), r.n_tests, d->n_tests, text);
	assert(r.n_tests == d->n_tests && r.n_cut == (size_t)d->job.n_cut);
	for (size_t i = 0; i < d->n_tests; i++) {
		if (strcmp(before[i], after[i]) != 0)
			fprintf(stderr, "%s\n- %s\n+ %s\n", report_format_name(f), before[i], after[i]);
		assert(!strcmp(before[i], after[i]));
		free(before[i]);
		free(after[i]);
	}
	if (f == REPORT_OUTPOST)
		assert(str_eq(r.environment, d->environment));
	free(before);
	free(after);
	free(text);
	report_file_release(&r);
}
