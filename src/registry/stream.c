#include "registry/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <git2/sys/stream.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

struct stream {
	git_stream parent; /* first: libgit2 sees only this */
	struct bounds *bounds;
	char *host, *port;
	int fd;
};

/* libgit2 hands nothing of ours to a new stream, but it works in one thread from call to return. */
static _Thread_local struct bounds *in_use;

static struct stream *stream_of(git_stream *parent)
{
	return CONTAINER_OF(parent, struct stream, parent);
}

static int say(const struct stream *s, const char *what, int number)
{
	char text[512];

	snprintf(text, sizeof(text), "%s %s: %s", what, s->host, strerror(number));
	git_error_set_str(GIT_ERROR_NET, text);
	return -1;
}

static int say_bound(const struct stream *s)
{
	git_error_set_str(GIT_ERROR_NET, s->bounds->why.text);
	return -1;
}

/* Which address a name has in here is nobody's to learn: the answer names none. */
static bool may_reach(const struct stream *s, const struct addrinfo *a)
{
	uint8_t address[16] = {[10] = 0xff, [11] = 0xff};

	if (!s->bounds->allow_address)
		return true;
	if (a->ai_family == AF_INET)
		memcpy(address + 12, &((const struct sockaddr_in *)a->ai_addr)->sin_addr, 4);
	else if (a->ai_family == AF_INET6)
		memcpy(address, &((const struct sockaddr_in6 *)a->ai_addr)->sin6_addr, 16);
	else
		return false;
	return s->bounds->allow_address(address, s->bounds->allow_owner);
}

/* One address: 0, -1 (the next one may do), or -2 (a bound was hit: no more). */
static int connect_to(struct stream *s, const struct addrinfo *a)
{
	int yes = 1, why = 0;
	socklen_t n = sizeof(why);

	if (!may_reach(s, a)) {
		error_set(&s->bounds->why, ERR_DENIED, "its host's address may not be reached");
		say_bound(s);
		return -2;
	}
	s->fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
	if (s->fd < 0)
		return say(s, "no socket for", errno);
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (connect(s->fd, a->ai_addr, a->ai_addrlen) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return say(s, "cannot reach", errno);
	if (bounds_wait(s->bounds, s->fd, POLLOUT)) {
		say_bound(s);
		return -2;
	}
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &why, &n) || why)
		return say(s, "cannot reach", why);
	return 0;
}

static int stream_close(git_stream *parent)
{
	struct stream *s = stream_of(parent);

	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	return 0;
}

static int stream_connect(git_stream *parent)
{
	struct stream *s = stream_of(parent);
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(s->host, s->port, &hints, &list);

	if (rc) {
		char text[512];

		snprintf(text, sizeof(text), "cannot find %s: %s", s->host, gai_strerror(rc));
		git_error_set_str(GIT_ERROR_NET, text);
		return -1;
	}
	rc = -1;
	for (const struct addrinfo *a = list; a && rc == -1; a = a->ai_next) {
		stream_close(parent);
		rc = connect_to(s, a);
	}
	freeaddrinfo(list);
	return rc ? -1 : 0;
}

static ssize_t stream_read(git_stream *parent, void *data, size_t len)
{
	struct stream *s = stream_of(parent);
	ssize_t n;

	do {
		if (bounds_wait(s->bounds, s->fd, POLLIN))
			return say_bound(s);
		n = recv(s->fd, data, len, 0);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n < 0)
		return say(s, "cannot read from", errno);
	return bounds_count(s->bounds, (size_t)n) ? say_bound(s) : n;
}

static ssize_t stream_write(git_stream *parent, const char *data, size_t len, int flags)
{
	struct stream *s = stream_of(parent);
	ssize_t n;

	(void)flags;
	do {
		if (bounds_wait(s->bounds, s->fd, POLLOUT))
			return say_bound(s);
		n = send(s->fd, data, len, MSG_NOSIGNAL);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	return n < 0 ? say(s, "cannot write to", errno) : n;
}

static void stream_free(git_stream *parent)
{
	struct stream *s = stream_of(parent);

	stream_close(parent);
	free(s->host);
	free(s->port);
	free(s);
}

static int stream_new(git_stream **ret, const char *host, const char *port)
{
	struct stream *s;

	if (!in_use) {
		git_error_set_str(GIT_ERROR_NET, "no connection is wanted here");
		return -1;
	}
	s = xcalloc(1, sizeof(*s));
	s->parent = (git_stream){
	    .version = GIT_STREAM_VERSION,
	    .connect = stream_connect,
	    .read = stream_read,
	    .write = stream_write,
	    .close = stream_close,
	    .free = stream_free,
	};
	s->bounds = in_use;
	s->host = xstrdup(host);
	s->port = xstrdup(port);
	s->fd = -1;
	*ret = &s->parent;
	return 0;
}

int stream_register(void)
{
	git_stream_registration ours = {.version = GIT_STREAM_VERSION, .init = stream_new};

	return git_stream_register(GIT_STREAM_STANDARD, &ours) ? ERR_INVALID : 0;
}

void stream_use(struct bounds *b)
{
	in_use = b;
}
