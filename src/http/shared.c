/* Bodies that many answers share, and how they leave: piece by piece as the client takes them, so
 * that a client that takes nothing holds no copy of the body. What it holds instead is the kernel's
 * memory for its sockets, so one client is sent a few bodies at a time and its other answers wait. */
#include "http/shared.h"

#include "base/alloc.h"
#include "http/server_internal.h"

enum {
	COPIED_BYTES = 16 << 10, /* a body up to it is sent like any other */
	PIECE_BYTES = 64 << 10,
	TLS_PIECE_BYTES = 16 << 10, /* what is encrypted is a copy */
	GROUP_SHARE = 8,            /* one client's part of the memory is an eighth */
	GROUP_SENDING_MAX = 16,     /* answers that one client is sent at the same time */
	UNSENT_RETRY_AFTER_S = 5,
};

struct http_shared {
	int n_refs;
	char *owned; /* NULL: the bytes are not ours */
	const char *bytes;
	size_t n;
	struct http_server *server; /* NULL: it was not sent yet */
	bool is_on_account;
	struct http_client_group group; /* on its account */
};

struct http_shared *http_shared_new(char *bytes, size_t n)
{
	struct http_shared *b = xcalloc(1, sizeof(*b));

	b->n_refs = 1;
	b->owned = bytes;
	b->bytes = bytes;
	b->n = n;
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

void http_shared_unref(struct http_shared *b)
{
	if (!b || --b->n_refs)
		return;
	if (b->is_on_account) {
		b->server->unsent_bytes -= b->n;
		http_group_amount_add(b->server->shared_bytes, &b->group, -(int64_t)b->n);
	}
	free(b->owned);
	free(b);
}

/* Puts the body on the account of the client that asks, unless it is on one already. A client that
 * holds nothing else may have a body of any size. */
static bool is_on_account(struct http_shared *b, const struct http_request *r)
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
static void send_piece(struct http_request *r)
{
	struct http_shared *b = r->shared;
	size_t left = (size_t)r->left_bytes;
	size_t most = r->conn->session ? TLS_PIECE_BYTES : PIECE_BYTES;
	size_t n = left < most ? left : most;

	http_stream_write_shared(r, b, b->bytes + (b->n - left), n);
	if (n == left)
		http_stream_end(r);
}

/* False: its client is being sent as many bodies as one may be. */
static bool begin_sending(struct http_server *s, struct http_request *r)
{
	struct http_client_group group = http_client_group(r);

	if (!http_group_amount_take(s->n_sending, &group, 1, GROUP_SENDING_MAX))
		return false;
	r->is_sending = true;
	http_stream_go_on(r, send_piece);
	return true;
}

/* The first of those who wait whose client may be sent one more. */
static void begin_next(struct http_server *s)
{
	struct http_request **at = &s->waiting_to_send;

	while (*at && !begin_sending(s, *at))
		at = &(*at)->next_waiting;
	if (*at)
		*at = (*at)->next_waiting;
}

static void wait_to_send(struct http_server *s, struct http_request *r)
{
	struct http_request **at = &s->waiting_to_send;

	while (*at)
		at = &(*at)->next_waiting;
	r->next_waiting = NULL;
	*at = r;
}

void http_shared_leave(struct http_request *r)
{
	struct http_shared *b = r->shared;
	struct http_server *s = b->server;
	struct http_client_group group = http_client_group(r);
	struct http_request **at = &s->waiting_to_send;

	r->shared = NULL;
	if (r->is_sending) {
		http_group_amount_add(s->n_sending, &group, -1);
		begin_next(s);
	} else {
		while (*at != r)
			at = &(*at)->next_waiting;
		*at = r->next_waiting;
	}
	http_shared_unref(b);
}

/* The request goes, and what it has of the body with it. */
static void on_gone(struct http_request *r)
{
	(void)r;
}

void http_respond_shared(struct http_request *r, int status, const char *content_type,
    const struct http_header_line *headers, struct http_shared *b)
{
	struct http_server *s;

	if (!r->conn || r->is_head || b->n <= COPIED_BYTES) {
		http_respond(r, status, content_type, headers, b->bytes, b->n);
		return;
	}
	if (!is_on_account(b, r)) {
		http_respond_busy(r, UNSENT_RETRY_AFTER_S);
		return;
	}
	s = r->conn->server;
	b->server = s;
	r->shared = http_shared_ref(b);
	http_on_gone(r, on_gone);
	http_stream_length(r, (int64_t)b->n);
	http_stream_begin(r, status, content_type, headers, NULL);
	http_note_time(r);
	if (!begin_sending(s, r))
		wait_to_send(s, r);
}
