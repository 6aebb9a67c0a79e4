/* The answers to a report: contract's table, each counted and logged in one place. */
#ifndef RUNNERS_ANSWER_H
#define RUNNERS_ANSWER_H

#include "http/server.h"
#include "runners/runners_internal.h"

/* The token after "Bearer " (RFC 6750 section 2.1; the scheme compares without case), or
 * NULL when the header is absent or of another form. Borrowed from the request. */
const char *bearer_token(const struct http_request *q);

struct refusal {
	int status;
	const char *detail; /* for the caller: {"detail": …} */
	const char *why;    /* for the log; NULL: the detail. Never a token */
	const char *caller; /* repository or accelerator, NULL while unknown */
	int retry_after_s;  /* 0: no such header */
};
void answer_refused(struct runners *r, struct http_request *q, const struct refusal *x);
/* 401, to one whose token was good when the request came. */
void answer_revoked(struct runners *r, struct http_request *q, const char *caller);
/* 503: nothing was recorded, the caller may try again. */
void answer_busy(struct runners *r, struct http_request *q, const char *caller, int err);
void answer_ignored(struct runners *r, struct http_request *q, const char *caller, const char *why);
/* 200 with the job's id and page. */
void answer_recorded(
    struct http_request *q, const struct config *c, const char *status, int64_t job_id);

#endif
