#include "model/plan.h"

#include "base/alloc.h"
#include "base/strv.h"

void plan_want_release(struct plan_want *w)
{
	free(w->accelerator);
	free(w->runner);
	free(w->target);
	free(w->held_reason);
	*w = (struct plan_want){0};
}

static char *copy_some(const char *s)
{
	return s && *s ? xstrdup(s) : NULL;
}

void plan_add_retest(struct plan *p, const char *accelerator, const char *runner, const char *suite)
{
	p->retests = xrealloc(p->retests, (p->n_retests + 1) * sizeof(*p->retests));
	p->retests[p->n_retests++] =
	    (struct retest){copy_some(accelerator), copy_some(runner), copy_some(suite)};
}

static void release_retests(struct plan *p)
{
	for (size_t i = 0; i < p->n_retests; i++) {
		free(p->retests[i].accelerator);
		free(p->retests[i].runner);
		free(p->retests[i].suite);
	}
	free(p->retests);
}

void plan_release(struct plan *p)
{
	release_retests(p);
	for (size_t i = 0; i < p->n_wants; i++)
		plan_want_release(&p->wants[i]);
	free(p->wants);
	pull_info_release(&p->pull);
	free(p->reason);
	free(p->repository);
	free(p->head_sha);
	free(p->before);
	free(p->ref);
	push_commits_free(p->commits, p->n_commits);
	free(p->title);
	free(p->author);
	free(p->original_action);
	strv_free(p->drops);
	*p = (struct plan){0};
}
