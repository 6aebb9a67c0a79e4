#include "runners/runners.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "runners/runners_internal.h"

enum { REGISTERED_MAX = 1024, STRANGERS_MAX = 1024 };

struct runners *runners_new(struct loop *l, struct store *s, struct http_client *c,
    struct http_server *h, const void *callback_key, size_t key_bytes)
{
	struct runners *r = xcalloc(1, sizeof *r);

	r->loop = l;
	r->store = s;
	r->keys = issuer_keys_new(l, c, &r->counters);
	r->registered = rate_limit_new(REPORTS_PER_MINUTE, REGISTERED_MAX);
	r->strangers = rate_limit_new(REPORTS_PER_MINUTE, STRANGERS_MAX);
	r->callback_key = xmemdup(callback_key, key_bytes);
	r->callback_key_bytes = key_bytes;
	callback_add_route(r, h);
	vendor_api_add_route(r, h);
	return r;
}

void runners_configure(struct runners *r, struct config *c)
{
	struct config *old = r->config;

	r->config = config_ref(c);
	issuer_keys_configure(r->keys, c);
	config_unref(old);
}

static void runners_free(void *p)
{
	struct runners *r = p;
	void (*on_closed)(void *owner) = r->on_closed;
	void *owner = r->closed_owner;

	rate_limit_free(r->registered);
	rate_limit_free(r->strangers);
	explicit_bzero(r->callback_key, r->callback_key_bytes);
	free(r->callback_key);
	config_unref(r->config);
	free(r);
	on_closed(owner);
}

static void finish_if_idle(struct runners *r)
{
	if (r->is_closing && r->are_keys_closed && r->n_in_hand == 0)
		loop_reap(r->loop, runners_free, r);
}

void runners_hold(struct runners *r)
{
	r->n_in_hand++;
}

void runners_let_go(struct runners *r)
{
	assert(r->n_in_hand > 0);
	r->n_in_hand--;
	finish_if_idle(r);
}

static void on_keys_closed(void *owner)
{
	struct runners *r = owner;

	r->are_keys_closed = true;
	finish_if_idle(r);
}

void runners_close(struct runners *r, void (*on_closed)(void *owner), void *owner)
{
	r->is_closing = true;
	r->on_closed = on_closed;
	r->closed_owner = owner;
	issuer_keys_close(r->keys, on_keys_closed, r);
}

const struct runners_counters *runners_counters(const struct runners *r)
{
	return &r->counters;
}
