/* job_document(): a report of any format, written as each of the three and read again. */
#include "document_roundtrip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = xmemdup(data, n);
	struct report_file r;
	int rc = report_file_parse(report_format_guess(text, n), text, n, &r, NULL);
	struct job_detail d = {
	    .job = {.id = 1,
		.workflow = BORROWED("tests"),
		.name = BORROWED("tests"),
		.run_id = BORROWED("1"),
		.status = JOB_COMPLETED,
		.conclusion = BORROWED("success"),
		.n_cut = (int64_t)r.n_cut},
	    .accelerator = BORROWED("ascend-npu"),
	    .repository = BORROWED("pytorch/pytorch"),
	    .head_sha = BORROWED("0123456789abcdef0123456789abcdef01234567"),
	    .tests = r.tests,
	    .n_tests = r.n_tests,
	    .environment = r.environment,
	};

	free(text);
	for (int f = 0; !rc && f < N_REPORT_FORMATS; f++)
		check_document(&d, (enum report_format)f);
	report_file_release(&r);
	return 0;
}
