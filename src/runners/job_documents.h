/* The documents of a job: PUT /api/v1/jobs/{id}/log and …/report. This is the state that the two share; no other folder
 * includes it.
 *
 * Thread: loop. */
#pragma once

#include "logs/logs.h"
#include "runners/access.h"
#include "runners/runners_internal.h"
#include "store/jobs.h"
#include "views/job.h"

enum {
	/* Of one caller: a machine, a dispatch, a repository. A runner sends a piece every few hundred
	 * milliseconds, and an API token may be used for dozens of jobs. */
	LOG_CALLS_PER_MINUTE = 12000,
	/* Of all reports that are arriving or being parsed; one more is answered 503. */
	REPORTS_MAX_BYTES = 128 << 20,
	/* Of the reports of one accelerator: its bodies that never end do not keep out those of others. */
	REPORTS_OF_ONE_MAX_BYTES = REPORTS_MAX_BYTES / 2,
	REPORTS_PARSED_AT_ONCE = 2,
};

struct job_documents {
	struct runners *runners;
	struct logs *logs;
	struct rate_limit *log_calls;
	size_t report_bytes; /* of the reports that are arriving or being parsed */
	LIST_HEAD(, report_room) rooms;
	int n_parsing;
	LIST_HEAD(, log_put) log_puts;          /* their bodies are arriving */
	LIST_HEAD(, report_put) report_puts;    /* their bodies are arriving */
	STAILQ_HEAD(, report_put) to_be_parsed; /* their bodies are complete */
	bool is_stopping;
};

/* Adds the routes. Borrows all arguments, which must outlive it. */
struct job_documents *job_documents_new(struct runners *r, struct http_server *h, struct logs *logs);
/* job_log.c: writes the part of each log that has arrived, and answers 503, so that the server need not wait for the
 * rest. */
void job_documents_stop(struct job_documents *d);
/* Tokens or the registry changed: ends the documents whose senders may not send them any more. */
void job_documents_check(struct job_documents *d);
void job_documents_free(struct job_documents *d); /* after the last document; NULL is fine */

void job_log_check(struct job_documents *d);
void job_report_check(struct job_documents *d);
/* The routes. */
void job_log_add_route(struct job_documents *d, struct http_server *h);
void job_report_add_route(struct job_documents *d, struct http_server *h);

/* ---- checks that the caller may send documents of this job, before a byte of the body is read. Without a good token the
 * answer does not show whether the job exists. A job of an accelerator at L1 gets the answer of a missing job ---- */

struct job_access {
	struct runners *runners;
	struct http_request *request; /* NULL: the client left */
	struct rate_limit *limit;     /* borrowed: counts this caller's requests */
	/* Runs once, never inside job_access_start(): access is granted, or the request is answered, or the client
	 * left. */
	void (*done)(struct job_access *a);
	bool is_granted;     /* out */
	int64_t job_id;      /* out */
	char *caller;        /* out: for logs; never a token */
	struct find_job job; /* out, when granted */
	/* ---- private ---- */
	struct config *config; /* a reference: access points into it */
	struct access access;
	char *dispatch_id; /* of a callback token: only the jobs of this dispatch */
	char *repository;  /* of an OIDC token: only the jobs of this repository */
	int64_t token_id;  /* of a vendor's token; 0: it is of another kind */
	char *machine;     /* of a machine's token: only the jobs of its leases */
	struct key_wait keys;
	/* of an OIDC token whose repository's ids are checked, else NULL */
	const struct oidc_issuer *issuer;
	struct repository_ids ids;
	struct identity_check identity;
};

/* For PUT /api/v1/jobs/{id}/…, in stream mode, inside on_request: pauses the body. Fill in the first four fields. Until
 * done runs, the struct uses the request's user and on_gone; after it the caller sets its own and resumes the
 * body. Release it after done. */
void job_access_start(struct job_access *a);
/* Checks a granted access again. ERR_AUTH: the token was revoked. ERR_DENIED: the accelerator has left the registry. */
int job_access_check(const struct job_access *a);
/* These answer the request, unless the client left, and set a->request to NULL: with this status (why: for the log, or
 * NULL); with 503; and with the error of job_access_check(). */
void job_access_answer(struct job_access *a, int status, const char *detail, const char *why);
void job_access_answer_busy(struct job_access *a, int err);
void job_access_refuse(struct job_access *a, int err);
void job_access_release(struct job_access *a);
