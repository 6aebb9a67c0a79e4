/* The writers behind job_document(). Private to report/. */
#ifndef REPORT_REPORT_OUT_H
#define REPORT_REPORT_OUT_H

#include "base/buf.h"
#include "model/job_detail.h"

/* How much is written, the most first. */
enum report_detail { REPORT_WHOLE, REPORT_WITHOUT_TRACES, REPORT_BARE };

struct report_out {
	const struct job_detail *job;
	const struct test_result *tests; /* the job's, and perhaps the row of its own */
	size_t n_tests;
	enum report_detail detail;
};

void junit_out(const struct report_out *o, struct buf *out);
void ctrf_out(const struct report_out *o, struct buf *out);
void outpost_out(const struct report_out *o, struct buf *out);

/* "passed", "failed", "skipped" or "other" */
const char *ctrf_status(enum test_status status);

/* What of a test is written at this detail; NULL: nothing. */
const char *report_out_message(const struct report_out *o, const struct test_result *t);
const char *report_out_trace(const struct report_out *o, const struct test_result *t);

/* "31.2" and not "31.199999999999999" where that is the same number; `text` takes 32 bytes. */
const char *report_number_text(double number, char *text);

#endif
