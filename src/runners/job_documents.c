#include "runners/job_documents.h"

#include "base/alloc.h"

enum { CALLERS_MAX = 4096 };

struct job_documents *job_documents_new(struct runners *r, struct http_server *h, struct logs *logs)
{
	struct job_documents *d = xcalloc(1, sizeof(*d));

	d->runners = r;
	d->logs = logs;
	d->log_calls = rate_limit_new(LOG_CALLS_PER_MINUTE, CALLERS_MAX);
	d->last = &d->first;
	job_log_add_route(d, h);
	job_report_add_route(d, h);
	return d;
}

void job_documents_stop(struct job_documents *d)
{
	d->is_stopping = true;
	job_log_stop(d);
}

void job_documents_check(struct job_documents *d)
{
	job_log_check(d);
	job_report_check(d);
}

void job_documents_free(struct job_documents *d)
{
	if (!d)
		return;
	rate_limit_free(d->log_calls);
	free(d);
}
