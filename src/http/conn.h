/* One connection: bytes in through the inlet, one request at a time, answers out in order.
 *
 * Reading goes on while a handler thinks, so that a client that leaves is noticed, but what
 * it sends ahead is held only up to a bound. Nothing is freed but in the close callback. */
#ifndef HTTP_CONN_H
#define HTTP_CONN_H

#include <uv.h>

#include "base/buf.h"
#include "http/client_group.h"
#include "http/inlet.h"
#include "http/request.h"

#define HTTP_DRAIN_BYTES 65536 /* on_drain runs below it */

/* HANDSHAKE  TLS is not up yet
 * IDLE       between two requests
 * HEAD       a head has begun
 * BODY       a body arrives
 * HANDLING   the handler has it all and owes the answer
 * FLUSH      the last answer is on its way out
 * LINGER     it is out; what the client still sends is dropped, so that no reset
 *            destroys the answer before it is read
 * CLOSED     */
#define HTTP_CONN_STATES(X)                                                                        \
	X(HANDSHAKE) X(IDLE) X(HEAD) X(BODY) X(HANDLING) X(FLUSH) X(LINGER) X(CLOSED)

enum http_conn_state {
#define X(name) HTTP_CONN_##name,
	HTTP_CONN_STATES(X)
#undef X
};

struct http_server;
struct http_session;
struct http_shared;

struct http_conn {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} io;
	struct http_server *server;
	struct http_conn *prev, *next; /* of the server's list */
	struct http_conn *next_due;
	struct http_session *session; /* TLS; NULL: plain */
	struct http_request *request; /* in hand, or NULL */
	struct http_inlet inlet;
	struct buf held; /* input that nobody wanted yet */

	enum http_conn_state state;
	int64_t since_ms;    /* when this state began */
	uint64_t since_nth;  /* and where that stands among all changes of state */
	int64_t window_ms;   /* BODY, LINGER: when this window of progress began */
	size_t window_bytes; /* received in it; LINGER: dropped in all */
	int64_t eof_ms;      /* when the client ended its side */
	size_t queued_bytes; /* ever handed to libuv's queue */
	int64_t stall_ms;    /* when this window of sending began; 0: nothing waits */
	size_t stall_taken;  /* queued bytes that the client had taken by then */

	uint8_t peer[16];               /* IPv4 mapped; all zero on a unix socket */
	struct http_client_group group; /* the peer's */
	bool is_unix;
	bool is_exempt;        /* has no share: a trusted proxy, or on a unix socket */
	bool is_open;          /* counted as open */
	bool has_answered;     /* a request at least */
	bool is_authenticated; /* its last request was */
	bool is_reading, is_eof;
	bool is_feeding; /* the inlet is on the stack: no re-entry */
	bool is_due;     /* on the server's list of what runs at the end of this turn */
	bool is_broken;  /* a write failed; closed outside the handler's call */
	bool ends;       /* no request after this answer */
	bool lingers;    /* there is, or may be, input that nobody read */
};

/* A connection waits on `listener`: accept it. Errors are the client's problem. */
void http_conn_accept(struct http_server *s, uv_stream_t *listener, bool is_unix);
/* conn.c: the only function that sets the state. */
void http_conn_enter(struct http_conn *c, enum http_conn_state state);
/* Closes at once; a request in hand is lost. May run on_gone: call it last. */
void http_conn_drop(struct http_conn *c);
/* Refuses what arrives with a JSON error and closes; a request in hand is lost. May run
 * on_gone: call it last. */
void http_conn_refuse(struct http_conn *c, int status, const char *why);
/* The answer is written completely: the next request, or the end. */
void http_conn_answered(struct http_conn *c);
/* Run http_conn_pump() and on_drain at the end of this turn. */
void http_conn_make_due(struct http_conn *c);
void http_conn_run_due(struct http_conn *c);
/* deadline.c: everything that depends on time, called every tick. May drop. */
void http_conn_check_deadlines(struct http_conn *c, int64_t now_ms);

/* reading.c */
void http_conn_start_reading(struct http_conn *c);
/* Goes on with held input and whatever TLS has buffered. */
void http_conn_pump(struct http_conn *c);

/* feed.c: plain bytes to the handler as far as they are wanted, the rest is held. */
void http_conn_input(struct http_conn *c, const char *p, size_t n);
void http_conn_input_held(struct http_conn *c);
bool http_conn_takes_input(const struct http_conn *c);
/* No request will be read any more. */
bool http_conn_is_over(const struct http_conn *c);

/* outlet.c: output. Sends the buffers in one write as far as the socket takes them and
 * queues a copy of the rest. A failure sets is_broken. */
void http_conn_send(struct http_conn *c, const uv_buf_t *bufs, unsigned n);
/* The same for bytes of a shared body, of which a reference is kept instead of a copy. */
void http_conn_send_shared(
    struct http_conn *c, struct http_shared *shared, const char *p, size_t n);
/* What TLS itself has to say, e.g. in a handshake. */
void http_conn_send_session_output(struct http_conn *c);
size_t http_conn_unsent(const struct http_conn *c);
/* Moves on from FLUSH when nothing is left to send. */
void http_conn_flushed(struct http_conn *c);

#endif
