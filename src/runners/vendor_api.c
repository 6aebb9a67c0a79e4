/* POST /api/v1/dispatches/{id}/jobs: for everyone without GitHub's OIDC. The credential is the
 * dispatch's own token, bound to it and to one accelerator; an API token, bound to the
 * accelerator; or a machine's token, bound to that machine's leases. */
#include "base/alloc.h"
#include "base/clock.h"
#include "model/callback_token.h"
#include "runners/admission.h"
#include "runners/answer.h"
#include "runners/submission.h"

static void take_report(
    struct runners *r, struct http_request *q, const char *dispatch_id, const struct reporter *by)
{
	struct error e = {0};
	struct submission *s;
	struct access access;
	const char *body;
	size_t n;
	int err;

	access_of_accelerator(r->config, by->accelerator, &access);
	s = submission_new(r, q, by, &access);
	if (!s)
		return;
	body = http_body(q, &n);
	err = callback_request_parse_workflow(body, n, &s->body, &e);
	s->body.dispatch_id = xstrdup(dispatch_id);
	submission_start(s, err, &e);
}

/* The accelerator of the dispatch's token (free()); NULL: answered. */
static char *admit_callback_token(
    struct runners *r, struct http_request *q, const char *token, const char *dispatch_id)
{
	char *accelerator = NULL;
	int err = callback_token_check(
	    r->callback_key, token, dispatch_id, clock_wall_ms(), &accelerator);

	if (!err) {
		http_note_authenticated(q);
		return accelerator;
	}
	answer_refused(r, q,
	    &(struct refusal){
		.status = 401,
		.detail = err == ERR_TIMEOUT ? "the token has expired" : "the token is not valid",
	    });
	free(accelerator);
	return NULL;
}

/* Answers a bad token before the body is read. */
static void on_headers(struct http_request *q, void *owner)
{
	struct runners *r = owner;
	const char *token = admit_bearer(r, q);
	struct credential who;

	if (token && credential_is_shaped(token))
		admit_token(r, q, token, &who);
	else if (token)
		free(admit_callback_token(r, q, token, http_segment(q, 0)));
}

static void on_request(struct http_request *q, void *owner)
{
	struct runners *r = owner;
	const char *token = admit_bearer(r, q), *dispatch_id = http_segment(q, 0);
	struct credential who;
	char *accelerator;

	if (!token)
		return;
	if (!credential_is_shaped(token)) {
		accelerator = admit_callback_token(r, q, token, dispatch_id);
		if (accelerator)
			take_report(
			    r, q, dispatch_id, &(struct reporter){.accelerator = accelerator});
		free(accelerator);
	} else if (admit_token(r, q, token, &who)) {
		take_report(r, q, dispatch_id,
		    &(struct reporter){
			.accelerator = who.accelerator,
			.machine = who.kind == TOKEN_RUNNER ? who.name : NULL,
		    });
	}
}

void vendor_api_add_route(struct runners *r, struct http_server *h)
{
	http_server_route(h, &(struct http_route){
				 .method = "POST",
				 .pattern = "/api/v1/dispatches/{id}/jobs",
				 .max_body_bytes = REPORT_BODY_MAX_BYTES,
				 .body_mode = HTTP_BODY_WHOLE,
				 .on_headers = on_headers,
				 .on_request = on_request,
				 .owner = r,
			     });
}
