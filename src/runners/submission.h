/* A report whose caller is known: both endpoints parse its body, put it into the store and answer it here.
 *
 * Thread: loop; callback_request_ functions: any, pure. */
#pragma once

#include "model/job_report.h"
#include "model/packed_tests.h"
#include "runners/access.h"
#include "runners/runners_internal.h"
#include "store/job_reports.h"

/* ---- the body of POST /github/callback, parsed ---- */

struct callback_request {
	char *delivery_id; /* 1 to 128 printable characters without a space */
	/* outpost.dispatch_id of GitHub's client_payload, which the reporter may put at the top, in
	 * `client_payload` or in `payload`. NULL: there is none of the right form. */
	char *dispatch_id;
	/* event_type nightly or periodic: the vendor's own run, unless a dispatch is found for it. */
	bool is_nightly;
	/* is_nightly: the tested commit in lower case, the first text of 40 hexadecimal digits among
	 * delivery_id, pytorch_head_sha, payload.head_sha, payload.after and
	 * payload.pull_request.head.sha. "": the report names no commit. */
	char tested_sha[41];
	struct job_report report;
};

/* True if the delivery_id is a commit: no dispatch has such an id, so this is a self-report. */
bool callback_request_is_self_report(const struct callback_request *r);

/* Reads only delivery_id, the dispatch_id, `workflow` and a self-report's commit. ERR_INVALID names the field that is
 * missing or wrong. Release *ret also after a failure. */
int callback_request_parse(const char *body, size_t n, struct callback_request *ret, struct error *e) MUST_CHECK;
/* Reads the body of POST /api/v1/dispatches/{id}/jobs, a `workflow` object; sets only the report. */
int callback_request_parse_workflow(
    const char *body, size_t n, struct callback_request *ret, struct error *e) MUST_CHECK;
void callback_request_release(struct callback_request *r);

/* ---- the report ---- */

/* Owns everything that the store borrows. */
struct submission {
	struct runners *runners;
	struct http_request *request; /* NULL: the client left */
	struct config *config;        /* a reference: access points into it */
	char *caller;                 /* for the log and the rate: repository, accelerator or accelerator/machine */
	char *repository;             /* of an issuer's token, as the registry spells it; else NULL */
	char *accelerator;            /* of a token of ours, which is bound to it; else NULL */
	char *machine;                /* of a token of `runner add`, which is bound to its leases; else NULL */
	struct access access;
	struct identity_check identity;
	/* the body while it is read: in the pool if it is large */
	STAILQ_ENTRY(submission) at; /* in runners.to_be_read */
	struct pool_work work;
	char *dispatch_id; /* of the path; NULL: the body is that of a callback */
	char *bytes;       /* the server's memory */
	size_t n_bytes;
	int err;
	struct error why;
	struct callback_request body;
	struct packed_tests packed; /* its tests */
	bool is_self_report;        /* no dispatch belongs to it: `nightly` is used and not `job` */
	struct report_job job;
	struct report_nightly nightly;
};

/* The caller, from its credential: an issuer's token names a repository; a token of ours is bound to an accelerator
 * and, if it is of `runner add`, to one machine's leases. */
struct reporter {
	const char *repository, *accelerator, *machine; /* or NULL */
};

/* Takes the access over. NULL: the request was answered (429, 200 ignored, 403). Else call submission_identify() or
 * submission_read(). */
struct submission *submission_new(
    struct runners *r, struct http_request *q, const struct reporter *by, struct access *access);
/* Checks the ids of the caller's repository, if the token needs that, then reads the body of POST /github/callback; or answers
 * (403, 503) and frees the submission. The caller's issuer is the snapshot's. */
void submission_identify(struct submission *s, const struct oidc_caller *caller);
/* Reads the body and puts the report into the store. Answers now or later, and frees the submission then. dispatch_id: of the
 * path of POST /api/v1/dispatches/{id}/jobs; NULL: the body is that of POST /github/callback. */
void submission_read(struct submission *s, const char *dispatch_id);
