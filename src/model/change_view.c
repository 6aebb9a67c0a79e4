#include "model/change_view.h"

struct verdict_evidence verdict_evidence_of(const struct verdict_view *w)
{
	struct verdict_evidence e = {.job = 0};

	if (!attribution_applies(w->status))
		return e;
	if (w->attribution == ATTRIBUTION_KNOWN && w->evidence_url)
		e.issue_url = w->evidence_url;
	else if (w->evidence_job > 0 && w->evidence_job != w->job)
		e.job = w->evidence_job;
	return e;
}

WORDS_DEFINE(rerun_state, N_RERUN_STATES, NULL, RERUN_STATES(WORD_NAME))

const char *rerun_state_text(enum rerun_state s)
{
#define RERUN_TEXT(e, name, text) text,
	static const char *const texts[] = {NULL, RERUN_STATES(RERUN_TEXT)};

	return texts[s];
}

static int by_name(const void *name, const void *a) { return strcmp(name, ((const struct accelerator_view *)a)->name); }

struct accelerator_view *change_view_accelerator(const struct change_view *v, const char *name)
{
	if (!v->n_accelerators)
		return NULL;
	return bsearch(name, v->accelerators, v->n_accelerators, sizeof(*v->accelerators), by_name);
}

RECORD_DEFINE(job_view, JOB_VIEW_RECORD)
RECORD_DEFINE(dispatch_view, DISPATCH_VIEW_RECORD)
RECORD_DEFINE(base_delta, BASE_DELTA_RECORD)
RECORD_DEFINE(experiment_result, EXPERIMENT_RESULT_RECORD)
RECORD_DEFINE(experiment_view, EXPERIMENT_VIEW_RECORD)
RECORD_DEFINE(accelerator_view, ACCELERATOR_VIEW_RECORD)
RECORD_DEFINE(verdict_view, VERDICT_VIEW_RECORD)
RECORD_DEFINE(change_view, CHANGE_VIEW_RECORD)

void change_view_free(struct change_view *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->n_accelerators; i++) {
		struct accelerator_view *a = &v->accelerators[i];

		for (size_t k = 0; k < a->n_experiments; k++)
			RECORDS_RELEASE(experiment_result, a->experiments[k].results, a->experiments[k].n_results);
		RECORDS_RELEASE(experiment_view, a->experiments, a->n_experiments);
		RECORDS_RELEASE(dispatch_view, a->dispatches, a->n_dispatches);
		RECORDS_RELEASE(job_view, a->jobs, a->n_jobs);
		standing_release(&a->at);
		record_release(&base_delta_record, &a->delta);
	}
	RECORDS_RELEASE(accelerator_view, v->accelerators, v->n_accelerators);
	RECORDS_RELEASE(verdict_view, v->verdicts, v->n_verdicts);
	record_release(&change_view_record, v);
	free(v);
}

/* ---- one job in full ---- */

RECORD_DEFINE(job_experiment, JOB_EXPERIMENT_RECORD)
RECORD_DEFINE(job_detail, JOB_DETAIL_RECORD)

void job_detail_free(struct job_detail *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_tests; i++)
		test_result_release(&d->tests[i]);
	free(d->tests);
	free(d->attributions);
	record_release(&job_view_record, &d->job);
	record_release(&job_detail_record, d);
	record_release(&job_experiment_record, &d->experiment);
	free(d);
}

int verdict_view_compare(const void *x, const void *y)
{
	const struct verdict_view *a = x, *b = y;
	int order = strcmp(a->suite, b->suite);

	if (!order)
		order = strcmp(a->test, b->test);
	if (!order)
		order = strcmp(a->dtype ? a->dtype : "", b->dtype ? b->dtype : "");
	if (!order)
		order = (a->accelerator > b->accelerator) - (a->accelerator < b->accelerator);
	return order;
}
