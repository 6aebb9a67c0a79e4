/* /api/v1/jobs/{id}: one job with its results. */
#include "store/jobs.h"
#include "base/alloc.h"
#include "base/str.h"
#include "report/job_json.h"
#include "web/job_document.h"
#include "web/params.h"
#include "web/render.h"
#include "web/web_internal.h"

struct job_request {
	struct get_job get;
	struct web_render render;
	struct loop *loop;
	struct http_request *request;
	struct config *config; /* as of the request */
};

static void read_choice(struct params *p, struct get_job *get)
{
	const char *statuses[N_TEST_STATUSES + 1] = {NULL};

	for (int i = 0; i < N_TEST_STATUSES; i++)
		statuses[i] = test_status_name((enum test_status)i);
	get->max_tests = params_limit(p, 0);
	get->from = params_int(p, "cursor", 1, INT64_MAX, 0);
	get->statuses = params_words(p, "status", statuses);
}

static void job_request_free(void *p)
{
	struct job_request *j = p;

	job_detail_free(j->get.job);
	config_unref(j->config);
	free(j);
}

static bool is_silent(const struct config *config, const char *name)
{
	const struct accelerator *a = config_accelerator(config, name);

	return a && a->level == LEVEL_1;
}

static json_t *make_job(void *owner)
{
	struct job_request *j = owner;
	json_t *v = job_detail_json(j->get.job, j->config->public_url);

	job_detail_free(j->get.job); /* here: it takes its time too */
	j->get.job = NULL;
	return v;
}

static void job_done(struct store_query *q)
{
	struct job_request *j = CONTAINER_OF(q, struct job_request, get.q);
	int err = q->err;

	if (!err && is_silent(j->config, j->get.job->accelerator))
		err = ERR_NOT_FOUND;
	if (err) {
		web_respond_failed(j->request, err, "no such job");
		job_request_free(j);
		return;
	}
	j->render = (struct web_render){
	    .make = make_job, .over = job_request_free, .owner = j, .request = j->request};
	web_render(j->loop, &j->render, j->get.job->n_tests);
}

static void on_job(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct params p = PARAMS_INIT(r);
	struct get_job choice = {.max_tests = 0};
	struct job_request *j;
	int64_t id;

	if (!w->config) {
		web_respond_busy(r);
		return;
	}
	if (parse_int64(http_segment(r, 0), &id) || id <= 0) {
		web_respond_not_found(r, "no such job");
		return;
	}
	if (web_answer_job_document(w, r, id))
		return;
	read_choice(&p, &choice);
	if (params_refuse(&p))
		return;
	j = xcalloc(1, sizeof(*j));
	j->get = choice;
	j->loop = w->deps.loop;
	j->request = r;
	j->config = config_ref(w->config);
	j->get.id = id;
	j->get.q.done = job_done;
	if (store_get_job(w->deps.store, &j->get)) {
		web_respond_busy(r);
		job_request_free(j);
	}
}

void web_add_job_routes(struct web *w)
{
	web_add_resource(w, "/api/v1/jobs/{id}", "/jobs/{id}", on_job);
	web_set_page_limit(w, "/jobs/{id}", PARAMS_LIMIT_MAX);
}
