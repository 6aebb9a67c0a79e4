#include "runners/job_documents.h"

#include "model/client_payload.h"

enum { CALLERS_MAX = 4096 };

struct job_documents *job_documents_new(struct runners *r, struct http_server *h, struct logs *logs)
{
	struct job_documents *d = xcalloc(1, sizeof(*d));

	d->runners = r;
	d->logs = logs;
	d->log_calls = rate_limit_new(LOG_CALLS_PER_MINUTE, CALLERS_MAX);
	STAILQ_INIT(&d->to_be_parsed);
	job_log_add_route(d, h);
	job_report_add_route(d, h);
	return d;
}

void job_documents_check(struct job_documents *d)
{
	job_log_check(d);
	job_report_check(d);
}

void job_documents_free(struct job_documents *d)
{
	if (!d)
		return;
	rate_limit_free(d->log_calls);
	free(d);
}

static void end_access(void *owner)
{
	struct job_access *a = owner;
	struct runners *r = a->runners;

	if (a->request)
		http_on_gone(a->request, NULL);
	a->done(a);
	runners_let_go(r);
}

void job_access_answer(struct job_access *a, int status, const char *detail, const char *why)
{
	answer_refused(a->runners, a->request, &(struct refusal){status, detail, why, a->caller, 0});
	a->request = NULL;
}

void job_access_answer_busy(struct job_access *a, int err)
{
	answer_busy(a->runners, a->request, a->caller, err);
	a->request = NULL;
}

/* The request is answered: done runs on the loop's next turn. */
static void give_up_access(struct job_access *a)
{
	a->request = NULL;
	loop_reap(a->runners->loop, end_access, a);
}

static void refuse_access(struct job_access *a, int status, const char *detail, const char *why)
{
	job_access_answer(a, status, detail, why);
	give_up_access(a);
}

static void refuse_access_busy(struct job_access *a, int err)
{
	job_access_answer_busy(a, err);
	give_up_access(a);
}

/* ---- the job ---- */

int job_access_check(const struct job_access *a)
{
	if (a->token_id && !credentials_has(a->runners->credentials, a->token_id))
		return ERR_AUTH;
	return config_accelerator(a->runners->config, a->job.accelerator) ? 0 : ERR_DENIED;
}

void job_access_refuse(struct job_access *a, int err)
{
	if (err == ERR_AUTH)
		job_access_answer(a, 401, TOKEN_REVOKED, NULL);
	else
		job_access_answer(a, 403, "the accelerator has left the registry", NULL);
}

/* With a machine's token, only the jobs of its leases; with a callback token, those of its dispatch; with an OIDC token,
 * those of its repository. */
static void on_job_found(struct store_query *q)
{
	struct job_access *a = CONTAINER_OF(q, struct job_access, job.q);
	const struct accelerator *x = q->err ? NULL : config_accelerator(a->config, a->job.accelerator);
	int err = q->err ? 0 : job_access_check(a);
	const struct find_job *j = &a->job;
	bool is_of_caller = !q->err && strv_contains(a->access.allowed, j->accelerator);

	if (is_of_caller && a->machine)
		is_of_caller = str_eq(a->machine, j->machine);
	else if (is_of_caller && a->dispatch_id)
		is_of_caller = str_eq(a->dispatch_id, j->dispatch_id);
	else if (is_of_caller && a->repository)
		is_of_caller = j->repository && strcasecmp(a->repository, j->repository) == 0;
	if (q->err == ERR_NOT_FOUND || (x && x->level == LEVEL_1))
		job_access_answer(a, 404, "no such job", NULL);
	else if (q->err)
		job_access_answer_busy(a, q->err);
	else if (!is_of_caller)
		job_access_answer(a, 403,
		    a->machine ? "the job is not of a lease that this machine has or had"
			       : "the job is not this caller's",
		    NULL);
	else if (err)
		job_access_refuse(a, err);
	else
		a->is_granted = a->request != NULL;
	end_access(a);
}

/* The caller has proved its identity. */
static void find_documented_job(struct job_access *a)
{
	http_note_authenticated(a->request);
	if (parse_int64(http_segment(a->request, 0), &a->job_id) || a->job_id <= 0) {
		refuse_access(a, 404, "no such job", NULL);
		return;
	}
	a->job.id = a->job_id;
	a->job.q.done = on_job_found;
	int err = store_find_job(a->runners->store, &a->job);
	if (err)
		refuse_access_busy(a, err);
}

static void on_access_identified(struct identity_check *c)
{
	struct job_access *a = CONTAINER_OF(c, struct job_access, identity);

	if (a->request && !c->err) {
		find_documented_job(a);
		return;
	}
	if (c->err == ERR_DENIED)
		job_access_answer(a, 403, c->why.text, NULL);
	else
		job_access_answer_busy(a, c->err);
	end_access(a);
}

/* The token is good. Checks that it is within its rate and for a registered accelerator. */
static void admit_access(struct job_access *a)
{
	struct runners *r = a->runners;
	bool is_registered = access_is_registered(&a->access);
	int retry_after_s;

	if (!rate_limit_admit(
		is_registered ? a->limit : r->strangers, a->caller, loop_now_ms(r->loop), &retry_after_s)) {
		refuse_over_rate(r, a->request, "too many requests in this minute", a->caller, retry_after_s);
		give_up_access(a);
	} else if (a->access.n_allowed == 0) {
		refuse_access(a, 403,
		    is_registered ? "the accelerator is bound to another workflow than the token's"
				  : "the caller is not in the registry",
		    NULL);
	} else if (a->issuer) {
		a->identity = (struct identity_check){.runners = r, .done = on_access_identified};
		int err = identity_check_start(&a->identity, a->issuer->issuer, a->repository, a->ids, &a->access);
		if (err)
			refuse_access_busy(a, err);
	} else {
		find_documented_job(a);
	}
}

/* ---- the token ---- */

static void admit_oidc(struct job_access *a, const char *token);

static void on_access_keys(struct key_wait *w)
{
	struct job_access *a = CONTAINER_OF(w, struct job_access, keys);

	if (!a->request || !admit_open(a->runners, a->request)) {
		give_up_access(a);
		return;
	}
	/* The keys and the configuration are newer than the request and belong together: the issuer may have left
	 * both, so the token is verified with the new ones. */
	config_unref(a->config);
	a->config = config_ref(a->runners->config);
	admit_oidc(a, bearer_token(a->request));
}

static void admit_oidc(struct job_access *a, const char *token)
{
	struct runners *r = a->runners;
	struct oidc_caller caller;
	struct error e = {0};
	int err = oidc_verify(a->config, token, clock_wall_ms(), issuer_keys_find, r->keys, &caller, &e);

	if (err) {
		a->keys.done = on_access_keys;
		if (err == ERR_NOT_FOUND)
			err = issuer_keys_await(r->keys, caller.issuer->issuer, &a->keys);
		if (err) {
			oidc_refuse(r, a->request, &caller, err, &e);
			give_up_access(a);
		}
	} else {
		access_of_repository(a->config, caller.repository, caller.workflow_ref, &a->access);
		a->repository = caller.repository;
		caller.repository = NULL;
		a->issuer = caller.issuer->n_mappings == 0 ? caller.issuer : NULL;
		a->ids = caller.ids;
		a->caller = xstrdup(a->repository);
		admit_access(a);
	}
	oidc_caller_release(&caller);
}

void job_access_start(struct job_access *a)
{
	struct runners *r = a->runners;
	const char *token = bearer_token(a->request);
	struct credential c;
	int err = ERR_AUTH;

	runners_hold(r);
	http_pause_body(a->request);
	forget_gone_client(&a->request);
	if (!admit_open(r, a->request)) {
		give_up_access(a);
		return;
	}
	a->config = config_ref(r->config);
	if (!token) {
		refuse_access(a, 401, "Authorization: Bearer is missing", NULL);
	} else if (credential_is_shaped(token)) {
		if (!admit_token(r, a->request, token, &c)) {
			give_up_access(a);
			return;
		}
		access_of_accelerator(a->config, c.accelerator, &a->access);
		a->token_id = c.id;
		a->machine = c.kind == TOKEN_RUNNER ? xstrdup(c.name) : NULL;
		a->caller = *c.name ? xasprintf("%s/%s", c.accelerator, c.name) : xstrdup(c.accelerator);
		admit_access(a);
	} else if (str_has_prefix(token, CALLBACK_TOKEN_PREFIX)) {
		/* The token names its dispatch; that counts once its signature is verified. */
		a->dispatch_id = callback_token_dispatch(token);
		if (a->dispatch_id)
			err = callback_token_check(r->callback_key, token, a->dispatch_id, clock_wall_ms(), &a->caller);
		if (err) {
			refuse_access(
			    a, 401, err == ERR_TIMEOUT ? "the token has expired" : "the token is not valid", NULL);
			return;
		}
		access_of_accelerator(a->config, a->caller, &a->access);
		admit_access(a);
	} else {
		admit_oidc(a, token);
	}
}

void job_access_release(struct job_access *a)
{
	find_job_release(&a->job);
	access_release(&a->access);
	config_unref(a->config);
	FREE_ALL(a->caller, a->dispatch_id, a->machine, a->repository);
}
