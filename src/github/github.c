/* The options, the end and the numbers of struct github, and the App itself: its JWT for token requests (RS256, valid for at
 * most ten minutes, issued one minute in the past because clocks differ), the name under which it writes, and its webhook's
 * deliveries. */
#include "github/github_internal.h"

enum {
	TOKENS_PER_HOUR = 2000, /* GitHub's limit */
	HOUR_MS = 60 * 60 * 1000,
	JWT_BACKDATE_S = 60,
	JWT_LIFE_S = 540, /* together with JWT_BACKDATE_S GitHub's ten minutes */
	JWT_REUSE_MS = 480 * 1000,
};

void free_secret(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

static void on_budget_due(struct timer *t) { request_pump(timer_owner(t)); }

static void on_ended_turn(struct timer *t) { request_run_ended(timer_owner(t)); }

static void set_options(struct github *g, const struct github_options *o)
{
	struct secret *old = g->private_key_pem;
	struct account *a;

	free(g->api_url);
	g->api_url = xstrdup(o->api_url);
	g->app_id = o->app_id;
	g->private_key_pem = secret_ref(o->private_key_pem);
	secret_unref(old);
	g->writes_per_minute = o->writes_per_minute > 0 ? o->writes_per_minute : 1;
	g->max_concurrent = o->max_concurrent > 0 ? o->max_concurrent : 1;
	STAILQ_FOREACH (a, &g->accounts, link)
		budget_window_resize(&a->budget.minute, g->writes_per_minute);
}

int github_new(
    struct loop *l, struct http_client *http, const struct github_options *o, struct github **ret, struct error *e)
{
	struct github *g;
	int err = rsa_private_key_check(o->private_key_pem, e);

	*ret = NULL;
	if (err)
		return err;
	g = xcalloc(1, sizeof(*g));
	g->loop = l;
	g->http = http;
	SLIST_INIT(&g->installations);
	LIST_INIT(&g->tokens);
	STAILQ_INIT(&g->accounts);
	budget_window_init(&g->token_requests, TOKENS_PER_HOUR, HOUR_MS);
	TAILQ_INIT(&g->requests);
	request_list_init(&g->ended);
	set_options(g, o);
	account_of(g, 0);
	g->wake = timer_new(l, on_budget_due, g);
	g->turn = timer_new(l, on_ended_turn, g);
	*ret = g;
	return 0;
}

int github_reconfigure(struct github *g, const struct github_options *o, struct error *e)
{
	bool is_other = o->app_id != g->app_id || !str_eq(o->api_url, g->api_url) ||
			!secret_equal(o->private_key_pem, g->private_key_pem);
	int err = rsa_private_key_check(o->private_key_pem, e);

	if (err)
		return err;
	set_options(g, o);
	if (is_other) {
		g->generation++;
		app_forget(g);
		tokens_forget(g);
	}
	request_pump(g);
	return 0;
}

/* ---- closing ---- */

static void github_free(void *p)
{
	struct github *g = p;
	void (*on_closed)(void *) = g->on_closed;
	void *owner = g->owner;
	struct account *a;

	app_forget(g);
	tokens_free(g);
	while ((a = STAILQ_FIRST(&g->accounts))) {
		STAILQ_REMOVE_HEAD(&g->accounts, link);
		budget_release(&a->budget);
		free(a);
	}
	budget_window_release(&g->token_requests);
	secret_unref(g->private_key_pem);
	FREE_ALL(g->api_url, g);
	if (on_closed)
		on_closed(owner);
}

void github_check_closed(struct github *g)
{
	if (!g->is_closing || !TAILQ_EMPTY(&g->requests) || !g->turn)
		return;
	timer_close(g->wake);
	timer_close(g->turn);
	g->turn = NULL;
	loop_reap(g->loop, github_free, g);
}

void github_close(struct github *g, void (*on_closed)(void *owner), void *owner)
{
	struct request *r;

	g->is_closing = true;
	g->on_closed = on_closed;
	g->owner = owner;
	TAILQ_FOREACH (r, &g->requests, all)
		github_cancel(g, r->call);
	github_check_closed(g);
}

/* ---- numbers ---- */

void github_read_stats(const struct github *g, struct github_stats *ret)
{
	const struct account *a;

	*ret = g->stats;
	ret->n_in_flight = g->n_in_flight;
	STAILQ_FOREACH (a, &g->accounts, link)
		for (int k = 0; k < N_BUDGET_KINDS; k++)
			ret->n_waiting += a->waiting[k].n;
	tokens_count(g, ret);
}

size_t github_read_budgets(const struct github *g, struct github_budget_stats *ret, size_t n)
{
	const struct account *a;
	size_t i = 0;
	int64_t now = clock_mono_ms();

	STAILQ_FOREACH (a, &g->accounts, link) {
		const struct budget *b = &a->budget;

		if (i++ >= n)
			continue;
		ret[i - 1] = (struct github_budget_stats){.installation_id = a->installation_id,
		    .remaining = b->remaining,
		    .reset_wall_ms = b->reset_wall_ms,
		    .blocked_ms = budget_wait_ms(b, BUDGET_PLAIN, now)};
	}
	return i;
}

void github_on_limit(struct github *g, void (*on_limit)(void *owner), void *owner)
{
	g->on_limit = on_limit;
	g->limit_owner = owner;
}

void github_learn_limit(struct github *g, const struct github_budget_stats *known)
{
	const struct budget_signs signs = {.status = 429,
	    .remaining = known->remaining,
	    .reset_wall_ms = known->reset_wall_ms,
	    .retry_after_ms = known->blocked_ms};

	budget_learn(&account_of(g, known->installation_id)->budget, &signs, clock_mono_ms(), clock_wall_ms());
	request_pump(g);
}

/* ---- the App ---- */

const char *app_jwt(struct github *g)
{
	int64_t now = clock_wall_ms(), age = now - g->jwt_made_wall_ms;
	char issuer[24];

	if (g->jwt && age >= 0 && age < JWT_REUSE_MS)
		return g->jwt;
	app_jwt_drop(g);
	snprintf(issuer, sizeof(issuer), "%lld", (long long)g->app_id);
	json_t *claims = json_object();
	json_set_int(claims, "iat", now / 1000 - JWT_BACKDATE_S);
	json_set_int(claims, "exp", now / 1000 + JWT_LIFE_S);
	json_set_str(claims, "iss", issuer);
	if (jwt_make_rs256(claims, g->private_key_pem, &g->jwt))
		g->jwt = NULL;
	json_decref(claims);
	g->jwt_made_wall_ms = now;
	return g->jwt;
}

void app_jwt_drop(struct github *g)
{
	free_secret(g->jwt);
	g->jwt = NULL;
}

void app_forget(struct github *g)
{
	app_jwt_drop(g);
	FREE_AND_NULL(g->slug);
	FREE_AND_NULL(g->bot_login);
}

enum request_next app_read(struct request *r)
{
	struct github *g = r->g;
	const char *slug = json_get_str(r->call->answer, "slug");
	size_t n = slug ? strlen(slug) : 0;

	if (r->generation != g->generation)
		return REQUEST_AGAIN; /* another App was configured since the request went out */
	/* The slug is compared with the authors of comments and with the addressee of commands, so it must be
	 * spelled as GitHub spells slugs. */
	if (!n || n > 100 || strspn(slug, "abcdefghijklmnopqrstuvwxyz0123456789-_") != n) {
		r->call->result.err = error_set(&r->call->result.why, ERR_PROTOCOL, "GET /app gave no valid slug");
		return REQUEST_DONE;
	}
	if (!str_eq(g->slug, slug)) {
		FREE_ALL(g->slug, g->bot_login);
		g->slug = xstrdup(slug);
		g->bot_login = xasprintf("%s[bot]", slug);
	}
	return REQUEST_DONE;
}

void github_app_get(struct github *g, struct github_call *call)
{
	request_start(g, call,
	    &(struct request_spec){.access = ACCESS_APP,
		.what = "the App's own entry",
		.path = xstrdup("/app"),
		.answer = ANSWER_OBJECT,
		.on_answer = app_read});
}

const char *github_app_slug(const struct github *g) { return g->slug; }

const char *github_bot_login(const struct github *g) { return g->bot_login; }

/* ---- deliveries of the App's webhook ---- */

static enum request_next on_deliveries(struct request *r)
{
	struct github_deliveries *d = CONTAINER_OF(r->call, struct github_deliveries, call);
	char *url = answer_next_url(r);

	/* The value of `cursor` in the query stays percent-encoded, because it is sent back unchanged. */
	for (const char *at = url ? strchr(url, '?') : NULL; at; at = strchr(at + 1, '&')) {
		if (!str_has_prefix(at + 1, "cursor="))
			continue;
		const char *value = at + strlen("?cursor=");
		size_t n = strcspn(value, "&#");

		if (n < GITHUB_CURSOR_BYTES)
			snprintf(d->next_cursor, sizeof(d->next_cursor), "%.*s", (int)n, value);
		break;
	}
	free(url);
	return REQUEST_DONE;
}

void github_deliveries_get(struct github *g, struct github_deliveries *deliveries)
{
	const char *cursor = deliveries->cursor;

	deliveries->next_cursor[0] = '\0';
	if (cursor[strcspn(cursor, "&#? \r\n")]) {
		request_refuse(g, &deliveries->call, "deliveries: not a cursor");
		return;
	}
	request_start(g, &deliveries->call,
	    &(struct request_spec){.access = ACCESS_APP,
		.what = "listing webhook deliveries",
		.path = xasprintf("/app/hook/deliveries?per_page=100%s%s", cursor[0] ? "&cursor=" : "", cursor),
		.answer = ANSWER_ARRAY,
		.on_answer = on_deliveries});
}

void github_delivery_redeliver(struct github *g, struct github_call *call, int64_t id)
{
	request_start(g, call,
	    &(struct request_spec){.access = ACCESS_APP,
		.what = "asking for a delivery again",
		.method = "POST",
		.path = xasprintf("/app/hook/deliveries/%lld/attempts", (long long)id)});
}
