/* Whose job is it? Before a byte of a job's document is read: who asks, by whichever credential,
 * and whether the job is theirs to report. Who bears no good token learns nothing, not even
 * whether there is such a job; a job of an accelerator at L1 does not exist for anybody. */
#ifndef RUNNERS_JOB_ACCESS_H
#define RUNNERS_JOB_ACCESS_H

#include "http/server.h"
#include "runners/access.h"
#include "runners/identity.h"
#include "runners/runners_internal.h"
#include "store/jobs.h"

struct job_access {
	struct runners *runners;
	struct http_request *request; /* NULL: the client left */
	struct rate_limit *limit;     /* borrowed: counts this caller's requests */
	/* Runs once, never inside job_access_start(): granted, or answered, or the client left. */
	void (*done)(struct job_access *a);
	bool is_granted;     /* out */
	int64_t job_id;      /* out */
	char *caller;        /* out: for logs; never a token */
	struct find_job job; /* out, when granted */
	/* ---- its own ---- */
	struct config *config; /* a reference: access points into it */
	struct access access;
	char *dispatch_id; /* of a callback token: only this one's jobs */
	char *repository;  /* of an OIDC token: only its own jobs */
	int64_t token_id;  /* of a vendor's token; 0: it is of another kind */
	char *machine;     /* of a machine's token: only the jobs of its leases */
	struct key_wait keys;
	struct identity_check identity; /* of an OIDC token: its repository's ids */
	bool is_identity_checked;       /* it needs that */
};

/* For PUT /api/v1/jobs/{id}/…, in stream mode, inside on_request: pauses the body. Fill in the
 * first four fields. Until done runs the request's user and on_gone are this one's; from there
 * the caller sets its own and resumes the body. Release it after done. */
void job_access_start(struct job_access *a);
/* Whether what was granted still is: 0; ERR_AUTH: the token was revoked; ERR_DENIED: the accelerator
 * has left the registry. */
int job_access_check(const struct job_access *a);
/* Answers with what job_access_check() said (not 0); the request is over. */
void job_access_refuse(struct job_access *a, int err);
void job_access_release(struct job_access *a);

#endif
