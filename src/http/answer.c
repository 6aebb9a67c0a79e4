/* Answers: those in one piece, those that the handler writes piece by piece (with a length given before, chunked, or
 * up to the end of the connection for HTTP/1.0), and those with a body that many answers share. */

#include "http/server_internal.h"

enum {
	SHORT_BYTES = 1024, /* an answer up to this length is always sent: errors, and answers to webhooks */
	KEEPALIVE_S = 60,
	UNSENT_RETRY_AFTER_S = 5,
};

static const struct {
	int status;
	const char *text;
} STATUSES[] = {{100, "Continue"}, {200, "OK"}, {201, "Created"}, {202, "Accepted"}, {204, "No Content"},
    {206, "Partial Content"}, {301, "Moved Permanently"}, {302, "Found"}, {303, "See Other"}, {304, "Not Modified"},
    {307, "Temporary Redirect"}, {308, "Permanent Redirect"}, {400, "Bad Request"}, {401, "Unauthorized"},
    {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"}, {406, "Not Acceptable"},
    {408, "Request Timeout"}, {409, "Conflict"}, {410, "Gone"}, {411, "Length Required"}, {412, "Precondition Failed"},
    {413, "Content Too Large"}, {414, "URI Too Long"}, {415, "Unsupported Media Type"}, {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"}, {422, "Unprocessable Content"}, {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"}, {500, "Internal Server Error"}, {501, "Not Implemented"},
    {502, "Bad Gateway"}, {503, "Service Unavailable"}, {504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"}};

static void append_header(struct buf *b, const char *name, const char *value)
{
	const char *const texts[] = {name, value};

	/* A line break in a value from outside must not become a header of its own. */
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (const char *s = texts[i]; *s; s++)
			if ((unsigned char)*s < 0x20 && *s != '\t')
				return;
	buf_append_str(b, name);
	buf_append(b, ": ", 2);
	buf_append_str(b, value);
	buf_append(b, "\r\n", 2);
}

static bool status_has_no_body(int status) { return status == 204 || status == 304; }

void http_answer_head(struct http_server *s, const struct http_answer *a)
{
	struct buf *b = &s->out_head;
	char number[32];
	size_t i = 0;

	s->counters.n_answers_4xx += a->status >= 400 && a->status < 500;
	s->counters.n_answers_5xx += a->status >= 500;
	buf_clear(b);
	snprintf(number, sizeof(number), "HTTP/1.1 %d ", a->status);
	buf_append_str(b, number);
	while (i < ARRAY_LEN(STATUSES) && STATUSES[i].status != a->status)
		i++;
	buf_append_str(b, i < ARRAY_LEN(STATUSES) ? STATUSES[i].text : "Unknown");
	buf_append_str(b, "\r\nDate: ");
	buf_append_str(b, http_server_date(s));
	buf_append_str(b, "\r\nX-Content-Type-Options: nosniff\r\n");
	if (a->content_type)
		append_header(b, "Content-Type", a->content_type);
	for (const struct http_header_line *l = a->headers; l && l->name; l++)
		append_header(b, l->name, l->value);
	if (a->length >= 0 && !status_has_no_body(a->status)) {
		snprintf(number, sizeof(number), "%" PRId64, a->length);
		append_header(b, "Content-Length", number);
	} else if (a->length < 0 && a->minor >= 1) {
		append_header(b, "Transfer-Encoding", "chunked");
	}
	if (a->ends)
		append_header(b, "Connection", "close");
	else if (a->minor == 0)
		append_header(b, "Connection", "keep-alive");
	buf_append(b, "\r\n", 2);
}

static void note_answer_time(const struct http_request *r)
{
	struct http_routes *all = &r->conn->server->routes;

	for (int i = 0; i < all->n; i++)
		if (&all->at[i].route == r->route)
			histogram_add(&all->at[i].times, (int64_t)(uv_hrtime() / 1000) - r->began_us);
}

/* Decides whether the connection ends after this answer, and makes its head; borrowed until the next one. */
static uv_buf_t answer_begin(struct http_request *r, struct http_answer *a)
{
	struct http_conn *c = r->conn;

	c->lingers = !http_inlet_finish(&c->inlet);
	c->ends = c->lingers || !r->head->keeps_alive || c->server->is_closing || (a->length < 0 && a->minor == 0);
	a->ends = c->ends;
	http_answer_head(c->server, a);
	return uv_buf_init(c->server->out_head.data, (unsigned)c->server->out_head.len);
}

void http_respond(struct http_request *r, int status, const char *content_type, const struct http_header_line *headers,
    const char *body, size_t body_bytes)
{
	struct http_conn *c = r->conn;
	struct http_answer a = {.status = status,
	    .content_type = content_type,
	    .headers = headers,
	    .length = (int64_t)body_bytes,
	    .minor = r->head->minor};
	bool has_body = body_bytes && !r->is_head && !status_has_no_body(status);
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
	bufs[0] = answer_begin(r, &a);
	bufs[1] = uv_buf_init((char *)(uintptr_t)body, (unsigned)body_bytes);
	http_conn_send(c, bufs, has_body ? 2 : 1);
	if (r->route)
		note_answer_time(r);
	/* after the send: the body may be in the request's own memory */
	c->request = NULL;
	http_request_free(r);
	http_conn_answered(c);
}

void http_respond_json1(struct http_request *r, int status, const char *key, const char *text)
{
	json_t *object = json_object();

	json_set_str(object, key, text);
	char *body = json_text(object);
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

/* ---- answers in pieces ---- */

size_t http_drain_bytes(const struct http_request *r) { return r->shared ? 1 : HTTP_DRAIN_BYTES; }

static void stream_want_drain(struct http_request *r)
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
	struct http_answer a = {.status = status,
	    .content_type = content_type,
	    .headers = headers,
	    .length = r->has_length ? r->left_bytes : -1,
	    .minor = r->head->minor};

	assert(r->stage != HTTP_REQUEST_STREAMING);
	r->stage = HTTP_REQUEST_STREAMING;
	r->on_drain = on_drain;
	if (!c)
		return;
	/* A stream may be silent for hours; keep-alive notices a client that vanished. */
	if (!c->is_unix && !c->has_keepalive)
		c->has_keepalive = uv_tcp_keepalive(&c->io.tcp, 1, KEEPALIVE_S) == 0;
	r->is_chunked = a.minor >= 1 && !r->has_length;
	uv_buf_t b = answer_begin(r, &a);
	http_conn_enter(c, HTTP_CONN_HANDLING);
	http_conn_send(c, &b, 1);
	stream_want_drain(r);
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
	stream_want_drain(r);
}

size_t http_stream_pending(const struct http_request *r) { return r->conn ? http_conn_unsent(r->conn) : 0; }

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

/* ---- bodies that many answers share ----
 *
 * They leave piece by piece as the client takes them, so that a client that takes nothing holds no copy of the body.
 * Such a client still uses the kernel's memory for its sockets, so one client is sent a few bodies at a time and its
 * other answers wait. */

enum {
	COPIED_BYTES = 16 << 10, /* a body up to it is sent like any other */
	PIECE_BYTES = 256 << 10,
	TLS_PIECE_BYTES = 16 << 10, /* encrypted bytes are a copy */
	GROUP_SHARE = 8,            /* one client's part of the memory is an eighth */
	GROUP_SENDING_MAX = 16,     /* answers that one client is sent at the same time */
};

struct http_shared {
	int n_refs;
	char *owned; /* NULL: the bytes are not ours */
	const char *bytes;
	size_t n;
	struct http_server *server; /* NULL: it was not sent yet */
	bool is_kept;               /* one of the references is for later clients */
	bool is_on_account;
	struct http_client_group group; /* on its account */
};

struct http_shared *http_shared_new(char *bytes, size_t n)
{
	struct http_shared *b = xmalloc(sizeof(*b));

	*b = (struct http_shared){.n_refs = 1, .owned = bytes, .bytes = bytes, .n = n};
	return b;
}

struct http_shared *http_shared_borrow(const char *bytes, size_t n)
{
	struct http_shared *b = http_shared_new(NULL, n);

	b->bytes = bytes;
	return b;
}

struct http_shared *http_shared_ref(struct http_shared *b)
{
	b->n_refs++;
	return b;
}

void http_shared_keep(struct http_shared *b, bool is_kept)
{
	if (b)
		b->is_kept = is_kept;
}

void http_shared_unref(struct http_shared *b)
{
	if (!b || --b->n_refs > b->is_kept)
		return;
	if (b->is_on_account) {
		b->server->unsent_bytes -= b->n;
		http_group_amount_add(b->server->shared_bytes, &b->group, -(int64_t)b->n);
		b->is_on_account = false;
	}
	if (!b->n_refs)
		FREE_ALL(b->owned, b);
}

/* Counts the body for this client, unless it is counted already. A client without another body may have one of
 * any size. Returns false if there is no room. */
static bool shared_charge(struct http_shared *b, const struct http_request *r)
{
	struct http_server *s = r->conn->server;
	size_t max = s->limits.max_total_unsent_bytes;
	struct http_client_group group = http_client_group(r);
	int64_t held = http_group_amount(s->shared_bytes, &group);

	if (!b->owned || b->is_on_account)
		return true;
	if (s->unsent_bytes > max || (held && (size_t)held + b->n > max / GROUP_SHARE))
		return false;
	b->is_on_account = true;
	b->group = group;
	s->unsent_bytes += b->n;
	http_group_amount_add(s->shared_bytes, &group, (int64_t)b->n);
	return true;
}

/* Runs whenever the socket has taken everything. */
static void shared_send_piece(struct http_request *r)
{
	struct http_shared *b = r->shared;
	size_t left = (size_t)r->left_bytes;
	size_t most = r->conn->session ? TLS_PIECE_BYTES : PIECE_BYTES;
	size_t n = left < most ? left : most;

	assert(r->stage == HTTP_REQUEST_STREAMING && r->has_length);
	r->left_bytes -= (int64_t)n;
	http_conn_send_shared(r->conn, b, b->bytes + (b->n - left), n);
	stream_want_drain(r);
	if (n == left)
		http_stream_end(r);
}

/* False: its client already receives as many bodies as one client may. */
static bool shared_begin_sending(struct http_server *s, struct http_request *r)
{
	struct http_client_group group = http_client_group(r);

	if (!http_group_amount_reserve(s->n_sending, &group, 1, GROUP_SENDING_MAX))
		return false;
	r->is_sending = true;
	r->on_drain = shared_send_piece;
	stream_want_drain(r);
	return true;
}

void http_shared_leave(struct http_request *r)
{
	struct http_shared *b = r->shared;
	struct http_server *s = b->server;
	struct http_client_group group = http_client_group(r);

	r->shared = NULL;
	if (r->is_sending) {
		http_group_amount_add(s->n_sending, &group, -1);
		/* Starts the first waiting answer whose client may have one more. */
		struct http_request *next;

		TAILQ_FOREACH (next, &s->waiting_to_send, waiting)
			if (shared_begin_sending(s, next))
				break;
		if (next)
			TAILQ_REMOVE(&s->waiting_to_send, next, waiting);
	} else {
		TAILQ_REMOVE(&s->waiting_to_send, r, waiting);
	}
	http_shared_unref(b);
}

/* http_request_free() drops the reference. */
static void on_shared_gone(struct http_request *r) { (void)r; }

void http_respond_shared(struct http_request *r, int status, const char *content_type,
    const struct http_header_line *headers, struct http_shared *b)
{
	if (!r->conn || r->is_head || b->n <= COPIED_BYTES) {
		http_respond(r, status, content_type, headers, b->bytes, b->n);
		return;
	}
	if (!shared_charge(b, r)) {
		http_respond_busy(r, UNSENT_RETRY_AFTER_S);
		return;
	}
	struct http_server *s = r->conn->server;
	b->server = s;
	r->shared = http_shared_ref(b);
	http_on_gone(r, on_shared_gone);
	http_stream_length(r, (int64_t)b->n);
	http_stream_begin(r, status, content_type, headers, NULL);
	note_answer_time(r);
	if (!shared_begin_sending(s, r))
		TAILQ_INSERT_TAIL(&s->waiting_to_send, r, waiting);
}
