/* Input: from the socket, through TLS if it is on, through the inlet to the handler, one request at a time. A body of
 * known length is read straight to its final place. A client that sends ahead is slowed down by not reading from it. */

#include "http/conn.h"
#include "http/server_internal.h"
#include "http/tls.h"

/* How much a client may send ahead while its request is handled. */
#define HELD_STOP_BYTES  16384
/* Small, so that little of a body lands beside its own memory. */
#define HEAD_READ_BYTES  4096
/* The most bytes that a lingering connection may send before it is closed. */
#define LINGER_MAX_BYTES ((size_t)64 << 20)

/* ---- to the handler ---- */

static bool conn_accepts_input(const struct http_conn *c)
{
	if (c->state == HTTP_CONN_BODY)
		return !c->request->is_paused;
	return (c->state == HTTP_CONN_IDLE || c->state == HTTP_CONN_HEAD) && !c->is_broken && http_conn_unsent(c) == 0;
}

/* Makes room for more of the body, if necessary by refusing slow bodies of others. False: there was no room, and the
 * request was refused. */
static bool body_make_room(struct http_conn *c)
{
	bool is_share;

	while (http_body_grow(&c->request->body, &is_share)) {
		if (http_evict_for_body(c, is_share))
			continue;
		c->server->counters.n_refused_busy++;
		c->server->counters.n_bodies_refused++;
		http_conn_refuse(c, 503, "too many bodies at once");
		return false;
	}
	return true;
}

static void input_on_head(struct http_conn *c, struct http_head *head)
{
	static const char NOT_ALLOWED[] = "{\"error\":\"method not allowed\"}";
	struct http_server *s = c->server;
	struct http_segments path;
	struct http_request *r;
	char allow[64];
	int rc = http_request_new(c, head, &path, &r);

	c->request = r;
	c->is_authenticated = false;
	s->counters.n_requests++;
	http_conn_enter(c, HTTP_CONN_BODY);
	if (rc == ERR_INVALID) {
		http_conn_refuse(c, 400, "bad escape in the path");
		return;
	}
	if (rc == 0)
		rc = http_routes_find(&s->routes, head->method, &path, &r->route, &r->captures, allow, sizeof(allow));
	if (rc == ERR_DENIED) {
		const struct http_header_line lines[] = {{"Allow", allow}, {NULL, NULL}};

		http_respond(r, 405, "application/json", lines, NOT_ALLOWED, sizeof(NOT_ALLOWED) - 1);
		return;
	}
	if (rc) {
		http_respond_json1(r, 404, "error", "no such path");
		return;
	}
	if ((uint64_t)head->content_length > r->route->max_body_bytes) {
		http_conn_refuse(c, 413, "body too large");
		return;
	}
	static char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const struct http_route *route = r->route;
	bool is_whole = route->body_mode == HTTP_BODY_WHOLE;
	uv_buf_t b = uv_buf_init(go_on, sizeof(go_on) - 1);

	r->body = (struct http_body){
	    .account = &s->bodies, .group = http_client_group(r), .expected = (size_t)head->content_length};
	if (!is_whole) {
		r->stage = HTTP_REQUEST_HANDED;
		route->on_request(r, route->owner);
	} else if (route->on_headers) {
		route->on_headers(r, route->owner);
	}
	if (c->request != r || c->state != HTTP_CONN_BODY || c->inlet.state == HTTP_INLET_AT_END)
		return;
	if (is_whole && !body_make_room(c))
		return;
	if (r->head->expects_continue)
		http_conn_send(c, &b, 1);
}

static void input_on_whole_piece(struct http_conn *c, struct http_request *r, const char *p, size_t n)
{
	struct http_body *b = &r->body;
	bool is_in_place = b->data && p == b->data + b->len;
	size_t left = is_in_place ? 0 : n;

	if (is_in_place)
		b->len += n;
	while (left) {
		size_t take = b->cap - b->len < left ? b->cap - b->len : left;

		memcpy(b->data + b->len, p + n - left, take);
		b->len += take;
		left -= take;
		if (left && !body_make_room(c))
			return;
	}
	if (r->route->on_piece) {
		r->route->on_piece(r, p, n, r->route->owner);
		if (c->request != r)
			return;
	}
	/* The next read needs room. */
	if (c->inlet.state != HTTP_INLET_AT_END)
		body_make_room(c);
}

static void input_on_piece(struct http_conn *c, const char *p, size_t n)
{
	struct http_request *r = c->request;

	r->received_bytes += n;
	c->window_bytes += n;
	if (r->received_bytes > r->route->max_body_bytes)
		http_conn_refuse(c, 413, "body too large");
	else if (r->route->body_mode == HTTP_BODY_WHOLE)
		input_on_whole_piece(c, r, p, n);
	else
		r->route->on_body(r, p, n, r->route->owner);
}

static void input_on_end(struct http_conn *c)
{
	struct http_request *r = c->request;

	http_conn_enter(c, HTTP_CONN_HANDLING);
	if (r->route->body_mode == HTTP_BODY_STREAM) {
		r->route->on_body(r, NULL, 0, r->route->owner);
		return;
	}
	r->stage = HTTP_REQUEST_HANDED;
	r->route->on_request(r, r->route->owner);
}

/* Feeds p[0..n) as far as the connection takes it now; returns how much it used. */
static size_t input_feed(struct http_conn *c, const char *p, size_t n)
{
	struct http_inlet_out out;
	size_t used = 0;

	c->is_feeding = true;
	while (conn_accepts_input(c)) {
		enum http_inlet_event ev = http_inlet_feed(&c->inlet, p + used, n - used, &out);

		used += out.used;
		if (ev == HTTP_INLET_MORE) {
			if (c->state == HTTP_CONN_IDLE && used < n)
				http_conn_enter(c, HTTP_CONN_HEAD);
			else if (c->state == HTTP_CONN_HEAD && used == n) /* it was an empty line behind a body */
				http_conn_enter(c, HTTP_CONN_IDLE);
			break;
		}
		switch (ev) {
		case HTTP_INLET_HEAD:
			input_on_head(c, out.head);
			break;
		case HTTP_INLET_PIECE:
			input_on_piece(c, out.piece, out.piece_bytes);
			break;
		case HTTP_INLET_END:
			input_on_end(c);
			break;
		case HTTP_INLET_BAD:
			http_conn_refuse(c, out.refusal.status, out.refusal.why);
			break;
		case HTTP_INLET_MORE:
			break;
		}
	}
	c->is_feeding = false;
	return used;
}

static void input_feed_held(struct http_conn *c)
{
	size_t used = input_feed(c, buf_str(&c->held), c->held.len);

	buf_consume(&c->held, used);
	if (c->held.len == 0)
		buf_release(&c->held); /* an idle connection keeps no memory */
}

/* True: no further request will be read. */
static bool conn_is_over(const struct http_conn *c)
{
	return c->state == HTTP_CONN_CLOSED || c->state == HTTP_CONN_FLUSH || c->state == HTTP_CONN_LINGER;
}

/* Passes plain bytes to the handler as far as it takes them, and holds the rest. */
static void conn_input(struct http_conn *c, const char *p, size_t n)
{
	size_t used = 0;

	if (conn_is_over(c))
		return;
	if (c->held.len) {
		buf_append(&c->held, p, n);
		input_feed_held(c);
		return;
	}
	used = input_feed(c, p, n);
	if (used < n && !conn_is_over(c))
		buf_append(&c->held, p + used, n - used);
}

/* The same for bytes that were read into the memory of input_room(). The byte behind a body lies in the memory of the body, and the handler
 * may free that: so this copies the byte first, and passes it on last. */
static void conn_input_read(struct http_conn *c, const char *p, size_t n)
{
	bool is_body = c->state == HTTP_CONN_BODY && p == c->request->body.data + c->request->body.len;
	bool has_next = is_body && (int64_t)n > c->inlet.body_left;
	char next = has_next ? p[n - 1] : 0;

	conn_input(c, p, n - has_next);
	if (has_next)
		conn_input(c, &next, 1);
}

/* ---- from the socket ---- */

/* The memory for the next plain bytes. */
static void input_room(struct http_conn *c, char **ret, size_t *ret_bytes)
{
	struct http_request *r = c->request;

	*ret = c->server->scratch;
	*ret_bytes = HEAD_READ_BYTES;
	if (c->state == HTTP_CONN_LINGER)
		*ret_bytes = HTTP_SCRATCH_BYTES;
	if (c->state != HTTP_CONN_BODY)
		return;
	*ret_bytes = HTTP_SCRATCH_BYTES;
	if (r->route->body_mode == HTTP_BODY_WHOLE && c->held.len == 0 && c->inlet.state == HTTP_INLET_AT_LENGTH) {
		*ret = r->body.data + r->body.len;
		*ret_bytes = r->body.cap - r->body.len;
		/* one byte more, because libuv reads again after a read that filled its buffer */
		if ((int64_t)*ret_bytes >= c->inlet.body_left)
			*ret_bytes = (size_t)c->inlet.body_left + 1;
	}
}

static void input_on_eof(struct http_conn *c)
{
	c->is_eof = true;
	c->is_reading = false;
	c->eof_ms = loop_now_ms(c->server->loop);
	uv_read_stop(&c->io.stream);
}

static void input_pump_session(struct http_conn *c)
{
	while (!c->is_broken && (c->state == HTTP_CONN_HANDSHAKE || conn_accepts_input(c))) {
		char *p;
		size_t n;

		input_room(c, &p, &n);
		int got = http_session_pull(c->session, p, n);
		if (c->state == HTTP_CONN_HANDSHAKE && http_session_is_up(c->session))
			http_conn_enter(c, HTTP_CONN_IDLE);
		if (got == ERR_CANCELLED && !c->is_eof)
			input_on_eof(c);
		if (got == ERR_PROTOCOL)
			c->is_broken = true;
		if (got <= 0)
			break;
		conn_input_read(c, p, (size_t)got);
	}
	if (c->state == HTTP_CONN_CLOSED)
		return;
	http_conn_send_session_output(c);
	if (c->is_broken)
		http_conn_drop(c);
}

/* Stops reading while more is held than a client may send ahead, and starts it again. */
static void input_throttle(struct http_conn *c)
{
	size_t held = c->held.len;

	if (c->state == HTTP_CONN_CLOSED)
		return;
	if (c->session)
		held += http_session_n_pushed(c->session);
	if (held < HELD_STOP_BYTES || conn_accepts_input(c) || conn_is_over(c)) {
		http_conn_start_reading(c);
	} else if (c->is_reading) {
		c->is_reading = false;
		uv_read_stop(&c->io.stream);
	}
}

void http_conn_pump(struct http_conn *c)
{
	/* Also without a byte: the handler may not know yet that a paused body has ended. */
	if (conn_accepts_input(c))
		input_feed_held(c);
	if (c->session && c->state != HTTP_CONN_CLOSED)
		input_pump_session(c);
	/* The handler has everything and needs more, but the client ended its side. */
	if (c->is_eof && (conn_accepts_input(c) || c->state == HTTP_CONN_HANDSHAKE)) {
		http_conn_drop(c);
		return;
	}
	input_throttle(c);
}

static void on_conn_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	struct http_conn *c = CONTAINER_OF(handle, struct http_conn, io.handle);
	char *p = c->server->scratch;
	size_t n = HTTP_SCRATCH_BYTES;

	(void)suggested;
	if (!c->session)
		input_room(c, &p, &n);
	*ret = uv_buf_init(p, (unsigned)n);
}

static void on_conn_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct http_conn *c = CONTAINER_OF(stream, struct http_conn, io.stream);

	if (n == 0)
		return;
	if (n < 0 && (n != UV_EOF || c->state == HTTP_CONN_LINGER)) {
		http_conn_drop(c);
		return;
	}
	if (n < 0) {
		input_on_eof(c);
		http_conn_pump(c);
		return;
	}
	if (conn_is_over(c)) {
		c->window_ms = loop_now_ms(c->server->loop);
		c->window_bytes += (size_t)n;
		if (c->state == HTTP_CONN_LINGER && c->window_bytes > LINGER_MAX_BYTES)
			http_conn_drop(c);
		return;
	}
	if (c->session) {
		http_session_push(c->session, buf->base, (size_t)n);
		http_conn_pump(c);
		return;
	}
	conn_input_read(c, buf->base, (size_t)n);
	input_throttle(c);
}

void http_conn_start_reading(struct http_conn *c)
{
	if (c->is_reading || c->is_eof)
		return;
	if (uv_read_start(&c->io.stream, on_conn_alloc, on_conn_read) == 0)
		c->is_reading = true;
	else
		http_conn_drop(c);
}
