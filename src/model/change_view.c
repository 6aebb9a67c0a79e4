#include "model/change_view.h"

#include "base/strv.h"

void job_view_release(struct job_view *j)
{
	free(j->workflow);
	free(j->name);
	free(j->run_id);
	free(j->conclusion);
	free(j->url);
	free(j->artifact_url);
}

static void release_dispatch(struct dispatch_view *d)
{
	free(d->id);
	free(d->runner);
	free(d->runner_kind);
	free(d->held_reason);
	free(d->last_error);
}

static void release_accelerator(struct accelerator_view *a)
{
	for (size_t i = 0; i < a->n_dispatches; i++)
		release_dispatch(&a->dispatches[i]);
	for (size_t i = 0; i < a->n_jobs; i++)
		job_view_release(&a->jobs[i]);
	free(a->dispatches);
	free(a->jobs);
	free(a->name);
	free(a->title);
	free(a->docs_url);
	free(a->help_url);
	strv_free(a->oncall);
}

void change_view_free(struct change_view *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->n_accelerators; i++)
		release_accelerator(&v->accelerators[i]);
	for (size_t i = 0; i < v->n_verdicts; i++) {
		free(v->verdicts[i].suite);
		free(v->verdicts[i].test);
		free(v->verdicts[i].attribution);
		free(v->verdicts[i].message);
	}
	free(v->accelerators);
	free(v->verdicts);
	free(v->repository);
	free(v->head_sha);
	free(v->base_ref);
	free(v->base_sha);
	free(v->merge_base_sha);
	free(v->title);
	free(v->author);
	free(v);
}
