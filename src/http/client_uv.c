/* libcurl's sockets and clock on the loop. Four rules keep it from losing an end:
 *  - libcurl names its deadline only when it changes, so nothing but libcurl stops the timer;
 *  - finished transfers are read after every socket_action, whatever it says is running;
 *  - a socket's watcher is forgotten at REMOVE, its memory goes when the handle is closed;
 *  - a failed multi handle is thrown away with all that was in it, never used on. */
#include "http/client_internal.h"

#include "base/alloc.h"
#include "base/log.h"

/* What waits on one of libcurl's sockets. */
struct watcher {
	uv_poll_t poll;
	struct http_client *client;
	curl_socket_t fd;
};

static void rebuild(struct http_client *c, CURLMcode code)
{
	log_event(LOG_ERROR, "http_client_rebuilt", LOG_S("why", curl_multi_strerror(code)));
	http_client_end_all(c, ERR_NETWORK, "the HTTP client failed and was rebuilt");
	http_client_uv_close(c);
	http_client_uv_open(c);
}

static void act(struct http_client *c, curl_socket_t fd, int events)
{
	int n_running, n_left;
	CURLMcode code = curl_multi_socket_action(c->multi, fd, events, &n_running);
	CURLMsg *m;

	if (code != CURLM_OK) {
		rebuild(c, code);
	} else {
		while ((m = curl_multi_info_read(c->multi, &n_left))) {
			/* the message lives in the handle that is removed now */
			CURLcode result = m->data.result;
			struct http_transfer *t = NULL;

			if (m->msg != CURLMSG_DONE)
				continue;
			curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
			http_client_end(t, result);
		}
	}
	http_client_run_ended(c);
}

static void on_deadline(uv_timer_t *timer)
{
	act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *owner)
{
	struct http_client *c = owner;

	(void)multi;
	if (timeout_ms < 0)
		uv_timer_stop(&c->deadline);
	else
		uv_timer_start(&c->deadline, on_deadline, (uint64_t)timeout_ms, 0);
	return 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct watcher *w = poll->data;
	int what = 0;

	if (status < 0)
		what = CURL_CSELECT_ERR;
	if (events & UV_READABLE)
		what |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		what |= CURL_CSELECT_OUT;
	act(w->client, w->fd, what);
}

static void on_watcher_closed(uv_handle_t *h)
{
	struct watcher *w = h->data;
	struct http_client *c = w->client;

	free(w);
	http_client_handle_closed(c);
}

static struct watcher *watcher_new(struct http_client *c, curl_socket_t fd)
{
	struct watcher *w = xcalloc(1, sizeof(*w));

	if (uv_poll_init_socket(c->uv, &w->poll, fd)) {
		free(w);
		return NULL;
	}
	w->poll.data = w;
	w->client = c;
	w->fd = fd;
	c->n_handles++;
	curl_multi_assign(c->multi, fd, w);
	return w;
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
	if (!w)
		w = watcher_new(c, fd);
	/* -1 makes libcurl give the multi handle up: act() then rebuilds it */
	if (!w || uv_poll_start(&w->poll, events, on_poll))
		return -1;
	return 0;
}

void http_client_uv_open(struct http_client *c)
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
	curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, 64L);
	curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)c->max_per_host);
}

void http_client_uv_close(struct http_client *c)
{
	/* still calls on_curl_socket for what it closes, so the handles exist until after */
	curl_multi_cleanup(c->multi);
	c->multi = NULL;
	uv_timer_stop(&c->deadline);
}
