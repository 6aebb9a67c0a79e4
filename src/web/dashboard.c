/* /api/v1/dashboard and /: the state of every accelerator at upstream's newest commit. */
#include "views/dashboard.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "web/answer.h"
#include "web/web_internal.h"

/* The work for a row of the dashboard, in entries of other answers: it has 60 days. */
enum { ITEMS_PER_ROW = 60 };

struct dashboard_request {
	struct get_dashboard get;
	struct web_render render;
	struct loop *loop;
	struct http_request *request;
	struct config *config; /* as of the request */
};

static void dashboard_request_free(void *p)
{
	struct dashboard_request *q = p;

	dashboard_free(q->get.view);
	config_unref(q->config);
	free(q);
}

static json_t *make_dashboard(void *owner)
{
	struct dashboard_request *q = owner;

	return dashboard_json(q->get.view, q->get.repository, q->get.branch, q->config->public_url);
}

static void dashboard_done(struct store_query *sq)
{
	struct dashboard_request *q = CONTAINER_OF(sq, struct dashboard_request, get.q);

	if (sq->err) {
		web_respond_failed(q->request, sq->err, "no dashboard");
		dashboard_request_free(q);
		return;
	}
	q->render = (struct web_render){.make = make_dashboard,
	    .over = dashboard_request_free,
	    .owner = q,
	    .request = q->request};
	web_render(q->loop, &q->render, q->get.view->n_rows * ITEMS_PER_ROW);
}

static void on_dashboard(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct dashboard_request *q;

	if (!w->config) {
		web_respond_busy(r);
		return;
	}
	q = xcalloc(1, sizeof(*q));
	q->loop = w->deps.loop;
	q->request = r;
	q->config = config_ref(w->config);
	q->get.repository = q->config->upstream_repository;
	/* "": no branch is configured, so no push is a change */
	q->get.branch = q->config->upstream_branches[0] ? q->config->upstream_branches[0] : "";
	q->get.now_ms = clock_wall_ms();
	q->get.q.done = dashboard_done;
	if (store_get_dashboard(w->deps.store, &q->get)) {
		web_respond_busy(r);
		dashboard_request_free(q);
	}
}

void web_add_dashboard_routes(struct web *w)
{
	web_add_resource(w, "/api/v1/dashboard", "/", on_dashboard);
}
