/* Where connections come from: TCP addresses, and a unix socket that only its owner may
 * open. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "http/client_address.h"
#include "http/server_internal.h"

#define BACKLOG 1024

struct http_listener {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} io;
	struct http_server *server;
	struct http_listener *next;
	char *path; /* owned: of a unix socket, else NULL */
	dev_t device;
	ino_t inode; /* so that only our own socket is removed at the end */
};

static void on_connection(uv_stream_t *stream, int status)
{
	struct http_listener *l = CONTAINER_OF(stream, struct http_listener, io.stream);

	if (status == 0)
		http_conn_accept(l->server, stream, l->path != NULL);
}

static void on_listener_closed(uv_handle_t *handle)
{
	struct http_listener *l = CONTAINER_OF(handle, struct http_listener, io.handle);
	struct http_server *s = l->server;

	free(l->path);
	free(l);
	s->n_listeners--;
	http_server_check_closed(s);
}

static struct http_listener *listener_new(struct http_server *s)
{
	struct http_listener *l = xcalloc(1, sizeof(*l));

	l->server = s;
	s->n_listeners++;
	return l;
}

static void listener_close(struct http_listener *l)
{
	uv_close(&l->io.handle, on_listener_closed);
}

static void listener_keep(struct http_listener *l)
{
	l->next = l->server->listeners;
	l->server->listeners = l;
}

void http_listeners_close(struct http_server *s)
{
	while (s->listeners) {
		struct http_listener *l = s->listeners;
		struct stat st;

		s->listeners = l->next;
		if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->device &&
		    st.st_ino == l->inode)
			unlink(l->path);
		listener_close(l);
	}
}

/* "host:port" or "[v6]:port" as a socket address. */
static int resolve(const char *address, struct sockaddr_storage *ret, struct error *e)
{
	const struct addrinfo hints = {
	    .ai_socktype = SOCK_STREAM,
	    .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	const char *colon = strrchr(address, ':');
	struct addrinfo *found;
	size_t n = colon ? (size_t)(colon - address) : 0;
	bool is_bracketed = n >= 2 && address[0] == '[' && address[n - 1] == ']';
	char *host;
	int rc;

	if (n == 0 || (!is_bracketed && memchr(address, ':', n)))
		return error_set(e, ERR_INVALID, "'%s' is not host:port or [v6]:port", address);
	host = is_bracketed ? xstrndup(address + 1, n - 2) : xstrndup(address, n);
	rc = getaddrinfo(host, colon + 1, &hints, &found);
	free(host);
	if (rc != 0)
		return error_set(
		    e, ERR_INVALID, "cannot listen on '%s': %s", address, gai_strerror(rc));
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

static char *bound_address(const struct http_listener *l)
{
	struct sockaddr_storage ss;
	int len = sizeof(ss);
	char host[INET6_ADDRSTRLEN];

	memset(&ss, 0, sizeof(ss));
	uv_tcp_getsockname(&l->io.tcp, (struct sockaddr *)&ss, &len);
	if (ss.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&ss;

		uv_ip6_name(in6, host, sizeof(host));
		return xasprintf("[%s]:%d", host, ntohs(in6->sin6_port));
	}
	uv_ip4_name((const struct sockaddr_in *)&ss, host, sizeof(host));
	return xasprintf("%s:%d", host, ntohs(((const struct sockaddr_in *)&ss)->sin_port));
}

int http_server_listen(
    struct http_server *s, const char *address, char **ret_address, struct error *e)
{
	struct sockaddr_storage ss;
	struct http_listener *l;
	int rc = resolve(address, &ss, e);

	if (rc)
		return rc;
	l = listener_new(s);
	uv_tcp_init(loop_uv(s->loop), &l->io.tcp);
	rc = uv_tcp_bind(&l->io.tcp, (const struct sockaddr *)&ss, 0);
	if (rc == 0)
		rc = uv_listen(&l->io.stream, BACKLOG, on_connection);
	if (rc != 0) {
		listener_close(l);
		return error_set(e, rc == UV_EADDRINUSE ? ERR_EXISTS : ERR_NETWORK,
		    "cannot listen on '%s': %s", address, uv_strerror(rc));
	}
	listener_keep(l);
	*ret_address = bound_address(l);
	return 0;
}

/* Removes a socket on which nobody answers any more. */
static int remove_stale(const char *path, const struct sockaddr_un *address, struct error *e)
{
	struct stat st;
	int fd, rc, why;

	if (lstat(path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return error_set(e, ERR_EXISTS, "%s is in the way and is no socket", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(e, ERR_IO, "socket: %s", strerror(errno));
	rc = connect(fd, (const struct sockaddr *)address, sizeof(*address));
	why = errno;
	close(fd);
	if (rc == 0 || why != ECONNREFUSED)
		return error_set(e, ERR_EXISTS, "another process listens on %s", path);
	if (unlink(path) != 0)
		return error_set(e, ERR_IO, "cannot remove %s: %s", path, strerror(errno));
	return 0;
}

/* A bound socket whose file has mode 0600 from its first moment: on Linux the file takes
 * the descriptor's mode. No umask is touched, which other threads would share. */
static int bind_unix(
    const char *path, const struct sockaddr_un *address, int *ret_fd, struct error *e)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return error_set(e, ERR_IO, "socket: %s", strerror(errno));
	if (fchmod(fd, 0600) != 0 ||
	    bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0) {
		error_set(e, ERR_IO, "cannot bind %s: %s", path, strerror(errno));
		close(fd);
		return ERR_IO;
	}
	*ret_fd = fd;
	return 0;
}

int http_server_listen_unix(struct http_server *s, const char *path, struct error *e)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct http_listener *l;
	struct stat st = {0};
	int fd = -1, rc;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(e, ERR_INVALID, "the path of the socket %s is too long", path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	rc = remove_stale(path, &address, e);
	if (rc)
		return rc;
	rc = bind_unix(path, &address, &fd, e);
	if (rc)
		return rc;
	if (lstat(path, &st) != 0 || (st.st_mode & 0777) != 0600) {
		unlink(path);
		close(fd);
		return error_set(e, ERR_IO, "%s did not get mode 0600", path);
	}
	l = listener_new(s);
	l->path = xstrdup(path);
	l->device = st.st_dev;
	l->inode = st.st_ino;
	uv_pipe_init(loop_uv(s->loop), &l->io.pipe, 0);
	rc = uv_pipe_open(&l->io.pipe, fd);
	if (rc != 0)
		close(fd);
	else
		rc = uv_listen(&l->io.stream, BACKLOG, on_connection);
	listener_keep(l);
	if (rc != 0)
		return error_set(e, ERR_NETWORK, "cannot listen on %s: %s", path, uv_strerror(rc));
	return 0;
}
