#include "model/job_detail.h"

void job_detail_free(struct job_detail *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_tests; i++)
		test_result_release(&d->tests[i]);
	free(d->tests);
	free(d->attributions);
	job_view_release(&d->job);
	free(d->dispatch_id);
	free(d->accelerator);
	free(d->repository);
	free(d->head_sha);
	free(d->message);
	free(d->environment);
	free(d->triage);
	free(d->experiment.cause);
	free(d->experiment.state);
	free(d->experiment.reason);
	free(d->experiment.explained_sha);
	free(d->machine);
	free(d);
}
