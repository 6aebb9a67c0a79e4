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

static const char *const RERUN_NAMES[N_RERUN_STATES] = {[RERUN_PENDING] = "pending",
    [RERUN_LATER] = "later",
    [RERUN_NO_ANSWER] = "no_answer",
    [RERUN_NO_ROOM] = "no_room",
    [RERUN_VOID] = "void",
    [RERUN_NO_RESULT] = "no_result",
    [RERUN_OVER_LIMIT] = "over_limit",
    [RERUN_CALLED_OFF] = "called_off"};
const struct words rerun_state_names = {RERUN_NAMES, N_RERUN_STATES};

const char *rerun_state_name(enum rerun_state s) { return RERUN_NAMES[s]; }

const char *rerun_state_words(enum rerun_state s)
{
	static const char *const words[N_RERUN_STATES] = {[RERUN_PENDING] = "re-running",
	    [RERUN_LATER] = "rerun waits for a good machine",
	    [RERUN_NO_ANSWER] = "rerun got no answer",
	    [RERUN_NO_ROOM] = "not rerun: no machine time was free",
	    [RERUN_VOID] = "rerun proves nothing",
	    [RERUN_NO_RESULT] = "rerun gave no result",
	    [RERUN_OVER_LIMIT] = "no further rerun: limit reached",
	    [RERUN_CALLED_OFF] = "rerun called off"};

	return words[s];
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
