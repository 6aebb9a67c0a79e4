/* /api/v1/dashboard and /: the state of every accelerator at upstream's newest commit. */
#include "views/dashboard.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "web/answer.h"
#include "web/web_internal.h"

/* The work for a row of the dashboard, in entries of other answers: it has 60 days. */
enum { ITEMS_PER_ROW = 60 };

struct dashboard_request {
	struct web_read read;
	struct get_dashboard get;
};

static void release_dashboard(void *owner)
{
	struct dashboard_request *q = owner;

	dashboard_free(q->get.view);
}

static json_t *make_dashboard(void *owner)
{
	struct dashboard_request *q = owner;

	return dashboard_json(
	    q->get.view, q->get.repository, q->get.branch, q->read.config->public_url);
}

static void dashboard_done(struct store_query *sq)
{
	struct dashboard_request *q = CONTAINER_OF(sq, struct dashboard_request, get.q);

	if (web_read_goes_on(q, sq->err, "no dashboard"))
		web_read_render(q, make_dashboard, q->get.view->n_rows * ITEMS_PER_ROW);
}

void web_on_dashboard(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct dashboard_request *q = web_read_new(w, r, sizeof(*q), release_dashboard);

	if (!q)
		return;
	q->get.repository = q->read.config->upstream_repository;
	/* "": no branch is configured, so no push is a change */
	q->get.branch =
	    q->read.config->upstream_branches[0] ? q->read.config->upstream_branches[0] : "";
	q->get.now_ms = clock_wall_ms();
	q->get.q.done = dashboard_done;
	(void)web_read_goes_on(q, store_get_dashboard(w->deps.store, &q->get), NULL);
}
