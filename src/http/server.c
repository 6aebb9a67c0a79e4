/* The server as a whole: its limits, its listeners, its list of connections, its clock and its end. */
#include "http/server.h"

#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/server_internal.h"
#include "http/tls.h"

const struct http_limits HTTP_LIMITS_DEFAULT = {.max_header_bytes = 16384,
    .max_total_body_bytes = (size_t)128 << 20,
    .max_body_bytes_of_one = (size_t)48 << 20,
    .slow_body_ms = 1000,
    .max_total_unsent_bytes = (size_t)64 << 20,
    .max_connections = 4096,
    .max_connections_of_one = 1024,
    .known_ms = 60 * 60 * 1000,
    .first_byte_timeout_ms = 5000,
    .header_timeout_ms = 10000,
    .body_timeout_ms = 20000,
    .idle_timeout_ms = 75000,
    .write_timeout_ms = 30000};

enum {
	LISTEN_BACKLOG = 1024,
	FORGET_KNOWN_MS = 60 * 1000,
	KNOWN_MAX = 4096, /* groups */
};

static int64_t min_ms(int64_t a, int64_t b) { return a < b ? a : b; }

void http_server_note_known(struct http_server *s, const struct http_client_group *g)
{
	int64_t until_ms = loop_now_ms(s->loop) + s->limits.known_ms;
	int64_t so_far_ms = http_group_amount(s->known_until, g);

	if (so_far_ms || http_group_amounts_n(s->known_until) < KNOWN_MAX)
		http_group_amount_add(s->known_until, g, until_ms - so_far_ms);
}

bool http_server_is_known(const struct http_server *s, const struct http_client_group *g)
{
	return http_group_amount(s->known_until, g) > loop_now_ms(s->loop);
}

static void on_server_tick(struct timer *t)
{
	struct http_server *s = timer_owner(t);
	int64_t now_ms = loop_now_ms(s->loop);
	bool is_over = s->is_closing && now_ms >= s->close_by_ms;
	struct http_conn *next;

	/* Connections leave the list only in close callbacks, so not in this loop. */
	for (struct http_conn *c = LIST_FIRST(&s->conns); c; c = next) {
		next = LIST_NEXT(c, link);
		if (is_over)
			http_conn_drop(c);
		else
			http_conn_check_deadlines(c, now_ms);
	}
	if (now_ms >= s->forget_known_ms) {
		s->forget_known_ms = now_ms + FORGET_KNOWN_MS;
		http_group_amounts_keep_above(s->known_until, now_ms);
	}
	http_blocks_trim();
	/* two more ticks after the last connection, so that the trim frees all spare blocks */
	s->n_quiet_ticks = s->n_conns ? 0 : s->n_quiet_ticks + 1;
	if (s->n_quiet_ticks < 3)
		timer_start(s->tick, s->tick_ms);
}

struct http_server *http_server_new(struct loop *l, const struct http_limits *limits)
{
	struct http_server *s = xcalloc(1, sizeof(*s));

	s->loop = l;
	LIST_INIT(&s->conns);
	SLIST_INIT(&s->listeners);
	TAILQ_INIT(&s->due);
	TAILQ_INIT(&s->waiting_to_send);
	s->limits = limits ? *limits : HTTP_LIMITS_DEFAULT;
	if (s->limits.max_header_bytes > HTTP_MAX_HEAD_BYTES)
		s->limits.max_header_bytes = HTTP_MAX_HEAD_BYTES;
	s->bodies.max_bytes = s->limits.max_total_body_bytes;
	s->bodies.max_bytes_of_one = s->limits.max_body_bytes_of_one;
	s->bodies.reserve_bytes = s->limits.max_total_body_bytes / 8;
	s->bodies.of_one = http_group_amounts_new();
	s->open_of = http_group_amounts_new();
	s->known_until = http_group_amounts_new();
	/* a quarter of the shortest limit, between 5 ms and a second */
	s->tick_ms = min_ms(min_ms(s->limits.header_timeout_ms, s->limits.body_timeout_ms),
			 min_ms(min_ms(s->limits.idle_timeout_ms, s->limits.write_timeout_ms),
			     s->limits.first_byte_timeout_ms)) /
		     4;
	s->tick_ms = min_ms(s->tick_ms > 5 ? s->tick_ms : 5, 1000);
	http_blocks_hold();
	s->shared_bytes = http_group_amounts_new();
	s->n_sending = http_group_amounts_new();
	s->tick = timer_new(l, on_server_tick, s);
	buf_init(&s->out_head, 65536);
	buf_reserve(&s->out_head, 1024);
	return s;
}

void http_server_route(struct http_server *s, const struct http_route *route) { http_routes_add(&s->routes, route); }

void http_server_fallback(struct http_server *s, const struct http_route *route) { s->routes.fallback = *route; }

void http_server_trust_proxies(
    struct http_server *s, bool (*is_trusted)(const uint8_t address[16], void *owner), void *owner)
{
	s->is_trusted = is_trusted;
	s->trusted_owner = owner;
}

int http_server_n_connections(const struct http_server *s) { return s->n_open; }

const struct http_counters *http_server_counters(const struct http_server *s) { return &s->counters; }

void http_server_times(const struct http_server *s,
    void (*each)(const struct http_route *route, const struct histogram *times, void *owner), void *owner)
{
	for (int i = 0; i < s->routes.n; i++)
		each(&s->routes.at[i].route, &s->routes.at[i].times, owner);
}

int http_server_use_tls(struct http_server *s, const char *certificate_pem, struct private_key *key, struct error *e)
{
	struct http_tls *tls;
	int rc = http_tls_new(certificate_pem, key, &tls, e);

	if (rc)
		return rc;
	http_tls_free(s->tls);
	s->tls = tls;
	return 0;
}

const char *http_server_date(struct http_server *s)
{
	time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm tm;

	if (now != s->date_s || s->date[0] == '\0') {
		s->date_s = now;
		gmtime_r(&now, &tm);
		strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	}
	return s->date;
}

/* ---- listeners: TCP addresses, and a unix socket that only its owner may open ---- */

struct http_listener {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} io;
	struct http_server *server;
	SLIST_ENTRY(http_listener) link;
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

	FREE_ALL(l->path, l);
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

static char *listener_address(const struct http_listener *l)
{
	struct sockaddr_storage ss;
	int len = sizeof(ss);
	char host[INET6_ADDRSTRLEN];

	memset(&ss, 0, sizeof(ss));
	uv_tcp_getsockname(&l->io.tcp, (struct sockaddr *)&ss, &len);
	uv_ip_name((const struct sockaddr *)&ss, host, sizeof(host));
	if (ss.ss_family == AF_INET6)
		return xasprintf("[%s]:%d", host, ntohs(((const struct sockaddr_in6 *)&ss)->sin6_port));
	return xasprintf("%s:%d", host, ntohs(((const struct sockaddr_in *)&ss)->sin_port));
}

/* Returns a descriptor, or -1. */
static int bind_address(const struct addrinfo *to)
{
	const int on = 1;
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* REUSEADDR: connections of the last process may still be ending. */
	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
			   bind(fd, to->ai_addr, to->ai_addrlen) != 0)) {
		int why = errno;

		close(fd);
		errno = why;
		fd = -1;
	}
	return fd;
}

static int refuse_address(const char *address, int uv_error, struct error *e)
{
	return error_set(e, uv_error == UV_EADDRINUSE ? ERR_EXISTS : ERR_NETWORK, "cannot listen on '%s': %s", address,
	    uv_strerror(uv_error));
}

int http_server_bind(struct http_server *s, const char *address, struct http_listener **ret, struct error *e)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	const char *colon = strrchr(address, ':');
	size_t n = colon ? (size_t)(colon - address) : 0;
	bool is_bracketed = n >= 2 && address[0] == '[' && address[n - 1] == ']';
	struct addrinfo *found;
	struct http_listener *l;

	if (n == 0 || (!is_bracketed && memchr(address, ':', n)))
		return error_set(e, ERR_INVALID, "'%s' is not host:port or [v6]:port", address);
	char *host = is_bracketed ? xstrndup(address + 1, n - 2) : xstrndup(address, n);
	int rc = getaddrinfo(host, colon + 1, &hints, &found);
	free(host);
	if (rc != 0)
		return error_set(e, ERR_INVALID, "cannot listen on '%s': %s", address, gai_strerror(rc));
	int fd = bind_address(found);
	rc = fd < 0 ? uv_translate_sys_error(errno) : 0;
	freeaddrinfo(found);
	if (rc != 0)
		return refuse_address(address, rc, e);
	l = listener_new(s);
	uv_tcp_init(loop_uv(s->loop), &l->io.tcp);
	uv_tcp_open(&l->io.tcp, fd);
	SLIST_INSERT_HEAD(&s->listeners, l, link);
	*ret = l;
	return 0;
}

int http_listener_listen(struct http_listener *l, char **ret_address, struct error *e)
{
	int rc = uv_listen(&l->io.stream, LISTEN_BACKLOG, on_connection);
	char *address = listener_address(l);

	if (rc != 0) {
		refuse_address(address, rc, e);
		free(address);
		return rc == UV_EADDRINUSE ? ERR_EXISTS : ERR_NETWORK;
	}
	*ret_address = address;
	return 0;
}

int http_server_listen(struct http_server *s, const char *address, char **ret_address, struct error *e)
{
	struct http_listener *l;
	int rc = http_server_bind(s, address, &l, e);

	return rc ? rc : http_listener_listen(l, ret_address, e);
}

/* Removes a socket file that no process listens on. */
static int unix_socket_remove_stale(const char *path, const struct sockaddr_un *address, struct error *e)
{
	struct stat st;
	int fd, rc, why;

	if (lstat(path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return error_set(e, ERR_EXISTS, "%s exists and is not a socket", path);
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

int http_server_listen_unix(struct http_server *s, const char *path, struct error *e)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st = {0};
	int fd, rc;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(e, ERR_INVALID, "the path of the socket %s is too long", path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	rc = unix_socket_remove_stale(path, &address, e);
	if (rc)
		return rc;
	/* The socket's file has mode 0600 from the start: on Linux it gets the descriptor's mode. A change of the
	 * umask would affect other threads. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(e, ERR_IO, "socket: %s", strerror(errno));
	if (fchmod(fd, 0600) != 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		error_set(e, ERR_IO, "cannot bind %s: %s", path, strerror(errno));
		close(fd);
		return ERR_IO;
	}
	if (lstat(path, &st) != 0 || (st.st_mode & 0777) != 0600) {
		unlink(path);
		close(fd);
		return error_set(e, ERR_IO, "%s did not get mode 0600", path);
	}
	struct http_listener *l = listener_new(s);
	l->path = xstrdup(path);
	l->device = st.st_dev;
	l->inode = st.st_ino;
	uv_pipe_init(loop_uv(s->loop), &l->io.pipe, 0);
	rc = uv_pipe_open(&l->io.pipe, fd);
	if (rc != 0)
		close(fd);
	else
		rc = uv_listen(&l->io.stream, LISTEN_BACKLOG, on_connection);
	SLIST_INSERT_HEAD(&s->listeners, l, link);
	if (rc != 0)
		return error_set(e, ERR_NETWORK, "cannot listen on %s: %s", path, uv_strerror(rc));
	return 0;
}

/* ---- the end ---- */

static void server_free(void *p)
{
	struct http_server *s = p;
	void (*on_closed)(void *owner) = s->on_closed;
	void *owner = s->closed_owner;

	http_routes_release(&s->routes);
	http_blocks_release();
	http_group_amounts_free(s->shared_bytes);
	http_group_amounts_free(s->n_sending);
	http_tls_free(s->tls);
	http_group_amounts_free(s->bodies.of_one);
	http_group_amounts_free(s->open_of);
	http_group_amounts_free(s->known_until);
	buf_release(&s->out_head);
	free(s);
	if (on_closed)
		on_closed(owner);
}

void http_server_check_closed(struct http_server *s)
{
	if (!s->is_closing || s->is_gone || s->n_conns || s->n_listeners)
		return;
	s->is_gone = true;
	timer_close(s->tick);
	/* after everything of this server that already waits for the reaper */
	loop_reap(s->loop, server_free, s);
}

void http_server_close(struct http_server *s, int64_t grace_ms, void (*on_closed)(void *owner), void *owner)
{
	struct http_conn *next;
	struct http_listener *l;

	if (s->is_closing)
		return;
	s->is_closing = true;
	s->on_closed = on_closed;
	s->closed_owner = owner;
	s->close_by_ms = loop_now_ms(s->loop) + grace_ms;
	s->tick_ms = min_ms(s->tick_ms, grace_ms / 4 > 5 ? grace_ms / 4 : 5);
	timer_start(s->tick, s->tick_ms);
	while ((l = SLIST_FIRST(&s->listeners))) {
		struct stat st;

		SLIST_REMOVE_HEAD(&s->listeners, link);
		if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->device && st.st_ino == l->inode)
			unlink(l->path);
		uv_close(&l->io.handle, on_listener_closed);
	}
	for (struct http_conn *c = LIST_FIRST(&s->conns); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->state == HTTP_CONN_IDLE || c->state == HTTP_CONN_HANDSHAKE)
			http_conn_drop(c);
	}
	http_server_check_closed(s);
}
