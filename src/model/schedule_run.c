#include "model/schedule_run.h"

#include "base/alloc.h"

void schedule_run_view_release(struct schedule_run_view *v)
{
	FREE_AND_NULL(v->cause);
	FREE_AND_NULL(v->state);
	FREE_AND_NULL(v->outcome);
	FREE_AND_NULL(v->reason);
	FREE_AND_NULL(v->upstream_sha);
	FREE_AND_NULL(v->source_sha);
	v->id = 0;
}
