/* Output goes into the socket as far as it takes it. The rest goes into libuv's queue, as a copy, or with a reference
 * if the bytes belong to a shared body. */

#include "http/conn.h"
#include "http/server_internal.h"
#include "http/tls.h"

struct late_write {
	uv_write_t req;
	struct http_conn *conn;
	struct http_shared *shared; /* whose bytes they are; NULL: data[] has them */
	size_t n_copied;
	char data[];
};

size_t http_conn_unsent(const struct http_conn *c) { return uv_stream_get_write_queue_size(&c->io.stream); }

static void on_conn_written(uv_write_t *req, int status)
{
	struct late_write *w = CONTAINER_OF(req, struct late_write, req);
	struct http_conn *c = w->conn;

	c->server->unsent_bytes -= w->n_copied;
	http_shared_unref(w->shared);
	free(w);
	if (c->state == HTTP_CONN_CLOSED)
		return;
	if (status < 0) {
		http_conn_drop(c);
		return;
	}
	if (c->state == HTTP_CONN_FLUSH)
		http_conn_flushed(c);
	else
		http_conn_run_due(c);
}

/* Hands w to libuv, and `rest` with it. */
static void output_queue(struct http_conn *c, struct late_write *w, uv_buf_t rest)
{
	c->queued_bytes += rest.len;
	if (uv_write(&w->req, &c->io.stream, &rest, 1, on_conn_written) != 0) {
		http_shared_unref(w->shared);
		free(w);
		c->is_broken = true;
		return;
	}
	c->server->unsent_bytes += w->n_copied;
}

/* Writes what the socket takes now. Returns how many bytes that is; negative: it failed, and is_broken is set. */
static int output_try(struct http_conn *c, const uv_buf_t *bufs, unsigned n)
{
	int sent = uv_try_write(&c->io.stream, bufs, n);

	if (sent == UV_EAGAIN)
		return 0;
	if (sent < 0)
		c->is_broken = true;
	return sent;
}

static void output_send(struct http_conn *c, const uv_buf_t *bufs, unsigned n)
{
	int sent = output_try(c, bufs, n);
	size_t skip = (size_t)sent, total = 0, at = 0;

	for (unsigned i = 0; i < n; i++)
		total += bufs[i].len;
	if (sent < 0 || skip == total)
		return;
	/* Queue a copy of the rest. */
	struct late_write *w = xmalloc(sizeof(*w) + total - skip);
	*w = (struct late_write){.conn = c, .n_copied = total - skip};
	for (unsigned i = 0; i < n; i++) {
		size_t from = skip < bufs[i].len ? skip : bufs[i].len;

		memcpy(w->data + at, bufs[i].base + from, bufs[i].len - from);
		at += bufs[i].len - from;
		skip -= from;
	}
	output_queue(c, w, uv_buf_init(w->data, (unsigned)at));
}

void http_conn_send_session_output(struct http_conn *c)
{
	const char *p;
	size_t n = http_session_output(c->session, &p);

	if (n == 0)
		return;
	uv_buf_t b = uv_buf_init((char *)(uintptr_t)p, (unsigned)n);
	output_send(c, &b, 1);
	http_session_output_sent(c->session);
}

void http_conn_send(struct http_conn *c, const uv_buf_t *bufs, unsigned n)
{
	if (c->is_broken)
		return;
	if (!c->session) {
		output_send(c, bufs, n);
	} else {
		for (unsigned i = 0; i < n && !c->is_broken; i++)
			if (http_session_write(c->session, bufs[i].base, bufs[i].len))
				c->is_broken = true;
		http_conn_send_session_output(c);
	}
	if (c->is_broken)
		http_conn_make_due(c);
}

void http_conn_send_shared(struct http_conn *c, struct http_shared *shared, const char *p, size_t n)
{
	uv_buf_t b = uv_buf_init((char *)(uintptr_t)p, (unsigned)n);

	if (c->is_broken || c->session) {
		http_conn_send(c, &b, 1);
		return;
	}
	int sent = output_try(c, &b, 1);
	if (sent >= 0 && (size_t)sent < n) {
		struct late_write *w = xmalloc(sizeof(*w));

		*w = (struct late_write){.conn = c, .shared = http_shared_ref(shared)};
		output_queue(c, w, uv_buf_init(b.base + sent, (unsigned)(n - (size_t)sent)));
	}
	if (c->is_broken)
		http_conn_make_due(c);
}

static void on_conn_shut_down(uv_shutdown_t *req, int status)
{
	(void)status; /* an error shows in the read, or in the linger's deadline */
	free(req);
}

void http_conn_flushed(struct http_conn *c)
{
	if (c->state != HTTP_CONN_FLUSH || http_conn_unsent(c))
		return;
	if (c->session && !c->is_broken) {
		http_session_close_notify(c->session);
		http_conn_send_session_output(c);
	}
	if (!c->lingers || c->is_broken) {
		http_conn_drop(c);
		return;
	}
	http_conn_enter(c, HTTP_CONN_LINGER);
	uv_shutdown_t *req = xmalloc(sizeof(*req));
	int rc = uv_shutdown(req, &c->io.stream, on_conn_shut_down);
	if (rc)
		free(req);
	if (rc || c->is_eof)
		http_conn_drop(c);
	else
		http_conn_start_reading(c);
}
