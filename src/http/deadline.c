/* Nothing waits for ever: what each state may take. One timer of the server's asks all
 * connections, instead of three timers in each. */
#include "http/conn.h"
#include "http/server_internal.h"

#define BODY_FLOOR_BYTES_S  256 /* slower than this is no upload but an attack */
/* A body that is held whole and has got large takes room from many small ones. */
#define LARGE_BODY_BYTES    ((size_t)1 << 20)
#define LARGE_FLOOR_BYTES_S 65536
#define BODY_TIMEOUTS       3    /* for a body that is held whole, however fast: it takes room */
#define WRITE_FLOOR_BYTES   4096 /* in one write timeout */
#define HALF_CLOSED_MS      2000
#define LINGER_SILENCE_MS   2000
#define LINGER_TOTAL_MS     10000

/* NULL, or why the body is given up. */
static const char *why_body_is_late(struct http_conn *c, int64_t now_ms)
{
	const struct http_route *route = c->request->route;
	int64_t silence_ms = route->body_mode == HTTP_BODY_STREAM ? route->body_silence_ms : 0;
	int64_t timeout_ms = silence_ms ? silence_ms : c->server->limits.body_timeout_ms;
	bool is_whole = route->body_mode == HTTP_BODY_WHOLE;
	int64_t bytes_s = is_whole && c->request->received_bytes > LARGE_BODY_BYTES
			      ? LARGE_FLOOR_BYTES_S
			      : BODY_FLOOR_BYTES_S;
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

/* An answer that the client does not take, or takes by the spoonful. */
static bool is_sending_stuck(struct http_conn *c, int64_t now_ms)
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
	if (is_sending_stuck(c, now_ms)) {
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
		/* An answer that is on its way has the deadline of what is sent. */
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
