#include "registry/fetch.h"

#include <git2/sys/stream.h>
#include <git2/sys/transport.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "http/client.h"

enum { WAIT_MAX_MS = 60000 };

/* ---- bounds ---- */

/* fds[0] is the cancel descriptor. Returns how many are ready, or a code in b->why. */
static int poll_with_cancel(struct bounds *b, struct pollfd *fds, nfds_t n, int timeout_ms)
{
	int n_ready;

	do
		n_ready = poll(fds, n, timeout_ms);
	while (n_ready < 0 && errno == EINTR);
	if (n_ready < 0)
		return error_set(&b->why, ERR_IO, "cannot wait: %s", strerror(errno));
	if (fds[0].revents)
		return error_set(&b->why, ERR_CANCELLED, "cancelled: shutting down");
	return n_ready;
}

int bounds_check(struct bounds *b)
{
	struct pollfd cancel = {.fd = b->cancel_fd, .events = POLLIN};

	if (b->why.code)
		return b->why.code;
	int rc = poll_with_cancel(b, &cancel, 1, 0);
	if (rc < 0)
		return rc;
	if (clock_mono_ms() >= b->deadline_mono_ms)
		return error_set(&b->why, ERR_TIMEOUT, "took too long, cancelled");
	return 0;
}

int bounds_wait(struct bounds *b, int fd, short events)
{
	struct pollfd fds[] = {{.fd = b->cancel_fd, .events = POLLIN}, {.fd = fd, .events = events}};
	int rc = bounds_check(b);

	if (rc)
		return rc;
	int64_t left_ms = b->deadline_mono_ms - clock_mono_ms();
	rc = poll_with_cancel(b, fds, 2, left_ms < 0 ? 0 : left_ms > WAIT_MAX_MS ? WAIT_MAX_MS : (int)left_ms);
	if (rc == 0)
		return error_set(&b->why, ERR_TIMEOUT, "the server is silent, cancelled");
	return rc < 0 ? rc : 0;
}

int bounds_count(struct bounds *b, size_t n_bytes)
{
	b->n_bytes_left -= (int64_t)n_bytes;
	if (b->n_bytes_left < 0)
		return error_set(&b->why, ERR_TOO_BIG, "the server sends too much, cancelled");
	return b->why.code;
}

/* ---- http and https ---- */

enum { REQUEST_BYTES_MAX = 16 << 20, SHOWN_CHARS = 200, CONTENT_TYPE_BYTES = 128 };

struct service {
	const char *method, *path, *request_type, *answer_type;
};

static const struct service list_refs = {.method = "GET",
    .path = "/info/refs?service=git-upload-pack",
    .answer_type = "application/x-git-upload-pack-advertisement"};
static const struct service upload_pack = {.method = "POST",
    .path = "/git-upload-pack",
    .request_type = "Content-Type: application/x-git-upload-pack-request",
    .answer_type = "application/x-git-upload-pack-result"};

/* One server; libgit2 sends its requests one after the other. */
struct subtransport {
	git_smart_subtransport parent; /* libgit2 sees only this */
	struct bounds *bounds;
	struct http_puller *puller;
};

/* One request and its answer. */
struct exchange {
	git_smart_subtransport_stream parent; /* libgit2 sees only this */
	struct subtransport *transport;
	const struct service *service;
	char *url;
	struct buf request;
	struct http_call call;
	bool is_sent;
};

static int fail_exchange(struct bounds *b, int err, const char *why)
{
	error_set(&b->why, err, "%s", why);
	git_error_set_str(GIT_ERROR_NET, b->why.text);
	return -1;
}

/* Describes the failure in the words of the bounds. It names no address, because a vendor must not learn whether a host
 * name has an internal address. */
static int fail_call(struct bounds *b, const struct http_call *call)
{
	if (call->err == ERR_CANCELLED)
		return fail_exchange(b, ERR_CANCELLED, "cancelled: shutting down");
	if (call->err == ERR_TIMEOUT)
		return fail_exchange(b, ERR_TIMEOUT, "took too long, cancelled");
	if (call->err == ERR_DENIED)
		return fail_exchange(b, ERR_DENIED, "its host's address may not be reached");
	return fail_exchange(b, ERR_NETWORK, call->why.text);
}

/* Sends the request and checks the head of its answer. */
static int send_request(struct exchange *x)
{
	struct subtransport *t = x->transport;
	struct bounds *b = t->bounds;
	const char *headers[] = {x->service->request_type, NULL};
	int64_t left_ms = b->deadline_mono_ms - clock_mono_ms();
	char why[sizeof(b->why.text)], value[1024] = "";

	x->is_sent = true;
	if (bounds_check(b))
		return fail_exchange(b, b->why.code, b->why.text);
	x->call = (struct http_call){
	    .method = x->service->method,
	    .url = x->url,
	    .headers = headers,
	    .body = x->service->request_type ? buf_str(&x->request) : NULL,
	    .body_bytes = x->request.len,
	    .total_timeout_ms = left_ms > 0 ? left_ms : 1,
	    .allow_address = b->allow_address,
	    .allow_owner = b->allow_owner,
	    .allow_plain_http = true, /* checked by the configuration and allow_address */
	};
	if (http_pull_start(t->puller, &x->call, b->cancel_fd))
		return fail_call(b, &x->call);
	if (x->call.status >= 300 && x->call.status < 400) {
		struct buf line = BUF_INIT(SHOWN_CHARS * 2 - 1);

		/* Shows the server's header as one line without control characters. */
		http_call_header(&x->call, "Location", value, sizeof(value));
		escape_line(&line, value, SHOWN_CHARS);
		snprintf(why, sizeof(why), "it redirects to %s, and redirects are not followed: set the new address",
		    buf_str(&line));
		buf_release(&line);
		return fail_exchange(b, ERR_DENIED, why);
	}
	if (x->call.status != 200) {
		snprintf(why, sizeof(why), "the server answered %d", x->call.status);
		return fail_exchange(b, ERR_NETWORK, why);
	}
	http_call_header(&x->call, "Content-Type", value, CONTENT_TYPE_BYTES);
	if (strcasecmp(value, x->service->answer_type) != 0)
		return fail_exchange(b, ERR_NETWORK,
		    "the answer is not git's: the server has no such repository, or does not speak "
		    "git's smart HTTP protocol");
	return 0;
}

static int exchange_read(git_smart_subtransport_stream *parent, char *to, size_t size, size_t *ret_n)
{
	struct exchange *x = CONTAINER_OF(parent, struct exchange, parent);
	struct bounds *b = x->transport->bounds;

	*ret_n = 0;
	if (!x->is_sent && send_request(x))
		return -1;
	if (http_pull_read(x->transport->puller, to, size, ret_n))
		return fail_call(b, &x->call);
	return bounds_count(b, *ret_n) ? fail_exchange(b, b->why.code, b->why.text) : 0;
}

static int exchange_write(git_smart_subtransport_stream *parent, const char *data, size_t n)
{
	struct exchange *x = CONTAINER_OF(parent, struct exchange, parent);

	if (buf_append(&x->request, data, n))
		return fail_exchange(x->transport->bounds, ERR_TOO_BIG, "the request is too long");
	return 0;
}

static void exchange_free(git_smart_subtransport_stream *parent)
{
	struct exchange *x = CONTAINER_OF(parent, struct exchange, parent);

	http_pull_end(x->transport->puller);
	http_call_release(&x->call);
	buf_release(&x->request);
	free(x->url);
	free(x);
}

static int subtransport_action(
    git_smart_subtransport_stream **ret, git_smart_subtransport *parent, const char *url, git_smart_service_t action)
{
	struct subtransport *t = CONTAINER_OF(parent, struct subtransport, parent);
	size_t n = strlen(url);
	struct exchange *x;

	if (action != GIT_SERVICE_UPLOADPACK_LS && action != GIT_SERVICE_UPLOADPACK)
		return fail_exchange(t->bounds, ERR_INVALID, "pushing is not supported");
	while (n && url[n - 1] == '/')
		n--;
	x = xcalloc(1, sizeof(*x));
	x->parent = (git_smart_subtransport_stream){
	    .subtransport = parent, .read = exchange_read, .write = exchange_write, .free = exchange_free};
	x->transport = t;
	x->service = action == GIT_SERVICE_UPLOADPACK_LS ? &list_refs : &upload_pack;
	x->url = xasprintf("%.*s%s", (int)n, url, x->service->path);
	buf_init(&x->request, REQUEST_BYTES_MAX);
	*ret = &x->parent;
	return 0;
}

static int subtransport_close(git_smart_subtransport *parent)
{
	(void)parent;
	return 0;
}

static void subtransport_free(git_smart_subtransport *parent)
{
	struct subtransport *t = CONTAINER_OF(parent, struct subtransport, parent);

	http_puller_free(t->puller);
	free(t);
}

static int subtransport_new(git_smart_subtransport **ret, git_transport *owner, void *bounds)
{
	struct subtransport *t = xcalloc(1, sizeof(*t));

	(void)owner;
	t->parent = (git_smart_subtransport){
	    .action = subtransport_action, .close = subtransport_close, .free = subtransport_free};
	t->bounds = bounds;
	t->puller = http_puller_new("git/2.0 (outpost)"); /* some servers require "git/" */
	*ret = &t->parent;
	return 0;
}

int transport_new(git_transport **ret, git_remote *remote, void *bounds)
{
	git_smart_subtransport_definition http = {.callback = subtransport_new, .rpc = 1, .param = bounds};
	const char *url = git_remote_url(remote);

	if (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0)
		return git_transport_smart(ret, remote, &http);
	return git_transport_new(ret, remote, url);
}

/* ---- git:// ---- */

struct stream {
	git_stream parent; /* first: libgit2 sees only this */
	struct bounds *bounds;
	char *host, *port;
	int fd;
};

/* libgit2 has no parameter that reaches a new stream, but one thread does all work of a call. */
static _Thread_local struct bounds *thread_bounds;

static int fail_stream(const struct stream *s, const char *action, const char *why)
{
	char text[512];

	snprintf(text, sizeof(text), "%s %s: %s", action, s->host, why);
	git_error_set_str(GIT_ERROR_NET, text);
	return -1;
}

static int fail_bound(const struct stream *s)
{
	git_error_set_str(GIT_ERROR_NET, s->bounds->why.text);
	return -1;
}

/* Connects to one address. Returns 0, -1 to try the next one, or -2 when a bound was hit. The reason
 * names no address, as in fail_call(). */
static int connect_to(struct stream *s, const struct addrinfo *a)
{
	struct bounds *b = s->bounds;
	uint8_t address[16] = {[10] = 0xff, [11] = 0xff};
	int yes = 1, why = 0;
	socklen_t n = sizeof(why);

	if (a->ai_family == AF_INET)
		memcpy(address + 12, &((const struct sockaddr_in *)a->ai_addr)->sin_addr, 4);
	else if (a->ai_family == AF_INET6)
		memcpy(address, &((const struct sockaddr_in6 *)a->ai_addr)->sin6_addr, 16);
	if (b->allow_address &&
	    ((a->ai_family != AF_INET && a->ai_family != AF_INET6) || !b->allow_address(address, b->allow_owner))) {
		error_set(&b->why, ERR_DENIED, "its host's address may not be reached");
		fail_bound(s);
		return -2;
	}
	s->fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
	if (s->fd < 0)
		return fail_stream(s, "no socket for", strerror(errno));
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (connect(s->fd, a->ai_addr, a->ai_addrlen) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return fail_stream(s, "cannot reach", strerror(errno));
	if (bounds_wait(b, s->fd, POLLOUT)) {
		fail_bound(s);
		return -2;
	}
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &why, &n) || why)
		return fail_stream(s, "cannot reach", strerror(why));
	return 0;
}

static int stream_close(git_stream *parent)
{
	struct stream *s = CONTAINER_OF(parent, struct stream, parent);

	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	return 0;
}

static int stream_connect(git_stream *parent)
{
	struct stream *s = CONTAINER_OF(parent, struct stream, parent);
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(s->host, s->port, &hints, &list);

	if (rc)
		return fail_stream(s, "cannot find", gai_strerror(rc));
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
	struct stream *s = CONTAINER_OF(parent, struct stream, parent);
	ssize_t n;

	do {
		if (bounds_wait(s->bounds, s->fd, POLLIN))
			return fail_bound(s);
		n = recv(s->fd, data, len, 0);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n < 0)
		return fail_stream(s, "cannot read from", strerror(errno));
	return bounds_count(s->bounds, (size_t)n) ? fail_bound(s) : n;
}

static ssize_t stream_write(git_stream *parent, const char *data, size_t len, int flags)
{
	struct stream *s = CONTAINER_OF(parent, struct stream, parent);
	ssize_t n;

	(void)flags;
	do {
		if (bounds_wait(s->bounds, s->fd, POLLOUT))
			return fail_bound(s);
		n = send(s->fd, data, len, MSG_NOSIGNAL);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	return n < 0 ? fail_stream(s, "cannot write to", strerror(errno)) : n;
}

static void stream_free(git_stream *parent)
{
	struct stream *s = CONTAINER_OF(parent, struct stream, parent);

	stream_close(parent);
	free(s->host);
	free(s->port);
	free(s);
}

static int stream_new(git_stream **ret, const char *host, const char *port)
{
	struct stream *s;

	if (!thread_bounds) {
		git_error_set_str(GIT_ERROR_NET, "this thread may not open a connection");
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
	s->bounds = thread_bounds;
	s->host = xstrdup(host);
	s->port = xstrdup(port);
	s->fd = -1;
	*ret = &s->parent;
	return 0;
}

int transport_setup(void)
{
	git_stream_registration ours = {.version = GIT_STREAM_VERSION, .init = stream_new};

	return git_stream_register(GIT_STREAM_STANDARD, &ours) ? ERR_INVALID : 0;
}

void transport_use(struct bounds *b) { thread_bounds = b; }
