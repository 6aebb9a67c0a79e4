#include "runners/issuer_keys.h"

enum { KID_MAX_BYTES = 256, NUMBER_MAX_BYTES = RSA_BITS_MAX / 8 + 1 };

static struct rsa_public_key *read_key(const json_t *key)
{
	const char *n = json_get_str(key, "n"), *e = json_get_str(key, "e");
	struct buf modulus = BUF_INIT(NUMBER_MAX_BYTES), exponent = BUF_INIT(NUMBER_MAX_BYTES);
	struct rsa_public_key *ret = NULL;
	int err = ERR_INVALID;

	if (n && e && base64url_decode(n, strlen(n), &modulus) == 0 && base64url_decode(e, strlen(e), &exponent) == 0)
		err = rsa_public_key_new(modulus.data, modulus.len, exponent.data, exponent.len, &ret, NULL);
	buf_release(&modulus);
	buf_release(&exponent);
	return err ? NULL : ret;
}

static bool is_absent_or(const json_t *key, const char *name, const char *value)
{
	return !json_object_get(key, name) || str_eq(json_get_str(key, name), value);
}

int jwks_parse(const char *text, size_t n, struct jwks *ret, struct error *e)
{
	json_t *root = NULL, *list, *key;
	size_t i;

	*ret = (struct jwks){0};
	if (n > JWKS_BYTES_MAX)
		return error_set(e, ERR_TOO_BIG, "more than %d bytes", JWKS_BYTES_MAX);
	int err = json_parse(text, n, &root, e);
	if (err)
		return err;
	list = json_object_get(root, "keys");
	if (!json_is_array(list))
		err = error_set(e, ERR_INVALID, "keys is not a list");
	else if (json_array_size(list) > JWKS_KEYS_MAX)
		err = error_set(e, ERR_TOO_BIG, "more than %d keys", JWKS_KEYS_MAX);
	else
		ret->keys = xcalloc(json_array_size(list) + 1, sizeof *ret->keys);
	json_array_foreach(ret->keys ? list : NULL, i, key)
	{
		const char *kid = json_get_str(key, "kid");
		bool is_for_rs256 = kid && *kid && strlen(kid) <= KID_MAX_BYTES &&
				    str_eq(json_get_str(key, "kty"), "RSA") && is_absent_or(key, "use", "sig") &&
				    is_absent_or(key, "alg", "RS256");
		struct rsa_public_key *public_key = is_for_rs256 ? read_key(key) : NULL;

		if (public_key)
			ret->keys[ret->n++] = (struct jwk){.kid = xstrdup(kid), .key = public_key};
	}
	if (!err && ret->n == 0)
		err = error_set(e, ERR_INVALID, "no key that is usable for RS256");
	if (err)
		jwks_release(ret);
	json_decref(root);
	return err;
}

void jwks_release(struct jwks *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->keys[i].kid);
		rsa_public_key_free(k->keys[i].key);
	}
	free(k->keys);
	*k = (struct jwks){0};
}

struct rsa_public_key *jwks_find(const struct jwks *k, const char *kid)
{
	for (size_t i = 0; i < k->n; i++)
		if (strcmp(k->keys[i].kid, kid) == 0)
			return k->keys[i].key;
	return NULL;
}

enum { WAITS_MAX = 256, FETCH_TIMEOUT_MS = 10 * 1000 };

/* One issuer. An issuer that is no longer configured is dropped, and lives until its fetch has ended. */
struct issuer {
	struct issuer_keys *owner;
	LIST_ENTRY(issuer) link;
	char *name, *url;
	struct jwks keys;
	struct http_call call;
	bool is_fetching, is_dropped;
	bool has_failed;      /* the last fetch failed */
	int64_t may_fetch_ms; /* mono; a token causes no fetch before it */
	struct timer *refresh;
	struct key_wait *waits;
	int n_waits;
};

struct issuer_keys {
	struct loop *loop;
	struct http_client *client;
	struct runners_counters *counters;
	LIST_HEAD(, issuer) issuers;
	bool is_closing;
	void (*on_closed)(void *owner);
	void *closed_owner;
};

struct issuer_keys *issuer_keys_new(struct loop *l, struct http_client *c, struct runners_counters *counters)
{
	struct issuer_keys *k = xcalloc(1, sizeof *k);

	*k = (struct issuer_keys){.loop = l, .client = c, .counters = counters};
	return k;
}

/* All fetches have ended. */
static void finish_closing_keys(struct issuer_keys *k)
{
	loop_reap(k->loop, k->on_closed, k->closed_owner);
	loop_reap(k->loop, free, k);
}

static void issuer_release(void *p)
{
	struct issuer *i = p;

	http_call_release(&i->call);
	jwks_release(&i->keys);
	FREE_ALL(i->name, i->url, i);
}

/* Removes the issuer from the list. It is freed at the end of the turn, because its own callback may be running. */
static void remove_issuer(struct issuer *i)
{
	struct issuer_keys *k = i->owner;

	LIST_REMOVE(i, link);
	timer_close(i->refresh);
	loop_reap(k->loop, issuer_release, i);
	if (k->is_closing && LIST_EMPTY(&k->issuers))
		finish_closing_keys(k);
}

static void drop_issuer(struct issuer *i)
{
	i->is_dropped = true;
	if (i->is_fetching)
		http_call_cancel(i->owner->client, &i->call);
	else
		remove_issuer(i);
}

static void on_fetched(struct http_call *call)
{
	struct issuer *i = CONTAINER_OF(call, struct issuer, call);
	struct issuer_keys *k = i->owner;
	struct key_wait *waits = i->waits;
	struct error e = {0};
	struct jwks keys;
	int err;

	if (i->is_dropped)
		err = ERR_CANCELLED;
	else if (call->err)
		err = error_set(&e, call->err, "%s", call->why.text);
	else if (call->status != 200)
		err = error_set(&e, ERR_PROTOCOL, "status %d", call->status);
	else
		err = jwks_parse(buf_str(&call->answer), call->answer.len, &keys, &e);
	if (!err) {
		jwks_release(&i->keys);
		i->keys = keys;
	}
	http_call_release(call);
	i->is_fetching = false;
	i->waits = NULL;
	i->n_waits = 0;
	i->has_failed = err != 0;
	i->may_fetch_ms = loop_now_ms(k->loop) + (err ? ISSUER_KEYS_RETRY_MS : ISSUER_KEYS_INTERVAL_MS);
	if (i->is_dropped) {
		remove_issuer(i);
	} else if (err) {
		k->counters->n_key_fetch_failures++;
		log_event(LOG_WARN, "issuer_keys_failed", LOG_S("issuer", i->name), LOG_S("url", i->url),
		    LOG_S("why", e.text), LOG_I("keys_kept", (int64_t)i->keys.n));
	} else {
		log_event(LOG_INFO, "issuer_keys_fetched", LOG_S("issuer", i->name), LOG_I("keys", (int64_t)i->keys.n));
	}
	if (!i->is_dropped)
		timer_start(i->refresh, ISSUER_KEYS_REFRESH_MS);
	while (waits) {
		struct key_wait *w = waits;

		waits = w->next;
		w->done(w);
	}
}

static void fetch_keys(struct issuer *i)
{
	i->is_fetching = true;
	i->owner->counters->n_key_fetches++;
	i->call = (struct http_call){
	    .method = "GET",
	    .url = i->url,
	    .headers = (const char *const[]){"Accept: application/json", NULL},
	    .max_answer_bytes = JWKS_BYTES_MAX,
	    .total_timeout_ms = FETCH_TIMEOUT_MS,
	    .done = on_fetched,
	};
	http_call_start(i->owner->client, &i->call);
}

static void on_keys_refresh(struct timer *t)
{
	struct issuer *i = timer_owner(t);

	if (!i->is_fetching)
		fetch_keys(i);
}

static struct issuer *find_issuer(const struct issuer_keys *k, const char *name)
{
	struct issuer *i;

	LIST_FOREACH (i, &k->issuers, link)
		if (!i->is_dropped && strcmp(i->name, name) == 0)
			return i;
	return NULL;
}

void issuer_keys_configure(struct issuer_keys *k, const struct config *c)
{
	for (struct issuer *i = LIST_FIRST(&k->issuers), *next; i; i = next) {
		bool is_configured = false;

		next = LIST_NEXT(i, link);
		for (size_t n = 0; n < c->n_oidc_issuers && !is_configured; n++)
			is_configured = strcmp(c->oidc_issuers[n].issuer, i->name) == 0 &&
					strcmp(c->oidc_issuers[n].jwks_url, i->url) == 0;
		if (!i->is_dropped && !is_configured)
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
		i->refresh = timer_new(k->loop, on_keys_refresh, i);
		LIST_INSERT_HEAD(&k->issuers, i, link);
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
	assert(i); /* the token's issuer is of the same snapshot */
	if (!i->is_fetching && loop_now_ms(k->loop) < i->may_fetch_ms)
		return i->has_failed ? ERR_BUSY : ERR_NOT_FOUND;
	if (i->n_waits == WAITS_MAX)
		return ERR_BUSY;
	w->next = i->waits;
	i->waits = w;
	i->n_waits++;
	if (!i->is_fetching)
		fetch_keys(i);
	return 0;
}

void issuer_keys_close(struct issuer_keys *k, void (*on_closed)(void *owner), void *owner)
{
	k->is_closing = true;
	k->on_closed = on_closed;
	k->closed_owner = owner;
	if (LIST_EMPTY(&k->issuers))
		finish_closing_keys(k);
	for (struct issuer *i = LIST_FIRST(&k->issuers), *next; i; i = next) {
		next = LIST_NEXT(i, link);
		if (!i->is_dropped)
			drop_issuer(i);
	}
}
