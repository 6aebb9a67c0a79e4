/* The body of POST /github/callback, checked: pure, bytes in, struct out. */
#ifndef RUNNERS_CALLBACK_REQUEST_H
#define RUNNERS_CALLBACK_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "model/job_report.h"

struct callback_request {
	char *delivery_id; /* 1 to 128 printable characters without a space */
	/* outpost.dispatch_id, wherever the reporter put GitHub's client_payload: at the top,
	 * in `client_payload` or in `payload`. NULL: none, or none that could be ours. */
	char *dispatch_id;
	/* event_type nightly or periodic: the vendor's own run unless a dispatch is found for it. */
	bool is_nightly;
	/* is_nightly: the tested commit in lower case, the first text of 40 hexadecimal digits among
	 * delivery_id, pytorch_head_sha, payload.head_sha, payload.after and
	 * payload.pull_request.head.sha. "": the report names no commit. */
	char tested_sha[41];
	struct job_report report;
};

/* A delivery_id that is a commit: no dispatch has such an id, so this is a self-report. */
bool callback_request_is_self_report(const struct callback_request *r);

/* ERR_INVALID names the field that is missing or wrong. Besides delivery_id, the
 * dispatch_id, `workflow` and a self-report's commit nothing is read. Release *ret also
 * after a failure. */
int callback_request_parse(
    const char *body, size_t n, struct callback_request *ret, struct error *e) MUST_CHECK;
/* The bare `workflow` object of POST /api/v1/dispatches/{id}/jobs; sets only the report. */
int callback_request_parse_workflow(
    const char *body, size_t n, struct callback_request *ret, struct error *e) MUST_CHECK;
void callback_request_release(struct callback_request *r);

#endif
