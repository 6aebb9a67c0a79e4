#include "model/change_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/strv.h"

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

static const struct {
	const char *name, *words;
} RERUNS[N_RERUN_STATES] = {
    [RERUN_PENDING] = {"pending", "re-running"},
    [RERUN_NO_ANSWER] = {"no_answer", "rerun got no answer"},
    [RERUN_NO_ROOM] = {"no_room", "not rerun: no machine time was free"},
    [RERUN_VOID] = {"void", "rerun proves nothing"},
    [RERUN_NO_RESULT] = {"no_result", "rerun gave no result"},
    [RERUN_OVER_LIMIT] = {"over_limit", "not rerun: limit reached"},
    [RERUN_CALLED_OFF] = {"called_off", "rerun called off"},
};

const char *rerun_state_name(enum rerun_state s)
{
	return RERUNS[s].name;
}

const char *rerun_state_words(enum rerun_state s)
{
	return RERUNS[s].words;
}

static int by_name(const void *name, const void *a)
{
	return strcmp(name, ((const struct accelerator_view *)a)->name);
}

struct accelerator_view *change_view_accelerator(const struct change_view *v, const char *name)
{
	if (!v->n_accelerators)
		return NULL;
	return bsearch(name, v->accelerators, v->n_accelerators, sizeof(*v->accelerators), by_name);
}

void job_view_release(struct job_view *j)
{
	free(j->workflow);
	free(j->name);
	free(j->run_id);
	free(j->dispatch_id);
	free(j->runner);
	free(j->conclusion);
	free(j->url);
	free(j->artifact_url);
}

static void release_dispatch(struct dispatch_view *d)
{
	free(d->id);
	free(d->runner);
	free(d->runner_kind);
	free(d->repository);
	free(d->held_reason);
	free(d->last_error);
}

static void release_experiment(struct experiment_view *e)
{
	for (size_t i = 0; i < e->n_results; i++) {
		free(e->results[i].suite);
		free(e->results[i].test);
		free(e->results[i].dtype);
	}
	free(e->results);
	free(e->runner);
	free(e->sha);
	free(e->cause);
	free(e->state);
	free(e->reason);
}

static void release_accelerator(struct accelerator_view *a)
{
	for (size_t i = 0; i < a->n_dispatches; i++)
		release_dispatch(&a->dispatches[i]);
	for (size_t i = 0; i < a->n_jobs; i++)
		job_view_release(&a->jobs[i]);
	for (size_t i = 0; i < a->n_experiments; i++)
		release_experiment(&a->experiments[i]);
	free(a->dispatches);
	free(a->jobs);
	free(a->experiments);
	free(a->name);
	free(a->title);
	free(a->docs_url);
	free(a->help_url);
	strv_free(a->oncall);
	strv_free(a->required_suites);
	strv_free(a->must_pass);
	strv_free(a->skip);
	standing_release(&a->at);
	free(a->delta.base_sha);
	strv_free(a->delta.fixed);
	strv_free(a->delta.disappeared);
	strv_free(a->delta.newly_skipped);
}

static void release_verdict(struct verdict_view *w)
{
	free(w->suite);
	free(w->test);
	free(w->dtype);
	free(w->reason);
	free(w->evidence_url);
	free(w->message);
	free(w->file);
}

void change_view_free(struct change_view *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->n_accelerators; i++)
		release_accelerator(&v->accelerators[i]);
	for (size_t i = 0; i < v->n_verdicts; i++)
		release_verdict(&v->verdicts[i]);
	free(v->accelerators);
	free(v->verdicts);
	free(v->repository);
	free(v->head_sha);
	free(v->base_ref);
	free(v->base_sha);
	free(v->merge_base_sha);
	free(v->title);
	free(v->author);
	strv_free(v->labels);
	free(v);
}
