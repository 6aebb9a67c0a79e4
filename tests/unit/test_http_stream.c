/* Long answers, long bodies, clients that leave, and the end of the server. */
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/un.h>

#include <cmocka.h>

#include "http_rig.h"

#define HOST "Host: x\r\n"

#define PIECE    16384
#define N_PIECES 800

/* State of the request under test; the loop's, read by the client after the event. */
static struct {
	struct http_request *request;
	struct rig *rig;
	int n_left;
	size_t max_pending;
	size_t n_received;
	int n_gone;
	struct timer *timer;
} seen;

static void clear_seen(struct rig *g)
{
	memset(&seen, 0, sizeof(seen));
	seen.rig = g;
}

/* ---- answers that are streamed ---- */

static void write_more(struct http_request *r)
{
	static char piece[PIECE];

	memset(piece, 'x', sizeof(piece));
	while (seen.n_left && http_stream_pending(r) < 4 * PIECE) {
		seen.n_left--;
		http_stream_write(r, piece, sizeof(piece));
		if (http_stream_pending(r) > seen.max_pending)
			seen.max_pending = http_stream_pending(r);
	}
	if (seen.n_left == 0)
		http_stream_end(r);
}

static void on_stream_gone(struct http_request *r)
{
	(void)r;
	seen.n_gone++;
	sem_post(&seen.rig->event);
}

static void download(struct http_request *r, void *owner)
{
	(void)owner;
	seen.n_left = N_PIECES;
	http_on_gone(r, on_stream_gone);
	http_stream_begin(r, 200, "text/plain", NULL, write_more);
}

/* Begins an answer and sends nothing more. */
static void hang(struct http_request *r, void *owner)
{
	struct rig *g = owner;

	seen.request = r;
	http_on_gone(r, on_stream_gone);
	http_stream_begin(r, 200, "text/plain", NULL, NULL);
	http_stream_write(r, "hi", 2);
	sem_post(&g->event);
}

/* ---- bodies that are streamed ---- */

static void on_unpause(struct timer *t)
{
	http_resume_body(seen.request);
	timer_stop(t);
}

static void upload(struct http_request *r, void *owner)
{
	(void)owner;
	seen.request = r;
	http_on_gone(r, on_stream_gone);
}

static void upload_piece(struct http_request *r, const char *p, size_t n, void *owner)
{
	char text[32];

	(void)owner;
	if (n == 0) {
		snprintf(text, sizeof(text), "%zu", seen.n_received);
		http_respond(r, 200, "text/plain", NULL, text, strlen(text));
		return;
	}
	assert(p[0] == 'y' && p[n - 1] == 'y');
	seen.n_received += n;
	if (!timer_is_running(seen.timer)) {
		http_pause_body(r);
		timer_start(seen.timer, 1);
	}
}

static void log_begin(struct http_request *r, void *owner)
{
	struct rig *g = owner;

	http_on_gone(r, on_stream_gone);
	sem_post(&g->event);
}

static void log_piece(struct http_request *r, const char *p, size_t n, void *owner)
{
	(void)p;
	(void)owner;
	if (n == 0)
		http_respond_json1(r, 200, "a", "b");
}

/* ---- requests whose client leaves ---- */

static void wait_gone(struct http_request *r, void *owner)
{
	struct rig *g = owner;

	http_on_gone(r, on_stream_gone);
	sem_post(&g->event);
}

static void answer_too_late(struct timer *t)
{
	struct http_request *r = seen.request;
	size_t n;
	char *body;

	if (http_server_n_connections(seen.rig->server) != 0) {
		timer_start(t, 1);
		return;
	}
	/* The handler can still read the whole request. */
	body = http_detach_body(r, &n);
	assert(n == 5 && strcmp(body, "hello") == 0);
	free(body);
	assert(strcmp(http_path(r), "/stubborn") == 0);
	assert(strcmp(http_client_address(r), "127.0.0.1") == 0);
	http_respond_json1(r, 200, "never", "heard");
	timer_close(t);
	sem_post(&seen.rig->event);
}

/* Sets no on_gone and answers after the client has certainly left. */
static void stubborn(struct http_request *r, void *owner)
{
	struct rig *g = owner;

	seen.request = r;
	timer_start(timer_new(g->loop, answer_too_late, NULL), 1);
	sem_post(&g->event);
}

static void answer_slowly(struct timer *t)
{
	http_respond_json1(seen.request, 200, "a", "b");
	timer_close(t);
}

static void slow(struct http_request *r, void *owner)
{
	struct rig *g = owner;

	seen.request = r;
	timer_start(timer_new(g->loop, answer_slowly, NULL), 100);
	sem_post(&g->event);
}

static const struct http_route ROUTES[] = {
    {.method = "GET", .pattern = "/download", .on_request = download},
    {.method = "GET", .pattern = "/hang", .on_request = hang},
    {.method = "PUT",
	.pattern = "/upload",
	.max_body_bytes = 8 << 20,
	.body_mode = HTTP_BODY_STREAM,
	.on_request = upload,
	.on_body = upload_piece},
    {.method = "PUT",
	.pattern = "/log",
	.max_body_bytes = 100,
	.body_mode = HTTP_BODY_STREAM,
	.body_silence_ms = 100000,
	.on_request = log_begin,
	.on_body = log_piece},
    {.method = "PUT",
	.pattern = "/short",
	.max_body_bytes = 100,
	.body_mode = HTTP_BODY_STREAM,
	.on_request = log_begin,
	.on_body = log_piece},
    {.method = "GET", .pattern = "/wait", .on_request = wait_gone},
    {.method = "GET", .pattern = "/slow", .on_request = slow},
    {.method = "POST", .pattern = "/stubborn", .max_body_bytes = 10, .on_request = stubborn},
};

static void serve(const struct http_limits *limits, void (*client)(struct rig *g))
{
	struct rig g = {0};

	clear_seen(&g);
	rig_open(&g, limits, ROUTES, ARRAY_LEN(ROUTES));
	rig_run(&g, client);
}

static void download_client(struct rig *g)
{
	static const char TAIL[] = "\r\n0\r\n\r\n";
	struct buf b = BUF_INIT(64 << 20);
	int fd = rig_connect_from(g, 8192);
	size_t expected;

	rig_say(fd, "GET /download HTTP/1.1\r\n" HOST "\r\n");
	assert(rig_receive_head(fd, &b));
	assert(strstr(b.data, "\r\nTransfer-Encoding: chunked\r\n"));
	expected = b.len + N_PIECES * (PIECE + strlen("4000\r\n\r\n")) + strlen("0\r\n\r\n");
	assert(rig_receive(fd, &b, expected));
	assert(strcmp(b.data + b.len - strlen(TAIL), TAIL) == 0);
	assert(seen.max_pending < 6 * PIECE);
	/* The connection is still usable. */
	assert(rig_ask(fd, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n") == 404);
	close(fd);
	buf_clear(&b);
	fd = rig_connect(g);
	rig_say(fd, "GET /download HTTP/1.0\r\n\r\n");
	rig_receive_all(fd, &b);
	assert(!strstr(b.data, "chunked") && strstr(b.data, "\r\nConnection: close\r\n"));
	assert(strlen(strstr(b.data, "\r\n\r\n")) == 4 + N_PIECES * PIECE);
	close(fd);
	buf_release(&b);
	fd = rig_connect(g);
	assert(rig_ask(fd, "HEAD /download HTTP/1.1\r\n" HOST "\r\n") == 200);
	assert(rig_ask(fd, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n") == 404);
	close(fd);
}

static void streams_with_backpressure(void **state)
{
	(void)state;
	serve(NULL, download_client);
	assert_int_equal(seen.n_gone, 0);
}

static void upload_client(struct rig *g)
{
	size_t n = 3000000;
	char *body = xmalloc(n);
	struct rig_answer a;
	int fd = rig_connect(g);

	memset(body, 'y', n);
	rig_say(fd, "PUT /upload HTTP/1.1\r\n" HOST "Content-Length: 3000000\r\n\r\n");
	rig_send(fd, body, n);
	a = rig_answer(fd, false);
	assert(a.status == 200 && strcmp(buf_str(&a.body), "3000000") == 0);
	rig_answer_release(&a);
	/* A body that ends early. */
	rig_say(fd, "PUT /upload HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nyyyyy");
	close(fd);
	rig_wait(g);
	assert(seen.n_gone == 1);
	/* A body that breaks the rules. */
	fd = rig_connect(g);
	assert(rig_ask(fd, "PUT /upload HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
			   "1\r\nyX") == 400);
	rig_wait(g);
	assert(seen.n_gone == 2);
	close(fd);
	free(body);
}

static void close_timer(struct rig *g)
{
	(void)g;
	timer_close(seen.timer);
}

static void streams_a_body_with_pauses(void **state)
{
	struct rig g = {0};

	(void)state;
	clear_seen(&g);
	rig_open(&g, NULL, ROUTES, ARRAY_LEN(ROUTES));
	seen.timer = timer_new(g.loop, on_unpause, NULL);
	g.on_end = close_timer;
	rig_run(&g, upload_client);
}

static void silent_client(struct rig *g)
{
	int patient = rig_connect(g), hasty = rig_connect(g);

	rig_say(patient, "PUT /log HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\ny");
	rig_wait(g);
	assert(rig_ask(hasty, "PUT /short HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\ny") == 408);
	rig_wait(g);
	rig_wait(g);
	assert(seen.n_gone == 1);
	assert(rig_ask(patient, "y") == 200);
	close(patient);
	close(hasty);
}

static void each_route_has_its_own_read_timeout(void **state)
{
	struct http_limits limits = HTTP_LIMITS_DEFAULT;

	(void)state;
	limits.body_timeout_ms = 100;
	serve(&limits, silent_client);
}

/* Whether the server's side of the only connection has TCP keepalive. */
static bool is_peer_watched(const struct rig *g)
{
	bool is_watched = false;

	for (int fd = 0; fd < 256; fd++) {
		struct sockaddr_in own, peer;
		socklen_t n_own = sizeof(own), n_peer = sizeof(peer), n = sizeof(int);
		int on = 0;

		if (getsockname(fd, (struct sockaddr *)&own, &n_own) == 0 && own.sin_family == AF_INET &&
		    ntohs(own.sin_port) == g->port && getpeername(fd, (struct sockaddr *)&peer, &n_peer) == 0 &&
		    getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &n) == 0)
			is_watched |= on != 0;
	}
	return is_watched;
}

static void vanishing_client(struct rig *g)
{
	int fd = rig_connect(g);

	rig_say(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
	rig_wait(g);
	assert(!is_peer_watched(g)); /* the peer answers soon, or its silence shows that it is gone */
	close(fd);
	rig_wait(g);
	fd = rig_connect(g);
	rig_say(fd, "GET /hang HTTP/1.1\r\n" HOST "\r\n");
	rig_wait(g);
	assert(is_peer_watched(g));
	close(fd);
	rig_wait(g);
}

static void the_client_of_a_long_answer_is_probed(void **state)
{
	(void)state;
	serve(NULL, vanishing_client);
}

static void gone_client(struct rig *g)
{
	const struct linger reset = {.l_onoff = 1};
	int fd = rig_connect(g);

	rig_say(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
	rig_wait(g);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	rig_wait(g);
	assert(seen.n_gone == 1);
	/* An orderly end of the client is accepted after a moment. */
	fd = rig_connect(g);
	rig_say(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
	rig_wait(g);
	shutdown(fd, SHUT_WR);
	rig_wait(g);
	assert(seen.n_gone == 2);
	close(fd);
	/* The client leaves during a streamed answer. */
	fd = rig_connect(g);
	rig_say(fd, "GET /hang HTTP/1.1\r\n" HOST "\r\n");
	rig_wait(g);
	close(fd);
	rig_wait(g);
	assert(seen.n_gone == 3);
}

static void notifies_when_the_client_is_gone(void **state)
{
	(void)state;
	serve(NULL, gone_client);
}

static void stubborn_client(struct rig *g)
{
	const struct linger reset = {.l_onoff = 1};
	int fd = rig_connect(g);

	rig_say(fd, "POST /stubborn HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
	rig_wait(g);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	rig_wait(g);
}

static void an_answer_after_the_client_left_is_dropped(void **state)
{
	(void)state;
	serve(NULL, stubborn_client);
}

static void deaf_client(struct rig *g)
{
	int fd = rig_connect_from(g, 8192);

	rig_say(fd, "GET /download HTTP/1.1\r\n" HOST "\r\n");
	rig_wait(g);
	assert(seen.n_gone == 1);
	close(fd);
}

static void an_answer_that_the_client_does_not_read_times_out(void **state)
{
	struct http_limits limits = HTTP_LIMITS_DEFAULT;

	(void)state;
	limits.write_timeout_ms = 200;
	serve(&limits, deaf_client);
}

/* ---- the end ---- */

static void ending_client(struct rig *g)
{
	int idle = rig_connect(g), busy = rig_connect(g);

	assert(rig_ask(idle, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n") == 404);
	rig_say(busy, "GET /slow HTTP/1.1\r\n" HOST "\r\n");
	rig_wait(g);
	inbox_post(g->inbox, &g->over);
	assert(rig_is_closed(idle));
	assert(rig_ask(busy, "") == 200);
	assert(rig_is_closed(busy));
	close(idle);
	close(busy);
}

static void finishes_running_requests(void **state)
{
	struct rig g = {.ends_itself = true};

	(void)state;
	clear_seen(&g);
	rig_open(&g, NULL, ROUTES, ARRAY_LEN(ROUTES));
	rig_run(&g, ending_client);
}

static void stuck_client(struct rig *g)
{
	int fd = rig_connect(g);

	rig_say(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
	rig_wait(g);
	inbox_post(g->inbox, &g->over);
	assert(rig_is_closed(fd));
	rig_wait(g);
	assert(seen.n_gone == 1);
	close(fd);
}

static void ends_after_the_grace_period(void **state)
{
	struct rig g = {.ends_itself = true, .grace_ms = 50};

	(void)state;
	clear_seen(&g);
	rig_open(&g, NULL, ROUTES, ARRAY_LEN(ROUTES));
	rig_run(&g, stuck_client);
}

/* ---- unix sockets ---- */

static char unix_path[64];

static void unix_client(struct rig *g)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), rc;

	(void)g;
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", unix_path);
	rc = connect(fd, (const struct sockaddr *)&sun, sizeof(sun));
	assert(rc == 0);
	assert(rig_ask(fd, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n") == 404);
	close(fd);
}

static void leave_stale_socket(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", unix_path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd);
}

static void listens_on_a_private_unix_socket(void **state)
{
	char folder[] = "/tmp/http-unix-XXXXXX";
	struct rig g = {0};
	struct error e = {0}, e2 = {0};
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(unix_path, sizeof(unix_path), "%s/s", folder);
	leave_stale_socket();
	clear_seen(&g);
	rig_open(&g, NULL, ROUTES, ARRAY_LEN(ROUTES));
	assert_int_equal(http_server_listen_unix(g.server, unix_path, &e), 0);
	assert_int_equal(stat(unix_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* Another server answers there now. */
	assert_int_equal(http_server_listen_unix(g.server, unix_path, &e), ERR_EXISTS);
	/* A folder is not replaced by a socket. */
	assert_int_equal(http_server_listen_unix(g.server, folder, &e2), ERR_EXISTS);
	rig_run(&g, unix_client);
	assert_int_not_equal(stat(unix_path, &st), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void names_bad_addresses(void **state)
{
	static const char *const BAD[] = {"", "8080", ":8080", "::1:80", "[::1]", "127.0.0.1:x"};
	struct rig g = {0};
	struct error e;
	char *address;

	(void)state;
	clear_seen(&g);
	rig_open(&g, NULL, ROUTES, ARRAY_LEN(ROUTES));
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		e = (struct error){0};
		assert_int_equal(http_server_listen(g.server, BAD[i], &address, &e), ERR_INVALID);
		assert_true(e.text[0]);
	}
	{
		char *taken = xasprintf("127.0.0.1:%d", g.port);

		e = (struct error){0};
		assert_int_equal(http_server_listen(g.server, taken, &address, &e), ERR_EXISTS);
		free(taken);
	}
	assert_int_equal(http_server_listen(g.server, "[::1]:0", &address, &e), 0);
	assert_true(str_has_prefix(address, "[::1]:"));
	free(address);
	http_server_close(g.server, 0, rig_on_closed, &g);
	loop_run(g.loop);
	loop_free(g.loop);
	sem_destroy(&g.event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(streams_with_backpressure),
	    cmocka_unit_test(streams_a_body_with_pauses),
	    cmocka_unit_test(each_route_has_its_own_read_timeout),
	    cmocka_unit_test(the_client_of_a_long_answer_is_probed),
	    cmocka_unit_test(notifies_when_the_client_is_gone),
	    cmocka_unit_test(an_answer_after_the_client_left_is_dropped),
	    cmocka_unit_test(an_answer_that_the_client_does_not_read_times_out),
	    cmocka_unit_test(finishes_running_requests),
	    cmocka_unit_test(ends_after_the_grace_period),
	    cmocka_unit_test(listens_on_a_private_unix_socket),
	    cmocka_unit_test(names_bad_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
