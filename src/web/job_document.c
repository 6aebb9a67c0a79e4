/* A job's results as a file to take away. Written in the pool: 20,000 tests with their traces take
 * half a second. */
#include "web/job_document.h"

#include "base/alloc.h"
#include "base/str.h"
#include "report/job_document.h"
#include "store/jobs.h"
#include "web/document.h"
#include "web/params.h"

struct document_request {
	struct get_job get;
	struct pool_work work;
	struct loop *loop;
	struct http_request *request;
	struct config *config; /* as of the request */
	enum report_format format;
	/* ---- the pool's ---- */
	char *text; /* NULL: nothing is reported yet */
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

static void write_document(struct pool_work *work)
{
	struct document_request *d = CONTAINER_OF(work, struct document_request, work);

	d->text = job_document(d->format, d->get.job, &d->n);
	if (d->text)
		etag_of(d->text, d->n, d->etag);
}

static void send_document(struct pool_work *work)
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

static bool is_shown(const struct document_request *d)
{
	const struct accelerator *a = config_accelerator(d->config, d->get.job->accelerator);

	return !a || a->level != LEVEL_1;
}

static void job_read(struct store_query *q)
{
	struct document_request *d = CONTAINER_OF(q, struct document_request, get.q);
	int err = q->err ? q->err : is_shown(d) ? 0 : ERR_NOT_FOUND;

	if (err) {
		web_respond_failed(d->request, err, "no such job");
		document_request_free(d);
		return;
	}
	d->work = (struct pool_work){.work = write_document, .after = send_document};
	pool_submit(d->loop, &d->work);
}

bool web_answer_job_document(struct web *w, struct http_request *r, int64_t job_id)
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
	d->get.q.done = job_read;
	if (store_get_job(w->deps.store, &d->get)) {
		web_respond_busy(r);
		document_request_free(d);
	}
	return true;
}
