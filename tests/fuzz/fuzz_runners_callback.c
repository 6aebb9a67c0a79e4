/* callback_request_parse() and its bare form: the store can use everything that they accept. */

#include "runners/submission.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_report(const struct job_report *r)
{
	assert(r->workflow && r->name && r->run_id && r->run_attempt > 0);
	assert(r->status == JOB_IN_PROGRESS || r->status == JOB_COMPLETED);
	assert(r->n_tests <= REPORT_TESTS_MAX);
	for (size_t i = 0; i < r->n_tests; i++)
		assert(r->tests[i].name && r->tests[i].status < N_TEST_STATUSES);
	assert(!r->triage || r->triage[0] == '{');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *body = xmemdup(data, n);
	struct callback_request r;

	if (callback_request_parse(body, n, &r, NULL) == 0) {
		assert(r.delivery_id && strlen(r.delivery_id) <= 128);
		assert(!r.dispatch_id || strlen(r.dispatch_id) == 26);
		assert(!r.tested_sha[0] || (r.is_nightly && is_sha1(r.tested_sha)));
		assert(!callback_request_is_self_report(&r) || r.tested_sha[0]);
		check_report(&r.report);
	}
	callback_request_release(&r);
	if (callback_request_parse_workflow(body, n, &r, NULL) == 0)
		check_report(&r.report);
	callback_request_release(&r);
	free(body);
	return 0;
}
