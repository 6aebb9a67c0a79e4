/* A server on the test's loop and a client on a thread with plain blocking sockets, which can break any rule. The
 * loop ends when the client's function returns. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "http/server.h"

struct rig {
	struct loop *loop;
	struct http_server *server;
	struct inbox *inbox;
	struct inbox_item over;
	int port;
	void (*client)(struct rig *g);
	pthread_t thread;
	sem_t event;                   /* a handler posts it when something happened */
	void (*on_end)(struct rig *g); /* optional, on the loop, when the server is closed */
	bool ends_itself;              /* the client posts `over` before it returns */
	int64_t grace_ms;              /* 0: a second */
	bool is_closed;
};

static inline void rig_on_closed(void *owner)
{
	struct rig *g = owner;

	g->is_closed = true;
	if (g->on_end)
		g->on_end(g);
	inbox_close(g->inbox);
	loop_stop(g->loop);
}

static inline void rig_on_over(struct inbox_item *item)
{
	struct rig *g = CONTAINER_OF(item, struct rig, over);

	http_server_close(g->server, g->grace_ms ? g->grace_ms : 1000, rig_on_closed, g);
}

static inline void *rig_thread(void *arg)
{
	struct rig *g = arg;

	g->client(g);
	if (!g->ends_itself)
		inbox_post(g->inbox, &g->over);
	return NULL;
}

/* Opens a listening server with the routes. A route without an owner gets g as its owner. */
static inline void rig_open(struct rig *g, const struct http_limits *limits, const struct http_route *routes, size_t n)
{
	struct error e = {0};
	char *address;
	int rc;

	log_setup(LOG_ERROR, LOG_TEXT);
	g->loop = loop_new();
	g->server = http_server_new(g->loop, limits);
	g->inbox = inbox_new(g->loop);
	g->over.on_loop = rig_on_over;
	sem_init(&g->event, 0, 0);
	for (size_t i = 0; i < n; i++) {
		struct http_route r = routes[i];

		r.owner = g;
		http_server_route(g->server, &r);
	}
	rc = http_server_listen(g->server, "127.0.0.1:0", &address, &e);
	assert(rc == 0);
	g->port = (int)strtol(strrchr(address, ':') + 1, NULL, 10);
	free(address);
}

/* Runs the client's function to its end and closes everything. */
static inline void rig_run(struct rig *g, void (*client)(struct rig *g))
{
	int rc;

	g->client = client;
	rc = pthread_create(&g->thread, NULL, rig_thread, g);
	assert(rc == 0);
	loop_run(g->loop);
	pthread_join(g->thread, NULL);
	assert(g->is_closed);
	loop_free(g->loop);
	sem_destroy(&g->event);
}

/* ---- the client's side ---- */

enum { RIG_WAIT_S = 120 }; /* for an event that must happen; a passing test never waits so long */

static inline void rig_wait(struct rig *g)
{
	struct timespec until;
	int rc;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RIG_WAIT_S;
	do
		rc = sem_timedwait(&g->event, &until);
	while (rc != 0 && errno == EINTR);
	assert(rc == 0);
}

/* From the loopback address 127.0.0.`host`. */
static inline int rig_connect_as(struct rig *g, int host)
{
	struct sockaddr_in to = {
	    .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)g->port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct sockaddr_in from = {
	    .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl((INADDR_LOOPBACK & 0xffffff00) | (uint32_t)host),
	};
	const struct timeval limit = {.tv_sec = 20};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1, rc;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	/* connect() chooses the port, which is faster: it searches one that is free for this server, not for all */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
	rc = bind(fd, (const struct sockaddr *)&from, sizeof(from));
	assert(rc == 0);
	rc = connect(fd, (const struct sockaddr *)&to, sizeof(to));
	assert(rc == 0);
	return fd;
}

static inline int rig_connect_from(struct rig *g, int receive_bytes)
{
	struct sockaddr_in sin = {
	    .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)g->port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct timeval limit = {.tv_sec = RIG_WAIT_S};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	if (receive_bytes)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	rc = connect(fd, (const struct sockaddr *)&sin, sizeof(sin));
	assert(rc == 0);
	return fd;
}

static inline int rig_connect(struct rig *g) { return rig_connect_from(g, 0); }

/* False when the server has closed. */
static inline bool rig_send(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n) {
		ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += sent;
		n -= (size_t)sent;
	}
	return true;
}

static inline bool rig_say(int fd, const char *s) { return rig_send(fd, s, strlen(s)); }

/* Appends until `n` bytes are there in all; false at the end. */
static inline bool rig_receive(int fd, struct buf *b, size_t n)
{
	char chunk[65536];

	while (b->len < n) {
		size_t want = n - b->len < sizeof(chunk) ? n - b->len : sizeof(chunk);
		ssize_t got = recv(fd, chunk, want, 0);

		assert(got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK));
		if (got <= 0)
			return false;
		buf_append(b, chunk, (size_t)got);
	}
	return true;
}

/* Appends all that comes until the server closes. */
static inline void rig_receive_all(int fd, struct buf *b)
{
	char chunk[65536];
	ssize_t got;

	while ((got = recv(fd, chunk, sizeof(chunk), 0)) > 0)
		buf_append(b, chunk, (size_t)got);
	assert(got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK));
}

/* Reads an answer's head, with its empty line, into an empty buffer; the body stays in the socket. False at the end. */
static inline bool rig_receive_head(int fd, struct buf *b)
{
	char chunk[4096];
	char *end = NULL;

	while (!end) {
		ssize_t got = recv(fd, chunk, sizeof(chunk), MSG_PEEK);
		size_t n_before = b->len;

		assert(got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK));
		if (got <= 0)
			return false;
		buf_append(b, chunk, (size_t)got);
		end = strstr(b->data, "\r\n\r\n");
		if (end) {
			end[4] = '\0';
			b->len = (size_t)(end + 4 - b->data);
		}
		got = recv(fd, chunk, b->len - n_before, 0);
		assert(got == (ssize_t)(b->len - n_before));
	}
	return true;
}

/* True once the server has closed; false if it has sent something. Fails the test if neither happens. */
static inline bool rig_is_closed(int fd)
{
	char c;
	ssize_t got = recv(fd, &c, 1, 0);

	assert(got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK));
	return got <= 0;
}

struct rig_answer {
	int status;
	struct buf head, body;
};

static inline void rig_answer_release(struct rig_answer *a)
{
	buf_release(&a->head);
	buf_release(&a->body);
}

/* One answer with a Content-Length; without_body for HEAD. Status 0: closed. */
static inline struct rig_answer rig_answer(int fd, bool without_body)
{
	struct rig_answer a = {.head = BUF_INIT(1 << 16), .body = BUF_INIT(64 << 20)};
	const char *length;

	if (!rig_receive_head(fd, &a.head))
		return a;
	a.status = (int)strtol(a.head.data + 9, NULL, 10);
	length = strstr(a.head.data, "Content-Length: ");
	if (length && !without_body) {
		bool is_whole = rig_receive(fd, &a.body, strtoul(length + 16, NULL, 10));

		assert(is_whole);
	}
	return a;
}

/* Sends the text and returns the status of one answer, whose body is dropped. */
static inline int rig_ask(int fd, const char *request)
{
	struct rig_answer a;

	rig_say(fd, request);
	a = rig_answer(fd, false);
	rig_answer_release(&a);
	return a.status;
}
