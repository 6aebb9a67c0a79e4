/* The body of POST /github/callback, checked: pure, bytes in, struct out. */
#ifndef RUNNERS_CALLBACK_REQUEST_H
#define RUNNERS_CALLBACK_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "model/job_report.h"

struct callback_request {
	char *delivery_id; /* 1 to 64 letters, digits and '-' */
	/* outpost.dispatch_id, wherever the reporter put GitHub's client_payload: at the top,
	 * in `client_payload` or in `payload`. NULL: none, or none that could be ours. */
	char *dispatch_id;
	/* event_type nightly or periodic, and a delivery_id that is a commit: the vendor's own
	 * run, without a dispatch. delivery_id is then in lower case. */
	bool is_self_report;
	struct job_report report;
};

/* ERR_INVALID names the field that is missing or wrong. Besides delivery_id, the
 * dispatch_id and `workflow` nothing is read. Release *ret also after a failure. */
int callback_request_parse(
    const char *body, size_t n, struct callback_request *ret, struct error *e) MUST_CHECK;
/* The bare `workflow` object of POST /api/v1/dispatches/{id}/jobs; sets only the report. */
int callback_request_parse_workflow(
    const char *body, size_t n, struct callback_request *ret, struct error *e) MUST_CHECK;
void callback_request_release(struct callback_request *r);

#endif
