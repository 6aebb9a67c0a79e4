/* Builds change views for tests of their renderers. change_view_free() the result. */
#pragma once

#include "model/change_view.h"

#define VIEW_HEAD_SHA "1111111111222222222233333333334444444444"
#define VIEW_BASE_SHA "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd"
#define VIEW_NOW_MS   INT64_C(1795176000000) /* 2026-11-20T12:00:00Z */

/* Room for one more element at the end of list, zeroed. Doubling: the sanitizer's realloc() copies
 * the whole list each time. */
#define VIEW_PUSH(list, n)                                                                                             \
	((list) = ((n) & ((n)-1)) == 0 ? xrealloc((list), ((n) ? 2 * (n) : 1) * sizeof(*(list))) : (list),             \
	    memset(&(list)[n], 0, sizeof(*(list))), &(list)[(n)++])

static inline struct change_view *view_new(void)
{
	struct change_view *v = xcalloc(1, sizeof(*v));

	v->change_id = 1;
	v->kind = CHANGE_PULL_REQUEST;
	v->state = CHANGE_OPEN;
	v->repository = xstrdup("pytorch/pytorch");
	v->number = 4711;
	v->head_sha = xstrdup(VIEW_HEAD_SHA);
	v->base_ref = xstrdup("main");
	v->title = xstrdup("Add a thing");
	v->author = xstrdup("octocat");
	v->labels = strv_copy(NULL);
	v->created_ms = VIEW_NOW_MS - 3600 * 1000;
	return v;
}

static inline void view_set_merge_base(struct change_view *v, int64_t age_ms)
{
	v->merge_base_sha = xstrdup(VIEW_BASE_SHA);
	v->merge_base_ms = VIEW_NOW_MS - age_ms;
}

/* With one current dispatch in that state; returns its index. */
static inline size_t view_add_accelerator(
    struct change_view *v, const char *name, const char *title, enum level level, enum dispatch_state state)
{
	struct accelerator_view *a = VIEW_PUSH(v->accelerators, v->n_accelerators);
	struct dispatch_view *d;

	a->name = xstrdup(name);
	a->title = xstrdup(title);
	a->level = level;
	a->oncall = strv_copy(NULL);
	a->required_suites = strv_copy(NULL);
	a->must_pass = strv_copy(NULL);
	a->skip = strv_copy(NULL);
	a->delta.fixed = strv_copy(NULL);
	a->delta.disappeared = strv_copy(NULL);
	a->delta.newly_skipped = strv_copy(NULL);
	d = VIEW_PUSH(a->dispatches, a->n_dispatches);
	d->id = xstrdup("abcdefghijklmnopqrstuvwxyz");
	d->runner = xstrdup("ci");
	d->runner_kind = xstrdup("github");
	d->state = state;
	d->is_current = true;
	d->created_ms = v->created_ms;
	return v->n_accelerators - 1;
}

static inline void view_set_contact(
    struct change_view *v, size_t accelerator, const char *docs_url, const char *help_url, const char *oncall)
{
	struct accelerator_view *a = &v->accelerators[accelerator];

	a->docs_url = xstrdup_or_null(docs_url);
	a->help_url = xstrdup_or_null(help_url);
	a->oncall = xrealloc(a->oncall, 2 * sizeof(char *));
	a->oncall[0] = xstrdup_or_null(oncall);
	a->oncall[1] = NULL;
}

static inline struct job_view *view_add_job(
    struct change_view *v, size_t accelerator, int64_t id, const char *name, const char *conclusion)
{
	struct accelerator_view *a = &v->accelerators[accelerator];
	struct job_view *j = VIEW_PUSH(a->jobs, a->n_jobs);

	j->id = id;
	j->workflow = xstrdup("CI");
	j->name = xstrdup(name);
	j->run_id = xstrdup("77");
	j->run_attempt = 1;
	j->status = conclusion ? JOB_COMPLETED : JOB_IN_PROGRESS;
	j->conclusion = xstrdup_or_null(conclusion);
	return j;
}

static inline struct verdict_view *view_add_verdict(struct change_view *v, size_t accelerator, const char *suite,
    const char *test, enum test_status status, int64_t job)
{
	struct verdict_view *w = VIEW_PUSH(v->verdicts, v->n_verdicts);

	w->accelerator = accelerator;
	w->suite = xstrdup(suite);
	w->test = xstrdup(test);
	w->status = status;
	w->attribution = test_status_is_red(status) ? ATTRIBUTION_UNCLASSIFIED : N_ATTRIBUTIONS;
	w->job = job;
	v->n_verdicts_total = (int64_t)v->n_verdicts;
	return w;
}
