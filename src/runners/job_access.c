#include "runners/job_access.h"

#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/strv.h"
#include "model/callback_token.h"
#include "runners/admission.h"
#include "runners/answer.h"
#include "runners/oidc.h"

static void end(struct job_access *a)
{
	struct runners *r = a->runners;

	if (a->request)
		http_on_gone(a->request, NULL);
	a->done(a);
	runners_let_go(r);
}

static void end_later(void *p)
{
	end(p);
}

/* Answered already: done runs on the loop's next turn. */
static void give_up(struct job_access *a)
{
	a->request = NULL;
	loop_reap(a->runners->loop, end_later, a);
}

static void answer(struct job_access *a, int status, const char *detail, const char *why)
{
	struct http_request *q = a->request;

	a->request = NULL;
	if (q)
		answer_refused(a->runners, q,
		    &(struct refusal){
			.status = status, .detail = detail, .why = why, .caller = a->caller});
}

static void refuse(struct job_access *a, int status, const char *detail, const char *why)
{
	answer(a, status, detail, why);
	give_up(a);
}

static void on_gone(struct http_request *q)
{
	struct job_access *a = http_user(q);

	a->request = NULL;
}

/* ---- is the job theirs? ---- */

static bool is_silent(const struct job_access *a)
{
	const struct accelerator *x = config_accelerator(a->config, a->job.accelerator);

	return x && x->level == LEVEL_1;
}

static bool is_theirs(const struct job_access *a)
{
	const struct find_job *j = &a->job;

	if (!strv_contains(a->access.allowed, j->accelerator))
		return false;
	if (a->machine)
		return str_eq(a->machine, j->machine);
	if (a->dispatch_id)
		return str_eq(a->dispatch_id, j->dispatch_id);
	if (a->repository)
		return j->repository && strcasecmp(a->repository, j->repository) == 0;
	return true;
}

int job_access_check(const struct job_access *a)
{
	if (a->token_id && !credentials_has(a->runners->credentials, a->token_id))
		return ERR_AUTH;
	return config_accelerator(a->runners->config, a->job.accelerator) ? 0 : ERR_DENIED;
}

void job_access_refuse(struct job_access *a, int err)
{
	struct http_request *q = a->request;

	a->request = NULL;
	if (q && err == ERR_AUTH)
		answer_revoked(a->runners, q, a->caller);
	else if (q)
		answer_refused(a->runners, q,
		    &(struct refusal){
			.status = 403,
			.detail = "the accelerator has left the registry",
			.caller = a->caller,
		    });
}

static void answer_unread(struct job_access *a, int err)
{
	if (a->request)
		answer_busy(a->runners, a->request, a->caller, err);
	a->request = NULL;
}

static void on_found(struct store_query *q)
{
	struct job_access *a = CONTAINER_OF(q, struct job_access, job.q);
	int err = q->err ? 0 : job_access_check(a);

	if (q->err == ERR_NOT_FOUND || (!q->err && is_silent(a)))
		answer(a, 404, "no such job", NULL);
	else if (q->err)
		answer_unread(a, q->err);
	else if (!is_theirs(a))
		answer(a, 403,
		    a->machine ? "the job is not of a lease that this machine has or had"
			       : "the job is not this caller's",
		    NULL);
	else if (err)
		job_access_refuse(a, err);
	else
		a->is_granted = a->request != NULL;
	end(a);
}

static void find(struct job_access *a)
{
	int err;

	if (parse_int64(http_segment(a->request, 0), &a->job_id) || a->job_id <= 0) {
		refuse(a, 404, "no such job", NULL);
		return;
	}
	a->job.id = a->job_id;
	a->job.q.done = on_found;
	err = store_find_job(a->runners->store, &a->job);
	if (err) {
		answer_busy(a->runners, a->request, a->caller, err);
		give_up(a);
	}
}

static void on_identified(struct identity_check *c)
{
	struct job_access *a = CONTAINER_OF(c, struct job_access, identity);

	if (a->request && !c->err) {
		find(a);
		return;
	}
	if (c->err == ERR_DENIED)
		answer(a, 403, c->why.text, NULL);
	else if (a->request)
		answer_unread(a, c->err);
	end(a);
}

static void identify(struct job_access *a)
{
	int err;

	a->identity.runners = a->runners;
	a->identity.done = on_identified;
	err = identity_check_start(&a->identity);
	if (err) {
		answer_unread(a, err);
		give_up(a);
	}
}

/* The token is good: within its rate, and for something that is registered? */
static void admit(struct job_access *a)
{
	struct runners *r = a->runners;
	bool is_registered = access_is_registered(&a->access);
	int retry_after_s;

	if (!rate_limit_take(is_registered ? a->limit : r->strangers, a->caller,
		loop_now_ms(r->loop), &retry_after_s)) {
		answer_refused(r, a->request,
		    &(struct refusal){
			.status = 429,
			.detail = "too many requests in this minute",
			.caller = a->caller,
			.retry_after_s = retry_after_s,
		    });
		give_up(a);
	} else if (a->access.n_allowed == 0) {
		refuse(a, 403,
		    is_registered ? "the accelerator is bound to another workflow than the token's"
				  : "the caller is not in the registry",
		    NULL);
	} else if (a->is_identity_checked) {
		identify(a);
	} else {
		http_note_authenticated(a->request);
		find(a);
	}
}

/* ---- who asks? ---- */

static void admit_ours(struct job_access *a, const char *token)
{
	struct credential c;

	if (!admit_token(a->runners, a->request, token, &c)) {
		give_up(a);
		return;
	}
	access_of_accelerator(a->config, c.accelerator, &a->access);
	a->token_id = c.id;
	a->machine = c.kind == TOKEN_RUNNER ? xstrdup(c.name) : NULL;
	a->caller = *c.name ? xasprintf("%s/%s", c.accelerator, c.name) : xstrdup(c.accelerator);
	admit(a);
}

/* The token says for which dispatch it is, which is believed once its signature holds. */
static void admit_callback(struct job_access *a, const char *token)
{
	struct runners *r = a->runners;
	char *dispatch_id = callback_token_dispatch(token), *accelerator = NULL;
	int err = ERR_AUTH;

	if (dispatch_id)
		err = callback_token_check(
		    r->callback_key, token, dispatch_id, clock_wall_ms(), &accelerator);
	if (err) {
		refuse(a, 401,
		    err == ERR_TIMEOUT ? "the token has expired" : "the token is not valid", NULL);
		free(dispatch_id);
		return;
	}
	access_of_accelerator(a->config, accelerator, &a->access);
	a->caller = accelerator;
	a->dispatch_id = dispatch_id;
	admit(a);
}

static void admit_oidc(struct job_access *a, const char *token);

static void on_keys(struct key_wait *w)
{
	struct job_access *a = CONTAINER_OF(w, struct job_access, keys);

	if (!a->request || !admit_open(a->runners, a->request)) {
		give_up(a);
		return;
	}
	/* Keys and configuration are newer than the request, and go together: its issuer may have
	 * left both. The token still speaks for itself. */
	config_unref(a->config);
	a->config = config_ref(a->runners->config);
	admit_oidc(a, bearer_token(a->request));
}

static void wait_for_keys(struct job_access *a, const char *issuer, const struct error *e)
{
	int err;

	a->keys.done = on_keys;
	err = issuer_keys_await(a->runners->keys, issuer, &a->keys);
	if (err == ERR_NOT_FOUND) {
		refuse(a, 401, "the token is not valid", e->text);
	} else if (err) {
		answer_busy(a->runners, a->request, issuer, err);
		give_up(a);
	}
}

static void admit_oidc(struct job_access *a, const char *token)
{
	struct oidc_caller caller;
	struct error e = {0};
	int err = oidc_verify(
	    a->config, token, clock_wall_ms(), issuer_keys_find, a->runners->keys, &caller, &e);

	if (err == ERR_NOT_FOUND) {
		wait_for_keys(a, caller.issuer->issuer, &e);
	} else if (err == ERR_DENIED) {
		refuse(a, 403, "the token's pipeline may not report here", e.text);
	} else if (err) {
		refuse(a, 401, "the token is not valid", e.text);
	} else {
		access_of_repository(a->config, caller.repository, caller.workflow_ref, &a->access);
		a->repository = caller.repository;
		caller.repository = NULL;
		a->is_identity_checked = identity_is_checked(&caller);
		identity_check_init(
		    &a->identity, caller.issuer, a->repository, caller.ids, &a->access);
		a->caller = xstrdup(a->repository);
		admit(a);
	}
	oidc_caller_release(&caller);
}

void job_access_start(struct job_access *a)
{
	struct runners *r = a->runners;
	const char *token = bearer_token(a->request);

	runners_hold(r);
	http_pause_body(a->request);
	http_set_user(a->request, a);
	http_on_gone(a->request, on_gone);
	if (!admit_open(r, a->request)) {
		give_up(a);
		return;
	}
	a->config = config_ref(r->config);
	if (!token)
		refuse(a, 401, "Authorization: Bearer is missing", NULL);
	else if (credential_is_shaped(token))
		admit_ours(a, token);
	else if (str_has_prefix(token, CALLBACK_TOKEN_PREFIX))
		admit_callback(a, token);
	else
		admit_oidc(a, token);
}

void job_access_release(struct job_access *a)
{
	find_job_release(&a->job);
	access_release(&a->access);
	config_unref(a->config);
	free(a->caller);
	free(a->dispatch_id);
	free(a->machine);
	free(a->repository);
}
