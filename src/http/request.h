/* One request in hand, from its head until its answer. */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <netinet/in.h>

#include "http/body.h"
#include "http/head.h"
#include "http/route.h"
#include "http/server.h"

struct http_conn;

enum http_request_stage {
	HTTP_REQUEST_ARRIVING,  /* the handler may have seen the headers, it does not own it */
	HTTP_REQUEST_HANDED,    /* the handler owes an answer */
	HTTP_REQUEST_STREAMING, /* the handler has begun a long answer */
};

struct http_request {
	struct http_conn *conn; /* NULL when the client is gone and an answer is still owed */
	const struct http_route *route;
	struct http_route kept_route; /* what route points to when the connection is gone */
	enum http_request_stage stage;
	struct http_head *head; /* owned */
	char *path;             /* owned: decoded path, its raw segments behind it */
	const char *query;      /* into head */
	struct http_segments captures;
	struct http_body body;
	size_t received_bytes; /* of the body */
	int64_t began_us;      /* monotonic: when its head was there */
	void *user;
	void (*on_gone)(struct http_request *r);
	void (*on_drain)(struct http_request *r);
	struct http_shared *shared;        /* what is streamed, or NULL */
	struct http_request *next_waiting; /* of the server's list, until is_sending */
	int64_t left_bytes;                /* of a streamed answer with a length */
	uint8_t address[16];               /* the client's; see client_address.h */
	char client[INET6_ADDRSTRLEN];     /* the same as text; "" until asked for */
	bool is_unix;
	bool is_tls;
	bool is_head;     /* HEAD: the answer's body is not sent */
	bool is_chunked;  /* the streamed answer */
	bool has_length;  /* it too */
	bool is_paused;   /* no body now */
	bool wants_drain; /* written since on_drain ran */
	bool is_sending;  /* the shared body */
};

/* Takes the head. ERR_INVALID: the path has a bad escape; then *ret is usable for an answer
 * all the same, as it is with ERR_NOT_FOUND (too deep). */
int http_request_new(struct http_conn *c, struct http_head *head, struct http_segments *ret_path,
    struct http_request **ret);
void http_request_free(struct http_request *r);
/* The connection ends while the request lives: on_gone, or wait for the handler's answer, or
 * nothing when no handler owns it. May run a callback of the handler: call it last. */
void http_request_lose(struct http_request *r);

#endif
