/* HTTP/1.1 server: connections, limits, deadlines, strict framing (RFC 9112), TLS. Handlers decide about the
 * content of requests.
 *
 * Thread: loop, every function. */
#pragma once

#include "loop/loop.h"

struct http_server;
struct http_request;

enum http_body_mode {
	HTTP_BODY_WHOLE,  /* the server collects the body, then on_request runs */
	HTTP_BODY_STREAM, /* on_request runs after the headers, and on_body gets the pieces */
};

struct http_route {
	const char *method; /* "GET", "POST", "PUT"; a GET route also answers HEAD */
	/* "/github/webhook"; a segment in braces matches one segment, e.g.
	 * "/api/v1/dispatches/{id}/jobs". A trailing "/" makes no difference. */
	const char *pattern;
	size_t max_body_bytes; /* a longer body is answered 413 and not read */
	enum http_body_mode body_mode;
	/* Runs once for each request. The handler answers once, now or later. If it answers later, it sets on_gone,
	 * which runs when the client has left. */
	void (*on_request)(struct http_request *r, void *owner);
	/* Stream mode only: the next piece; n == 0: the body has ended. Never runs after an answer. */
	void (*on_body)(struct http_request *r, const char *p, size_t n, void *owner);
	/* Optional, whole mode: runs after the headers, before the body is read. It may answer (then the body is not
	 * read) and must do nothing else. */
	void (*on_headers)(struct http_request *r, void *owner);
	/* Optional, whole mode: gets each piece when it arrives, for example to hash it. */
	void (*on_piece)(struct http_request *r, const char *p, size_t n, void *owner);
	/* Stream mode: how long a body may be silent, for logs that are sent while they are written. 0: the limits'
	 * body_timeout_ms, with its lowest rate. */
	int64_t body_silence_ms;
	void *owner;
};

struct http_limits {
	size_t max_header_bytes; /* request line and headers together; more is answered 431 */
	/* Bodies in memory, of all connections together, and of one client group. Above it the slowest bodies are
	 * answered 503 and their memory goes to the new one; if none is slow, the new one is answered 503. An eighth
	 * of the total is reserved for bodies that announce at most 256 KiB, as webhooks do. */
	size_t max_total_body_bytes;
	size_t max_body_bytes_of_one;
	int64_t slow_body_ms; /* a body that is this far behind 64 KiB/s is slow */
	/* All answers that clients have not taken yet; above it, a long answer becomes 503. */
	size_t max_total_unsent_bytes;
	/* Above it a new connection takes the place of one that waits for its client (see eviction.c), or is answered
	 * 503 if there is none. A 64th of the places is reserved for clients that authenticated a request within
	 * known_ms. */
	int max_connections;
	int max_connections_of_one; /* of one client group; trusted proxies have no such limit */
	int64_t known_ms;
	int64_t first_byte_timeout_ms; /* then a connection that sent nothing is closed */
	int64_t header_timeout_ms;     /* from the first byte to the end of headers: 408 */
	/* A body without progress, or under the lowest rate, is answered 408. A collected body may take three times as
	 * long in all, because it uses memory that others need. */
	int64_t body_timeout_ms;
	int64_t idle_timeout_ms;  /* then a kept-alive connection without a request is closed */
	int64_t write_timeout_ms; /* then a connection whose client takes no answer is closed */
};
extern const struct http_limits HTTP_LIMITS_DEFAULT;

struct http_server *http_server_new(struct loop *l, const struct http_limits *limits);
/* Adds a route; call it before listening. Owns: the caller keeps the strings alive. The first route that matches a
 * request gets it. */
void http_server_route(struct http_server *s, const struct http_route *route);
/* The route for a GET of a path without a route; its pattern is not used. Without a fallback the answer is 404 as
 * JSON. */
void http_server_fallback(struct http_server *s, const struct http_route *route);
struct http_listener;
/* Binds host:port or [v6]:port; port 0 chooses a free one. No other process can listen there from now on, and connections are refused
 * until http_listener_listen(). The listener belongs to the server. */
int http_server_bind(
    struct http_server *s, const char *address, struct http_listener **ret, struct error *e) MUST_CHECK;
/* Returns 0: *ret_address is the bound address (free()). */
int http_listener_listen(struct http_listener *l, char **ret_address, struct error *e) MUST_CHECK;
/* Both. It may be called several times. */
int http_server_listen(struct http_server *s, const char *address, char **ret_address, struct error *e) MUST_CHECK;
/* Listens on a unix socket of mode 0600. It removes a socket file that no process listens on. */
int http_server_listen_unix(struct http_server *s, const char *path, struct error *e) MUST_CHECK;
/* Uses TLS 1.2 and 1.3 for every TCP connection accepted from now on. A later call replaces the certificate; on an
 * error the old one stays in force. */
int http_server_use_tls(
    struct http_server *s, const char *certificate_pem, struct private_key *key, struct error *e) MUST_CHECK;
/* Checks certificate and key without a server (for --check). Thread: any. */
int http_tls_check(const char *certificate_pem, struct private_key *key, struct error *e) MUST_CHECK;
/* is_trusted decides whose X-Forwarded-For the server believes. NULL: it believes none. */
void http_server_trust_proxies(
    struct http_server *s, bool (*is_trusted)(const uint8_t address[16], void *owner), void *owner);
/* Stops accepting. Idle connections close now, others after their answer, and all at the latest after grace_ms.
 * Asynchronous: frees the server and then runs on_closed once. */
void http_server_close(struct http_server *s, int64_t grace_ms, void (*on_closed)(void *owner), void *owner);
int http_server_n_connections(const struct http_server *s);

/* Totals for /metrics. */
struct http_counters {
	int64_t n_connections, n_requests, n_answers_4xx, n_answers_5xx, n_refused_busy;
	/* Connections that were closed for a new one, because all places were taken or because their client group had
	 * its share; and new connections that were refused. */
	int64_t n_evicted_full, n_evicted_share, n_refused_connections;
	/* The same for bodies in memory. */
	int64_t n_bodies_evicted_full, n_bodies_evicted_share, n_bodies_refused;
};
const struct http_counters *http_server_counters(const struct http_server *s);
/* Calls each() for every route with the durations of its requests, from the head until the answer was handed to the
 * socket. Streamed answers are not counted. */
void http_server_times(const struct http_server *s,
    void (*each)(const struct http_route *route, const struct histogram *times, void *owner), void *owner);

/* ---- a request: valid from on_headers or on_request until the answer is sent or on_gone has returned ---- */
const char *http_method(const struct http_request *r);
/* "/path?query" as it was sent. */
const char *http_target(const struct http_request *r);
const char *http_path(const struct http_request *r);  /* decoded, without the query */
const char *http_query(const struct http_request *r); /* not decoded; "" if there is none */
/* Copies the decoded value of a query parameter into out; false: absent, badly escaped or too long. */
bool http_query_get(const struct http_request *r, const char *name, char *out, size_t out_bytes);
/* The same for the i-th parameter of that name, from 0. ERR_NOT_FOUND: there are fewer; ERR_INVALID: badly escaped
 * or too long. */
int http_query_nth(const struct http_request *r, const char *name, int i, char *out, size_t out_bytes) MUST_CHECK;
/* The request's route; valid as long as the request, also after the server is closed. */
const struct http_route *http_route_of(const struct http_request *r);
/* The i-th braced segment, decoded, from 0. NULL: there are fewer. */
const char *http_segment(const struct http_request *r, int i);
/* The value of a header, NULL if absent; case does not matter in the name. If the header came twice, this is the
 * first. Some headers must not come twice, and such a request was refused: Host, Content-Length, Content-Type,
 * Transfer-Encoding, Authorization, Expect, Range, X-Hub-Signature-256, X-GitHub-Event, X-GitHub-Delivery. */
const char *http_header(const struct http_request *r, const char *name);
const char *http_body(const struct http_request *r, size_t *ret_bytes); /* whole mode */
/* Moves the body's memory to the caller (http_recycle_body() or free()); NUL-terminated. The request's body is empty
 * after it. */
char *http_detach_body(struct http_request *r, size_t *ret_bytes);
/* Frees memory from http_detach_body(), or keeps it for the next body. It may be called after the server is closed.
 * NULL is fine. */
void http_recycle_body(char *body);
/* Stream mode: no on_body until http_resume_body(), and the client has to wait. It may be called in on_body. */
void http_pause_body(struct http_request *r);
void http_resume_body(struct http_request *r);
/* The client's address as text: the peer's, or the one in a trusted proxy's X-Forwarded-For. */
const char *http_client_address(const struct http_request *r);
/* The request's signature or token is valid. Its connection is not closed for an unknown client's, and for known_ms
 * other connections of this client group are closed only after those of unknown clients. It may be called after
 * the client left. */
void http_note_authenticated(struct http_request *r);
void http_set_user(struct http_request *r, void *user); /* the handler's own pointer */
void *http_user(const struct http_request *r);
/* on_gone runs once if the client leaves before the answer, or if its body breaks a rule or a deadline. The handler
 * must not answer then, and the request is freed when on_gone returns. Without on_gone the request stays valid, the
 * handler must still answer, and the answer is dropped. A client that only shut down its sending side counts as
 * gone after two seconds. */
void http_on_gone(struct http_request *r, void (*on_gone)(struct http_request *r));

/* The client has shut down its sending side. Most likely it left, but on_gone runs only later. */
bool http_client_has_ended(const struct http_request *r);

struct http_header_line {
	const char *name, *value;
};
/* Sends the answer; the request is no longer valid after it. Copies everything. `headers` ends with {NULL, NULL} or is
 * NULL. The server adds Content-Length, Date, Connection and X-Content-Type-Options. */
void http_respond(struct http_request *r, int status, const char *content_type, const struct http_header_line *headers,
    const char *body, size_t body_bytes);
/* Answers {"key": "text"} as application/json; the text is escaped. */
void http_respond_json1(struct http_request *r, int status, const char *key, const char *text);
/* Answers 503 with Retry-After. */
void http_respond_busy(struct http_request *r, int retry_after_s);
/* Counts a 503 that the handler sends with http_respond(); call it before that. */
void http_count_busy(struct http_request *r);
/* Streams a long answer: begin, write pieces, end. It is chunked, unless its length was set before. After begin and
 * after each write, on_drain (may be NULL) runs once less than 64 KiB wait for the socket, never inside a call.
 * http_stream_pending() returns how much waits. Set on_gone first: after it the handler must not end the stream.
 * Nothing of the request's body arrives after begin. */
void http_stream_begin(struct http_request *r, int status, const char *content_type,
    const struct http_header_line *headers, void (*on_drain)(struct http_request *r));
/* Sets the length of the answer; call it before begin. The handler writes exactly that many bytes. */
void http_stream_length(struct http_request *r, int64_t bytes);
void http_stream_write(struct http_request *r, const char *p, size_t n);
size_t http_stream_pending(const struct http_request *r);
void http_stream_end(struct http_request *r);
/* Call it instead of end if the rest is not available. It closes the connection, so the client sees that something is
 * missing. on_gone runs, but not inside this call. */
void http_stream_cut(struct http_request *r);

/* ---- a body that many answers share: it is in memory once, however many slow clients receive it ----
 *
 * The memory for bodies that clients have not taken yet is bounded (max_total_unsent_bytes), and so is each client's
 * part of it; a body counts for the first client that it is sent to. */
struct http_shared;
/* Takes over `bytes`, and frees them with the last reference. The caller has the first reference. */
struct http_shared *http_shared_new(char *bytes, size_t n);
/* For bytes that are never freed; they are not counted. */
struct http_shared *http_shared_borrow(const char *bytes, size_t n);
struct http_shared *http_shared_ref(struct http_shared *b);
void http_shared_unref(struct http_shared *b); /* NULL is fine */
/* The caller keeps its reference for later clients, and bounds the memory of what it keeps: a body that only the caller has counts for no
 * client. Call it with false before that reference is dropped. NULL is fine. */
void http_shared_keep(struct http_shared *b, bool is_kept);

/* Like http_respond(), but a long body is referenced instead of copied, until the client has taken it or left. The
 * answer to a long body is 503 if the memory for answers or this client's part of it is full. A long body is written
 * after the call, so that a thousand answers at once do not block the loop. */
void http_respond_shared(struct http_request *r, int status, const char *content_type,
    const struct http_header_line *headers, struct http_shared *body);
