/* A server on a thread for tests of clients: each connection gets a thread that runs the test's own function on the
 * raw socket, which can break any rule. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { LOOPBACK_CONNECTIONS = 256 };

struct loopback {
	int fd;
	int port;
	void (*serve)(struct loopback *lb, int fd); /* on the connection's thread */
	void *owner;
	atomic_int n_connections, n_requests;
	pthread_t thread;
	pthread_t workers[LOOPBACK_CONNECTIONS];
	int fds[LOOPBACK_CONNECTIONS];
};

struct loopback_connection {
	struct loopback *lb;
	int fd;
};

static inline void *loopback_worker(void *p)
{
	struct loopback_connection *c = p;

	c->lb->serve(c->lb, c->fd);
	shutdown(c->fd, SHUT_RDWR);
	free(c);
	return NULL;
}

static inline void *loopback_accept(void *p)
{
	struct loopback *lb = p;

	for (;;) {
		struct loopback_connection *c;
		int fd = accept(lb->fd, NULL, NULL);
		int i;

		if (fd < 0)
			return NULL;
		i = atomic_load(&lb->n_connections);
		assert(i < LOOPBACK_CONNECTIONS);
		c = xmalloc(sizeof(*c));
		*c = (struct loopback_connection){lb, fd};
		lb->fds[i] = fd;
		pthread_create(&lb->workers[i], NULL, loopback_worker, c);
		atomic_fetch_add(&lb->n_connections, 1);
	}
}

static inline void loopback_listen(struct loopback *lb, int fd)
{
	int rc = listen(fd, 256);

	assert(rc == 0);
	lb->fd = fd;
	pthread_create(&lb->thread, NULL, loopback_accept, lb);
}

static inline struct loopback *loopback_start(void (*serve)(struct loopback *lb, int fd), void *owner)
{
	struct loopback *lb = xcalloc(1, sizeof(*lb));
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = bind(fd, (struct sockaddr *)&a, sizeof(a));

	assert(rc == 0);
	getsockname(fd, (struct sockaddr *)&a, &n);
	lb->port = ntohs(a.sin_port);
	lb->serve = serve;
	lb->owner = owner;
	loopback_listen(lb, fd);
	return lb;
}

static inline int loopback_bind_v6(int *ret_port)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
		close(fd);
		return -1;
	}
	if (fd >= 0)
		getsockname(fd, (struct sockaddr *)&a, &n);
	*ret_port = ntohs(a.sin6_port);
	return fd;
}

static inline bool loopback_has_v6(void)
{
	int port, fd = loopback_bind_v6(&port);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* On [::1], for tests that checked loopback_has_v6(). */
static inline struct loopback *loopback_start_v6(void (*serve)(struct loopback *lb, int fd), void *owner)
{
	struct loopback *lb = xcalloc(1, sizeof(*lb));
	int fd = loopback_bind_v6(&lb->port);

	assert(fd >= 0);
	lb->serve = serve;
	lb->owner = owner;
	loopback_listen(lb, fd);
	return lb;
}

static inline void loopback_stop(struct loopback *lb)
{
	shutdown(lb->fd, SHUT_RDWR);
	pthread_join(lb->thread, NULL);
	for (int i = 0; i < lb->n_connections; i++)
		shutdown(lb->fds[i], SHUT_RDWR);
	for (int i = 0; i < lb->n_connections; i++) {
		pthread_join(lb->workers[i], NULL);
		close(lb->fds[i]);
	}
	close(lb->fd);
	free(lb);
}

/* Reads one request, headers and body, into `in` (cleared first). False when the client left. */
static inline bool loopback_read_request(struct loopback *lb, int fd, struct buf *in)
{
	size_t want = 0;

	buf_clear(in);
	for (;;) {
		const char *end = strstr(buf_str(in), "\r\n\r\n");
		char piece[16384];
		ssize_t n;

		if (end && !want) {
			const char *cl = strcasestr(buf_str(in), "\r\ncontent-length:");

			want = (size_t)(end + 4 - buf_str(in));
			if (cl && cl < end)
				want += strtoul(cl + 17, NULL, 10);
		}
		if (want && in->len >= want)
			break;
		n = recv(fd, piece, sizeof(piece), 0);
		if (n <= 0)
			return false;
		buf_append(in, piece, (size_t)n);
	}
	atomic_fetch_add(&lb->n_requests, 1);
	return true;
}

static inline void loopback_send(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k <= 0)
			return;
		p += k;
		n -= (size_t)k;
	}
}

/* Blocks until the client closes or the server stops. */
static inline void loopback_wait_for_close(int fd)
{
	char byte;

	while (recv(fd, &byte, 1, 0) > 0)
		continue;
}
