/* A connection's life and its states; what arrives is feed.c, what leaves is outlet.c. */
#include "http/conn.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "http/client_address.h"
#include "http/eviction.h"
#include "http/server_internal.h"
#include "http/session.h"

/* Refused connections linger over the limit, so that their 503 is read; more are cut. */
#define MAX_OVER_LIMIT 64

void http_conn_enter(struct http_conn *c, enum http_conn_state state)
{
	assert(c->state != HTTP_CONN_CLOSED);
	c->state = state;
	c->since_nth = ++c->server->n_states;
	c->since_ms = loop_now_ms(c->server->loop);
	c->window_ms = c->since_ms;
	c->window_bytes = 0;
}

static void on_conn_closed(uv_handle_t *handle)
{
	struct http_conn *c = CONTAINER_OF(handle, struct http_conn, io.handle);
	struct http_server *s = c->server;

	http_server_unlink(s, c);
	http_session_free(c->session);
	buf_release(&c->held);
	free(c);
	http_server_check_closed(s);
}

static bool remove_from(struct http_conn **at, const struct http_conn *c)
{
	while (*at && *at != c)
		at = &(*at)->next_due;
	if (!*at)
		return false;
	*at = c->next_due;
	return true;
}

static void remove_due(struct http_conn *c)
{
	if (c->is_due && !remove_from(&c->server->due, c))
		remove_from(&c->server->due_running, c);
	c->is_due = false;
}

void http_conn_drop(struct http_conn *c)
{
	struct http_request *r = c->request;

	if (c->state == HTTP_CONN_CLOSED)
		return;
	http_conn_enter(c, HTTP_CONN_CLOSED);
	c->request = NULL;
	if (c->is_open) {
		c->server->n_open--;
		http_group_amount_add(c->server->open_of, &c->group, -1);
	}
	remove_due(c);
	uv_close(&c->io.handle, on_conn_closed);
	if (r)
		http_request_lose(r);
}

static void log_refusal(struct http_conn *c, int status, const char *why)
{
	struct http_server *s = c->server;
	char client[INET6_ADDRSTRLEN] = "unix";
	int64_t n_skipped;

	if (!log_limit_pass(&s->refused_log, loop_now_ms(s->loop), &n_skipped))
		return;
	if (!c->is_unix)
		http_address_format(c->peer, client);
	log_event(LOG_INFO, "http_refused", LOG_I("status", status), LOG_S("why", why),
	    LOG_S("client", client), LOG_I("more", n_skipped));
}

/* `why` is one of our own texts: it needs no escaping. */
static void send_refusal(struct http_conn *c, int status, const char *why)
{
	static const struct http_header_line RETRY[] = {{"Retry-After", "5"}, {NULL, NULL}};
	char body[160];
	struct http_answer a = {
	    .status = status,
	    .content_type = "application/json",
	    .headers = status == 503 ? RETRY : NULL,
	    .minor = 1,
	    .ends = true,
	};
	uv_buf_t bufs[2];

	a.length = snprintf(body, sizeof(body), "{\"error\":\"%s\"}", why);
	http_answer_head(c->server, &a);
	bufs[0] = uv_buf_init(c->server->out_head.data, (unsigned)c->server->out_head.len);
	bufs[1] = uv_buf_init(body, (unsigned)a.length);
	http_conn_send(c, bufs, 2);
}

void http_conn_refuse(struct http_conn *c, int status, const char *why)
{
	struct http_request *r = c->request;

	log_refusal(c, status, why);
	if (r && r->stage == HTTP_REQUEST_STREAMING) {
		http_conn_drop(c);
		return;
	}
	c->request = NULL;
	c->ends = true;
	c->lingers = true;
	send_refusal(c, status, why);
	http_conn_enter(c, HTTP_CONN_FLUSH);
	http_conn_flushed(c);
	if (r)
		http_request_lose(r);
}

void http_conn_answered(struct http_conn *c)
{
	if (c->ends || c->is_broken || c->server->is_closing) {
		http_conn_enter(c, HTTP_CONN_FLUSH);
		http_conn_flushed(c);
		return;
	}
	c->has_answered = true;
	http_conn_enter(c, HTTP_CONN_IDLE);
	/* Another request may wait already, here, in TLS, or in a socket that is not read. It
	 * must not start inside the call that answered this one. */
	if (!c->is_feeding && (c->held.len || c->session || !c->is_reading))
		http_conn_make_due(c);
}

static void run_due_conns(void *p)
{
	struct http_server *s = p;

	/* What becomes due meanwhile waits for the next turn: no connection starves the loop. */
	s->due_running = s->due;
	s->due = NULL;
	s->is_due_scheduled = false;
	while (s->due_running) {
		struct http_conn *c = s->due_running;

		s->due_running = c->next_due;
		c->is_due = false;
		http_conn_run_due(c);
	}
}

void http_conn_make_due(struct http_conn *c)
{
	struct http_server *s = c->server;

	if (c->is_due || c->state == HTTP_CONN_CLOSED)
		return;
	c->is_due = true;
	c->next_due = s->due;
	s->due = c;
	if (s->is_due_scheduled)
		return;
	s->is_due_scheduled = true;
	loop_reap(s->loop, run_due_conns, s);
}

void http_conn_run_due(struct http_conn *c)
{
	struct http_request *r = c->request;

	if (c->is_broken) {
		http_conn_drop(c);
		return;
	}
	if (r && r->wants_drain && http_conn_unsent(c) < http_drain_bytes(r)) {
		r->wants_drain = false;
		r->on_drain(r);
		return;
	}
	http_conn_pump(c);
}

static void set_peer(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct sockaddr_storage ss;
	int len = sizeof(ss);

	c->is_exempt = c->is_unix;
	if (c->is_unix || uv_tcp_getpeername(&c->io.tcp, (struct sockaddr *)&ss, &len) != 0)
		return;
	if (ss.ss_family == AF_INET6) {
		memcpy(c->peer, &((struct sockaddr_in6 *)&ss)->sin6_addr, 16);
	} else {
		memset(c->peer + 10, 0xff, 2);
		memcpy(c->peer + 12, &((struct sockaddr_in *)&ss)->sin_addr, 4);
	}
	c->group = http_client_group_of(c->peer);
	/* Many clients come through it: what each may have is counted by its requests. */
	c->is_exempt = s->is_trusted && s->is_trusted(c->peer, s->trusted_owner);
}

static struct http_conn *conn_new(struct http_server *s, bool is_unix)
{
	struct http_conn *c = xcalloc(1, sizeof(*c));

	c->server = s;
	c->is_unix = is_unix;
	buf_init(&c->held, HTTP_MAX_HEAD_BYTES + 2 * HTTP_SCRATCH_BYTES);
	http_inlet_init(&c->inlet, s->limits.max_header_bytes);
	if (is_unix)
		uv_pipe_init(loop_uv(s->loop), &c->io.pipe, 0);
	else
		uv_tcp_init(loop_uv(s->loop), &c->io.tcp);
	http_server_link(s, c);
	return c;
}

/* Closed with a 503 if there is room for that; a TLS handshake is too dear for it. */
static void refuse_newcomer(struct http_conn *c)
{
	struct http_server *s = c->server;

	s->counters.n_refused_busy++;
	s->counters.n_refused_connections++;
	if (c->session || s->n_open >= s->limits.max_connections + MAX_OVER_LIMIT)
		http_conn_drop(c);
	else
		http_conn_refuse(c, 503, "too many connections");
}

void http_conn_accept(struct http_server *s, uv_stream_t *listener, bool is_unix)
{
	struct http_conn *c = conn_new(s, is_unix);
	bool has_place;

	c->state = HTTP_CONN_IDLE;
	if (uv_accept(listener, &c->io.stream) != 0 || s->is_closing) {
		http_conn_drop(c);
		return;
	}
	s->counters.n_connections++;
	set_peer(c);
	has_place = http_evict_for_connection(c);
	c->is_open = true;
	s->n_open++;
	http_group_amount_add(s->open_of, &c->group, 1);
	if (!is_unix) {
		uv_tcp_nodelay(&c->io.tcp, 1);
		if (s->tls)
			c->session = http_session_new(s->tls);
	}
	http_conn_enter(c, c->session ? HTTP_CONN_HANDSHAKE : HTTP_CONN_IDLE);
	http_conn_start_reading(c);
	if (!has_place && c->state != HTTP_CONN_CLOSED)
		refuse_newcomer(c);
}
