#include "runners/issuer_keys.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

enum { WAITS_MAX = 256, FETCH_TIMEOUT_MS = 10 * 1000 };

/* One issuer. Dropped ones (no longer configured) live until their fetch has ended. */
struct issuer {
	struct issuer_keys *owner;
	struct issuer *next;
	char *name, *url;
	struct jwks keys;
	struct http_call call;
	bool is_fetching, is_dropped;
	bool has_failed;      /* the last fetch did */
	int64_t may_fetch_ms; /* mono; not for a token before it */
	struct timer *refresh;
	struct key_wait *waits;
	int n_waits;
};

struct issuer_keys {
	struct loop *loop;
	struct http_client *client;
	struct runners_counters *counters;
	struct issuer *issuers;
	bool is_closing;
	void (*on_closed)(void *owner);
	void *closed_owner;
};

struct issuer_keys *issuer_keys_new(
    struct loop *l, struct http_client *c, struct runners_counters *counters)
{
	struct issuer_keys *k = xcalloc(1, sizeof *k);

	k->loop = l;
	k->client = c;
	k->counters = counters;
	return k;
}

static void keys_release(void *p)
{
	struct issuer_keys *k = p;
	void (*on_closed)(void *owner) = k->on_closed;
	void *owner = k->closed_owner;

	free(k);
	on_closed(owner);
}

static void issuer_release(void *p)
{
	struct issuer *i = p;

	http_call_release(&i->call);
	jwks_release(&i->keys);
	free(i->name);
	free(i->url);
	free(i);
}

/* Out of the list, and freed at the end of the turn: it may be inside its own callback. */
static void remove_issuer(struct issuer *i)
{
	struct issuer_keys *k = i->owner;
	struct issuer **at = &k->issuers;

	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	timer_close(i->refresh);
	loop_reap(k->loop, issuer_release, i);
	if (k->is_closing && !k->issuers)
		loop_reap(k->loop, keys_release, k);
}

static void drop_issuer(struct issuer *i)
{
	i->is_dropped = true;
	if (i->is_fetching)
		http_call_cancel(i->owner->client, &i->call);
	else
		remove_issuer(i);
}

static int take_answer(struct issuer *i, struct error *e)
{
	struct http_call *call = &i->call;
	struct jwks keys;
	int err;

	if (call->err)
		return error_set(e, call->err, "%s", call->why.text);
	if (call->status != 200)
		return error_set(e, ERR_PROTOCOL, "status %d", call->status);
	err = jwks_parse(buf_str(&call->answer), call->answer.len, &keys, e);
	if (err)
		return err;
	jwks_release(&i->keys);
	i->keys = keys;
	return 0;
}

static void on_fetched(struct http_call *call)
{
	struct issuer *i = CONTAINER_OF(call, struct issuer, call);
	struct issuer_keys *k = i->owner;
	struct key_wait *waits = i->waits;
	struct error e = {0};
	int err = i->is_dropped ? ERR_CANCELLED : take_answer(i, &e);

	http_call_release(call);
	i->is_fetching = false;
	i->waits = NULL;
	i->n_waits = 0;
	i->has_failed = err != 0;
	i->may_fetch_ms =
	    loop_now_ms(k->loop) + (err ? ISSUER_KEYS_RETRY_MS : ISSUER_KEYS_INTERVAL_MS);
	if (i->is_dropped) {
		remove_issuer(i);
	} else if (err) {
		k->counters->n_key_fetch_failures++;
		log_event(LOG_WARN, "issuer_keys_failed", LOG_S("issuer", i->name),
		    LOG_S("url", i->url), LOG_S("why", e.text),
		    LOG_I("keys_kept", (int64_t)i->keys.n));
	} else {
		log_event(LOG_INFO, "issuer_keys_fetched", LOG_S("issuer", i->name),
		    LOG_I("keys", (int64_t)i->keys.n));
	}
	if (!i->is_dropped)
		timer_start(i->refresh, ISSUER_KEYS_REFRESH_MS);
	while (waits) {
		struct key_wait *w = waits;

		waits = w->next;
		w->done(w);
	}
}

static void fetch(struct issuer *i)
{
	static const char *const headers[] = {"Accept: application/json", NULL};

	i->is_fetching = true;
	i->owner->counters->n_key_fetches++;
	i->call = (struct http_call){
	    .method = "GET",
	    .url = i->url,
	    .headers = headers,
	    .max_answer_bytes = JWKS_BYTES_MAX,
	    .total_timeout_ms = FETCH_TIMEOUT_MS,
	    .done = on_fetched,
	};
	http_call_start(i->owner->client, &i->call);
}

static void on_refresh(struct timer *t)
{
	struct issuer *i = timer_owner(t);

	if (!i->is_fetching)
		fetch(i);
}

static bool is_configured(const struct config *c, const struct issuer *i)
{
	for (size_t n = 0; n < c->n_oidc_issuers; n++)
		if (strcmp(c->oidc_issuers[n].issuer, i->name) == 0 &&
		    strcmp(c->oidc_issuers[n].jwks_url, i->url) == 0)
			return true;
	return false;
}

static struct issuer *find_issuer(const struct issuer_keys *k, const char *name)
{
	struct issuer *i = k->issuers;

	while (i && (i->is_dropped || strcmp(i->name, name) != 0))
		i = i->next;
	return i;
}

void issuer_keys_configure(struct issuer_keys *k, const struct config *c)
{
	for (struct issuer *i = k->issuers, *next; i; i = next) {
		next = i->next;
		if (!i->is_dropped && !is_configured(c, i))
			drop_issuer(i);
	}
	for (size_t n = 0; n < c->n_oidc_issuers; n++) {
		struct issuer *i;

		if (find_issuer(k, c->oidc_issuers[n].issuer))
			continue;
		i = xcalloc(1, sizeof *i);
		i->owner = k;
		i->name = xstrdup(c->oidc_issuers[n].issuer);
		i->url = xstrdup(c->oidc_issuers[n].jwks_url);
		i->refresh = timer_new(k->loop, on_refresh, i);
		i->next = k->issuers;
		k->issuers = i;
	}
}

struct rsa_public_key *issuer_keys_find(const char *issuer, const char *kid, void *keys)
{
	const struct issuer *i = find_issuer(keys, issuer);

	return i ? jwks_find(&i->keys, kid) : NULL;
}

int issuer_keys_await(struct issuer_keys *k, const char *issuer, struct key_wait *w)
{
	struct issuer *i = find_issuer(k, issuer);

	if (k->is_closing)
		return ERR_CLOSING;
	assert(i); /* a token's issuer comes from the same snapshot */
	if (!i->is_fetching && loop_now_ms(k->loop) < i->may_fetch_ms)
		return i->has_failed ? ERR_BUSY : ERR_NOT_FOUND;
	if (i->n_waits == WAITS_MAX)
		return ERR_BUSY;
	w->next = i->waits;
	i->waits = w;
	i->n_waits++;
	if (!i->is_fetching)
		fetch(i);
	return 0;
}

void issuer_keys_close(struct issuer_keys *k, void (*on_closed)(void *owner), void *owner)
{
	k->is_closing = true;
	k->on_closed = on_closed;
	k->closed_owner = owner;
	if (!k->issuers) {
		loop_reap(k->loop, keys_release, k);
		return;
	}
	for (struct issuer *i = k->issuers, *next; i; i = next) {
		next = i->next;
		if (!i->is_dropped)
			drop_issuer(i);
	}
}
