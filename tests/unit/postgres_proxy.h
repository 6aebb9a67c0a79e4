/* A thread between a store and PostgreSQL's socket that loses the answer to a COMMIT, or the COMMIT: it ends the connection, or leaves it
 * open and forwards nothing more. For one store at a time. */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "store_rig.h"

enum proxy_loss {
	PROXY_LOSES_NOTHING,
	PROXY_LOSES_ANSWER,
	PROXY_LOSES_COMMIT,
	PROXY_HIDES_ANSWER, /* as a server that stands still, or a network that is cut */
	PROXY_HIDES_COMMIT,
};
enum { PROXY_PAIRS = 32 };

struct proxy {
	char dir[96], *server_path;
	int listener, stop[2];
	pthread_t thread;
	atomic_int loss;        /* of the next COMMIT */
	atomic_int n_to_accept; /* of the next connections; then it refuses n_to_refuse of them */
	atomic_int n_to_refuse;
	/* thread */
	struct proxy_pair {
		int client, server;
		enum proxy_loss loss; /* of this pair, from the COMMIT on */
	} pairs[PROXY_PAIRS];
};

static inline int proxy_socket(const char *path, bool does_listen)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	assert_true(fd >= 0);
	assert_int_equal(does_listen ? bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 16)
				     : connect(fd, (struct sockaddr *)&a, sizeof(a)),
	    0);
	return fd;
}

static inline void proxy_drop(struct proxy_pair *pair)
{
	close(pair->client);
	close(pair->server);
	*pair = (struct proxy_pair){-1, -1, PROXY_LOSES_NOTHING};
}

static inline void proxy_accept(struct proxy *x)
{
	int fd = accept4(x->listener, NULL, NULL, SOCK_CLOEXEC);

	if (atomic_load(&x->n_to_accept) > 0) {
		atomic_fetch_sub(&x->n_to_accept, 1);
	} else if (atomic_load(&x->n_to_refuse) > 0) {
		atomic_fetch_sub(&x->n_to_refuse, 1);
		close(fd);
		return;
	}
	for (size_t i = 0; i < PROXY_PAIRS; i++)
		if (x->pairs[i].client < 0) {
			x->pairs[i] = (struct proxy_pair){fd, proxy_socket(x->server_path, false), PROXY_LOSES_NOTHING};
			return;
		}
	abort();
}

static inline void proxy_forward(struct proxy *x, struct proxy_pair *pair, bool is_from_client)
{
	char bytes[1 << 16];
	ssize_t n = read(is_from_client ? pair->client : pair->server, bytes, sizeof(bytes));
	enum proxy_loss before = pair->loss;
	bool is_lost, is_hidden;

	if (is_from_client && n > 0 && !before && memmem(bytes, (size_t)n, "COMMIT", 6))
		pair->loss = atomic_exchange(&x->loss, PROXY_LOSES_NOTHING);
	is_lost = pair->loss == PROXY_LOSES_COMMIT || (pair->loss == PROXY_LOSES_ANSWER && !is_from_client);
	is_hidden =
	    pair->loss == PROXY_HIDES_COMMIT || (pair->loss == PROXY_HIDES_ANSWER && (before || !is_from_client));
	if (n <= 0 || is_lost)
		proxy_drop(pair);
	for (ssize_t at = 0, sent; !is_lost && !is_hidden && at < n; at += sent) {
		sent = send(is_from_client ? pair->server : pair->client, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
		if (sent <= 0) {
			proxy_drop(pair);
			break;
		}
	}
}

static inline void *proxy_main(void *p)
{
	struct proxy *x = p;

	for (;;) {
		struct pollfd fds[2 + 2 * PROXY_PAIRS] = {{x->stop[0], POLLIN, 0}, {x->listener, POLLIN, 0}};

		for (size_t i = 0; i < PROXY_PAIRS; i++) {
			fds[2 + 2 * i] = (struct pollfd){x->pairs[i].client, POLLIN, 0};
			fds[3 + 2 * i] = (struct pollfd){x->pairs[i].server, POLLIN, 0};
		}
		if (poll(fds, ARRAY_LEN(fds), -1) < 0)
			continue;
		if (fds[0].revents)
			return NULL;
		for (size_t i = 0; i < PROXY_PAIRS; i++) {
			if (fds[2 + 2 * i].revents)
				proxy_forward(x, &x->pairs[i], true);
			if (fds[3 + 2 * i].revents && x->pairs[i].server >= 0)
				proxy_forward(x, &x->pairs[i], false);
		}
		if (fds[1].revents)
			proxy_accept(x);
	}
}

/* Returns the URL of the test's database behind the proxy. free() */
static inline char *proxy_start(struct proxy *x)
{
	const char *url = server_database(), *host = strstr(url, "host=") + 5, *end = strchr(host, '&');
	char *path;

	memset(x, 0, sizeof(*x));
	for (size_t i = 0; i < PROXY_PAIRS; i++)
		x->pairs[i] = (struct proxy_pair){-1, -1, PROXY_LOSES_NOTHING};
	snprintf(x->dir, sizeof(x->dir), "%s/proxy", rig_dir);
	assert_int_equal(mkdir(x->dir, 0700), 0);
	x->server_path = xasprintf("%.*s/.s.PGSQL.5432", (int)(end - host), host);
	path = xasprintf("%s/.s.PGSQL.5432", x->dir);
	x->listener = proxy_socket(path, true);
	free(path);
	assert_int_equal(pipe(x->stop), 0);
	assert_int_equal(pthread_create(&x->thread, NULL, proxy_main, x), 0);
	return xasprintf("%.*s%s%s", (int)(host - url), url, x->dir, end);
}

/* After the store that uses it is closed. */
static inline void proxy_stop(struct proxy *x)
{
	assert_int_equal(write(x->stop[1], "x", 1), 1);
	pthread_join(x->thread, NULL);
	for (size_t i = 0; i < PROXY_PAIRS; i++)
		if (x->pairs[i].client >= 0)
			proxy_drop(&x->pairs[i]);
	close(x->listener);
	close(x->stop[0]);
	close(x->stop[1]);
	free(x->server_path);
}
