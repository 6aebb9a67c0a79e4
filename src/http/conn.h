/* One connection: input goes through the inlet, one request at a time, and answers go out in order.
 *
 * Reading continues while a handler has the request, so that a client that leaves is noticed; input that comes early
 * is held up to a bound. Thread: loop. Owns: the connection frees itself in its close callback. */
#pragma once

#include <uv.h>

#include "http/client_group.h"
#include "http/inlet.h"
#include "http/request.h"

#define HTTP_DRAIN_BYTES 65536 /* below it on_drain runs */

enum http_conn_state {
	HTTP_CONN_HANDSHAKE, /* TLS is not up yet */
	HTTP_CONN_IDLE,      /* between two requests */
	HTTP_CONN_HEAD,      /* a head has begun */
	HTTP_CONN_BODY,      /* a body arrives */
	HTTP_CONN_HANDLING,  /* the handler has the whole request and must answer */
	HTTP_CONN_FLUSH,     /* the last answer is being sent */
	/* The last answer is sent. The client's input is read and dropped, because a reset would destroy the answer before
	 * the client reads it. */
	HTTP_CONN_LINGER,
	HTTP_CONN_CLOSED,
};

struct http_conn {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} io;
	struct http_server *server;
	LIST_ENTRY(http_conn) link;   /* in the server's list */
	TAILQ_ENTRY(http_conn) due;   /* in the server's list, if is_due */
	uint64_t due_turn;            /* the batch it belongs to */
	struct http_session *session; /* TLS; NULL: plain */
	struct http_request *request; /* the current one, or NULL */
	struct http_inlet inlet;
	struct buf held; /* input that was not taken yet */

	enum http_conn_state state;
	int64_t since_ms;    /* when this state began */
	uint64_t since_nth;  /* its number among all changes of state of the server */
	int64_t window_ms;   /* BODY, LINGER: when this window of progress began */
	size_t window_bytes; /* received in it; LINGER: dropped in all */
	int64_t eof_ms;      /* when the client ended its side */
	size_t queued_bytes; /* ever handed to libuv's queue */
	int64_t stall_ms;    /* when this window of sending began; 0: nothing waits */
	size_t stall_taken;  /* queued bytes that the client had taken by then */

	uint8_t peer[16];               /* IPv4 mapped; all zero on a unix socket */
	struct http_client_group group; /* the peer's */
	bool is_unix;
	bool has_keepalive;    /* the socket */
	bool is_exempt;        /* has no share: a trusted proxy, or on a unix socket */
	bool is_open;          /* counted as open */
	bool has_answered;     /* a request at least */
	bool is_authenticated; /* its last request was */
	bool is_reading, is_eof;
	bool is_feeding; /* the inlet is on the stack: no re-entry */
	bool is_due;     /* on the server's list of connections that run at the end of this turn */
	bool is_broken;  /* a write failed; closed outside the handler's call */
	bool ends;       /* no request after this answer */
	bool lingers;    /* there is, or may be, unread input */
};

/* Accepts the connection that waits on `listener`. On an error it closes it. */
void http_conn_accept(struct http_server *s, uv_stream_t *listener, bool is_unix);
/* The only function that sets the state. */
void http_conn_enter(struct http_conn *c, enum http_conn_state state);
/* Closes at once; the current request is lost. It may run on_gone: call it last. */
void http_conn_drop(struct http_conn *c);
/* Answers with a JSON error and closes; the current request is lost. It may run on_gone: call it last. */
void http_conn_refuse(struct http_conn *c, int status, const char *why);
/* The answer is complete: waits for the next request, or closes. */
void http_conn_answered(struct http_conn *c);
/* Runs http_conn_run_due() at the end of this turn. */
void http_conn_make_due(struct http_conn *c);
/* Closes a broken connection, runs on_drain, or goes on with held input. */
void http_conn_run_due(struct http_conn *c);
/* Checks everything that depends on time; called every tick. It may drop c. */
void http_conn_check_deadlines(struct http_conn *c, int64_t now_ms);

/* conn_input.c */
void http_conn_start_reading(struct http_conn *c);
/* Goes on with held input and with input that TLS has buffered. */
void http_conn_pump(struct http_conn *c);

/* conn_output.c. Sends the buffers in one write as far as the socket takes them and
 * queues a copy of the rest. A failure sets is_broken. */
void http_conn_send(struct http_conn *c, const uv_buf_t *bufs, unsigned n);
/* The same for bytes of a shared body, of which a reference is kept instead of a copy. */
void http_conn_send_shared(struct http_conn *c, struct http_shared *shared, const char *p, size_t n);
/* Sends the output of TLS itself, for example of a handshake. */
void http_conn_send_session_output(struct http_conn *c);
size_t http_conn_unsent(const struct http_conn *c);
/* Leaves FLUSH if nothing is left to send. */
void http_conn_flushed(struct http_conn *c);

/* eviction.c */
/* True: there is a place for this connection, which is not counted as open yet. The call may have closed others. */
bool http_evict_for_connection(struct http_conn *newcomer);
/* Makes room for the body of c: refuses the slowest bodies with 503, and only those of its client group if is_share.
 * Returns false if none is slow enough. */
bool http_evict_for_body(struct http_conn *c, bool is_share);
