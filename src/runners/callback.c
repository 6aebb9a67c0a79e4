/* The two routes on which vendors report their jobs.
 *
 * POST /github/callback is CRCR's callback. The server reads the body only after the token has identified the caller. If
 * the token's key is not known yet, the request waits until the issuer's keys have been fetched once. An API token
 * reports periodic runs here that the vendor started itself.
 *
 * POST /api/v1/dispatches/{id}/jobs is for callers without an OIDC token. The credential is the dispatch's own token,
 * which is bound to it and to one accelerator; an API token, which is bound to the accelerator; or a machine's token,
 * which is bound to that machine's leases. */
#include "model/client_payload.h"
#include "runners/submission.h"

/* A request that waits for an issuer's keys. */
struct waiting {
	struct key_wait wait;
	struct runners *runners;
	struct http_request *request; /* NULL: the client left */
};

static void on_callback(struct http_request *q, void *owner);

static void on_issuer_keys(struct key_wait *wait)
{
	struct waiting *w = CONTAINER_OF(wait, struct waiting, wait);
	struct runners *r = w->runners;

	if (w->request) {
		http_on_gone(w->request, NULL);
		on_callback(w->request, r);
	}
	free(w);
	runners_let_go(r);
}

/* A report with a token of ours. dispatch_id NULL: of a periodic run that the vendor started itself. */
static void accept_report(struct runners *r, struct http_request *q, const char *dispatch_id, const struct reporter *by)
{
	struct access access;
	struct submission *s;

	access_of_accelerator(r->config, by->accelerator, &access);
	s = submission_new(r, q, by, &access);
	if (s)
		submission_read(s, dispatch_id);
}

enum caller {
	CALLER_REFUSED,     /* answered */
	CALLER_VENDOR,      /* an API token of ours */
	CALLER_REPOSITORY,  /* an issuer's token */
	CALLER_UNKNOWN_KEY, /* an issuer's token, whose key may be among the issuer's new keys */
};

/* Identifies the caller by the headers alone. Release *ret_caller after the last two. */
static enum caller identify_caller(struct runners *r, struct http_request *q, struct credential *ret_who,
    struct oidc_caller *ret_caller, struct error *e)
{
	const char *token = admit_bearer(r, q);

	if (!token)
		return CALLER_REFUSED;
	if (credential_is_shaped(token)) {
		if (!admit_token(r, q, token, ret_who))
			return CALLER_REFUSED;
		if (ret_who->kind == TOKEN_API)
			return CALLER_VENDOR;
		refuse_request(r, q, 403,
		    "a machine's token reports only the jobs of its own leases, at /api/v1/dispatches/ID/jobs: a "
		    "periodic run of the vendor's own needs an API token (`token issue`)",
		    ret_who->accelerator);
		return CALLER_REFUSED;
	}
	int err = oidc_verify(r->config, token, clock_wall_ms(), issuer_keys_find, r->keys, ret_caller, e);
	if (err == 0)
		return CALLER_REPOSITORY;
	if (err == ERR_NOT_FOUND)
		return CALLER_UNKNOWN_KEY;
	oidc_refuse(r, q, ret_caller, err, e);
	oidc_caller_release(ret_caller);
	return CALLER_REFUSED;
}

static void on_callback(struct http_request *q, void *owner)
{
	struct runners *r = owner;
	struct oidc_caller caller = {0};
	struct credential who;
	struct submission *s;
	struct waiting *w;
	struct access access;
	struct error e = {0};
	int err;

	switch (identify_caller(r, q, &who, &caller, &e)) {
	case CALLER_REFUSED:
		return;
	case CALLER_VENDOR:
		accept_report(r, q, NULL, &(struct reporter){.accelerator = who.accelerator});
		return;
	case CALLER_REPOSITORY:
		access_of_repository(r->config, caller.repository, caller.workflow_ref, &access);
		s = submission_new(r, q, &(struct reporter){.repository = caller.repository}, &access);
		if (s)
			submission_identify(s, &caller);
		break;
	case CALLER_UNKNOWN_KEY:
		/* The request waits until the issuer's keys are fetched, unless they were fetched lately. */
		w = xcalloc(1, sizeof *w);
		*w = (struct waiting){.wait.done = on_issuer_keys, .runners = r, .request = q};
		err = issuer_keys_await(r->keys, caller.issuer->issuer, &w->wait);
		if (!err) {
			runners_hold(r);
			forget_gone_client(&w->request);
			break;
		}
		free(w);
		oidc_refuse(r, q, &caller, err, &e);
		break;
	}
	oidc_caller_release(&caller);
}

/* Answers a bad token before the body is read. An issuer's keys are fetched when the body is there. */
static void on_callback_headers(struct http_request *q, void *owner)
{
	struct oidc_caller caller = {0};
	struct credential who;
	struct error e = {0};

	identify_caller(owner, q, &who, &caller, &e);
	oidc_caller_release(&caller);
}

/* The accelerator of the dispatch's token (free()); NULL: answered. */
static char *admit_callback_token(struct runners *r, struct http_request *q, const char *token, const char *dispatch_id)
{
	char *accelerator = NULL;
	int err = callback_token_check(r->callback_key, token, dispatch_id, clock_wall_ms(), &accelerator);

	if (!err) {
		http_note_authenticated(q);
		return accelerator;
	}
	refuse_request(r, q, 401, err == ERR_TIMEOUT ? "the token has expired" : "the token is not valid", NULL);
	free(accelerator);
	return NULL;
}

/* Answers a bad token before the body is read. */
static void on_vendor_report_headers(struct http_request *q, void *owner)
{
	struct runners *r = owner;
	const char *token = admit_bearer(r, q);
	struct credential who;

	if (token && credential_is_shaped(token))
		admit_token(r, q, token, &who);
	else if (token)
		free(admit_callback_token(r, q, token, http_segment(q, 0)));
}

static void on_vendor_report(struct http_request *q, void *owner)
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
			accept_report(r, q, dispatch_id, &(struct reporter){.accelerator = accelerator});
		free(accelerator);
	} else if (admit_token(r, q, token, &who)) {
		accept_report(r, q, dispatch_id,
		    &(struct reporter){
			.accelerator = who.accelerator,
			.machine = who.kind == TOKEN_RUNNER ? who.name : NULL,
		    });
	}
}

void report_add_routes(struct runners *r, struct http_server *h)
{
	struct http_route route = {
	    .method = "POST",
	    .pattern = "/github/callback",
	    .max_body_bytes = REPORT_BODY_MAX_BYTES,
	    .body_mode = HTTP_BODY_WHOLE,
	    .on_headers = on_callback_headers,
	    .on_request = on_callback,
	    .owner = r,
	};

	http_server_route(h, &route);
	route.pattern = "/api/v1/dispatches/{id}/jobs";
	route.on_headers = on_vendor_report_headers;
	route.on_request = on_vendor_report;
	http_server_route(h, &route);
}
