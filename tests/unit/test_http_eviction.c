/* Findings 2 and 3: a full server. Which connection gives way to which, and which never does. */
#include <setjmp.h>

#include <cmocka.h>

#include "http_rig.h"

#define HOST     "Host: x\r\n"
#define GET_PAGE "GET /page HTTP/1.1\r\n" HOST "\r\n"
#define LOG_IN   "GET /login HTTP/1.1\r\n" HOST "\r\n"
#define HOLD     "GET /hold HTTP/1.1\r\n" HOST "\r\n"

enum { N_HELD_MAX = 128, STRANGER = 66, KNOWN = 2, OTHER = 3 };

/* The request that a handler keeps until the client asks for /release. */
static struct {
	struct http_request *at[N_HELD_MAX];
	int n;
} held;

static void page(struct http_request *r, void *owner)
{
	(void)owner;
	http_respond_json1(r, 200, "page", "text");
}

static void log_in(struct http_request *r, void *owner)
{
	http_note_authenticated(r);
	page(r, owner);
}

static void hold(struct http_request *r, void *owner)
{
	struct rig *g = owner;

	assert(held.n < N_HELD_MAX);
	held.at[held.n++] = r;
	sem_post(&g->event);
}

static void release_all(struct http_request *r, void *owner)
{
	while (held.n)
		page(held.at[--held.n], owner);
	page(r, owner);
}

static void echo_bytes(struct http_request *r, void *owner)
{
	char text[24];
	size_t n;

	(void)owner;
	http_body(r, &n);
	snprintf(text, sizeof(text), "%zu", n);
	http_respond_json1(r, 200, "bytes", text);
}

/* Notifies when the first 60000 bytes of a body have arrived. */
static void ring(struct http_request *r, const char *p, size_t n, void *owner)
{
	struct rig *g = owner;
	uintptr_t so_far = (uintptr_t)http_user(r);

	(void)p;
	http_set_user(r, (void *)(so_far + n));
	if (so_far < 60000 && so_far + n >= 60000)
		sem_post(&g->event);
}

static void counters(struct http_request *r, void *owner)
{
	struct rig *g = owner;
	const struct http_counters *c = http_server_counters(g->server);
	char text[200];

	snprintf(text, sizeof(text), "%lld %lld %lld / %lld %lld %lld", (long long)c->n_evicted_full,
	    (long long)c->n_evicted_share, (long long)c->n_refused_connections, (long long)c->n_bodies_evicted_full,
	    (long long)c->n_bodies_evicted_share, (long long)c->n_bodies_refused);
	http_respond(r, 200, "text/plain", NULL, text, strlen(text));
}

static const struct http_route ROUTES[] = {
    {.method = "GET", .pattern = "/page", .on_request = page},
    {.method = "GET", .pattern = "/login", .on_request = log_in},
    {.method = "GET", .pattern = "/hold", .on_request = hold},
    {.method = "GET", .pattern = "/release", .on_request = release_all},
    {.method = "GET", .pattern = "/counters", .on_request = counters},
    {.method = "POST", .pattern = "/body", .max_body_bytes = 8 << 20, .on_piece = ring, .on_request = echo_bytes},
};

static void counters_are(int fd, const char *expected)
{
	struct rig_answer a;

	rig_say(fd, "GET /counters HTTP/1.1\r\n" HOST "\r\n");
	a = rig_answer(fd, false);
	if (strcmp(buf_str(&a.body), expected) != 0)
		fail_msg("'%s' instead of '%s'", buf_str(&a.body), expected);
	rig_answer_release(&a);
}

static bool trusts_ten(const uint8_t address[16], void *owner)
{
	(void)owner;
	return address[12] == 127 && address[15] == 10;
}

/* A busy machine may pause a test for longer than a deadline, which would close a connection that the test still needs. */
static struct http_limits without_deadlines(void)
{
	struct http_limits limits = HTTP_LIMITS_DEFAULT;

	limits.first_byte_timeout_ms = limits.header_timeout_ms = limits.body_timeout_ms = limits.idle_timeout_ms =
	    limits.write_timeout_ms = 3600000;
	return limits;
}

static void serve(const struct http_limits *limits, void (*client)(struct rig *g))
{
	struct rig g = {0};

	rig_open(&g, limits, ROUTES, ARRAY_LEN(ROUTES));
	http_server_trust_proxies(g.server, trusts_ten, NULL);
	rig_run(&g, client);
	held.n = 0;
}

/* Asks again until the server has seen that another connection was closed. Returns the connection with the answer. */
static int release_as(struct rig *g, int host)
{
	for (;;) {
		int fd = rig_connect_as(g, host);

		if (rig_ask(fd, "GET /release HTTP/1.1\r\n" HOST "\r\n") == 200)
			return fd;
		close(fd);
	}
}

/* ---- connections ---- */

static void crowding_client(struct rig *g)
{
	int silent, half, answered, fd;

	/* Each uses an address of its own, because the largest client gives way first. Each sends a request, so that
	 * the next is younger by at least one turn of the loop. */
	silent = rig_connect_as(g, STRANGER);
	half = rig_connect_as(g, STRANGER + 1);
	rig_say(half, "GET /pa");
	answered = rig_connect_as(g, STRANGER + 2);
	assert(rig_ask(answered, GET_PAGE) == 200);
	for (int i = 0; i < 3; i++) {
		fd = rig_connect_as(g, OTHER + i);
		assert(rig_ask(fd, GET_PAGE) == 200);
	}
	/* The connection that waited longest was closed first, and no client got a 503. */
	assert(rig_is_closed(silent) && rig_is_closed(half) && rig_is_closed(answered));
	counters_are(fd, "3 0 0 / 0 0 0");
}

static void a_new_connection_replaces_the_one_that_waited_longest(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.max_connections = 3;
	serve(&limits, crowding_client);
}

static void held_client(struct rig *g)
{
	int first = rig_connect_as(g, STRANGER), second = rig_connect_as(g, STRANGER);
	int fd = rig_connect_as(g, OTHER), late;

	assert(rig_ask(fd, GET_PAGE) == 200);
	rig_say(first, HOLD);
	rig_say(second, HOLD);
	rig_wait(g);
	rig_wait(g);
	/* Takes the place of fd; then no connection is left that may be closed. */
	late = rig_connect_as(g, OTHER);
	rig_say(late, HOLD);
	rig_wait(g);
	assert(rig_is_closed(fd));
	close(fd);
	fd = rig_connect_as(g, OTHER);
	assert(rig_ask(fd, "") == 503);
	close(fd);
	close(late);
	fd = release_as(g, OTHER);
	assert(rig_ask(first, "") == 200 && rig_ask(second, "") == 200);
	close(first);
	close(second);
	close(fd);
}

static void a_request_in_a_handler_is_never_evicted(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.max_connections = 3;
	serve(&limits, held_client);
}

static void sharing_client(struct rig *g)
{
	int other = rig_connect_as(g, OTHER), fds[4];

	assert(rig_ask(other, GET_PAGE) == 200);
	for (int i = 0; i < 4; i++) {
		fds[i] = rig_connect_as(g, STRANGER);
		assert(rig_ask(fds[i], GET_PAGE) == 200);
	}
	/* Its own connections gave way, the older one of another client did not. */
	assert(rig_is_closed(fds[0]) && rig_is_closed(fds[1]));
	assert(rig_ask(fds[2], GET_PAGE) == 200);
	counters_are(other, "0 2 0 / 0 0 0");
}

static void one_client_has_a_share_of_the_connections(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.max_connections = 100;
	limits.max_connections_of_one = 2;
	serve(&limits, sharing_client);
}

static void proxying_client(struct rig *g)
{
	int fds[6];

	for (int i = 0; i < 6; i++) {
		fds[i] = rig_connect_as(g, 10);
		assert(rig_ask(fds[i], GET_PAGE) == 200);
	}
	for (int i = 0; i < 6; i++)
		assert(rig_ask(fds[i], GET_PAGE) == 200);
	counters_are(fds[0], "0 0 0 / 0 0 0");
}

static void a_trusted_proxy_has_no_share(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.max_connections_of_one = 2;
	serve(&limits, proxying_client);
}

static void known_client(struct rig *g)
{
	int authenticated = rig_connect_as(g, KNOWN), same = rig_connect_as(g, KNOWN);
	int proxy = rig_connect_as(g, 10), fd, n = 0;

	assert(rig_ask(authenticated, LOG_IN) == 200);
	assert(rig_ask(same, GET_PAGE) == 200);
	assert(rig_ask(proxy, GET_PAGE) == 200);
	/* Many more unknown clients than places. */
	for (int i = 0; i < 10; i++) {
		fd = rig_connect_as(g, STRANGER + i);
		assert(rig_ask(fd, GET_PAGE) == 200);
	}
	assert(rig_ask(authenticated, LOG_IN) == 200);
	assert(rig_ask(same, GET_PAGE) == 200);
	assert(rig_ask(proxy, GET_PAGE) == 200);
	/* Unknown clients hold all places but these three: now their requests are in handlers, so the known client's
	 * other connection is closed, and then its authenticated one and the proxy's. */
	rig_say(fd, HOLD);
	rig_wait(g);
	fd = rig_connect_as(g, OTHER);
	assert(rig_ask(fd, GET_PAGE) == 200);
	rig_say(fd, HOLD);
	rig_wait(g);
	for (; n < 2; n++) {
		fd = rig_connect_as(g, OTHER + n);
		rig_say(fd, HOLD);
		rig_wait(g);
	}
	assert(rig_is_closed(same));
	close(authenticated);
	close(proxy);
	close(release_as(g, KNOWN));
}

static void known_clients_are_evicted_last(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.max_connections = 5;
	serve(&limits, known_client);
}

/* 128 places, of which two are reserved. */
static void keeping_client(struct rig *g)
{
	int fds[N_HELD_MAX], fd = rig_connect_as(g, KNOWN);

	assert(rig_ask(fd, LOG_IN) == 200);
	close(fd);
	for (int i = 0; i < N_HELD_MAX - 2; i++) {
		fds[i] = rig_connect_as(g, STRANGER + i % 8);
		rig_say(fds[i], HOLD);
		rig_wait(g);
	}
	fd = rig_connect_as(g, STRANGER);
	assert(rig_ask(fd, "") == 503);
	close(fd);
	fd = rig_connect_as(g, KNOWN);
	assert(rig_ask(fd, GET_PAGE) == 200);
	assert(rig_ask(fd, "GET /release HTTP/1.1\r\n" HOST "\r\n") == 200);
	for (int i = 0; i < N_HELD_MAX - 2; i++) {
		assert(rig_ask(fds[i], "") == 200);
		close(fds[i]);
	}
	close(fd);
}

static void places_are_reserved_for_known_clients(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.max_connections = N_HELD_MAX;
	serve(&limits, keeping_client);
}

/* 64 places, of which one is reserved. */
static void forgotten_client(struct rig *g)
{
	int fds[63], fd = rig_connect_as(g, KNOWN), n_let_in = 0, status;

	assert(rig_ask(fd, LOG_IN) == 200);
	close(fd);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = rig_connect_as(g, STRANGER + (int)i % 8);
		rig_say(fds[i], HOLD);
		rig_wait(g);
	}
	/* It may have the last place as long as it is known, which ends even if it connects again. */
	do {
		fd = rig_connect_as(g, KNOWN);
		status = rig_ask(fd, GET_PAGE);
		close(fd);
		assert(++n_let_in < 10000);
	} while (status == 200);
	assert(status == 503);
	/* A trusted proxy may always have that place. */
	fd = release_as(g, 10);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		assert(rig_ask(fds[i], "") == 200);
		close(fds[i]);
	}
	close(fd);
}

static void a_known_client_is_forgotten(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.max_connections = 64;
	limits.known_ms = 50;
	serve(&limits, forgotten_client);
}

static void silent_client(struct rig *g)
{
	int silent = rig_connect(g), answered = rig_connect(g), n_tries = 0;

	/* on a busy machine the first byte may be late here too */
	while (rig_ask(answered, GET_PAGE) != 200) {
		assert(++n_tries < 1000);
		close(answered);
		answered = rig_connect(g);
	}
	assert(rig_is_closed(silent));
	assert(rig_ask(answered, GET_PAGE) == 200);
	close(silent);
	close(answered);
}

static void the_first_byte_has_a_shorter_deadline_than_the_next_request(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.first_byte_timeout_ms = 50;
	serve(&limits, silent_client);
}

/* ---- bodies ---- */

#define BODY_BYTES 100000

static char *zeros(size_t n)
{
	char *p = xmalloc(n);

	memset(p, '0', n);
	return p;
}

/* 60001 of 100000 bytes, which use 65535. */
static int begin_slow_body(struct rig *g, int host, const char *header)
{
	int fd = rig_connect_as(g, host);
	char *body = zeros(60001);
	char *head = xasprintf("POST /body HTTP/1.1\r\n" HOST "%sContent-Length: %d\r\n\r\n", header, BODY_BYTES);

	rig_say(fd, head);
	rig_send(fd, body, 60001);
	rig_wait(g);
	free(head);
	free(body);
	return fd;
}

static int send_body(int fd, const char *header, size_t n)
{
	char *body = zeros(n);
	char *head = xasprintf("POST /body HTTP/1.1\r\n" HOST "%sContent-Length: %zu\r\n\r\n", header, n);
	int status;

	rig_say(fd, head);
	rig_send(fd, body, n);
	status = rig_ask(fd, "");
	free(head);
	free(body);
	return status;
}

static void slow_body_client(struct rig *g)
{
	int slow = begin_slow_body(g, STRANGER, ""), slower = begin_slow_body(g, STRANGER, "");
	int fd = rig_connect_as(g, OTHER);

	assert(send_body(fd, "", 20000) == 200);
	assert(rig_ask(slow, "") == 503);
	assert(rig_is_closed(slow));
	counters_are(fd, "0 0 0 / 1 0 0");
	close(slow);
	close(slower);
	close(fd);
}

static void a_slow_body_gives_its_memory_to_a_new_request(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.max_total_body_bytes = 150000;
	limits.slow_body_ms = 0;
	serve(&limits, slow_body_client);
}

static void body_share_client(struct rig *g)
{
	/* Two clients of one proxy. */
	int slow = begin_slow_body(g, 10, "X-Forwarded-For: 192.0.2.66\r\n");
	int other = begin_slow_body(g, 10, "X-Forwarded-For: 192.0.2.3\r\n");
	int fd = rig_connect_as(g, 10);
	char *rest = zeros(BODY_BYTES - 60001);

	assert(send_body(fd, "X-Forwarded-For: 192.0.2.66\r\n", 50000) == 200);
	assert(rig_ask(slow, "") == 503);
	rig_send(other, rest, BODY_BYTES - 60001);
	assert(rig_ask(other, "") == 200);
	counters_are(fd, "0 0 0 / 0 1 0");
	free(rest);
	close(slow);
	close(other);
	close(fd);
}

static void one_client_has_a_share_of_the_memory_for_bodies(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.max_body_bytes_of_one = 110000;
	limits.slow_body_ms = 0;
	serve(&limits, body_share_client);
}

static void reserve_client(struct rig *g)
{
	int held_up = begin_slow_body(g, STRANGER, ""), fd = rig_connect_as(g, OTHER);

	/* Of 8 MiB a small body may use all, a large one only seven eighths. */
	assert(send_body(fd, "", (7 << 20) + 1) == 503);
	close(fd);
	fd = rig_connect_as(g, OTHER);
	assert(send_body(fd, "", 250 << 10) == 200);
	counters_are(fd, "0 0 0 / 0 0 1");
	close(held_up);
	close(fd);
}

static void memory_is_reserved_for_small_bodies(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.max_total_body_bytes = 8 << 20;
	limits.slow_body_ms = 3600000; /* none is slow */
	serve(&limits, reserve_client);
}

/* Again while the machine is so busy that the window ends before a MiB has arrived. */
static void large_body_client(struct rig *g)
{
	char *start = zeros((1 << 20) + 1);
	bool is_large = false;

	for (int n_tries = 0; !is_large; n_tries++) {
		int fd = rig_connect(g);
		struct rig_answer a;

		rig_say(fd, "POST /body HTTP/1.1\r\n" HOST "Content-Length: 8000000\r\n\r\n");
		rig_send(fd, start, (1 << 20) + 1);
		a = rig_answer(fd, false);
		assert(a.status == 408);
		is_large = strstr(buf_str(&a.body), "large and came too slowly");
		rig_answer_release(&a);
		close(fd);
		assert(n_tries < 1000);
	}
	free(start);
}

/* So long a window that one MiB at its start is less than its floor. */
static void a_large_body_must_keep_its_speed(void **state)
{
	struct http_limits limits = without_deadlines();

	(void)state;
	limits.body_timeout_ms = 50;
	serve(&limits, large_body_client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_new_connection_replaces_the_one_that_waited_longest),
	    cmocka_unit_test(a_request_in_a_handler_is_never_evicted),
	    cmocka_unit_test(one_client_has_a_share_of_the_connections),
	    cmocka_unit_test(a_trusted_proxy_has_no_share),
	    cmocka_unit_test(known_clients_are_evicted_last),
	    cmocka_unit_test(places_are_reserved_for_known_clients),
	    cmocka_unit_test(a_known_client_is_forgotten),
	    cmocka_unit_test(the_first_byte_has_a_shorter_deadline_than_the_next_request),
	    cmocka_unit_test(a_slow_body_gives_its_memory_to_a_new_request),
	    cmocka_unit_test(one_client_has_a_share_of_the_memory_for_bodies),
	    cmocka_unit_test(memory_is_reserved_for_small_bodies),
	    cmocka_unit_test(a_large_body_must_keep_its_speed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
