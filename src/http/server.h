/* HTTP/1.1 server: connections, limits, deadlines, strict framing (RFC 9112), TLS.
 * What a request means is its handler's business.
 *
 * Thread: loop, every function. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/histogram.h"
#include "base/private_key.h"
#include "loop/loop.h"

struct http_server;
struct http_request;

enum http_body_mode {
	HTTP_BODY_WHOLE,  /* collected up to the route's limit, then on_request runs */
	HTTP_BODY_STREAM, /* on_request runs after the headers; on_body gets the pieces */
};

struct http_route {
	const char *method; /* "GET", "POST", "PUT"; GET answers HEAD too */
	/* "/github/webhook"; a segment in braces matches one segment, e.g.
	 * "/api/v1/dispatches/{id}/jobs". A trailing "/" is accepted as the same route. */
	const char *pattern;
	size_t max_body_bytes; /* larger: 413 before the body is read */
	enum http_body_mode body_mode;
	/* Runs once a request. The handler answers now or later with http_respond(), once.
	 * A handler that answers later sets on_gone to learn that the client left. */
	void (*on_request)(struct http_request *r, void *owner);
	/* Stream mode only: next piece; n == 0 ends the body. Never after a response. */
	void (*on_body)(struct http_request *r, const char *p, size_t n, void *owner);
	/* Optional, whole mode: called when headers are complete, before the body is read.
	 * It may answer (the body is then not read) and must not do more. */
	void (*on_headers)(struct http_request *r, void *owner);
	/* Optional, whole mode: sees each piece as it arrives, e.g. to hash it. */
	void (*on_piece)(struct http_request *r, const char *p, size_t n, void *owner);
	/* Stream mode: how long a body may be silent; 0: the limits' body_timeout_ms, with
	 * its floor rate. For logs that are sent while they are written. */
	int64_t body_silence_ms;
	void *owner;
};

struct http_limits {
	size_t max_header_bytes; /* request line and headers together; 431 above */
	/* Bodies in memory, of all connections at once, and of one client group. Above it the
	 * slowest bodies get 503 and give their memory to the newcomer; where none is slow, the
	 * newcomer gets 503. An eighth of the total is only for bodies that say that they have
	 * at most 256 KiB, as webhooks do. */
	size_t max_total_body_bytes;
	size_t max_body_bytes_of_one;
	int64_t slow_body_ms; /* a body is slow that is this far behind 64 KiB/s */
	/* Answers that clients have not taken yet, together; above it a longer one is 503. */
	size_t max_total_unsent_bytes;
	/* Above it a newcomer takes the place of a connection that waits for its client (see
	 * eviction.h), and gets 503 only where there is none. A 64th of the places is only for
	 * clients that authenticated a request lately. */
	int max_connections;
	int max_connections_of_one;    /* of one client group; trusted proxies have no such limit */
	int64_t known_ms;              /* how long "lately" is */
	int64_t first_byte_timeout_ms; /* a connection that has never sent anything: closed */
	int64_t header_timeout_ms;     /* from the first byte to the end of headers: 408 */
	/* No progress (or under a floor rate) on a body: 408. Three times that for one that is
	 * collected, in all: what it has sent so far takes room from others. */
	int64_t body_timeout_ms;
	int64_t idle_timeout_ms;  /* keep-alive after an answer, without a request: closed */
	int64_t write_timeout_ms; /* an answer that is not taken */
};
extern const struct http_limits HTTP_LIMITS_DEFAULT;

struct http_server *http_server_new(struct loop *l, const struct http_limits *limits);
/* Routes are added before listening; their strings stay the caller's. The first added
 * that matches wins. */
void http_server_route(struct http_server *s, const struct http_route *route);
/* What answers a GET where no route has the path; its pattern is not looked at. Without one it is
 * 404 as JSON. */
void http_server_fallback(struct http_server *s, const struct http_route *route);
/* host:port, [v6]:port, port 0 picks one. On 0, *ret_address is the bound "host:port"
 * (free()). May be called several times. */
int http_server_listen(
    struct http_server *s, const char *address, char **ret_address, struct error *e) MUST_CHECK;
/* A unix socket of mode 0600; a stale file in the way is removed. */
int http_server_listen_unix(struct http_server *s, const char *path, struct error *e) MUST_CHECK;
/* TLS 1.2 and 1.3 for every TCP connection accepted from now on; the same call swaps
 * the certificate later, and a bad pair leaves the old one in force. */
int http_server_use_tls(struct http_server *s, const char *certificate_pem, struct private_key *key,
    struct error *e) MUST_CHECK;
/* Checks the pair without a server (for --check). */
int http_tls_check(
    const char *certificate_pem, struct private_key *key, struct error *e) MUST_CHECK;
/* Whose X-Forwarded-For is believed. NULL: nobody's. */
void http_server_trust_proxies(
    struct http_server *s, bool (*is_trusted)(const uint8_t address[16], void *owner), void *owner);
/* Stop accepting; idle connections close now, others after their answer. Asynchronous:
 * on_closed runs once when the last is gone, at the latest after grace_ms. */
void http_server_close(
    struct http_server *s, int64_t grace_ms, void (*on_closed)(void *owner), void *owner);
int http_server_n_connections(const struct http_server *s);

/* Totals for /metrics. */
struct http_counters {
	int64_t n_connections, n_requests, n_answers_4xx, n_answers_5xx, n_refused_busy;
	/* Connections that were closed for a newcomer, because the table was full or because
	 * their client group had its share; and newcomers for which none could be closed. */
	int64_t n_evicted_full, n_evicted_share, n_refused_connections;
	/* The same of bodies in memory. */
	int64_t n_bodies_evicted_full, n_bodies_evicted_share, n_bodies_refused;
};
const struct http_counters *http_server_counters(const struct http_server *s);
/* How long requests took by route, from their head until their answer was handed to the socket;
 * streamed answers are not counted. Calls each() for every route. */
void http_server_times(const struct http_server *s,
    void (*each)(const struct http_route *route, const struct histogram *times, void *owner),
    void *owner);

/* ---- a request ---- valid from on_headers/on_request until the response is sent or
 * on_gone has run, whichever comes first; keep no pointer after either. */
const char *http_method(const struct http_request *r);
/* "/path?query" as it was sent: equal ones ask for the same. */
const char *http_target(const struct http_request *r);
const char *http_path(const struct http_request *r);  /* decoded, without the query */
const char *http_query(const struct http_request *r); /* raw, "" when there is none */
/* Decoded value of a query parameter into out; false when absent, badly escaped or too long. */
bool http_query_get(const struct http_request *r, const char *name, char *out, size_t out_bytes);
/* The same of the i-th of that name, from 0. ERR_NOT_FOUND: there are not so many; ERR_INVALID: badly
 * escaped, or too long. */
int http_query_nth(
    const struct http_request *r, const char *name, int i, char *out, size_t out_bytes) MUST_CHECK;
/* The route that the request came by; valid as long as the request, also after the server is closed. */
const struct http_route *http_route_of(const struct http_request *r);
/* The i-th braced segment, decoded. NULL past the last. */
const char *http_segment(const struct http_request *r, int i);
/* Value of a header, NULL when absent; names compare without case. A header that must be
 * single (Host, Content-Length, Content-Type, Authorization, Expect, Range,
 * X-Hub-Signature-256, X-GitHub-Event, X-GitHub-Delivery) and came twice was refused; of
 * others that came twice this is the first. */
const char *http_header(const struct http_request *r, const char *name);
const char *http_body(const struct http_request *r, size_t *ret_bytes); /* whole mode */
/* Takes the body's memory away from the request (free()); the body is empty after it.
 * NUL-terminated. */
char *http_take_body(struct http_request *r, size_t *ret_bytes);
/* Instead of free(), for memory from http_take_body(): the next body is read into it. Also
 * after the server is closed. Thread: the loop that the body came from. NULL is fine. */
void http_recycle_body(char *body);
/* Stream mode: no on_body until http_resume_body(), the client waits. Legal in on_body. */
void http_pause_body(struct http_request *r);
void http_resume_body(struct http_request *r);
/* The client: the peer's address, or what a trusted proxy's X-Forwarded-For says. */
const char *http_client_address(const struct http_request *r);
bool http_is_tls(const struct http_request *r);
/* The request's signature or token is good: its connection is not closed for a stranger's, and
 * others of this client group are closed after all strangers', for an hour (known_ms). Legal also when the
 * client has left. */
void http_note_authenticated(struct http_request *r);
void http_set_user(struct http_request *r, void *user); /* the handler's own pointer */
void *http_user(const struct http_request *r);
/* The client went away before an answer (or its body broke a rule or a deadline). Runs
 * once, instead of being able to respond; the request is gone when it returns. Without it
 * a request stays valid and its answer, which must still be given, goes nowhere. A client
 * that only shut down its sending side counts as gone after two seconds. */
void http_on_gone(struct http_request *r, void (*on_gone)(struct http_request *r));

/* The client has shut down its sending side: most likely it is gone, which on_gone tells only
 * some time later. */
bool http_client_has_ended(const struct http_request *r);

struct http_header_line {
	const char *name, *value;
};
/* Send the answer. Copies everything. `headers` ends with {NULL, NULL} or is NULL.
 * Content-Length, Date, Connection, X-Content-Type-Options are added. */
void http_respond(struct http_request *r, int status, const char *content_type,
    const struct http_header_line *headers, const char *body, size_t body_bytes);
/* {"key": "text"} as application/json, text escaped. */
void http_respond_json1(struct http_request *r, int status, const char *key, const char *text);
/* 503 with Retry-After. */
void http_respond_busy(struct http_request *r, int retry_after_s);
/* Before an answer of the handler's own that says the same: counts it. */
void http_count_busy(struct http_request *r);
/* Stream a long answer (chunked, or of a length that was told before): begin, write pieces, end. After each of the first two, and
 * never inside a call, on_drain (may be NULL) runs as soon as less than 64 KiB wait in the
 * socket; http_stream_pending() tells how much waits. Set on_gone first: it is how a handler
 * learns that it need not end. Nothing of the request's body arrives after begin. */
void http_stream_begin(struct http_request *r, int status, const char *content_type,
    const struct http_header_line *headers, void (*on_drain)(struct http_request *r));
/* Before begin: how long the answer will be; exactly so much is written. */
void http_stream_length(struct http_request *r, int64_t bytes);
void http_stream_write(struct http_request *r, const char *p, size_t n);
size_t http_stream_pending(const struct http_request *r);
void http_stream_end(struct http_request *r);
/* Instead of end, when the rest cannot be had: the connection is closed, so that the client sees
 * that something is missing. on_gone runs, not inside this call. */
void http_stream_cut(struct http_request *r);
const char *http_status_text(int status);

#endif
