#include "documents/report_file.h"

#include "documents/formats.h"

static const struct {
	const char *name;
	int (*parse)(const char *text, size_t n, struct report_file *ret, struct error *e);
	void (*write)(const struct report_out *o, struct buf *out);
	const char *type;
} formats[N_REPORT_FORMATS] = {
    [REPORT_JUNIT] = {"junit", junit_parse, junit_out, "application/xml; charset=utf-8"},
    [REPORT_CTRF] = {"ctrf", ctrf_parse, ctrf_out, "application/json; charset=utf-8"},
    [REPORT_OUTPOST] = {"outpost", outpost_parse, outpost_out, "application/json; charset=utf-8"},
};

const char *report_format_name(enum report_format f) { return formats[f].name; }

enum report_format report_format_parse(const char *name)
{
	for (int f = 0; f < N_REPORT_FORMATS; f++)
		if (str_eq(name, formats[f].name))
			return (enum report_format)f;
	return N_REPORT_FORMATS;
}

enum report_format report_format_guess(const char *text, size_t n)
{
	static const char *const keys[] = {"results", "reportFormat", "schema", "tests", NULL};
	struct json_slice whole, v[4];
	size_t i = 0;

	if (n >= 4 && (memcmp(text, "\xff\xfe<\0", 4) == 0 || memcmp(text, "\xfe\xff\0<", 4) == 0))
		return REPORT_JUNIT;
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		i = 3;
	while (i < n && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r'))
		i++;
	if (i < n && text[i] == '<')
		return REPORT_JUNIT;
	if (i == n || text[i] != '{')
		return N_REPORT_FORMATS;
	int rc = json_slice_check(text, n, &whole, NULL);
	if (!rc)
		rc = json_slice_members(whole, "", keys, v, NULL);
	/* If the text is not valid JSON, both readers report the same error. */
	return !rc && (v[0].p || v[1].p) && !v[2].p && !v[3].p ? REPORT_CTRF : REPORT_OUTPOST;
}

int report_file_parse(enum report_format f, const char *text, size_t n, struct report_file *ret, struct error *e)
{
	*ret = (struct report_file){0};
	if (n > REPORT_FILE_MAX_BYTES)
		return error_set(e, ERR_TOO_BIG, "the report has %zu bytes; %d are the most", n, REPORT_FILE_MAX_BYTES);
	if (n == 0)
		return error_set(e, ERR_INVALID, "line 1: the report is empty");
	if (f == N_REPORT_FORMATS)
		return error_set(e, ERR_INVALID,
		    "line 1: a report is JUnit XML, CTRF JSON or Outpost JSON; this begins like neither XML nor a JSON "
		    "object");
	int rc = formats[f].parse(text, n, ret, e);
	if (!rc && ret->n_tests == 0)
		rc = error_set(e, ERR_INVALID, "there is no test case in it; a report without one proves nothing");
	return rc;
}

int report_file_read(
    const char *text, size_t n, enum report_format *ret_format, struct report_file *ret, struct error *e)
{
	*ret = (struct report_file){0};
	*ret_format = REPORT_OUTPOST;
	if (n <= REPORT_FILE_MAX_BYTES && outpost_parse_usual(text, n, ret))
		return 0;
	*ret_format = report_format_guess(text, n);
	if (*ret_format == N_REPORT_FORMATS)
		return error_set(e, ERR_INVALID, "the report is neither JUnit XML nor CTRF JSON nor Outpost JSON");
	return report_file_parse(*ret_format, text, n, ret, e);
}

static void move_cases(struct case_list *l, struct report_file *from)
{
	for (size_t i = 0; i < from->n_tests; i++) {
		test_result_own(&from->tests[i]);
		case_list_add(l, &from->tests[i], CASE_ALONE);
	}
	l->n_cut += from->n_cut;
	FREE_AND_NULL(from->tests);
	FREE_AND_NULL(from->texts);
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
	FREE_ALL(r->tests, r->texts, r->environment);
	*r = (struct report_file){0};
}

const char *job_document_type(enum report_format f) { return formats[f].type; }

/* A job gets a row for itself if it has no tests, or if it is red although none of its tests is.
 * verdict/verdicts.c uses the same rule for the job's cell. */
static bool has_row_of_its_own(const struct job_detail *d)
{
	size_t n_red = 0;

	if (d->job.status != JOB_COMPLETED)
		return false;
	for (size_t i = 0; i < d->n_tests; i++)
		n_red += test_status_is_red(d->tests[i].status);
	return d->n_tests == 0 || (n_red == 0 && test_status_is_red(test_status_of_conclusion(d->job.conclusion)));
}

char *job_document(enum report_format f, const struct job_detail *d, size_t *ret_bytes)
{
	struct buf out = BUF_INIT(REPORT_FILE_MAX_BYTES);
	struct report_out o = {.job = d, .detail = REPORT_WHOLE};
	/* the texts in it belong to the job */
	struct test_result *tests = xcalloc(d->n_tests + 1, sizeof(*tests));
	struct error ended = {0};
	int rc;

	if (d->n_tests)
		memcpy(tests, d->tests, d->n_tests * sizeof(*tests));
	o.tests = tests;
	o.n_tests = d->n_tests;
	if (has_row_of_its_own(d)) {
		error_set(&ended, ERR_INVALID, "the job ended with %s",
		    d->job.conclusion ? d->job.conclusion : "no conclusion");
		tests[o.n_tests++] = (struct test_result){
		    .suite = d->job.workflow,
		    .name = d->job.name,
		    .status = test_status_of_conclusion(d->job.conclusion),
		    .duration_ms = -1,
		    .message = d->message ? d->message : ended.text,
		};
	}
	/* 20,000 bare tests always fit. */
	do {
		buf_clear(&out);
		if (o.n_tests)
			formats[f].write(&o, &out);
		rc = buf_status(&out);
	} while (rc && o.detail++ < REPORT_BARE);
	free(tests);
	*ret_bytes = out.len;
	return o.n_tests ? buf_detach(&out) : NULL;
}
