/* Installation tokens. Each token is for one repository and has only the permission that its use needs. All requests that
 * wait for a token share one request to GitHub. A token in use is renewed before it expires, so a dispatch on a warm token
 * costs one request.
 *
 * A token's life is counted from its arrival, on the clock that does not jump. Its length comes from GitHub; bounds limit
 * the effect of a wrong clock.
 *
 * Before the first token of a repository, GitHub says which installation of the App it belongs to. "Not installed" is
 * remembered for one minute only: a vendor who reads it on the accelerator's page installs the App and tries again. */

#include "github/github_internal.h"

enum {
	MINUTE_MS = 60 * 1000,
	INSTALLED_MS = 60 * MINUTE_MS,
	NOT_INSTALLED_MS = MINUTE_MS,
	LIFE_MS_MIN = MINUTE_MS, /* where this machine's clock is ahead of GitHub's */
	LIFE_MS_MAX = 60 * MINUTE_MS,
	RETRY_MS = 30 * 1000, /* between two attempts to renew a token that is still good */
	TOKEN_BYTES_MAX = 4096,
};

static const char *const PERMISSIONS[] = {[ACCESS_DISPATCH] = "{\"contents\":\"write\"}",
    [ACCESS_COMMENT] = "{\"pull_requests\":\"write\"}",
    [ACCESS_CHECKS] = "{\"checks\":\"write\"}",
    [ACCESS_ISSUES] = "{\"issues\":\"write\"}",
    [ACCESS_ACTIONS] = "{\"actions\":\"write\"}",
    [ACCESS_READ] = "{\"contents\":\"read\",\"pull_requests\":\"read\"}"};

/* ---- the request for a token ---- */

static void on_token_answer(struct github_call *call);

/* Every waiting request ends with this error. GitHub refused the request for a token, not theirs: an operator or
 * a vendor can correct a wrong key or a missing installation, so a 401 is not final for them. */
static void token_fail_waiting(struct token *t, const struct github_result *why)
{
	struct github_result result = *why;
	struct request *r;

	t->is_requested = false;
	t->has_new_installation = false;
	result.is_final = why->is_final && why->status != 401;
	if (why->status == 401)
		snprintf(result.why.text, sizeof(result.why.text),
		    "GitHub does not accept the App's key: is app_id %lld right?", (long long)t->g->app_id);
	while ((r = TAILQ_FIRST(&t->waiting.head))) {
		request_leave(r);
		request_fail_like(r, &result);
	}
}

/* The installation is known, or is known to be missing. */
static void token_on_installation(struct token *t, const struct installation *i)
{
	struct github *g = t->g;
	int64_t now = clock_mono_ms();
	int64_t wait = budget_window_wait_ms(&g->token_requests, g->token_requests.n, now);
	struct github_result busy = {.err = ERR_BUSY, .retry_after_ms = wait};

	if (!i->id) {
		token_fail_waiting(t, &i->why);
		return;
	}
	t->installation_id = i->id;
	if (wait) {
		error_set(&busy.why, ERR_BUSY, "GitHub's hourly limit of token requests is spent");
		token_fail_waiting(t, &busy);
		return;
	}
	budget_window_add(&g->token_requests, now);
	g->stats.n_token_requests++;
	t->call.done = on_token_answer;
	request_start(g, &t->call,
	    &(struct request_spec){.access = ACCESS_APP,
		.what = "asking for a token",
		.repository = t->repository,
		.method = "POST",
		.path = xasprintf("/app/installations/%lld/access_tokens", (long long)i->id),
		.own_body = xasprintf("{\"repositories\":[\"%s\"],\"permissions\":%s}", strchr(t->repository, '/') + 1,
		    PERMISSIONS[t->access]),
		.if_not_found = "the App is no longer installed there",
		.answer = ANSWER_OBJECT});
}

/* ---- installations ---- */

static struct installation *installation_of(struct github *g, const char *repository)
{
	struct installation *i;

	SLIST_FOREACH (i, &g->installations, link)
		if (strcasecmp(i->repository, repository) == 0)
			return i;
	i = xcalloc(1, sizeof(*i));
	i->g = g;
	i->repository = xstrdup(repository);
	TAILQ_INIT(&i->waiting);
	SLIST_INSERT_HEAD(&g->installations, i, link);
	return i;
}

static void on_installation_answer(struct github_call *call);

static void installation_request(struct installation *i)
{
	i->is_requested = true;
	i->generation = i->g->generation;
	i->call.done = on_installation_answer;
	request_start(i->g, &i->call,
	    &(struct request_spec){.access = ACCESS_APP,
		.what = "looking for the App's installation",
		.repository = i->repository,
		.path = xasprintf("/repos/%s/installation", i->repository),
		.answer = ANSWER_OBJECT});
}

static void on_installation_answer(struct github_call *call)
{
	struct installation *i = CONTAINER_OF(call, struct installation, call);
	const struct github_result *result = &call->result;
	int64_t now = clock_mono_ms();
	struct token *t;

	i->is_requested = false;
	if (i->generation != i->g->generation && !i->g->is_closing) {
		/* the answer is for another App */
		github_call_release(call);
		if (!TAILQ_EMPTY(&i->waiting))
			installation_request(i);
		return;
	}
	i->why = *result;
	i->good_until_mono_ms = 0;
	i->id = result->err ? 0 : json_get_int(call->answer, "id", 0);
	if (i->id > 0) {
		i->good_until_mono_ms = now + INSTALLED_MS;
	} else if (result->status == 404) {
		i->good_until_mono_ms = now + NOT_INSTALLED_MS;
		snprintf(i->why.why.text, sizeof(i->why.why.text), "the App is not installed on %s", i->repository);
	} else if (!result->err) {
		i->why.err = error_set(&i->why.why, ERR_PROTOCOL, "GitHub named no installation for %s", i->repository);
	}
	if (i->id < 0)
		i->id = 0;
	github_call_release(call);
	while ((t = TAILQ_FIRST(&i->waiting))) {
		TAILQ_REMOVE(&i->waiting, t, at);
		token_on_installation(t, i);
	}
}

/* ---- the answer ---- */

/* Looks up the installation, then asks for the token. Ends in token_on_installation(), perhaps inside the call. */
static void token_fetch(struct token *t)
{
	struct installation *i = installation_of(t->g, t->repository);

	t->is_requested = true;
	t->generation = t->g->generation;
	t->refresh_mono_ms = clock_mono_ms() + RETRY_MS;
	if (!i->is_requested && clock_mono_ms() < i->good_until_mono_ms) {
		token_on_installation(t, i);
		return;
	}
	TAILQ_INSERT_TAIL(&i->waiting, t, at);
	if (!i->is_requested)
		installation_request(i);
}

static void token_forget_text(struct token *t)
{
	free_secret(t->text);
	t->text = NULL;
}

static int token_read(struct token *t)
{
	const char *text = json_get_str(t->call.answer, "token");
	const char *expires = json_get_str(t->call.answer, "expires_at");
	int64_t until, life, now = clock_mono_ms();
	size_t n = text ? strlen(text) : 0;
	bool is_good = n && n < TOKEN_BYTES_MAX;

	/* The token becomes part of a header line. */
	for (size_t i = 0; i < n; i++)
		is_good = is_good && text[i] > ' ' && text[i] <= '~';
	if (!is_good || !expires || rfc3339_parse(expires, &until))
		return error_set(
		    &t->call.result.why, ERR_PROTOCOL, "GitHub's answer for %s holds no token", t->repository);
	life = until - clock_wall_ms();
	life = life < LIFE_MS_MIN ? LIFE_MS_MIN : life > LIFE_MS_MAX ? LIFE_MS_MAX : life;
	token_forget_text(t);
	t->text = xstrdup(text);
	t->serial = ++t->g->last_token_serial;
	t->made_mono_ms = now;
	t->refresh_mono_ms = now + life * 10 / 12; /* ten minutes before the end of an hour */
	t->stale_mono_ms = now + life * 11 / 12;
	return 0;
}

static void on_token_answer(struct github_call *call)
{
	struct token *t = CONTAINER_OF(call, struct token, call);
	struct github_result *result = &call->result;
	struct request *r;

	if (t->generation != t->g->generation && !t->g->is_closing) {
		github_call_release(call);
		token_fetch(t); /* the answer is for another App */
		return;
	}
	if (result->status == 404 && !t->has_new_installation && !t->g->is_closing) {
		/* the App was removed and installed again, and the installation has another id now */
		t->has_new_installation = true;
		installation_of(t->g, t->repository)->good_until_mono_ms = 0;
		token_fetch(t);
		return;
	}
	if (!result->err)
		result->err = token_read(t);
	if (call->answer)
		json_object_clear(call->answer);
	github_call_release(call);
	if (result->err) {
		token_fail_waiting(t, result);
		return;
	}
	t->is_requested = false;
	t->has_new_installation = false;
	while ((r = TAILQ_FIRST(&t->waiting.head))) {
		request_leave(r);
		r->account = account_of(t->g, t->installation_id);
		request_queue(r);
	}
}

/* ---- for requests ---- */

static bool token_is_fresh(const struct token *t) { return t->text && clock_mono_ms() < t->stale_mono_ms; }

static void token_free(struct token *t)
{
	LIST_REMOVE(t, link);
	token_forget_text(t);
	github_call_release(&t->call);
	FREE_ALL(t->repository, t);
}

/* NULL: there is none. */
static struct token *token_for(const struct request *r)
{
	struct token *t;

	LIST_FOREACH (t, &r->g->tokens, link)
		if (t->access == r->spec.access && strcasecmp(t->repository, r->repository) == 0)
			break;
	return t;
}

/* A new, empty token. It also frees tokens that expired and that no request waits for. */
static struct token *token_new(struct request *r)
{
	struct github *g = r->g;
	struct token *t, *next;

	for (t = LIST_FIRST(&g->tokens); t; t = next) {
		next = LIST_NEXT(t, link);
		if (!token_is_fresh(t) && !t->is_requested && !t->waiting.n)
			token_free(t);
	}
	t = xcalloc(1, sizeof(*t));
	t->g = g;
	t->repository = xstrdup(r->repository);
	t->access = r->spec.access;
	request_list_init(&t->waiting);
	LIST_INSERT_HEAD(&g->tokens, t, link);
	return t;
}

void token_want(struct request *r)
{
	struct token *t = token_for(r);

	if (!t)
		t = token_new(r);
	if (!token_is_fresh(t)) {
		request_enter(r, &t->waiting);
		if (!t->is_requested)
			token_fetch(t);
		return;
	}
	r->account = account_of(r->g, t->installation_id);
	request_queue(r);
	if (!t->is_requested && clock_mono_ms() >= t->refresh_mono_ms)
		token_fetch(t);
}

const char *token_use(struct request *r)
{
	struct token *t = token_for(r);

	if (!t || !token_is_fresh(t))
		return NULL;
	r->token_serial = t->serial;
	return t->text;
}

void token_refused(struct request *r)
{
	struct token *t = token_for(r);

	if (t && t->serial == r->token_serial)
		token_forget_text(t);
}

void tokens_forget(struct github *g)
{
	struct installation *i;
	struct token *t;

	LIST_FOREACH (t, &g->tokens, link)
		token_forget_text(t);
	SLIST_FOREACH (i, &g->installations, link)
		i->good_until_mono_ms = 0;
}

void tokens_free(struct github *g)
{
	struct installation *i;

	while (!LIST_EMPTY(&g->tokens))
		token_free(LIST_FIRST(&g->tokens));
	while ((i = SLIST_FIRST(&g->installations))) {
		SLIST_REMOVE_HEAD(&g->installations, link);
		github_call_release(&i->call);
		FREE_ALL(i->repository, i);
	}
}

void tokens_count(const struct github *g, struct github_stats *ret)
{
	int64_t now = clock_mono_ms();
	const struct token *t;

	LIST_FOREACH (t, &g->tokens, link) {
		ret->n_waiting += t->waiting.n;
		if (!token_is_fresh(t))
			continue;
		ret->n_tokens++;
		if (now - t->made_mono_ms > ret->oldest_token_age_ms)
			ret->oldest_token_age_ms = now - t->made_mono_ms;
	}
}
