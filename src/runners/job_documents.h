/* What comes with a job besides its end: PUT /api/v1/jobs/{id}/log and …/report. This is what the
 * two share; no other folder includes it. */
#ifndef RUNNERS_JOB_DOCUMENTS_H
#define RUNNERS_JOB_DOCUMENTS_H

#include "http/server.h"
#include "logs/logs.h"
#include "runners/runners_internal.h"

enum {
	/* Of one caller: a machine, a dispatch, a repository. A runner sends a piece every few
	 * hundred milliseconds, and an API token may stand for dozens of jobs. */
	LOG_CALLS_PER_MINUTE = 12000,
	/* Reports that are arriving or being read, together; one more gets 503. */
	REPORTS_IN_HAND_MAX_BYTES = 128 << 20,
	/* Of those, what one accelerator's may take: bodies that never end keep nobody else out. */
	REPORTS_OF_ONE_MAX_BYTES = REPORTS_IN_HAND_MAX_BYTES / 2,
	REPORTS_PARSED_AT_ONCE = 2,
};

struct log_put;
struct report_put;

struct job_documents {
	struct runners *runners;
	struct logs *logs;
	struct rate_limit *log_calls;
	size_t report_bytes; /* in hand */
	struct report_room *rooms;
	int n_parsing;
	struct log_put *log_puts;       /* whose bodies arrive */
	struct report_put *report_puts; /* the same */
	bool is_stopping;
	struct report_put *first, **last; /* have arrived and wait to be parsed */
};

/* Adds the routes. Everything is borrowed and outlives it. */
struct job_documents *job_documents_new(
    struct runners *r, struct http_server *h, struct logs *logs);
/* Logs that are being sent are kept as far as they came, and answered 503: the server need not
 * wait for their end. */
void job_documents_stop(struct job_documents *d);
/* Tokens or the registry changed: what arrives from somebody who may not any more ends now. */
void job_documents_check(struct job_documents *d);
void job_documents_free(struct job_documents *d); /* nothing is in hand; NULL is fine */

void job_log_stop(struct job_documents *d);
void job_log_check(struct job_documents *d);
void job_report_check(struct job_documents *d);
/* The routes. */
void job_log_add_route(struct job_documents *d, struct http_server *h);
void job_report_add_route(struct job_documents *d, struct http_server *h);

#endif
