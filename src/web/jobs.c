/* /api/v1/jobs/{id}: one job with its results, also as a report document to download. */
#include "store/jobs.h"
#include "documents/report_file.h"
#include "views/job.h"
#include "web/params.h"
#include "web/web_internal.h"

/* The beginning of both kinds of requests. */
struct job_request {
	struct web_read read;
	struct get_job get;
};

static const char NO_JOB[] = "no such job";

/* The results of an accelerator at L1 are not shown. */
static int check_job(void *owner)
{
	const struct job_request *j = owner;
	const struct accelerator *a = config_accelerator(j->read.config, j->get.job->accelerator);

	return a && a->level == LEVEL_1 ? ERR_NOT_FOUND : 0;
}

/* ---- as a document; the pool writes it, because 20,000 tests with traces take half a second ---- */

struct document_request {
	struct job_request job;
	struct pool_work work;
	enum report_format format;
	/* ---- the pool's ---- */
	char *text; /* NULL: the job has not reported yet */
	size_t n;
	char etag[ETAG_BYTES];
};

static void release_document(void *owner)
{
	struct document_request *d = owner;

	job_detail_free(d->job.get.job);
	free(d->text);
}

static void write_job_document(struct pool_work *work)
{
	struct document_request *d = CONTAINER_OF(work, struct document_request, work);

	d->text = job_document(d->format, d->job.get.job, &d->n);
	if (d->text)
		etag_of(d->text, d->n, d->etag);
}

static void send_job_document(struct pool_work *work)
{
	struct document_request *d = CONTAINER_OF(work, struct document_request, work);
	char *name = xasprintf("attachment; filename=\"outpost-job-%lld-%s.%s\"", (long long)d->job.get.id,
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
		web_document_send(d->job.read.request, &doc);
	else
		web_respond_not_found(d->job.read.request, "the job has no results yet");
	free(name);
	web_read_free(d);
}

static void answer_document(void *owner)
{
	struct document_request *d = owner;

	d->work = (struct pool_work){.work = write_job_document, .after = send_job_document};
	pool_submit(d->job.read.web->deps.loop, &d->work);
}

static const struct web_read_kind DOCUMENT = {
    sizeof(struct document_request), release_document, NO_JOB, .check = check_job, .answer = answer_document};

/* Answers `?format=outpost|junit|ctrf`. Returns false and does nothing if the request names no format. */
static bool answer_job_document(struct web *w, struct http_request *r, int64_t job_id)
{
	static const char *const names[] = {"junit", "ctrf", "outpost"}; /* enum report_format */
	struct params p = {.r = r};
	int format = params_word(&p, "format", &(struct words){names, N_REPORT_FORMATS}, N_REPORT_FORMATS);

	if (params_refuse(&p))
		return true;
	if (format == N_REPORT_FORMATS)
		return false;
	struct document_request *d = web_read_new(w, r, &DOCUMENT);
	if (!d)
		return true;
	d->format = (enum report_format)format;
	d->job.get.id = job_id;
	web_read_await(d, store_get_job(d->job.read.store, &d->job.get));
	return true;
}

/* ---- as JSON and as a page ---- */

static void release_job(void *j) { job_detail_free(((struct job_request *)j)->get.job); }

static size_t count_job(const void *j) { return ((const struct job_request *)j)->get.job->n_tests; }

static char *make_job(void *owner)
{
	struct job_request *j = owner;
	char *text = job_detail_json(j->get.job, j->read.config->public_url);

	job_detail_free(j->get.job); /* here, because this takes long too */
	j->get.job = NULL;
	return text;
}

static const struct web_read_kind JOB = {
    sizeof(struct job_request), release_job, NO_JOB, .check = check_job, .make_text = make_job, .n_items = count_job};

void web_on_job(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct params p = {.r = r};
	int64_t id;

	if (!w->config) {
		web_respond_busy(r);
		return;
	}
	if (parse_int64(http_segment(r, 0), &id) || id <= 0) {
		web_respond_not_found(r, NO_JOB);
		return;
	}
	if (answer_job_document(w, r, id))
		return;
	struct job_request *j = web_read_new(w, r, &JOB);
	if (!j)
		return;
	j->get.id = id;
	j->get.max_tests = params_limit(&p, 0);
	j->get.from = params_int(&p, "cursor", 1, INT64_MAX, 0);
	j->get.statuses = params_words(&p, "status", &test_status_words);
	if (!params_refuse_read(&p, j))
		web_read_await(j, store_get_job(j->read.store, &j->get));
}
