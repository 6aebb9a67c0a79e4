#include <assert.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "loop/loop.h"
#include "loop/loop_internal.h"

static void on_work(uv_work_t *req)
{
	static _Thread_local bool has_given_way;
	struct pool_work *w = req->data;

	if (!has_given_way)
		thread_give_way();
	has_given_way = true;
	w->work(w);
}

static void on_after_work(uv_work_t *req, int status)
{
	struct pool_work *w = req->data;

	(void)status; /* nothing is ever cancelled */
	free(req);
	w->internal = NULL;
	w->after(w);
}

void pool_submit(struct loop *l, struct pool_work *w)
{
	uv_work_t *req = xcalloc(1, sizeof(*req));
	int rc;

	req->data = w;
	w->internal = req;
	rc = uv_queue_work(&l->uv, req, on_work, on_after_work);
	assert(rc == 0);
}
