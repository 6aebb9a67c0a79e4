/* GitHub's two sides for the measurement of dispatching, in one cheap process, because it shares the cores with the daemon: it
 * sends webhooks, and it answers the daemon's requests.
 *
 *   wire FILE      FILE: webhooks as whole HTTP requests, "LENGTH\n" before each
 *
 * Prints the port of its API, then reads commands from standard input, and prints a JSON line for each:
 *   send PORT N CONNECTIONS TARGETS      the next N webhooks, each with TARGETS dispatches; {"seconds": until the last one}
 *   pace PORT N INTERVAL_MS TARGETS      one at a time; {"ms": [from the webhook to its last dispatch, ...]} */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { CONNS_MAX = 1024, HEAD_MAX = 16 << 10, FILE_MAX = 1 << 30, PATIENCE_MS = 60 * 1000 };

struct conn {
	bool is_client;
	size_t head_bytes, left; /* of the request or answer that is read; left: of its body */
	bool is_in_body;
	const char *out; /* client: the webhook that is being written */
	size_t out_left;
	char head[HEAD_MAX];
};

static struct conn *conns[CONNS_MAX]; /* by file descriptor */
static int epoll_fd, listen_fd;
static struct buf file = BUF_INIT(FILE_MAX);
static size_t file_at; /* the next webhook */
static int n_to_send, n_unanswered, n_dispatches;
static double last_dispatch_ms;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void give_up(const char *why)
{
	fprintf(stderr, "wire: %s: %m\n", why);
	exit(1);
}

static struct conn *watch(int fd, bool is_client)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	if (fd < 0 || fd >= CONNS_MAX || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e))
		give_up("a connection");
	conns[fd] = xcalloc(1, sizeof(*conns[fd]));
	conns[fd]->is_client = is_client;
	return conns[fd];
}

static void drop(int fd)
{
	close(fd);
	FREE_AND_NULL(conns[fd]);
}

/* ---- the API ---- */

static void answer(int fd, const char *path)
{
	static const char NO_CONTENT[] = "HTTP/1.1 204 No Content\r\n\r\n";
	char body[256] = "[]", expires[RFC3339_BYTES], text[600];
	const char *status = "200 OK";
	size_t n_path = strcspn(path, " ?");

	if (n_path > 11 && memcmp(path + n_path - 11, "/dispatches", 11) == 0) {
		n_dispatches++;
		last_dispatch_ms = now_ms();
		if (send(fd, NO_CONTENT, sizeof(NO_CONTENT) - 1, 0) < 0)
			give_up("an answer");
		return;
	}
	if (strstr(path, "/access_tokens")) {
		status = "201 Created";
		rfc3339_format(clock_wall_ms() + 3600 * 1000, expires);
		snprintf(body, sizeof(body), "{\"token\":\"ghs_bench\",\"expires_at\":\"%s\"}", expires);
	} else if (strstr(path, "/installation")) {
		snprintf(body, sizeof(body), "{\"id\":7001}");
	} else if (str_has_prefix(path, "/app ")) {
		snprintf(body, sizeof(body), "{\"id\":12345,\"slug\":\"outpost-bench\"}");
	} else if (strstr(path, "/branches/")) {
		snprintf(body, sizeof(body),
		    "{\"name\":\"main\",\"commit\":{\"sha\":\"%040d\",\"commit\":{\"message\":\"tip\"}}}", 7);
	}
	int n = snprintf(text, sizeof(text),
	    "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body),
	    body);
	if (send(fd, text, (size_t)n, 0) < 0)
		give_up("an answer");
}

/* ---- the webhooks ---- */

static void write_more(int fd, struct conn *c)
{
	ssize_t n = send(fd, c->out, c->out_left, MSG_DONTWAIT);
	struct epoll_event e = {.data.fd = fd};

	if (n < 0 && errno != EAGAIN)
		give_up("a webhook");
	c->out += n > 0 ? n : 0;
	c->out_left -= n > 0 ? (size_t)n : 0;
	e.events = c->out_left ? EPOLLIN | EPOLLOUT : EPOLLIN;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &e))
		give_up("epoll");
}

static void send_next(int fd, struct conn *c)
{
	char *rest;

	if (n_to_send == 0)
		return;
	c->out_left = strtoul(file.data + file_at, &rest, 10);
	c->out = rest + 1;
	file_at = (size_t)(c->out - file.data) + c->out_left;
	if (c->out_left == 0 || file_at > file.len)
		give_up("the file has no more webhooks");
	n_to_send--;
	n_unanswered++;
	write_more(fd, c);
}

static int connect_to(int port)
{
	struct sockaddr_in to = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		give_up("the daemon");
	return fd;
}

/* ---- both ---- */

/* A whole request or answer was read. */
static void on_message(int fd, struct conn *c)
{
	const char *path = strchr(c->head, ' ');

	if (!c->is_client) {
		answer(fd, path ? path + 1 : "");
		return;
	}
	if (!str_has_prefix(c->head, "HTTP/1.1 202"))
		give_up(c->head);
	n_unanswered--;
	send_next(fd, c);
}

static void read_some(int fd, struct conn *c)
{
	static char scratch[256 << 10];
	char *to = c->is_in_body ? scratch : c->head + c->head_bytes, *end, *length;
	ssize_t n = recv(fd, to, c->is_in_body ? sizeof(scratch) : HEAD_MAX - 1 - c->head_bytes, MSG_DONTWAIT);

	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			drop(fd);
		return;
	}
	if (c->is_in_body) {
		c->left -= (size_t)n;
	} else {
		c->head_bytes += (size_t)n;
		c->head[c->head_bytes] = '\0';
		end = strstr(c->head, "\r\n\r\n");
		if (!end)
			return;
		*end = '\0';
		length = strcasestr(c->head, "\r\nContent-Length:");
		c->left = (length ? strtoul(length + 17, NULL, 10) : 0) - (c->head_bytes - (size_t)(end + 4 - c->head));
		c->is_in_body = true;
	}
	if (c->left == 0) {
		c->is_in_body = false;
		c->head_bytes = 0;
		on_message(fd, c);
	}
}

/* Serves until all webhooks are answered and so many dispatches have come; with n < 0, until there is a command. */
static void serve(int n)
{
	while (n < 0 || n_to_send > 0 || n_unanswered > 0 || n_dispatches < n) {
		struct epoll_event events[64];
		int n_events = epoll_wait(epoll_fd, events, 64, n < 0 ? -1 : PATIENCE_MS);

		if (n_events == 0)
			give_up("a dispatch did not come");
		for (int i = 0; i < n_events; i++) {
			int fd = events[i].data.fd;

			if (fd == STDIN_FILENO && n < 0)
				return;
			if (fd == STDIN_FILENO || (fd != listen_fd && !conns[fd]))
				continue;
			if (fd == listen_fd)
				watch(accept(listen_fd, NULL, NULL), false);
			else if (events[i].events & EPOLLOUT && conns[fd]->out_left)
				write_more(fd, conns[fd]);
			else
				read_some(fd, conns[fd]);
		}
	}
}

static void send_all(int port, int n, int n_conns, int targets)
{
	double begun_ms = now_ms();
	int *fds = xcalloc((size_t)n_conns, sizeof(*fds));

	n_to_send = n;
	n_dispatches = 0;
	for (int i = 0; i < n_conns; i++) {
		fds[i] = connect_to(port);
		send_next(fds[i], watch(fds[i], true));
	}
	serve(n * targets);
	for (int i = 0; i < n_conns; i++)
		drop(fds[i]);
	free(fds);
	printf("{\"seconds\":%.4f}\n", (last_dispatch_ms - begun_ms) / 1e3);
}

static void send_paced(int port, int n, int interval_ms, int targets)
{
	int fd = connect_to(port);

	watch(fd, true);
	printf("{\"ms\":[");
	for (int i = 0; i < n; i++) {
		double begun_ms = now_ms();

		n_to_send = 1;
		n_dispatches = 0;
		send_next(fd, conns[fd]);
		serve(targets);
		printf("%s%.3f", i ? "," : "", last_dispatch_ms - begun_ms);
		int rest_ms = interval_ms - (int)(now_ms() - begun_ms);
		if (rest_ms > 0)
			usleep((useconds_t)rest_ms * 1000);
	}
	drop(fd);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	struct error e = {0};
	struct epoll_event input = {.events = EPOLLIN, .data.fd = STDIN_FILENO};
	char line[200], verb[16];
	int port, count, third, targets;

	if (argc != 2 || file_read(argv[1], &file, &e)) {
		fprintf(stderr, "usage: wire FILE %s\n", e.text);
		return 2;
	}
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	epoll_fd = epoll_create1(0);
	listen_fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listen_fd, (struct sockaddr *)&at, n) || listen(listen_fd, 128) ||
	    getsockname(listen_fd, (struct sockaddr *)&at, &n) ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &input))
		give_up("the port");
	input.data.fd = listen_fd;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &input))
		give_up("epoll");
	printf("%d\n", ntohs(at.sin_port));
	for (;;) {
		serve(-1);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		if (sscanf(line, "%15s %d %d %d %d", verb, &port, &count, &third, &targets) != 5)
			give_up("a command");
		if (str_eq(verb, "send"))
			send_all(port, count, third, targets);
		else
			send_paced(port, count, third, targets);
	}
}
