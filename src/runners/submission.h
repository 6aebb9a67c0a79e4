/* A report whose caller is known, on its way into the store and to its answer: what both
 * endpoints have in common. */
#ifndef RUNNERS_SUBMISSION_H
#define RUNNERS_SUBMISSION_H

#include "http/server.h"
#include "runners/access.h"
#include "runners/callback_request.h"
#include "runners/runners_internal.h"
#include "store/jobs.h"

/* Owns all that the store borrows. */
struct submission {
	struct runners *runners;
	struct http_request *request; /* NULL: the client left */
	struct config *config;        /* a reference: access points into it */
	char *caller;                 /* repository, or accelerator of a token of ours */
	bool is_by_token;             /* one of ours, bound to an accelerator: no issuer's */
	struct access access;
	struct callback_request body;
	struct report_job job;
	struct report_nightly nightly;
};

/* Who reports; the access is taken over. Answers (429, 200 ignored, 403) and returns NULL
 * when nothing further is to be read; else fill `body` and start it. */
struct submission *submission_new(struct runners *r, struct http_request *q, const char *caller,
    bool is_by_token, struct access *access);
/* The body was read with `err`; answers now or later, frees itself then. */
void submission_start(struct submission *s, int err, const struct error *e);

#endif
