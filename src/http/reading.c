/* Bytes from the socket, through TLS where it is on. A body of known length is read straight
 * to where it will stay; a client that sends ahead is slowed down by not reading it. */
#include "base/alloc.h"
#include "http/conn.h"
#include "http/server_internal.h"
#include "http/session.h"

/* How much a client may send ahead while its request is handled. */
#define HELD_STOP_BYTES  16384
/* Small, so that little of a body lands beside its own memory. */
#define HEAD_READ_BYTES  4096
/* What a closing connection may still send before it is cut. */
#define LINGER_MAX_BYTES ((size_t)64 << 20)

/* Where the next plain bytes belong. */
static void find_room(struct http_conn *c, char **ret, size_t *ret_bytes)
{
	struct http_request *r = c->request;

	*ret = c->server->scratch;
	*ret_bytes = HEAD_READ_BYTES;
	if (c->state == HTTP_CONN_LINGER)
		*ret_bytes = HTTP_SCRATCH_BYTES;
	if (c->state != HTTP_CONN_BODY)
		return;
	*ret_bytes = HTTP_SCRATCH_BYTES;
	if (r->route->body_mode == HTTP_BODY_WHOLE && c->held.len == 0 &&
	    c->inlet.state == HTTP_INLET_AT_LENGTH) {
		*ret = r->body.data + r->body.len;
		*ret_bytes = r->body.cap - r->body.len;
		if ((int64_t)*ret_bytes > c->inlet.body_left)
			*ret_bytes = (size_t)c->inlet.body_left;
	}
}

static void on_eof(struct http_conn *c)
{
	c->is_eof = true;
	c->is_reading = false;
	c->eof_ms = loop_now_ms(c->server->loop);
	uv_read_stop(&c->io.stream);
}

static void pump_session(struct http_conn *c)
{
	while (!c->is_broken && (c->state == HTTP_CONN_HANDSHAKE || http_conn_takes_input(c))) {
		char *p;
		size_t n;
		int got;

		find_room(c, &p, &n);
		got = http_session_pull(c->session, p, n);
		if (c->state == HTTP_CONN_HANDSHAKE && http_session_is_up(c->session))
			http_conn_enter(c, HTTP_CONN_IDLE);
		if (got == ERR_CANCELLED && !c->is_eof)
			on_eof(c);
		if (got == ERR_PROTOCOL)
			c->is_broken = true;
		if (got <= 0)
			break;
		http_conn_input(c, p, (size_t)got);
	}
	if (c->state == HTTP_CONN_CLOSED)
		return;
	http_conn_send_session_output(c);
	if (c->is_broken)
		http_conn_drop(c);
}

/* Stops reading while more is held than a client may send ahead, and starts it again. */
static void throttle(struct http_conn *c)
{
	size_t held = c->held.len;

	if (c->state == HTTP_CONN_CLOSED)
		return;
	if (c->session)
		held += http_session_n_pushed(c->session);
	if (held < HELD_STOP_BYTES || http_conn_takes_input(c) || http_conn_is_over(c)) {
		http_conn_start_reading(c);
	} else if (c->is_reading) {
		c->is_reading = false;
		uv_read_stop(&c->io.stream);
	}
}

void http_conn_pump(struct http_conn *c)
{
	http_conn_input_held(c);
	if (c->session && c->state != HTTP_CONN_CLOSED)
		pump_session(c);
	/* Everything was fed and more is wanted, but none will come. */
	if (c->is_eof && (http_conn_takes_input(c) || c->state == HTTP_CONN_HANDSHAKE)) {
		http_conn_drop(c);
		return;
	}
	throttle(c);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	struct http_conn *c = CONTAINER_OF(handle, struct http_conn, io.handle);
	char *p = c->server->scratch;
	size_t n = HTTP_SCRATCH_BYTES;

	(void)suggested;
	if (!c->session)
		find_room(c, &p, &n);
	*ret = uv_buf_init(p, (unsigned)n);
}

static void drop_input(struct http_conn *c, size_t n)
{
	c->window_ms = loop_now_ms(c->server->loop);
	c->window_bytes += n;
	if (c->state == HTTP_CONN_LINGER && c->window_bytes > LINGER_MAX_BYTES)
		http_conn_drop(c);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct http_conn *c = CONTAINER_OF(stream, struct http_conn, io.stream);

	if (n == 0)
		return;
	if (n < 0 && (n != UV_EOF || c->state == HTTP_CONN_LINGER)) {
		http_conn_drop(c);
		return;
	}
	if (n < 0) {
		on_eof(c);
		http_conn_pump(c);
		return;
	}
	if (http_conn_is_over(c)) {
		drop_input(c, (size_t)n);
		return;
	}
	if (c->session) {
		http_session_push(c->session, buf->base, (size_t)n);
		http_conn_pump(c);
		return;
	}
	http_conn_input(c, buf->base, (size_t)n);
	throttle(c);
}

void http_conn_start_reading(struct http_conn *c)
{
	if (c->is_reading || c->is_eof)
		return;
	if (uv_read_start(&c->io.stream, on_alloc, on_read) == 0)
		c->is_reading = true;
	else
		http_conn_drop(c);
}
