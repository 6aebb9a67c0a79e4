/* /api/v1/jobs/{id}: one job with its results, also as a report document to download. */
#include "store/jobs.h"
#include "base/alloc.h"
#include "base/str.h"
#include "documents/report_file.h"
#include "views/job.h"
#include "web/answer.h"
#include "web/params.h"
#include "web/web_internal.h"

/* The results of an accelerator at L1 are not shown. */
static bool is_job_silent(const struct config *config, const char *name)
{
	const struct accelerator *a = config_accelerator(config, name);

	return a && a->level == LEVEL_1;
}

/* ---- as a document; the pool writes it, because 20,000 tests with traces take half a second ---- */

struct document_request {
	struct get_job get;
	struct pool_work work;
	struct loop *loop;
	struct http_request *request;
	struct config *config; /* as of the request */
	enum report_format format;
	/* ---- the pool's ---- */
	char *text; /* NULL: the job has not reported yet */
	size_t n;
	char etag[ETAG_BYTES];
};

static void document_request_free(struct document_request *d)
{
	job_detail_free(d->get.job);
	config_unref(d->config);
	free(d->text);
	free(d);
}

static void write_job_document(struct pool_work *work)
{
	struct document_request *d = CONTAINER_OF(work, struct document_request, work);

	d->text = job_document(d->format, d->get.job, &d->n);
	if (d->text)
		etag_of(d->text, d->n, d->etag);
}

static void send_job_document(struct pool_work *work)
{
	struct document_request *d = CONTAINER_OF(work, struct document_request, work);
	char *name =
	    xasprintf("attachment; filename=\"outpost-job-%lld-%s.%s\"", (long long)d->get.id,
		report_format_name(d->format), d->format == REPORT_JUNIT ? "xml" : "json");
	const struct web_document doc = {
	    .status = 200,
	    .type = job_document_type(d->format),
	    .cache = "no-cache",
	    .disposition = name,
	    .body = d->text,
	    .n = d->n,
	    .etag = d->etag,
	};

	d->text = NULL;
	if (doc.body)
		web_document_send(d->request, &doc);
	else
		web_respond_not_found(d->request, "the job has no results yet");
	free(name);
	document_request_free(d);
}

static void document_job_read(struct store_query *q)
{
	struct document_request *d = CONTAINER_OF(q, struct document_request, get.q);
	int err = q->err;

	if (!err && is_job_silent(d->config, d->get.job->accelerator))
		err = ERR_NOT_FOUND;
	if (err) {
		web_respond_failed(d->request, err, "no such job");
		document_request_free(d);
		return;
	}
	d->work = (struct pool_work){.work = write_job_document, .after = send_job_document};
	pool_submit(d->loop, &d->work);
}

/* Answers `?format=outpost|junit|ctrf`. Returns false and does nothing if the request names no format. */
static bool answer_job_document(struct web *w, struct http_request *r, int64_t job_id)
{
	static const char *const words[] = {
	    "junit", "ctrf", "outpost", NULL}; /* enum report_format */
	struct params p = PARAMS_INIT(r);
	int format = params_word(&p, "format", words, N_REPORT_FORMATS);
	struct document_request *d;

	if (params_refuse(&p))
		return true;
	if (format == N_REPORT_FORMATS)
		return false;
	d = xcalloc(1, sizeof(*d));
	d->loop = w->deps.loop;
	d->request = r;
	d->config = config_ref(w->config);
	d->format = (enum report_format)format;
	d->get.id = job_id;
	d->get.q.done = document_job_read;
	if (store_get_job(w->deps.store, &d->get)) {
		web_respond_busy(r);
		document_request_free(d);
	}
	return true;
}

/* ---- as JSON and as a page ---- */

struct job_request {
	struct get_job get;
	struct web_render render;
	struct loop *loop;
	struct http_request *request;
	struct config *config; /* as of the request */
};

static void read_job_choice(struct params *p, struct get_job *get)
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

static json_t *make_job(void *owner)
{
	struct job_request *j = owner;
	json_t *v = job_detail_json(j->get.job, j->config->public_url);

	job_detail_free(j->get.job); /* here, because this takes long too */
	j->get.job = NULL;
	return v;
}

static void job_done(struct store_query *q)
{
	struct job_request *j = CONTAINER_OF(q, struct job_request, get.q);
	int err = q->err;

	if (!err && is_job_silent(j->config, j->get.job->accelerator))
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
	if (answer_job_document(w, r, id))
		return;
	read_job_choice(&p, &choice);
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
