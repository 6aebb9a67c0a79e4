/* Input on its way from the connection to a handler: the inlet's events, one request at a
 * time. */
#include <string.h>

#include "http/conn.h"
#include "http/eviction.h"
#include "http/server_internal.h"

bool http_conn_takes_input(const struct http_conn *c)
{
	switch (c->state) {
	case HTTP_CONN_IDLE:
	case HTTP_CONN_HEAD:
		return !c->is_broken && http_conn_unsent(c) == 0;
	case HTTP_CONN_BODY:
		return !c->request->is_paused;
	case HTTP_CONN_HANDSHAKE:
	case HTTP_CONN_HANDLING:
	case HTTP_CONN_FLUSH:
	case HTTP_CONN_LINGER:
	case HTTP_CONN_CLOSED:
		break;
	}
	return false;
}

static void answer_error(struct http_request *r, int status, const char *allow)
{
	const struct http_header_line lines[] = {{allow ? "Allow" : NULL, allow}, {NULL, NULL}};
	const char *body =
	    status == 404 ? "{\"error\":\"no such path\"}" : "{\"error\":\"method not allowed\"}";

	http_respond(r, status, "application/json", lines, body, strlen(body));
}

/* Room for more of the body, made by others' slow bodies where it is lacking. False: there is
 * none, and the request is refused. */
static bool make_room(struct http_conn *c)
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

static void begin_body(struct http_conn *c, struct http_request *r)
{
	static char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const struct http_route *route = r->route;
	const struct http_client_group client = http_client_group(r);
	bool is_whole = route->body_mode == HTTP_BODY_WHOLE;
	uv_buf_t b = uv_buf_init(go_on, sizeof(go_on) - 1);

	http_body_init(&r->body, &c->server->bodies, &client, (size_t)r->head->content_length);
	if (!is_whole)
		r->stage = HTTP_REQUEST_HANDED;
	if (!is_whole)
		route->on_request(r, route->owner);
	else if (route->on_headers)
		route->on_headers(r, route->owner);
	if (c->request != r || c->state != HTTP_CONN_BODY || c->inlet.state == HTTP_INLET_AT_END)
		return;
	if (is_whole && !make_room(c))
		return;
	if (r->head->expects_continue)
		http_conn_send(c, &b, 1);
}

static void on_head(struct http_conn *c, struct http_head *head)
{
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
		rc = http_routes_find(
		    &s->routes, head->method, &path, &r->route, &r->captures, allow, sizeof(allow));
	if (rc) {
		answer_error(r, rc == ERR_DENIED ? 405 : 404, rc == ERR_DENIED ? allow : NULL);
		return;
	}
	if ((uint64_t)head->content_length > r->route->max_body_bytes) {
		http_conn_refuse(c, 413, "body too large");
		return;
	}
	begin_body(c, r);
}

static void on_whole_piece(struct http_conn *c, struct http_request *r, const char *p, size_t n)
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
		if (left && !make_room(c))
			return;
	}
	if (r->route->on_piece) {
		r->route->on_piece(r, p, n, r->route->owner);
		if (c->request != r)
			return;
	}
	/* Room for the next read, which must have some. */
	if (c->inlet.state != HTTP_INLET_AT_END)
		make_room(c);
}

static void on_piece(struct http_conn *c, const char *p, size_t n)
{
	struct http_request *r = c->request;

	r->received_bytes += n;
	c->window_bytes += n;
	if (r->received_bytes > r->route->max_body_bytes)
		http_conn_refuse(c, 413, "body too large");
	else if (r->route->body_mode == HTTP_BODY_WHOLE)
		on_whole_piece(c, r, p, n);
	else
		r->route->on_body(r, p, n, r->route->owner);
}

static void on_end(struct http_conn *c)
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

static void on_event(struct http_conn *c, enum http_inlet_event ev, struct http_inlet_out *out)
{
	switch (ev) {
	case HTTP_INLET_HEAD:
		on_head(c, out->head);
		break;
	case HTTP_INLET_PIECE:
		on_piece(c, out->piece, out->piece_bytes);
		break;
	case HTTP_INLET_END:
		on_end(c);
		break;
	case HTTP_INLET_BAD:
		http_conn_refuse(c, out->refusal.status, out->refusal.why);
		break;
	case HTTP_INLET_MORE:
		break;
	}
}

/* Feeds p[0..n) as far as it is wanted now; returns how much was used. */
static size_t feed(struct http_conn *c, const char *p, size_t n)
{
	struct http_inlet_out out;
	size_t used = 0;

	c->is_feeding = true;
	while (http_conn_takes_input(c)) {
		enum http_inlet_event ev = http_inlet_feed(&c->inlet, p + used, n - used, &out);

		used += out.used;
		if (ev == HTTP_INLET_MORE) {
			if (c->state == HTTP_CONN_IDLE && used < n)
				http_conn_enter(c, HTTP_CONN_HEAD);
			break;
		}
		on_event(c, ev, &out);
	}
	c->is_feeding = false;
	return used;
}

static void feed_held(struct http_conn *c)
{
	size_t used = feed(c, buf_str(&c->held), c->held.len);

	buf_consume(&c->held, used);
	if (c->held.len == 0)
		buf_release(&c->held); /* an idle connection keeps no memory */
}

bool http_conn_is_over(const struct http_conn *c)
{
	return c->state == HTTP_CONN_CLOSED || c->state == HTTP_CONN_FLUSH ||
	       c->state == HTTP_CONN_LINGER;
}

void http_conn_input(struct http_conn *c, const char *p, size_t n)
{
	size_t used = 0;

	if (http_conn_is_over(c))
		return;
	if (c->held.len) {
		buf_append(&c->held, p, n);
		feed_held(c);
		return;
	}
	used = feed(c, p, n);
	if (used < n && !http_conn_is_over(c))
		buf_append(&c->held, p + used, n - used);
}

void http_conn_input_held(struct http_conn *c)
{
	/* Also without a byte: the end of a body that was paused may still have to be told. */
	if (http_conn_takes_input(c))
		feed_held(c);
}
