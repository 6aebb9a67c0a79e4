/* /api/v1/jobs/{id}: one job with its results. */
#include "base/alloc.h"
#include "base/str.h"
#include "report/job_json.h"
#include "store/jobs.h"
#include "web/web_internal.h"

struct job_request {
	struct get_job get;
	struct http_request *request;
	struct config *config; /* as of the request */
};

static void job_request_free(struct job_request *j)
{
	job_detail_free(j->get.job);
	config_unref(j->config);
	free(j);
}

static bool is_silent(const struct config *config, const char *name)
{
	const struct accelerator *a = config_accelerator(config, name);

	return a && a->level == LEVEL_1;
}

static void job_done(struct store_query *q)
{
	struct job_request *j = CONTAINER_OF(q, struct job_request, get.q);
	int err = q->err;

	if (!err && is_silent(j->config, j->get.job->accelerator))
		err = ERR_NOT_FOUND;
	if (err)
		web_respond_failed(j->request, err, "no such job");
	else
		web_respond_json(j->request, 200,
		    job_detail_json(j->get.job, j->config->public_url));
	job_request_free(j);
}

static void on_job(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct job_request *j;
	int64_t id;

	if (!w->config) {
		http_respond_busy(r, 1);
		return;
	}
	if (parse_int64(http_segment(r, 0), &id) || id <= 0) {
		web_respond_not_found(r, "no such job");
		return;
	}
	j = xcalloc(1, sizeof(*j));
	j->request = r;
	j->config = config_ref(w->config);
	j->get.id = id;
	j->get.q.done = job_done;
	if (store_get_job(w->deps.store, &j->get)) {
		http_respond_busy(r, 1);
		job_request_free(j);
	}
}

void web_add_job_routes(struct web *w)
{
	http_server_route(w->deps.server,
	    &(struct http_route){.method = "GET", .pattern = "/api/v1/jobs/{id}",
	        .on_request = on_job, .owner = w});
}
