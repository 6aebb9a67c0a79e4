/* One request, from its head until its answer, with the memory of its body and its route. Thread: loop. Owns:
 * http_respond() or the end of a stream frees a request, or http_request_lose(). */
#pragma once

#include <netinet/in.h>

#include "http/client_group.h"
#include "http/inlet.h"
#include "http/server.h"

/* ---- routes: finds the route of a path ---- */

#define HTTP_MAX_SEGMENTS 16

/* A path's segments, each decoded on its own: an escaped "/" does not split. */
struct http_segments {
	int n;
	const char *at[HTTP_MAX_SEGMENTS];
};

struct http_route_entry {
	struct http_route route;
	struct http_segments pattern; /* braced ones keep their braces */
	struct histogram times;       /* of answers in one piece */
	char *memory;
};

struct http_routes {
	struct http_route_entry *at;
	int n;
	struct http_route fallback; /* on_request NULL: none */
};

void http_routes_add(struct http_routes *all, const struct http_route *route);
void http_routes_release(struct http_routes *all);
/* Splits and decodes path[0..n) into memory (n+2 bytes). A trailing "/" is dropped. ERR_INVALID: a bad escape;
 * ERR_NOT_FOUND: more segments than a route may have. */
int http_segments_split(const char *path, size_t n, char *memory, struct http_segments *ret) MUST_CHECK;
/* Returns 0: *ret is the route or the fallback, and *captures are the braced segments, borrowed from `path`.
 * ERR_NOT_FOUND: no route has this path. ERR_DENIED: not with this method; `allow` lists the allowed ones. */
int http_routes_find(const struct http_routes *all, const char *method, const struct http_segments *path,
    const struct http_route **ret, struct http_segments *captures, char *allow, size_t allow_bytes) MUST_CHECK;

/* ---- bodies in memory ----
 *
 * Blocks of the common size are used again, and all bytes are counted, so that a flood is answered 503 instead of
 * filling memory. One client group may hold only a part, and a reserve is kept for small bodies of known length,
 * such as webhooks. */

#define HTTP_BODY_BLOCK_BYTES 32768 /* a webhook of pytorch's is 21 to 27 KB */

/* The account of one server. */
struct http_bodies {
	size_t in_use_bytes;
	size_t max_bytes;
	size_t max_bytes_of_one;           /* of one client group */
	size_t reserve_bytes;              /* of max_bytes: only for small bodies */
	struct http_group_amounts *of_one; /* bytes in use by client group */
};

#define HTTP_BODY_SMALL_BYTES ((size_t)256 << 10) /* a body of known length up to this is small */

struct http_body {
	char *data; /* NULL while empty; room for cap and a NUL */
	size_t len, cap;
	struct http_bodies *account; /* that counts cap; NULL: none */
	struct http_client_group group;
	size_t expected; /* the whole body's size, 0: unknown */
};

/* Makes room for at least one more byte behind len. Memory grows with the bytes that arrived, not with the announced
 * length. ERR_BUSY: nothing changed, because the account has no room; *ret_is_share: it is the group's part that is
 * used up. */
int http_body_grow(struct http_body *b, bool *ret_is_share) MUST_CHECK;
void http_body_release(struct http_body *b);
/* Keeps the memory, which is no longer counted. */
void http_body_leave_account(struct http_body *b);
/* Moves the memory to the caller (free()); NUL-terminated, never NULL, no longer counted. */
char *http_body_detach(struct http_body *b, size_t *ret_bytes);

/* All servers of a loop thread share the spare blocks, so a body may outlive its server. */

/* Between hold and release the thread keeps spare blocks; calls nest. */
void http_blocks_hold(void);
void http_blocks_release(void);
/* Keeps memory from http_body_detach() as a spare block, or frees it; NULL is fine. */
void http_block_give(char *data);
/* Frees spare blocks that were not needed since the last call. */
void http_blocks_trim(void);

/* ---- the request ---- */

enum http_request_stage {
	HTTP_REQUEST_ARRIVING,  /* the handler has at most seen the headers */
	HTTP_REQUEST_HANDED,    /* the handler must answer */
	HTTP_REQUEST_STREAMING, /* the handler has begun a long answer */
};

struct http_request {
	struct http_conn *conn; /* NULL: the client left, and the handler has not answered yet */
	const struct http_route *route;
	struct http_route kept_route; /* the copy that route points to after the connection closed */
	enum http_request_stage stage;
	struct http_head *head; /* owned */
	char *path;             /* owned: decoded path, its raw segments behind it */
	const char *query;      /* into head */
	struct http_segments captures;
	struct http_body body;
	size_t received_bytes; /* of the body */
	int64_t began_us;      /* monotonic: when its head was complete */
	void *user;
	void (*on_gone)(struct http_request *r);
	void (*on_drain)(struct http_request *r);
	struct http_shared *shared;        /* the body that is sent, or NULL */
	TAILQ_ENTRY(http_request) waiting; /* in the server's list, until is_sending */
	int64_t left_bytes;                /* of a streamed answer with a length */
	uint8_t address[16];               /* the client's; see http_client_address_find() */
	char client[INET6_ADDRSTRLEN];     /* the same as text; "" until it is needed */
	bool is_unix;
	bool is_head;     /* HEAD: the answer's body is not sent */
	bool is_chunked;  /* the streamed answer */
	bool has_length;  /* it too */
	bool is_paused;   /* no body now */
	bool wants_drain; /* written since on_drain ran */
	bool is_sending;  /* the shared body */
};

/* The client's address if proxies may stand in between: the rightmost address of the chain X-Forwarded-For + peer
 * that is not a trusted proxy. Anything to the left of it can be forged. IPv4 is mapped; all zero on a unix
 * socket. In client_group.c. */
void http_client_address_find(const struct http_conn *c, const struct http_head *h, uint8_t ret[16]);
/* Takes over the head. ERR_INVALID: the path has a bad escape; ERR_NOT_FOUND: it has too many segments. *ret is usable
 * for an answer in each case. */
int http_request_new(
    struct http_conn *c, struct http_head *head, struct http_segments *ret_path, struct http_request **ret);
void http_request_free(struct http_request *r);
/* The connection ends before the answer: runs on_gone, or waits for the handler's answer, or frees the request if no
 * handler has it. It may run on_gone: call it last. */
void http_request_lose(struct http_request *r);
