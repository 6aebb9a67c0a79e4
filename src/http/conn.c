/* A connection's life, its states, and their deadlines. conn_input.c reads from it, conn_output.c writes to it. */
#include "http/conn.h"

#include "http/server_internal.h"
#include "http/tls.h"

/* Refused connections linger over the limit, so that their 503 is read; more are cut. */
#define MAX_OVER_LIMIT 64

#define BODY_FLOOR_BYTES_S  256 /* a slower body is an attack, not an upload */
/* For a large body in memory, which uses the memory of many small ones. */
#define LARGE_BODY_BYTES    ((size_t)1 << 20)
#define LARGE_FLOOR_BYTES_S 65536
#define BODY_TIMEOUTS       3    /* the longest time for a body in memory, however fast */
#define WRITE_FLOOR_BYTES   4096 /* in one write timeout */
#define HALF_CLOSED_MS      2000
#define LINGER_SILENCE_MS   2000
#define LINGER_TOTAL_MS     10000

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

	LIST_REMOVE(c, link);
	s->n_conns--;
	http_session_free(c->session);
	buf_release(&c->held);
	free(c);
	http_server_check_closed(s);
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
	if (c->is_due)
		TAILQ_REMOVE(&c->server->due, c, due);
	c->is_due = false;
	uv_close(&c->io.handle, on_conn_closed);
	if (r)
		http_request_lose(r);
}

void http_conn_refuse(struct http_conn *c, int status, const char *why)
{
	static const struct http_header_line RETRY[] = {{"Retry-After", "5"}, {NULL, NULL}};
	struct http_server *s = c->server;
	struct http_request *r = c->request;
	char client[INET6_ADDRSTRLEN] = "unix", body[160];
	int64_t n_skipped;

	if (!c->is_unix)
		http_address_format(c->peer, client);
	if (log_limit_pass(&s->refused_log, loop_now_ms(s->loop), &n_skipped))
		log_event(LOG_INFO, "http_refused", LOG_I("status", status), LOG_S("why", why), LOG_S("client", client),
		    LOG_I("more", n_skipped));
	if (r && r->stage == HTTP_REQUEST_STREAMING) {
		http_conn_drop(c);
		return;
	}
	c->request = NULL;
	c->ends = true;
	c->lingers = true;
	/* `why` is a text of this program and needs no escaping. */
	int length = snprintf(body, sizeof(body), "{\"error\":\"%s\"}", why);
	http_answer_head(s, &(struct http_answer){.status = status,
				.content_type = "application/json",
				.headers = status == 503 ? RETRY : NULL,
				.length = length,
				.minor = 1,
				.ends = true});
	uv_buf_t bufs[] = {
	    uv_buf_init(s->out_head.data, (unsigned)s->out_head.len), uv_buf_init(body, (unsigned)length)};
	http_conn_send(c, bufs, 2);
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
	/* Another request may wait already: here, in TLS, or in a socket that is not read. It must not start inside
	 * the call that answered this one. */
	if (!c->is_feeding && (c->held.len || c->session || !c->is_reading))
		http_conn_make_due(c);
}

static void server_run_due_conns(void *p)
{
	struct http_server *s = p;
	struct http_conn *c;
	uint64_t turn = s->due_turn++;

	/* A connection that becomes due meanwhile waits for the next turn, so that none starves the loop. */
	s->is_due_scheduled = false;
	while ((c = TAILQ_FIRST(&s->due)) && c->due_turn == turn) {
		TAILQ_REMOVE(&s->due, c, due);
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
	c->due_turn = s->due_turn;
	TAILQ_INSERT_TAIL(&s->due, c, due);
	if (s->is_due_scheduled)
		return;
	s->is_due_scheduled = true;
	loop_reap(s->loop, server_run_due_conns, s);
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

static void conn_set_peer(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct sockaddr_storage ss;
	int len = sizeof(ss);

	c->is_exempt = c->is_unix;
	if (c->is_unix || uv_tcp_getpeername(&c->io.tcp, (struct sockaddr *)&ss, &len) != 0)
		return;
	if (ss.ss_family == AF_INET6)
		memcpy(c->peer, &((struct sockaddr_in6 *)&ss)->sin6_addr, 16);
	else
		http_address_map_v4(&((struct sockaddr_in *)&ss)->sin_addr, c->peer);
	c->group = http_client_group_of(c->peer);
	/* Many clients come through a trusted proxy: their requests are counted instead. */
	c->is_exempt = s->is_trusted && s->is_trusted(c->peer, s->trusted_owner);
}

void http_conn_accept(struct http_server *s, uv_stream_t *listener, bool is_unix)
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
	LIST_INSERT_HEAD(&s->conns, c, link);
	s->n_conns++;
	if (!timer_is_running(s->tick))
		timer_start(s->tick, s->tick_ms);
	c->state = HTTP_CONN_IDLE;
	if (uv_accept(listener, &c->io.stream) != 0 || s->is_closing) {
		http_conn_drop(c);
		return;
	}
	s->counters.n_connections++;
	conn_set_peer(c);
	bool has_place = http_evict_for_connection(c);
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
	if (has_place || c->state == HTTP_CONN_CLOSED)
		return;
	/* Answers 503 if there is room for it, and closes; a TLS handshake would cost too much. */
	s->counters.n_refused_busy++;
	s->counters.n_refused_connections++;
	if (c->session || s->n_open >= s->limits.max_connections + MAX_OVER_LIMIT)
		http_conn_drop(c);
	else
		http_conn_refuse(c, 503, "too many connections");
}

/* ---- deadlines: how long each state may last. One timer of the server checks all connections. ---- */

/* NULL, or the reason to refuse the body. */
static const char *why_body_is_late(struct http_conn *c, int64_t now_ms)
{
	const struct http_route *route = c->request->route;
	int64_t silence_ms = route->body_mode == HTTP_BODY_STREAM ? route->body_silence_ms : 0;
	int64_t timeout_ms = silence_ms ? silence_ms : c->server->limits.body_timeout_ms;
	bool is_whole = route->body_mode == HTTP_BODY_WHOLE;
	int64_t bytes_s =
	    is_whole && c->request->received_bytes > LARGE_BODY_BYTES ? LARGE_FLOOR_BYTES_S : BODY_FLOOR_BYTES_S;
	size_t floor = silence_ms ? 1 : (size_t)(bytes_s * timeout_ms / 1000 + 1);

	if (c->request->is_paused) {
		c->window_ms = now_ms;
		return NULL;
	}
	if (is_whole && now_ms - c->since_ms >= BODY_TIMEOUTS * timeout_ms)
		return "the body took too long";
	if (now_ms - c->window_ms < timeout_ms)
		return NULL;
	if (c->window_bytes < floor)
		return bytes_s == LARGE_FLOOR_BYTES_S ? "the body is large and came too slowly"
						      : "the body took too long";
	c->window_ms = now_ms;
	c->window_bytes = 0;
	return NULL;
}

/* The client takes no byte of an answer, or only a few in each write timeout. */
static bool conn_sending_is_stuck(struct http_conn *c, int64_t now_ms)
{
	size_t unsent = http_conn_unsent(c);
	size_t taken = c->queued_bytes - unsent;

	if (unsent == 0) {
		c->stall_ms = 0;
		return false;
	}
	if (c->stall_ms == 0) {
		c->stall_ms = now_ms;
		c->stall_taken = taken;
		return false;
	}
	if (now_ms - c->stall_ms < c->server->limits.write_timeout_ms)
		return false;
	if (taken - c->stall_taken < WRITE_FLOOR_BYTES)
		return true;
	c->stall_ms = now_ms;
	c->stall_taken = taken;
	return false;
}

void http_conn_check_deadlines(struct http_conn *c, int64_t now_ms)
{
	const struct http_limits *l = &c->server->limits;
	int64_t age_ms = now_ms - c->since_ms, timeout_ms;
	const char *why;

	if (c->state == HTTP_CONN_CLOSED)
		return;
	if (conn_sending_is_stuck(c, now_ms)) {
		http_conn_drop(c);
		return;
	}
	switch (c->state) {
	case HTTP_CONN_HANDSHAKE:
		if (age_ms >= l->header_timeout_ms)
			http_conn_drop(c);
		break;
	case HTTP_CONN_IDLE:
		timeout_ms = c->has_answered ? l->idle_timeout_ms : l->first_byte_timeout_ms;
		if (age_ms >= timeout_ms && http_conn_unsent(c) == 0)
			http_conn_drop(c);
		break;
	case HTTP_CONN_HEAD:
		if (age_ms >= l->header_timeout_ms)
			http_conn_refuse(c, 408, "the headers took too long");
		break;
	case HTTP_CONN_BODY:
		why = why_body_is_late(c, now_ms);
		if (why)
			http_conn_refuse(c, 408, why);
		break;
	case HTTP_CONN_HANDLING:
		/* An answer that is being sent has conn_sending_is_stuck(). */
		if (c->is_eof && !c->request->is_sending && now_ms - c->eof_ms >= HALF_CLOSED_MS)
			http_conn_drop(c);
		break;
	case HTTP_CONN_LINGER:
		if (age_ms >= LINGER_TOTAL_MS || now_ms - c->window_ms >= LINGER_SILENCE_MS)
			http_conn_drop(c);
		break;
	case HTTP_CONN_FLUSH:
	case HTTP_CONN_CLOSED:
		break;
	}
}
