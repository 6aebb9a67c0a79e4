/* The whole's life: options, closing, numbers. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "github/github_internal.h"

enum {
	TOKENS_PER_HOUR = 2000, /* GitHub's limit */
	HOUR_MS = 60 * 60 * 1000,
};

void free_secret(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

static void on_wake(struct timer *t)
{
	queue_pump(timer_owner(t));
}

static void on_turn(struct timer *t)
{
	request_run_ended(timer_owner(t));
}

static int at_least_one(int n)
{
	return n > 0 ? n : 1;
}

static void take_options(struct github *g, const struct github_options *o)
{
	struct secret *old = g->private_key_pem;

	free(g->api_url);
	g->api_url = xstrdup(o->api_url);
	g->app_id = o->app_id;
	g->private_key_pem = secret_ref(o->private_key_pem);
	secret_unref(old);
	g->writes_per_minute = at_least_one(o->writes_per_minute);
	g->max_concurrent = at_least_one(o->max_concurrent);
	for (struct account *a = g->accounts; a; a = a->next)
		budget_window_resize(&a->budget.minute, g->writes_per_minute);
}

int github_new(struct loop *l, struct http_client *http, const struct github_options *o,
    struct github **ret, struct error *e)
{
	struct github *g;
	int err = rsa_private_key_check(o->private_key_pem, e);

	*ret = NULL;
	if (err)
		return err;
	g = xcalloc(1, sizeof(*g));
	g->loop = l;
	g->http = http;
	take_options(g, o);
	budget_window_init(&g->token_requests, TOKENS_PER_HOUR, HOUR_MS);
	TAILQ_INIT(&g->requests);
	request_list_init(&g->ended);
	account_of(g, 0);
	g->wake = timer_new(l, on_wake, g);
	g->turn = timer_new(l, on_turn, g);
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
	take_options(g, o);
	if (is_other) {
		g->generation++;
		app_forget(g);
		tokens_forget(g);
		installations_forget(g);
	}
	queue_pump(g);
	return 0;
}

/* ---- closing ---- */

static void destroy(void *p)
{
	struct github *g = p;
	void (*on_closed)(void *) = g->on_closed;
	void *owner = g->owner;

	app_forget(g);
	tokens_free(g);
	installations_free(g);
	accounts_free(g);
	budget_window_release(&g->token_requests);
	secret_unref(g->private_key_pem);
	free(g->api_url);
	free(g);
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
	loop_reap(g->loop, destroy, g);
}

void github_close(struct github *g, void (*on_closed)(void *owner), void *owner)
{
	struct request *r;

	g->is_closing = true;
	g->on_closed = on_closed;
	g->owner = owner;
	TAILQ_FOREACH(r, &g->requests, all)
	github_cancel(g, r->call);
	github_check_closed(g);
}

/* ---- numbers ---- */

void github_read_stats(const struct github *g, struct github_stats *ret)
{
	*ret = g->stats;
	ret->n_in_flight = g->n_in_flight;
	for (const struct account *a = g->accounts; a; a = a->next)
		for (int k = 0; k < N_BUDGET_KINDS; k++)
			ret->n_waiting += a->waiting[k].n;
	for (const struct token *t = g->tokens; t; t = t->next)
		ret->n_waiting += t->waiting.n;
	tokens_count(g, ret);
}

size_t github_read_budgets(const struct github *g, struct github_budget_stats *ret, size_t n)
{
	size_t i = 0;
	int64_t now = clock_mono_ms();

	for (const struct account *a = g->accounts; a; a = a->next, i++) {
		const struct budget *b = &a->budget;

		if (i >= n)
			continue;
		ret[i] = (struct github_budget_stats){
		    .installation_id = a->installation_id,
		    .remaining = b->remaining,
		    .reset_wall_ms = b->reset_wall_ms,
		    .blocked_ms = budget_wait_ms(b, BUDGET_PLAIN, now),
		    .writes_left_in_minute = budget_window_left(&b->minute, now),
		    .writes_left_in_hour = budget_window_left(&b->hour, now),
		};
	}
	return i;
}
