/* Installation tokens, each for one repository and the least that its use needs. However
 * many requests want one, it is asked for once; while it is used it is renewed before it
 * ends, so that a dispatch on a warm token costs one request.
 *
 * Lives are counted from when the token came, on the clock that does not jump; how long
 * they are is GitHub's to say, within bounds. */
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "github/github_internal.h"

enum {
	MINUTE_MS = 60 * 1000,
	LIFE_MS_MIN = MINUTE_MS, /* as seen with a clock that is ahead of GitHub's */
	LIFE_MS_MAX = 60 * MINUTE_MS,
	RETRY_MS = 30 * 1000, /* between two attempts to renew what is still good */
};

static const char *const PERMISSIONS[] = {
    [ACCESS_DISPATCH] = "{\"contents\":\"write\"}",
    [ACCESS_COMMENT] = "{\"pull_requests\":\"write\"}",
    [ACCESS_CHECKS] = "{\"checks\":\"write\"}",
    [ACCESS_ISSUES] = "{\"issues\":\"write\"}",
    [ACCESS_ACTIONS] = "{\"actions\":\"write\"}",
    [ACCESS_READ] = "{\"contents\":\"read\",\"pull_requests\":\"read\"}",
};

static void forget_text(struct token *t)
{
	free_secret(t->text);
	t->text = NULL;
}

static void token_free(struct token *t)
{
	forget_text(t);
	github_call_release(&t->call);
	free(t->repository);
	free(t);
}

static bool is_fresh(const struct token *t)
{
	return t->text && clock_mono_ms() < t->stale_mono_ms;
}

static void purge(struct github *g)
{
	struct token **at = &g->tokens;

	while (*at) {
		struct token *t = *at;

		if (is_fresh(t) || t->is_asking || t->waiting.n) {
			at = &t->next;
		} else {
			*at = t->next;
			token_free(t);
		}
	}
}

static struct token *token_find(struct github *g, const char *repository, enum access access)
{
	struct token *t = g->tokens;

	while (t && (t->access != access || strcasecmp(t->repository, repository) != 0))
		t = t->next;
	return t;
}

static struct token *token_of(struct github *g, const char *repository, enum access access)
{
	struct token *t = token_find(g, repository, access);

	if (t)
		return t;
	purge(g);
	t = xcalloc(1, sizeof(*t));
	t->g = g;
	t->repository = xstrdup(repository);
	t->access = access;
	request_list_init(&t->waiting);
	t->next = g->tokens;
	g->tokens = t;
	return t;
}

/* ---- asking for one ---- */

static void fetch(struct token *t)
{
	t->is_asking = true;
	t->generation = t->g->generation;
	t->refresh_mono_ms = clock_mono_ms() + RETRY_MS;
	installation_want(t->g, t);
}

static void give_to_waiting(struct token *t)
{
	struct request *r;

	while ((r = TAILQ_FIRST(&t->waiting.head))) {
		request_leave(r);
		r->account = account_of(t->g, t->installation_id);
		request_has_token(r);
	}
}

/* For those who wait it is not their request that GitHub refused: what the operator or the
 * vendor can put right without a new request stays worth another try. */
static void fail_waiting(struct token *t, const struct github_result *why)
{
	struct github_result result = *why;
	struct request *r;

	t->is_asking = false;
	t->has_new_installation = false;
	result.is_final = why->is_final && why->status != 401;
	if (why->status == 401)
		snprintf(result.why.text, sizeof(result.why.text),
		    "GitHub does not accept the App's key: is app_id %lld right?",
		    (long long)t->g->app_id);
	while ((r = TAILQ_FIRST(&t->waiting.head))) {
		request_leave(r);
		request_fail_like(r, &result);
	}
}

static char *request_body(const struct token *t)
{
	const char *name = strchr(t->repository, '/') + 1; /* checked before it came here */

	return xasprintf(
	    "{\"repositories\":[\"%s\"],\"permissions\":%s}", name, PERMISSIONS[t->access]);
}

static void on_token(struct github_call *call);

static void ask(struct token *t)
{
	struct github *g = t->g;
	int64_t now = clock_mono_ms(), wait = budget_window_wait_ms(&g->token_requests, now);
	struct github_result busy = {.err = ERR_BUSY, .retry_after_ms = wait};

	if (wait) {
		error_set(&busy.why, ERR_BUSY, "GitHub's hourly limit of token requests is spent");
		fail_waiting(t, &busy);
		return;
	}
	budget_window_add(&g->token_requests, now);
	g->stats.n_token_requests++;
	t->call.done = on_token;
	request_start(g, &t->call,
	    &(struct request_spec){
		.access = ACCESS_APP,
		.what = "asking for a token",
		.repository = t->repository,
		.method = "POST",
		.path = xasprintf(
		    "/app/installations/%lld/access_tokens", (long long)t->installation_id),
		.own_body = request_body(t),
		.if_not_found = "the App is no longer installed there",
		.answer = ANSWER_OBJECT,
	    });
}

void token_on_installation(struct token *t, const struct installation *i)
{
	if (!i->id) {
		fail_waiting(t, &i->why);
		return;
	}
	t->installation_id = i->id;
	ask(t);
}

/* ---- it came ---- */

static bool is_credential(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return n && n < 4096;
}

static int read_token(struct token *t)
{
	const char *text = json_get_str(t->call.answer, "token");
	const char *expires = json_get_str(t->call.answer, "expires_at");
	int64_t until, life, now = clock_mono_ms();

	if (!is_credential(text) || !expires || rfc3339_parse(expires, &until))
		return error_set(&t->call.result.why, ERR_PROTOCOL,
		    "GitHub's answer for %s holds no token", t->repository);
	life = until - clock_wall_ms();
	life = life < LIFE_MS_MIN ? LIFE_MS_MIN : life > LIFE_MS_MAX ? LIFE_MS_MAX : life;
	forget_text(t);
	t->text = xstrdup(text);
	t->serial = ++t->g->last_token_serial;
	t->made_mono_ms = now;
	t->refresh_mono_ms = now + life * 10 / 12; /* ten minutes before the end of an hour */
	t->stale_mono_ms = now + life * 11 / 12;
	return 0;
}

static void on_token(struct github_call *call)
{
	struct token *t = CONTAINER_OF(call, struct token, call);
	struct github_result *result = &call->result;

	if (t->generation != t->g->generation && !t->g->is_closing) {
		github_call_release(call);
		fetch(t); /* it was another App's */
		return;
	}
	if (result->status == 404 && !t->has_new_installation && !t->g->is_closing) {
		t->has_new_installation = true; /* installed anew, under another id */
		installation_drop(t->g, t->repository);
		fetch(t);
		return;
	}
	if (!result->err)
		result->err = read_token(t);
	if (call->answer)
		json_object_clear(call->answer);
	github_call_release(call);
	if (result->err) {
		fail_waiting(t, result);
		return;
	}
	t->is_asking = false;
	t->has_new_installation = false;
	give_to_waiting(t);
}

/* ---- for requests ---- */

void token_want(struct request *r)
{
	struct token *t = token_of(r->g, r->repository, r->spec.access);

	if (!is_fresh(t)) {
		request_enter(r, &t->waiting);
		if (!t->is_asking)
			fetch(t);
		return;
	}
	r->account = account_of(r->g, t->installation_id);
	request_has_token(r);
	if (!t->is_asking && clock_mono_ms() >= t->refresh_mono_ms)
		fetch(t);
}

const char *token_use(struct request *r)
{
	struct token *t = token_find(r->g, r->repository, r->spec.access);

	if (!t || !is_fresh(t))
		return NULL;
	r->token_serial = t->serial;
	return t->text;
}

void token_refused(struct request *r)
{
	struct token *t = token_find(r->g, r->repository, r->spec.access);

	if (t && t->serial == r->token_serial)
		forget_text(t);
}

void tokens_forget(struct github *g)
{
	for (struct token *t = g->tokens; t; t = t->next)
		forget_text(t);
}

void tokens_free(struct github *g)
{
	while (g->tokens) {
		struct token *t = g->tokens;

		g->tokens = t->next;
		token_free(t);
	}
}

void tokens_count(const struct github *g, struct github_stats *ret)
{
	int64_t now = clock_mono_ms();

	for (const struct token *t = g->tokens; t; t = t->next) {
		if (!is_fresh(t))
			continue;
		ret->n_tokens++;
		if (now - t->made_mono_ms > ret->oldest_token_age_ms)
			ret->oldest_token_age_ms = now - t->made_mono_ms;
	}
}
