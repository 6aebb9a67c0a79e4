/* POST /github/callback: CRCR's callback. The token says who calls; only then is the body
 * read. A token whose key is not known yet waits for one look at the issuer's keys. A token of
 * the vendor's own, which no issuer made, is good for what no dispatch asked for. */
#include "base/alloc.h"
#include "base/clock.h"
#include "runners/admission.h"
#include "runners/answer.h"
#include "runners/oidc.h"
#include "runners/submission.h"

/* A request that waits for an issuer's keys. */
struct waiting {
	struct key_wait wait;
	struct runners *runners;
	struct http_request *request; /* NULL: the client left */
};

static void handle(struct runners *r, struct http_request *q);

static void on_gone(struct http_request *q)
{
	struct waiting *w = http_user(q);

	w->request = NULL;
}

static void on_keys(struct key_wait *wait)
{
	struct waiting *w = CONTAINER_OF(wait, struct waiting, wait);
	struct runners *r = w->runners;

	if (w->request) {
		http_on_gone(w->request, NULL);
		handle(r, w->request);
	}
	free(w);
	runners_let_go(r);
}

static int wait_for_keys(struct runners *r, struct http_request *q, const char *issuer)
{
	struct waiting *w = xcalloc(1, sizeof *w);
	int err;

	w->wait.done = on_keys;
	w->runners = r;
	w->request = q;
	err = issuer_keys_await(r->keys, issuer, &w->wait);
	if (err) {
		free(w);
		return err;
	}
	runners_hold(r);
	http_set_user(q, w);
	http_on_gone(q, on_gone);
	return 0;
}

static void refuse_token(struct runners *r, struct http_request *q, int err, const struct error *e)
{
	if (err == ERR_DENIED)
		answer_refused(r, q,
		    &(struct refusal){
			.status = 403,
			.detail = "the token's pipeline may not report here",
			.why = e->text,
		    });
	else
		answer_refused(r, q,
		    &(struct refusal){
			.status = 401, .detail = "the token is not valid", .why = e->text});
}

static void read_report(struct submission *s)
{
	struct error e = {0};
	size_t n;
	const char *body = http_body(s->request, &n);

	submission_start(s, callback_request_parse(body, n, &s->body, &e), &e);
}

static void take_report(struct runners *r, struct http_request *q, const struct oidc_caller *caller)
{
	struct submission *s;
	struct access access;

	access_of_repository(r->config, caller->repository, caller->workflow_ref, &access);
	s = submission_new(r, q, &(struct reporter){.repository = caller->repository}, &access);
	if (s)
		submission_identify(s, caller, read_report);
}

/* A report of a dispatch names the dispatch in its path, where the token is checked against it:
 * vendor_api.c. */
static void take_self_report(struct runners *r, struct http_request *q, const char *accelerator)
{
	struct error e = {0};
	struct submission *s;
	struct access access;
	const char *body;
	size_t n;
	int err;

	access_of_accelerator(r->config, accelerator, &access);
	s = submission_new(r, q, &(struct reporter){.accelerator = accelerator}, &access);
	if (!s)
		return;
	body = http_body(q, &n);
	err = callback_request_parse(body, n, &s->body, &e);
	if (!err && (!s->body.is_nightly || s->body.dispatch_id))
		err = error_set(&e, ERR_INVALID,
		    "a vendor's own token reports periodic runs here: event_type must be nightly "
		    "or periodic; jobs of a dispatch go to /api/v1/dispatches/ID/jobs");
	submission_start(s, err, &e);
}

static void refuse_machine(struct runners *r, struct http_request *q, const struct credential *who)
{
	answer_refused(r, q,
	    &(struct refusal){
		.status = 403,
		.detail =
		    "a machine's token reports only the jobs of its own leases, at "
		    "/api/v1/dispatches/ID/jobs: a periodic run of the vendor's own needs an API "
		    "token (`token issue`)",
		.caller = who->accelerator,
	    });
}

enum caller {
	CALLER_REFUSED,     /* answered */
	CALLER_VENDOR,      /* an API token of ours */
	CALLER_REPOSITORY,  /* an issuer's token */
	CALLER_UNKNOWN_KEY, /* an issuer's token, which one look at the issuer's keys may prove */
};

/* Who calls, by the headers alone. Release *ret_caller after the last two. */
static enum caller identify(struct runners *r, struct http_request *q, struct credential *ret_who,
    struct oidc_caller *ret_caller, struct error *e)
{
	const char *token = admit_bearer(r, q);
	int err;

	if (!token)
		return CALLER_REFUSED;
	if (credential_is_shaped(token)) {
		if (!admit_token(r, q, token, ret_who))
			return CALLER_REFUSED;
		if (ret_who->kind == TOKEN_API)
			return CALLER_VENDOR;
		refuse_machine(r, q, ret_who);
		return CALLER_REFUSED;
	}
	err = oidc_verify(
	    r->config, token, clock_wall_ms(), issuer_keys_find, r->keys, ret_caller, e);
	if (err == 0)
		return CALLER_REPOSITORY;
	if (err == ERR_NOT_FOUND)
		return CALLER_UNKNOWN_KEY;
	refuse_token(r, q, err, e);
	oidc_caller_release(ret_caller);
	return CALLER_REFUSED;
}

static void look_for_keys(
    struct runners *r, struct http_request *q, const char *issuer, const struct error *e)
{
	int err = wait_for_keys(r, q, issuer);

	if (err == ERR_NOT_FOUND)
		refuse_token(r, q, err, e);
	else if (err)
		answer_busy(r, q, issuer, err);
}

static void handle(struct runners *r, struct http_request *q)
{
	struct oidc_caller caller = {0};
	struct credential who;
	struct error e = {0};

	switch (identify(r, q, &who, &caller, &e)) {
	case CALLER_REFUSED:
		return;
	case CALLER_VENDOR:
		take_self_report(r, q, who.accelerator);
		return;
	case CALLER_REPOSITORY:
		take_report(r, q, &caller);
		break;
	case CALLER_UNKNOWN_KEY:
		look_for_keys(r, q, caller.issuer->issuer, &e);
		break;
	}
	oidc_caller_release(&caller);
}

/* Answers a bad token before the body is read. The keys of an issuer are asked for when the body
 * is there. */
static void on_headers(struct http_request *q, void *owner)
{
	struct oidc_caller caller = {0};
	struct credential who;
	struct error e = {0};

	identify(owner, q, &who, &caller, &e);
	oidc_caller_release(&caller);
}

static void on_request(struct http_request *q, void *owner)
{
	handle(owner, q);
}

void callback_add_route(struct runners *r, struct http_server *h)
{
	http_server_route(h, &(struct http_route){
				 .method = "POST",
				 .pattern = "/github/callback",
				 .max_body_bytes = REPORT_BODY_MAX_BYTES,
				 .body_mode = HTTP_BODY_WHOLE,
				 .on_headers = on_headers,
				 .on_request = on_request,
				 .owner = r,
			     });
}
