/* Answers: the head that all share, and those that are sent in one piece. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "http/server_internal.h"

enum {
	/* Answers up to it are always given: errors, and what webhooks get. */
	SHORT_BYTES = 1024,
	UNSENT_RETRY_AFTER_S = 5,
};

/* A line break in a value that came from outside must not become a header of its own. */
static bool is_clean(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 && *s != '\t')
			return false;
	return true;
}

static void append_line(struct buf *b, const char *name, const char *value)
{
	if (!is_clean(name) || !is_clean(value))
		return;
	buf_append_str(b, name);
	buf_append(b, ": ", 2);
	buf_append_str(b, value);
	buf_append(b, "\r\n", 2);
}

static bool has_no_body(int status)
{
	return status == 204 || status == 304;
}

void http_answer_head(struct http_server *s, const struct http_answer *a)
{
	struct buf *b = &s->out_head;
	char number[32];

	s->counters.n_answers_4xx += a->status >= 400 && a->status < 500;
	s->counters.n_answers_5xx += a->status >= 500;
	buf_clear(b);
	snprintf(number, sizeof(number), "HTTP/1.1 %d ", a->status);
	buf_append_str(b, number);
	buf_append_str(b, http_status_text(a->status));
	buf_append_str(b, "\r\nDate: ");
	buf_append_str(b, http_server_date(s));
	buf_append_str(b, "\r\nX-Content-Type-Options: nosniff\r\n");
	if (a->content_type)
		append_line(b, "Content-Type", a->content_type);
	for (const struct http_header_line *l = a->headers; l && l->name; l++)
		append_line(b, l->name, l->value);
	if (a->length >= 0 && !has_no_body(a->status)) {
		snprintf(number, sizeof(number), "%" PRId64, a->length);
		append_line(b, "Content-Length", number);
	} else if (a->length < 0 && a->minor >= 1) {
		append_line(b, "Transfer-Encoding", "chunked");
	}
	if (a->ends)
		append_line(b, "Connection", "close");
	else if (a->minor == 0)
		append_line(b, "Connection", "keep-alive");
	buf_append(b, "\r\n", 2);
}

void http_note_time(const struct http_request *r)
{
	struct http_routes *all = &r->conn->server->routes;

	for (int i = 0; i < all->n; i++)
		if (&all->at[i].route == r->route)
			histogram_add(
			    &all->at[i].times, (int64_t)(uv_hrtime() / 1000) - r->began_us);
}

void http_respond(struct http_request *r, int status, const char *content_type,
    const struct http_header_line *headers, const char *body, size_t body_bytes)
{
	struct http_conn *c = r->conn;
	struct http_answer a = {
	    .status = status,
	    .content_type = content_type,
	    .headers = headers,
	    .length = (int64_t)body_bytes,
	    .minor = r->head->minor,
	};
	bool has_body = body_bytes && !r->is_head && !has_no_body(status);
	uv_buf_t bufs[2];

	assert(r->stage != HTTP_REQUEST_STREAMING);
	if (!c) {
		http_request_free(r);
		return;
	}
	if (has_body && body_bytes > SHORT_BYTES &&
	    c->server->unsent_bytes > c->server->limits.max_total_unsent_bytes) {
		http_respond_busy(r, UNSENT_RETRY_AFTER_S);
		return;
	}
	c->lingers = !http_inlet_finish(&c->inlet);
	c->ends = c->lingers || !r->head->keeps_alive || c->server->is_closing;
	a.ends = c->ends;
	http_answer_head(c->server, &a);
	bufs[0] = uv_buf_init(c->server->out_head.data, (unsigned)c->server->out_head.len);
	bufs[1] = uv_buf_init((char *)(uintptr_t)body, (unsigned)body_bytes);
	http_conn_send(c, bufs, has_body ? 2 : 1);
	if (r->route)
		http_note_time(r);
	/* Behind the send: the body may be the request's own memory. */
	c->request = NULL;
	http_request_free(r);
	http_conn_answered(c);
}

void http_respond_json1(struct http_request *r, int status, const char *key, const char *text)
{
	json_t *object = json_object();
	char *body;

	json_set_str(object, key, text);
	body = json_text(object);
	http_respond(r, status, "application/json", NULL, body, strlen(body));
	free(body);
	json_decref(object);
}

void http_count_busy(struct http_request *r)
{
	if (r->conn)
		r->conn->server->counters.n_refused_busy++;
}

void http_respond_busy(struct http_request *r, int retry_after_s)
{
	static const char BODY[] = "{\"error\":\"busy, try again later\"}";
	char seconds[16];
	const struct http_header_line headers[] = {{"Retry-After", seconds}, {NULL, NULL}};

	snprintf(seconds, sizeof(seconds), "%d", retry_after_s);
	http_count_busy(r);
	http_respond(r, 503, "application/json", headers, BODY, sizeof(BODY) - 1);
}
