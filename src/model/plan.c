#include "model/plan.h"

#include "base/strv.h"

void plan_want_release(struct plan_want *w)
{
	free(w->accelerator);
	free(w->runner);
	free(w->target);
	free(w->held_reason);
	*w = (struct plan_want){0};
}

void plan_release(struct plan *p)
{
	for (size_t i = 0; i < p->n_wants; i++)
		plan_want_release(&p->wants[i]);
	free(p->wants);
	pull_info_release(&p->pull);
	free(p->reason);
	free(p->repository);
	free(p->head_sha);
	free(p->before);
	free(p->ref);
	free(p->title);
	free(p->author);
	free(p->original_action);
	strv_free(p->drops);
	*p = (struct plan){0};
}
