/* Outpost JSON, version 1: what report_file_text() writes of a report. */
#include "base/alloc.h"
#include "report/report_file.h"
#include "report/report_out.h"

void outpost_out(const struct report_out *o, struct buf *out)
{
	const struct report_file r = {
	    .tests = (struct test_result *)(uintptr_t)o->tests, /* only read */
	    .n_tests = o->n_tests,
	    .n_cut = (size_t)o->job->job.n_cut,
	    .environment = o->job->environment,
	};
	size_t n;
	char *text = report_file_text(&r, &n); /* leaves out by itself what does not fit */

	buf_append(out, text, n);
	free(text);
}
