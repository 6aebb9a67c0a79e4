#include "steps/relay.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "config/config.h"

enum { CONNECT_SECONDS = 20, CONNECTIONS_MAX = 32, CHUNK_BYTES = 64 * 1024, PAUSE_MS = 50 };

/* RFC 1928, 6 */
enum { SOCKS_DONE = 0, SOCKS_NOT_ALLOWED = 2, SOCKS_NOT_CONNECTED = 5 };

struct connection {
	const struct git_url *to;
	const struct network_list *allowed;
	int fd; /* to git */
	int notes_fd;
};

/* ---- addresses ---- */

static bool to_address(const struct sockaddr *a, uint8_t ret[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (a && a->sa_family == AF_INET6) {
		memcpy(ret, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, 16);
		return true;
	}
	if (!a || a->sa_family != AF_INET)
		return false;
	memcpy(ret, mapped, sizeof(mapped));
	memcpy(ret + 12, &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
	return true;
}

/* True for an address of this machine, and if its addresses cannot be listed. Without this check a public
 * address of the machine would be a way round its firewall. */
static bool is_own_address(const uint8_t address[16])
{
	struct ifaddrs *all = NULL;
	bool is_mine = false;

	if (getifaddrs(&all))
		return true;
	for (const struct ifaddrs *i = all; i && !is_mine; i = i->ifa_next) {
		uint8_t one[16];

		is_mine = to_address(i->ifa_addr, one) && memcmp(one, address, 16) == 0;
	}
	freeifaddrs(all);
	return is_mine;
}

/* The operator's list comes first, because it overrules what follows: plain http reaches nothing else, and no URL
 * reaches a special address or this machine's own. */
bool relay_may_reach(const struct git_url *to, const struct network_list *allowed, const uint8_t address[16])
{
	return network_contains(allowed->items, allowed->n, address) ||
	       (!to->is_plain && !network_is_private(address) && !is_own_address(address));
}

/* ---- one connection, in a process of its own ---- */

/* Answers git that there is no connection, leaves the reason for relay_stop(), and ends this process. */
static void __attribute__((noreturn))
refuse_connection(const struct connection *l, uint8_t reply, enum relay_trouble why)
{
	uint8_t answer[10] = {5, reply, 0, 1};
	char note = (char)why;

	(void)!write(l->notes_fd, &note, 1); /* it only explains; git sees the failure in any case */
	_exit(write(l->fd, answer, sizeof(answer)) < 0);
}

static bool read_all(int fd, void *to, size_t n)
{
	for (uint8_t *p = to; n > 0;) {
		ssize_t got = read(fd, p, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static bool write_all(int fd, const void *from, size_t n)
{
	for (const uint8_t *p = from; n > 0;) {
		ssize_t put = write(fd, p, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		p += put;
		n -= (size_t)put;
	}
	return true;
}

/* Reads git's request. True if it names exactly the URL's host and port: a literal address must be the URL's
 * address, a name must be the URL's name, and a name with a NUL byte is refused. */
static bool read_request(const struct connection *l)
{
	static const uint8_t no_login[2] = {5, 0};
	uint8_t head[4], length, text[256], address[16] = {[10] = 0xff, [11] = 0xff}, port[2];
	bool is_right;

	if (!read_all(l->fd, head, 2) || head[0] != 5 || !read_all(l->fd, text, head[1]) ||
	    !write_all(l->fd, no_login, sizeof(no_login)) || !read_all(l->fd, head, 4) || head[0] != 5 || head[1] != 1)
		_exit(1);
	switch (head[3]) {
	case 1:
	case 4:
		is_right = (head[3] == 1 ? read_all(l->fd, address + 12, 4) : read_all(l->fd, address, 16)) &&
			   l->to->is_address && memcmp(address, l->to->address, 16) == 0;
		break;
	case 3:
		if (!read_all(l->fd, &length, 1) || !read_all(l->fd, text, length))
			_exit(1);
		text[length] = '\0';
		is_right = strlen((char *)text) == length && !strcasecmp((char *)text, l->to->host);
		break;
	default:
		_exit(1);
	}
	return read_all(l->fd, port, 2) && is_right && port[0] << 8 == (l->to->port & 0xff00) &&
	       port[1] == (l->to->port & 0xff);
}

/* Looks the host up and connects to its first address that may be reached. Each address is checked in the form in
 * which it is then connected. -1 and *ret_any: an address may be reached, or the name server did not answer, so
 * a later try may succeed. */
static int connect_out(const struct connection *l, bool *ret_any)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
	struct timeval wait = {.tv_sec = CONNECT_SECONDS};
	char port[8];
	int fd = -1;

	snprintf(port, sizeof(port), "%d", l->to->port);
	int rc = getaddrinfo(l->to->host, port, &hints, &all);
	*ret_any = rc == EAI_AGAIN;
	if (rc)
		return -1;
	for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
		uint8_t address[16];

		if (!to_address(a->ai_addr, address) || !relay_may_reach(l->to, l->allowed, address))
			continue;
		*ret_any = true;
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		/* This also bounds connect(). */
		if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) ||
				   connect(fd, a->ai_addr, a->ai_addrlen))) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(all);
	return fd;
}

/* Copies one chunk. False at the end of `from`: then `to` is shut down for writing. */
static bool copy_chunk(int from, int to)
{
	static uint8_t chunk[CHUNK_BYTES];
	ssize_t n = read(from, chunk, sizeof(chunk));

	if (n < 0 && errno == EINTR)
		return true;
	if (n > 0 && write_all(to, chunk, (size_t)n))
		return true;
	shutdown(to, SHUT_WR);
	return false;
}

/* Nothing is connected before the request was checked. The send timeout is only for connect(). */
static void run_connection(const struct connection *l)
{
	static const uint8_t done[10] = {5, SOCKS_DONE, 0, 1};
	struct timeval forever = {.tv_sec = 0};
	bool any, is_up = true, is_down = true;

	if (!read_request(l))
		refuse_connection(l, SOCKS_NOT_ALLOWED, RELAY_UNREACHABLE);
	int out = connect_out(l, &any);
	if (out < 0 && any)
		refuse_connection(l, SOCKS_NOT_CONNECTED, RELAY_NOT_CONNECTED);
	if (out < 0)
		refuse_connection(l, SOCKS_NOT_ALLOWED, RELAY_UNREACHABLE);
	setsockopt(out, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof(forever));
	if (!write_all(l->fd, done, sizeof(done)))
		return;
	while (is_up || is_down) {
		struct pollfd fds[] = {
		    {.fd = is_up ? l->fd : -1, .events = POLLIN}, {.fd = is_down ? out : -1, .events = POLLIN}};

		if (poll(fds, ARRAY_LEN(fds), -1) < 0)
			continue;
		if (fds[0].revents)
			is_up = copy_chunk(l->fd, out);
		if (fds[1].revents)
			is_down = copy_chunk(out, l->fd);
	}
}

/* ---- the server ---- */

/* Ends this process when its parent ends, also by SIGKILL. `parent` is checked after the death signal is set, so
 * that a parent that died in between is noticed. */
static void end_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1);
}

/* Accepts connections forever, each in a process of its own. */
static void __attribute__((noreturn)) serve_connections(int server, struct connection *l)
{
	pid_t me = getpid();
	int n = 0;

	prctl(PR_SET_NAME, "outpost-relay");
	for (;;) {
		while (n > 0 && waitpid(-1, NULL, n < CONNECTIONS_MAX ? WNOHANG : 0) > 0)
			n--;
		l->fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
		if (l->fd < 0) {
			/* Without a free descriptor the connection stays in the queue, and accept
			 * would fail again at once: wait. */
			if (errno != EINTR && errno != ECONNABORTED)
				poll(NULL, 0, PAUSE_MS);
			continue;
		}
		switch (fork()) {
		case 0:
			end_with_parent(me);
			run_connection(l);
			_exit(0);
		case -1:
			break;
		default:
			n++;
		}
		close(l->fd);
	}
}

int relay_start(const struct git_url *to, const struct network_list *allowed, struct relay *ret, struct error *e)
{
	struct connection l = {.to = to, .allowed = allowed};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	pid_t me = getpid();
	int notes[2], rc = 0, server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret = (struct relay){.notes_fd = -1};
	if (server < 0 || bind(server, (struct sockaddr *)&a, n) || listen(server, CONNECTIONS_MAX) ||
	    getsockname(server, (struct sockaddr *)&a, &n)) {
		rc = error_set(e, ERR_IO, "no port on loopback for git: %s", strerror(errno));
		if (server >= 0)
			close(server);
		return rc;
	}
	ret->port = ntohs(a.sin_port);
	if (pipe2(notes, O_CLOEXEC | O_NONBLOCK)) {
		rc = error_set(e, ERR_IO, "no descriptors: %s", strerror(errno));
		close(server);
		return rc;
	}
	fflush(NULL);
	ret->pid = fork();
	if (ret->pid == 0) {
		setpgid(0, 0);
		end_with_parent(me);
		l.notes_fd = notes[1];
		serve_connections(server, &l);
	}
	if (ret->pid < 0)
		rc = error_set(e, ERR_IO, "no new process: %s", strerror(errno));
	else
		setpgid(ret->pid, ret->pid);
	close(server);
	close(notes[1]);
	ret->notes_fd = notes[0];
	if (rc)
		close(notes[0]);
	return rc;
}

enum relay_trouble relay_stop(struct relay *r)
{
	enum relay_trouble worst = RELAY_FINE;
	char c;

	kill(-r->pid, SIGKILL);
	/* When it is gone, its connections become our children. */
	while (waitpid(-r->pid, NULL, 0) > 0 || errno == EINTR)
		;
	while (read(r->notes_fd, &c, 1) == 1)
		if ((enum relay_trouble)c > worst)
			worst = (enum relay_trouble)c;
	close(r->notes_fd);
	return worst;
}
