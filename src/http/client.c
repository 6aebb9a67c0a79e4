/* The client: its calls, libcurl's sockets and clock on the loop, and its end.
 *
 * Each end of a call (by libcurl, a cancel, a bad URL, closing) goes through client_end() and the list of ended
 * calls. So done runs once, never inside the caller's own call and never inside libcurl.
 *
 * Four rules keep libcurl from losing the end of a transfer:
 *  - libcurl names its deadline only when it changes, so only libcurl stops that timer;
 *  - finished transfers are read after every socket_action, even if it reports none as finished;
 *  - at REMOVE a socket's watcher is forgotten, and its memory is freed when its handle is closed;
 *  - a multi handle that failed is replaced, with all transfers in it, and never used again. */
#include "http/client_transfer.h"

enum {
	SWEEP_MS = 500,
	IDLE_MS = 90 * 1000,  /* servers close idle connections after about this time */
	CONNECTIONS_MAX = 64, /* kept open */
};

/* ---- the end of calls ---- */

static void on_client_idle(uv_timer_t *timer);

static void client_run_ended(struct http_client *c)
{
	struct http_transfer *t;

	while ((t = TAILQ_FIRST(&c->ended))) {
		struct http_call *call = t->call;

		TAILQ_REMOVE(&c->ended, t, link);
		http_transfer_put_back(t);
		call->internal = NULL;
		if (TAILQ_EMPTY(&c->active) && !c->is_closing) {
			uv_timer_stop(&c->sweep);
			uv_timer_start(&c->idle, on_client_idle, IDLE_MS, 0);
		}
		call->done(call);
	}
}

static void on_ended_turn(uv_timer_t *timer) { client_run_ended(timer->data); }

static void client_end(struct http_transfer *t, CURLcode code)
{
	struct http_client *c = t->client;

	http_transfer_conclude(t, code);
	if (t->is_in_multi)
		curl_multi_remove_handle(c->multi, t->easy);
	t->is_in_multi = false;
	TAILQ_REMOVE(&c->active, t, link);
	TAILQ_INSERT_TAIL(&c->ended, t, link);
	if (!c->is_closing)
		uv_timer_start(&c->turn, on_ended_turn, 0, 0);
}

static void client_end_all(struct http_client *c, int err, const char *why)
{
	struct http_transfer *t;

	while ((t = TAILQ_FIRST(&c->active))) {
		t->err = err;
		error_set(&t->call->why, err, "%s", why);
		client_end(t, CURLE_ABORTED_BY_CALLBACK);
	}
}

static void client_handle_closed(struct http_client *c)
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

/* ---- libcurl's sockets and clock ---- */

/* Watches one of libcurl's sockets. */
struct watcher {
	uv_poll_t poll;
	struct http_client *client;
	curl_socket_t fd;
};

static void curl_open(struct http_client *c);
static void curl_close(struct http_client *c);

static void curl_act(struct http_client *c, curl_socket_t fd, int events)
{
	int n_running, n_left;
	CURLMcode code = curl_multi_socket_action(c->multi, fd, events, &n_running);
	CURLMsg *m;

	if (code != CURLM_OK) {
		log_event(LOG_ERROR, "http_client_rebuilt", LOG_S("why", curl_multi_strerror(code)));
		client_end_all(c, ERR_NETWORK, "the HTTP client failed and was rebuilt");
		curl_close(c);
		curl_open(c);
	} else {
		while ((m = curl_multi_info_read(c->multi, &n_left))) {
			/* client_end() frees the message */
			CURLcode result = m->data.result;
			struct http_transfer *t = NULL;

			if (m->msg != CURLMSG_DONE)
				continue;
			curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
			client_end(t, result);
		}
	}
	client_run_ended(c);
}

static void on_curl_deadline(uv_timer_t *timer) { curl_act(timer->data, CURL_SOCKET_TIMEOUT, 0); }

static int on_curl_timer(CURLM *multi, long timeout_ms, void *owner)
{
	struct http_client *c = owner;

	(void)multi;
	if (timeout_ms < 0)
		uv_timer_stop(&c->deadline);
	else
		uv_timer_start(&c->deadline, on_curl_deadline, (uint64_t)timeout_ms, 0);
	return 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct watcher *w = poll->data;
	int ready = 0;

	if (status < 0)
		ready = CURL_CSELECT_ERR;
	if (events & UV_READABLE)
		ready |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		ready |= CURL_CSELECT_OUT;
	curl_act(w->client, w->fd, ready);
}

static void on_watcher_closed(uv_handle_t *h)
{
	struct watcher *w = h->data;
	struct http_client *c = w->client;

	free(w);
	client_handle_closed(c);
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *owner, void *assigned)
{
	struct http_client *c = owner;
	struct watcher *w = assigned;
	int events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w) {
			uv_poll_stop(&w->poll);
			uv_close((uv_handle_t *)&w->poll, on_watcher_closed);
			curl_multi_assign(c->multi, fd, NULL);
		}
		return 0;
	}
	if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
		events |= UV_READABLE;
	if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
		events |= UV_WRITABLE;
	if (!w) {
		w = xcalloc(1, sizeof(*w));
		if (uv_poll_init_socket(c->uv, &w->poll, fd)) {
			free(w);
			return -1;
		}
		w->poll.data = w;
		w->client = c;
		w->fd = fd;
		c->n_handles++;
		curl_multi_assign(c->multi, fd, w);
	}
	/* -1 makes libcurl fail the multi handle; curl_act() then replaces it */
	return uv_poll_start(&w->poll, events, on_poll) ? -1 : 0;
}

/* Makes a new multi handle. */
static void curl_open(struct http_client *c)
{
	c->multi = curl_multi_init();
	if (!c->multi) {
		fputs("libcurl: no multi handle\n", stderr);
		abort();
	}
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
	curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX);
	curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)c->max_per_host);
}

/* Closes the multi handle with its connections. */
static void curl_close(struct http_client *c)
{
	/* It still calls on_curl_socket() for each socket that it closes. */
	curl_multi_cleanup(c->multi);
	c->multi = NULL;
	uv_timer_stop(&c->deadline);
}

/* ---- the client ---- */

static void on_client_idle(uv_timer_t *timer)
{
	struct http_client *c = timer->data;

	if (!TAILQ_EMPTY(&c->active) || !TAILQ_EMPTY(&c->ended))
		return;
	http_transfers_free_spare(c);
	curl_close(c);
	curl_open(c);
}

static void on_sweep(uv_timer_t *timer)
{
	struct http_client *c = timer->data;
	int64_t now = clock_mono_ms();
	struct http_transfer *next;

	for (struct http_transfer *t = TAILQ_FIRST(&c->active); t; t = next) {
		next = TAILQ_NEXT(t, link);
		if (now < t->overdue_mono_ms)
			continue;
		t->err = ERR_TIMEOUT;
		error_set(&t->call->why, ERR_TIMEOUT, "no connection was free in time");
		client_end(t, CURLE_OPERATION_TIMEDOUT);
	}
	client_run_ended(c);
}

static void client_add_timer(struct http_client *c, uv_timer_t *timer)
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

void http_client_release(struct http_client *c) { FREE_ALL(c->user_agent, c->ca_file, c->ca_folder); }

struct http_client *http_client_new(struct loop *l, const char *user_agent)
{
	struct http_client *c = xcalloc(1, sizeof(*c));

	curl_global_init(CURL_GLOBAL_DEFAULT);
	http_client_init(c, user_agent);
	c->uv = loop_uv(l);
	TAILQ_INIT(&c->active);
	TAILQ_INIT(&c->ended);
	TAILQ_INIT(&c->spare);
	c->max_per_host = HTTP_CLIENT_CONNECTIONS_PER_HOST;
	client_add_timer(c, &c->deadline);
	client_add_timer(c, &c->turn);
	client_add_timer(c, &c->sweep);
	client_add_timer(c, &c->idle);
	uv_unref((uv_handle_t *)&c->idle);
	c->share = curl_share_init();
	curl_share_setopt(c->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
	curl_open(c);
	return c;
}

void http_client_use_ca(struct http_client *c, const char *ca_file)
{
	FREE_ALL(c->ca_file, c->ca_folder);
	c->ca_file = xstrdup(ca_file);
	c->ca_folder = NULL;
}

void http_client_limit(struct http_client *c, int connections_per_host)
{
	c->max_per_host = connections_per_host;
	curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)connections_per_host);
}

void http_client_confirm_within(struct http_client *c, int ms) { c->confirm_ms = ms; }

static void on_timer_closed(uv_handle_t *h) { client_handle_closed(h->data); }

void http_client_close(struct http_client *c, void (*on_closed)(void *owner), void *owner)
{
	c->is_closing = true;
	c->on_closed = on_closed;
	c->owner = owner;
	client_end_all(c, ERR_CANCELLED, "the HTTP client was closed");
	client_run_ended(c);
	http_transfers_free_spare(c);
	curl_close(c);
	uv_close((uv_handle_t *)&c->deadline, on_timer_closed);
	uv_close((uv_handle_t *)&c->turn, on_timer_closed);
	uv_close((uv_handle_t *)&c->sweep, on_timer_closed);
	uv_close((uv_handle_t *)&c->idle, on_timer_closed);
}

/* ---- calls ---- */

void http_call_start(struct http_client *c, struct http_call *call)
{
	struct http_transfer *t = http_transfer_new(c);
	int err = http_transfer_prepare(t, call);

	call->internal = t;
	if (TAILQ_EMPTY(&c->active) && !c->is_closing) {
		uv_timer_stop(&c->idle);
		uv_timer_start(&c->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	}
	TAILQ_INSERT_HEAD(&c->active, t, link);
	if (!err && c->is_closing)
		err = error_set(&call->why, ERR_CANCELLED, "the HTTP client is closing");
	if (!err) {
		CURLMcode code = curl_multi_add_handle(c->multi, t->easy);

		t->is_in_multi = code == CURLM_OK;
		if (code != CURLM_OK)
			err = error_set(&call->why, ERR_BUSY, "%s", curl_multi_strerror(code));
	}
	if (err) {
		t->err = err;
		client_end(t, CURLE_FAILED_INIT);
	}
}

void http_call_cancel(struct http_client *c, struct http_call *call)
{
	struct http_transfer *t = call->internal;

	if (!t || t->client != c || !t->is_in_multi)
		return; /* not sent, or done ran or will run in this turn */
	t->err = ERR_CANCELLED;
	error_set(&call->why, ERR_CANCELLED, "cancelled");
	client_end(t, CURLE_ABORTED_BY_CALLBACK);
}

void http_call_release(struct http_call *call)
{
	buf_release(&call->answer);
	buf_release(&call->answer_headers);
}
