/* A report whose caller is known, on its way into the store and to its answer: what both
 * endpoints have in common. */
#ifndef RUNNERS_SUBMISSION_H
#define RUNNERS_SUBMISSION_H

#include "http/server.h"
#include "runners/access.h"
#include "runners/callback_request.h"
#include "runners/identity.h"
#include "runners/runners_internal.h"
#include "store/jobs.h"

/* Owns all that the store borrows. */
struct submission {
	struct runners *runners;
	struct http_request *request; /* NULL: the client left */
	struct config *config;        /* a reference: access points into it */
	char *caller; /* for the log and the rate: repository, accelerator or accelerator/machine */
	char *repository;  /* of an issuer's token, as the registry spells it; else NULL */
	char *accelerator; /* to which a token of ours is bound; else NULL */
	char *machine;     /* to whose leases a token of `runner add` is bound; else NULL */
	struct access access;
	struct identity_check identity;
	void (*then)(struct submission *s);
	struct callback_request body;
	bool is_self_report; /* no dispatch was found, or looked for: `nightly` counts, not `job` */
	struct report_job job;
	struct report_nightly nightly;
};

/* Who reports, as the credential says: an issuer's token names a repository; a token of ours is
 * bound to an accelerator and, when it is of `runner add`, to one machine's leases. */
struct reporter {
	const char *repository, *accelerator, *machine; /* what does not apply is NULL */
};

/* The access is taken over. Answers (429, 200 ignored, 403) and returns NULL when nothing further
 * is to be read; else fill `body` and start it. */
struct submission *submission_new(
    struct runners *r, struct http_request *q, const struct reporter *by, struct access *access);
/* Checks that the caller's repository is the one known by its name, then runs `then`, which reads
 * the body and starts it; or answers (403, 503) and frees it. Runs it at once where there is nothing
 * to check. The caller's issuer is the snapshot's. */
void submission_identify(
    struct submission *s, const struct oidc_caller *caller, void (*then)(struct submission *s));
/* The body was read with `err`; answers now or later, frees itself then. */
void submission_start(struct submission *s, int err, const struct error *e);

#endif
