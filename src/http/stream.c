/* Answers that are written bit by bit: of a length told before, chunked, or until the end of the
 * connection for HTTP/1.0. The handler is told when the socket has taken what it wrote. */
#include <assert.h>

#include "http/server_internal.h"

enum { KEEPALIVE_S = 60 };

size_t http_drain_bytes(const struct http_request *r)
{
	return r->shared ? 1 : HTTP_DRAIN_BYTES;
}

static void want_drain(struct http_request *r)
{
	if (!r->on_drain)
		return;
	r->wants_drain = true;
	if (http_conn_unsent(r->conn) < http_drain_bytes(r))
		http_conn_make_due(r->conn);
}

void http_stream_length(struct http_request *r, int64_t bytes)
{
	r->has_length = true;
	r->left_bytes = bytes;
}

void http_stream_begin(struct http_request *r, int status, const char *content_type,
    const struct http_header_line *headers, void (*on_drain)(struct http_request *r))
{
	struct http_conn *c = r->conn;
	struct http_answer a = {
	    .status = status,
	    .content_type = content_type,
	    .headers = headers,
	    .length = r->has_length ? r->left_bytes : -1,
	    .minor = r->head->minor,
	};
	uv_buf_t b;

	assert(r->stage != HTTP_REQUEST_STREAMING);
	r->stage = HTTP_REQUEST_STREAMING;
	r->on_drain = on_drain;
	if (!c)
		return;
	/* Nothing may have to be sent for hours: one that vanished without a word must be noticed. */
	if (!c->is_unix)
		uv_tcp_keepalive(&c->io.tcp, 1, KEEPALIVE_S);
	r->is_chunked = a.minor >= 1 && !r->has_length;
	c->lingers = !http_inlet_finish(&c->inlet);
	c->ends = c->lingers || !r->head->keeps_alive || c->server->is_closing ||
		  (!r->is_chunked && !r->has_length);
	a.ends = c->ends;
	http_answer_head(c->server, &a);
	b = uv_buf_init(c->server->out_head.data, (unsigned)c->server->out_head.len);
	http_conn_enter(c, HTTP_CONN_HANDLING);
	http_conn_send(c, &b, 1);
	want_drain(r);
}

void http_stream_write(struct http_request *r, const char *p, size_t n)
{
	static char crlf[] = "\r\n";
	char size[24];
	uv_buf_t bufs[3];

	assert(r->stage == HTTP_REQUEST_STREAMING);
	r->left_bytes -= (int64_t)n;
	assert(!r->has_length || r->left_bytes >= 0);
	if (!r->conn || n == 0 || r->is_head)
		return;
	bufs[1] = uv_buf_init((char *)(uintptr_t)p, (unsigned)n);
	if (r->is_chunked) {
		bufs[0] = uv_buf_init(size, (unsigned)snprintf(size, sizeof(size), "%zx\r\n", n));
		bufs[2] = uv_buf_init(crlf, 2);
		http_conn_send(r->conn, bufs, 3);
	} else {
		http_conn_send(r->conn, bufs + 1, 1);
	}
	want_drain(r);
}

void http_stream_go_on(struct http_request *r, void (*on_drain)(struct http_request *r))
{
	r->on_drain = on_drain;
	want_drain(r);
}

void http_stream_write_shared(
    struct http_request *r, struct http_shared *shared, const char *p, size_t n)
{
	assert(r->stage == HTTP_REQUEST_STREAMING && r->has_length);
	r->left_bytes -= (int64_t)n;
	assert(r->left_bytes >= 0);
	http_conn_send_shared(r->conn, shared, p, n);
	want_drain(r);
}

size_t http_stream_pending(const struct http_request *r)
{
	return r->conn ? http_conn_unsent(r->conn) : 0;
}

void http_stream_end(struct http_request *r)
{
	static char last[] = "0\r\n\r\n";
	struct http_conn *c = r->conn;
	uv_buf_t b = uv_buf_init(last, sizeof(last) - 1);

	assert(r->stage == HTTP_REQUEST_STREAMING);
	assert(!r->has_length || r->is_head || r->left_bytes == 0);
	if (c) {
		if (r->is_chunked && !r->is_head)
			http_conn_send(c, &b, 1);
		c->request = NULL;
	}
	http_request_free(r);
	if (c)
		http_conn_answered(c);
}

void http_stream_cut(struct http_request *r)
{
	assert(r->stage == HTTP_REQUEST_STREAMING);
	if (!r->conn) {
		http_request_free(r);
		return;
	}
	r->conn->is_broken = true;
	http_conn_make_due(r->conn);
}
