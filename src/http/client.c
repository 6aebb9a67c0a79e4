/* The client and the lives of its calls. Whatever ends a call (libcurl, a cancel, a bad
 * URL, closing) goes through http_client_end() and one list, so that done runs once, never
 * inside the caller's own call and never inside libcurl. */
#include "http/client_internal.h"

#include "base/alloc.h"
#include "base/clock.h"

enum {
	N_SPARE_MAX = 32,
	SWEEP_MS = 500,
	IDLE_MS = 90 * 1000, /* servers drop idle connections about then */
};

static void list_add(struct http_transfer **list, struct http_transfer *t)
{
	t->next = *list;
	t->link = list;
	if (t->next)
		t->next->link = &t->next;
	*list = t;
}

static void list_remove(struct http_transfer *t)
{
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	t->next = NULL;
	t->link = NULL;
}

static void ended_add(struct http_transfer *t)
{
	struct http_client *c = t->client;

	t->next = NULL;
	t->link = c->ended_tail;
	*c->ended_tail = t;
	c->ended_tail = &t->next;
}

static struct http_transfer *ended_take(struct http_client *c)
{
	struct http_transfer *t = c->ended;

	if (!t)
		return NULL;
	c->ended = t->next;
	if (t->next)
		t->next->link = &c->ended;
	else
		c->ended_tail = &c->ended;
	t->next = NULL;
	return t;
}

static void spare_free(struct http_client *c)
{
	while (c->spare) {
		struct http_transfer *t = c->spare;

		list_remove(t);
		http_transfer_free(t);
	}
	c->n_spare = 0;
}

static void on_turn(uv_timer_t *timer)
{
	http_client_run_ended(timer->data);
}

static void on_sweep(uv_timer_t *timer)
{
	struct http_client *c = timer->data;
	int64_t now = clock_mono_ms();
	struct http_transfer *t, *next;

	for (t = c->active; t; t = next) {
		next = t->next;
		if (now < t->overdue_mono_ms)
			continue;
		t->err = ERR_TIMEOUT;
		error_set(&t->call->why, ERR_TIMEOUT, "no connection was free in time");
		http_client_end(t, CURLE_OPERATION_TIMEDOUT);
	}
	http_client_run_ended(c);
}

static void on_idle(uv_timer_t *timer)
{
	struct http_client *c = timer->data;

	if (c->active || c->ended)
		return;
	http_client_uv_close(c);
	spare_free(c);
	http_client_uv_open(c);
}

static void init_timer(struct http_client *c, uv_timer_t *timer)
{
	uv_timer_init(c->uv, timer);
	timer->data = c;
	c->n_handles++;
}

void http_client_init(struct http_client *c, const char *user_agent)
{
	const char *ca = getenv("CURL_CA_BUNDLE"), *folder = getenv("SSL_CERT_DIR");

	if (!ca || !*ca)
		ca = getenv("SSL_CERT_FILE");
	c->user_agent = xstrdup(user_agent);
	c->ca_file = ca && *ca ? xstrdup(ca) : NULL;
	c->ca_folder = folder && *folder ? xstrdup(folder) : NULL;
}

void http_client_release(struct http_client *c)
{
	free(c->user_agent);
	free(c->ca_file);
	free(c->ca_folder);
}

struct http_client *http_client_new(struct loop *l, const char *user_agent)
{
	struct http_client *c = xcalloc(1, sizeof(*c));

	curl_global_init(CURL_GLOBAL_DEFAULT);
	http_client_init(c, user_agent);
	c->loop = l;
	c->uv = loop_uv(l);
	c->ended_tail = &c->ended;
	c->max_per_host = HTTP_CLIENT_CONNECTIONS_PER_HOST;
	init_timer(c, &c->deadline);
	init_timer(c, &c->turn);
	init_timer(c, &c->sweep);
	init_timer(c, &c->idle);
	uv_unref((uv_handle_t *)&c->idle);
	c->share = curl_share_init();
	curl_share_setopt(c->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
	http_client_uv_open(c);
	return c;
}

void http_client_use_ca(struct http_client *c, const char *ca_file)
{
	free(c->ca_file);
	free(c->ca_folder);
	c->ca_file = xstrdup(ca_file);
	c->ca_folder = NULL;
}

void http_client_limit(struct http_client *c, int connections_per_host)
{
	c->max_per_host = connections_per_host;
	curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)connections_per_host);
}

static void on_timer_closed(uv_handle_t *h)
{
	http_client_handle_closed(h->data);
}

void http_client_handle_closed(struct http_client *c)
{
	void (*on_closed)(void *) = c->on_closed;
	void *owner = c->owner;

	if (--c->n_handles)
		return;
	curl_share_cleanup(c->share);
	http_client_release(c);
	free(c);
	curl_global_cleanup();
	if (on_closed)
		on_closed(owner);
}

void http_client_end_all(struct http_client *c, int err, const char *why)
{
	while (c->active) {
		struct http_transfer *t = c->active;

		t->err = err;
		error_set(&t->call->why, err, "%s", why);
		http_client_end(t, CURLE_ABORTED_BY_CALLBACK);
	}
}

void http_client_close(struct http_client *c, void (*on_closed)(void *owner), void *owner)
{
	c->is_closing = true;
	c->on_closed = on_closed;
	c->owner = owner;
	http_client_end_all(c, ERR_CANCELLED, "the HTTP client was closed");
	http_client_run_ended(c);
	http_client_uv_close(c);
	spare_free(c);
	uv_close((uv_handle_t *)&c->deadline, on_timer_closed);
	uv_close((uv_handle_t *)&c->turn, on_timer_closed);
	uv_close((uv_handle_t *)&c->sweep, on_timer_closed);
	uv_close((uv_handle_t *)&c->idle, on_timer_closed);
}

/* ---- calls ---- */

static struct http_transfer *transfer_take(struct http_client *c)
{
	struct http_transfer *t = c->spare;

	if (!t)
		return http_transfer_new(c);
	list_remove(t);
	c->n_spare--;
	return t;
}

static void transfer_give_back(struct http_transfer *t)
{
	struct http_client *c = t->client;

	if (c->n_spare == N_SPARE_MAX || c->is_closing) {
		http_transfer_free(t);
		return;
	}
	http_transfer_reset(t);
	list_add(&c->spare, t);
	c->n_spare++;
}

static int add_to_multi(struct http_transfer *t)
{
	CURLMcode code;
	int err;

	if (t->client->is_closing)
		return error_set(&t->call->why, ERR_CANCELLED, "the HTTP client is closing");
	err = http_transfer_prepare(t);
	if (err)
		return err;
	code = curl_multi_add_handle(t->client->multi, t->easy);
	if (code != CURLM_OK)
		return error_set(&t->call->why, ERR_BUSY, "%s", curl_multi_strerror(code));
	t->is_in_multi = true;
	return 0;
}

void http_call_start(struct http_client *c, struct http_call *call)
{
	struct http_transfer *t = transfer_take(c);
	int err;

	http_call_release(call);
	call->err = 0;
	call->status = 0;
	call->was_sent = false;
	memset(&call->why, 0, sizeof(call->why));
	call->internal = t;
	t->call = call;
	t->err = 0;
	if (!c->active && !c->is_closing) {
		uv_timer_stop(&c->idle);
		uv_timer_start(&c->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	}
	list_add(&c->active, t);
	err = add_to_multi(t);
	if (err) {
		t->err = err;
		http_client_end(t, CURLE_FAILED_INIT);
	}
}

void http_call_cancel(struct http_client *c, struct http_call *call)
{
	struct http_transfer *t = call->internal;

	if (!t || t->client != c || !t->is_in_multi)
		return; /* not in the air: done ran, or will run this turn */
	t->err = ERR_CANCELLED;
	error_set(&call->why, ERR_CANCELLED, "cancelled");
	http_client_end(t, CURLE_ABORTED_BY_CALLBACK);
}

void http_client_end(struct http_transfer *t, CURLcode code)
{
	struct http_client *c = t->client;

	http_transfer_conclude(t, code);
	if (t->is_in_multi)
		curl_multi_remove_handle(c->multi, t->easy);
	t->is_in_multi = false;
	list_remove(t);
	ended_add(t);
	if (!c->is_closing)
		uv_timer_start(&c->turn, on_turn, 0, 0);
}

void http_client_run_ended(struct http_client *c)
{
	struct http_transfer *t;

	while ((t = ended_take(c))) {
		struct http_call *call = t->call;

		transfer_give_back(t);
		call->internal = NULL;
		if (!c->active && !c->is_closing) {
			uv_timer_stop(&c->sweep);
			uv_timer_start(&c->idle, on_idle, IDLE_MS, 0);
		}
		call->done(call);
	}
}

void http_call_release(struct http_call *call)
{
	buf_release(&call->answer);
	buf_release(&call->answer_headers);
}
