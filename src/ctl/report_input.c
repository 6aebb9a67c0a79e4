#include "ctl/report_input.h"

#include "base/alloc.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/str.h"

enum { NAMED_MAX = 5, SHOWN_CHARS = 60 };

int report_input_read(struct report_input *in, const char *path, enum report_format wanted)
{
	struct error why = {0};
	int rc;

	*in = (struct report_input){.text = BUF_INIT(REPORT_FILE_MAX_BYTES)};
	rc = file_read(path, &in->text, &in->why);
	if (rc)
		return rc;
	in->format = wanted == N_REPORT_FORMATS
			 ? report_format_guess(buf_str(&in->text), in->text.len)
			 : wanted;
	rc = report_file_parse(in->format, buf_str(&in->text), in->text.len, &in->report, &why);
	if (rc)
		error_set(&in->why, rc, "%s: %s", path, why.text);
	return rc;
}

void report_input_release(struct report_input *in)
{
	buf_release(&in->text);
	report_file_release(&in->report);
}

/* ---- hints ---- */

static const char *const SUITES[] = {"build", "unit", "model", "benchmark", "integration", NULL};

static bool is_known_suite(const char *suite)
{
	for (size_t i = 0; SUITES[i]; i++)
		if (str_eq(suite, SUITES[i]))
			return true;
	return false;
}

/* The first few suites of the vendor's own, quoted. */
static size_t name_own_suites(const struct report_file *r, struct buf *out)
{
	const char *named[NAMED_MAX];
	size_t n = 0;

	for (size_t i = 0; i < r->n_tests; i++) {
		const char *suite = r->tests[i].suite;
		bool is_new = !is_known_suite(suite);

		for (size_t k = 0; k < n && is_new; k++)
			is_new = !str_eq(named[k], suite);
		if (!is_new)
			continue;
		if (n == NAMED_MAX) {
			buf_append_str(out, ", …");
			break;
		}
		buf_append_str(out, n ? ", '" : "'");
		escape_line(out, suite, SHOWN_CHARS);
		buf_append_char(out, '\'');
		named[n++] = suite;
	}
	return n;
}

static int compare_names(const void *a, const void *b)
{
	const struct test_result *x = *(const struct test_result *const *)a;
	const struct test_result *y = *(const struct test_result *const *)b;
	int order = strcmp(x->suite, y->suite);

	if (!order)
		order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->dtype ? x->dtype : "", y->dtype ? y->dtype : "");
}

/* A test that is there more than once, and how many such there are. */
static const struct test_result *find_doubles(const struct report_file *r, size_t *ret_n)
{
	const struct test_result **sorted = xcalloc(r->n_tests, sizeof(*sorted)), *first = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < r->n_tests; i++)
		sorted[i] = &r->tests[i];
	qsort(sorted, r->n_tests, sizeof(*sorted), compare_names);
	for (size_t i = 1; i < r->n_tests; i++) {
		if (compare_names(&sorted[i - 1], &sorted[i]))
			continue;
		first = first ? first : sorted[i];
		(*ret_n)++;
	}
	free(sorted);
	return first;
}

void report_hints(
    const struct report_input *in, void (*tell)(const char *hint, void *owner), void *owner)
{
	const struct report_file *r = &in->report;
	struct buf line = BUF_INIT(4096);
	const struct test_result *twice;
	size_t n, n_passed = 0;

	n = name_own_suites(r, &line);
	if (n) {
		buf_appendf(&line,
		    " %s of build, unit, model, benchmark, integration, but of your own%s",
		    n == 1 ? "is none" : "are none",
		    in->format == REPORT_JUNIT ? "; a suite has the name of its testsuite "
						 "(pytest: -o junit_suite_name=model)"
					       : "");
		tell(buf_str(&line), owner);
		buf_clear(&line);
	}
	twice = find_doubles(r, &n);
	if (twice) {
		buf_appendf(&line, "%zu entries have the name of another, as '", n);
		escape_line(&line, twice->suite, SHOWN_CHARS);
		buf_append_char(&line, '/');
		escape_line(&line, twice->name, SHOWN_CHARS);
		buf_append_str(&line, "': such share one cell, and the worst is shown in it");
		tell(buf_str(&line), owner);
		buf_clear(&line);
	}
	if (r->n_cut) {
		buf_appendf(&line, "%zu cases are cut: %d are the most that one report may have",
		    r->n_cut, REPORT_TESTS_MAX);
		tell(buf_str(&line), owner);
	}
	for (size_t i = 0; i < r->n_tests; i++)
		n_passed += r->tests[i].status == TEST_PASS || r->tests[i].status == TEST_DONE;
	if (!n_passed)
		tell("not one test passed or measured anything", owner);
	if (!r->environment && in->format != REPORT_JUNIT)
		tell(
		    "no environment: nobody will see on which device and versions this ran", owner);
	buf_release(&line);
}
