#include "report/job_document.h"

#include <string.h>

#include "base/alloc.h"
#include "report/report_out.h"

static const struct {
	void (*write)(const struct report_out *o, struct buf *out);
	const char *type;
} formats[N_REPORT_FORMATS] = {
    [REPORT_JUNIT] = {junit_out, "application/xml; charset=utf-8"},
    [REPORT_CTRF] = {ctrf_out, "application/json; charset=utf-8"},
    [REPORT_OUTPOST] = {outpost_out, "application/json; charset=utf-8"},
};

const char *job_document_type(enum report_format f)
{
	return formats[f].type;
}

const char *report_out_message(const struct report_out *o, const struct test_result *t)
{
	return o->detail < REPORT_BARE && t->message && *t->message ? t->message : NULL;
}

const char *report_out_trace(const struct report_out *o, const struct test_result *t)
{
	return o->detail < REPORT_WITHOUT_TRACES && t->trace && *t->trace ? t->trace : NULL;
}

const char *report_number_text(double number, char *text)
{
	snprintf(text, 32, "%.15g", number);
	if (strtod(text, NULL) != number)
		snprintf(text, 32, "%.17g", number);
	return text;
}

/* As store/verdicts.c makes its cell: no test, or red although no test in it is. */
static bool has_row_of_its_own(const struct job_detail *d)
{
	size_t n_red = 0;

	if (d->job.status != JOB_COMPLETED)
		return false;
	for (size_t i = 0; i < d->n_tests; i++)
		n_red += test_status_is_red(d->tests[i].status);
	return d->n_tests == 0 ||
	       (n_red == 0 && test_status_is_red(test_status_of_conclusion(d->job.conclusion)));
}

char *job_document(enum report_format f, const struct job_detail *d, size_t *ret_bytes)
{
	struct buf out = BUF_INIT(REPORT_FILE_MAX_BYTES);
	struct report_out o = {.job = d, .detail = REPORT_WHOLE};
	/* Their texts stay the job's. */
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
	/* 20,000 bare tests fit by far. */
	do {
		buf_clear(&out);
		if (o.n_tests)
			formats[f].write(&o, &out);
		rc = buf_status(&out);
	} while (rc && o.detail++ < REPORT_BARE);
	free(tests);
	*ret_bytes = out.len;
	return o.n_tests ? buf_take(&out) : NULL;
}
