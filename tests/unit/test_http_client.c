/* The client against servers that are silent, broken, slow or huge. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "http/client.h"
#include "loopback.h"

struct fixture {
	struct loop *loop;
	struct http_client *client;
};

struct one {
	struct http_call call;
	bool is_done;
	struct fixture *f;
	struct one *cancel_when_done;
	bool close_when_done;
};

static void on_closed(void *owner) { *(bool *)owner = true; }

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->loop = loop_new();
	f->client = http_client_new(f->loop, "outpost-test");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	bool is_closed = false;

	if (f->client) {
		http_client_close(f->client, on_closed, &is_closed);
		loop_run_until(f->loop, &is_closed);
	}
	loop_free(f->loop);
	free(f);
	return 0;
}

static void on_done(struct http_call *call)
{
	struct one *o = CONTAINER_OF(call, struct one, call);

	assert_false(o->is_done);
	o->is_done = true;
	if (o->cancel_when_done)
		http_call_cancel(o->f->client, &o->cancel_when_done->call);
	if (o->close_when_done) {
		http_client_close(o->f->client, NULL, NULL);
		o->f->client = NULL;
	}
}

static void start(struct fixture *f, struct one *o, const char *url)
{
	o->f = f;
	o->call.done = on_done;
	o->call.url = url;
	if (!o->call.method)
		o->call.method = "GET";
	http_call_start(f->client, &o->call);
	assert_false(o->is_done);
}

static void run(struct fixture *f, struct one *o, const char *url)
{
	start(f, o, url);
	loop_run_until(f->loop, &o->is_done);
	assert_true(o->is_done);
}

static char *url_of(const struct loopback *lb, const char *path)
{
	return xasprintf("http://127.0.0.1:%d%s", lb->port, path);
}

/* ---- servers ---- */

static void send_answer(int fd, const char *head, const char *body)
{
	char *text = xasprintf("HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", head, strlen(body), body);

	loopback_send(fd, text, strlen(text));
	free(text);
}

/* Answers with the whole received request. */
static void serve_echo(struct loopback *lb, int fd)
{
	struct buf in = BUF_INIT(8 << 20);

	while (loopback_read_request(lb, fd, &in))
		send_answer(fd, "200 OK\r\nX-One: 1\r\nX-Two:  two words \r\nX-One: last", buf_str(&in));
	buf_release(&in);
}

static void serve_silent(struct loopback *lb, int fd)
{
	(void)lb;
	loopback_wait_for_close(fd);
}

static void serve_one_byte(struct loopback *lb, int fd)
{
	(void)lb;
	loopback_send(fd, "H", 1);
	loopback_wait_for_close(fd);
}

static void serve_reset(struct loopback *lb, int fd)
{
	struct buf in = BUF_INIT(1 << 20);
	struct linger linger = {.l_onoff = 1};

	loopback_read_request(lb, fd, &in);
	buf_release(&in);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static void serve_cut(struct loopback *lb, int fd)
{
	struct buf in = BUF_INIT(1 << 20);
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";

	loopback_read_request(lb, fd, &in);
	buf_release(&in);
	loopback_send(fd, text, sizeof(text) - 1);
}

static void serve_endless(struct loopback *lb, int fd)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	static const char chunk[] = "10\r\n0123456789abcdef\r\n";
	struct buf in = BUF_INIT(1 << 20);
	bool is_open = loopback_read_request(lb, fd, &in);

	buf_release(&in);
	loopback_send(fd, head, sizeof(head) - 1);
	while (is_open)
		is_open = send(fd, chunk, sizeof(chunk) - 1, MSG_NOSIGNAL) > 0;
}

static void serve_endless_headers(struct loopback *lb, int fd)
{
	static const char line[] = "X-Filler: 0123456789012345678901234567890123456789\r\n";
	struct buf in = BUF_INIT(1 << 20);
	bool is_open = loopback_read_request(lb, fd, &in);

	buf_release(&in);
	loopback_send(fd, "HTTP/1.1 200 OK\r\n", 17);
	while (is_open)
		is_open = send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL) > 0;
}

static void serve_redirect(struct loopback *lb, int fd)
{
	struct buf in = BUF_INIT(1 << 20);

	while (loopback_read_request(lb, fd, &in))
		send_answer(fd, "302 Found\r\nLocation: /elsewhere", "");
	buf_release(&in);
}

/* Answers the first request of its first connection, reads the second and sends nothing. */
static void serve_one_answer(struct loopback *lb, int fd)
{
	struct buf in = BUF_INIT(1 << 20);

	if (loopback_read_request(lb, fd, &in)) {
		send_answer(fd, "200 OK", "");
		loopback_read_request(lb, fd, &in);
	}
	buf_release(&in);
}

/* ---- tests ---- */

static void test_exchange(void **state)
{
	static const char *const headers[] = {"X-Mine: yes", "Content-Type: application/json", NULL};
	struct fixture *f = *state;
	struct loopback *lb = loopback_start(serve_echo, NULL);
	struct one o = {.call = {.method = "POST", .headers = headers, .body = "{}", .body_bytes = 2}};
	char *url = url_of(lb, "/a?b=c"), value[32];

	run(f, &o, url);
	assert_int_equal(o.call.err, 0);
	assert_int_equal(o.call.status, 200);
	assert_true(o.call.was_sent);
	assert_non_null(strstr(buf_str(&o.call.answer), "POST /a?b=c HTTP/1.1\r\n"));
	assert_non_null(strstr(buf_str(&o.call.answer), "X-Mine: yes\r\n"));
	assert_non_null(strstr(buf_str(&o.call.answer), "User-Agent: outpost-test\r\n"));
	assert_non_null(strstr(buf_str(&o.call.answer), "\r\n\r\n{}"));
	assert_null(strstr(buf_str(&o.call.answer), "form-urlencoded"));
	assert_true(http_call_header(&o.call, "x-one", value, sizeof(value)));
	assert_string_equal(value, "last");
	assert_true(http_call_header(&o.call, "X-Two", value, sizeof(value)));
	assert_string_equal(value, "two words");
	assert_false(http_call_header(&o.call, "X-Two", value, 9));
	assert_false(http_call_header(&o.call, "X-Three", value, sizeof(value)));
	http_call_release(&o.call);
	free(url);
	loopback_stop(lb);
}

static void test_methods(void **state)
{
	struct fixture *f = *state;
	struct loopback *lb = loopback_start(serve_echo, NULL);
	struct one empty = {.call = {.method = "POST"}}, patch = {.call = {.method = "PATCH"}},
		   gone = {.call = {.method = "DELETE"}};
	char *url = url_of(lb, "/");

	run(f, &empty, url);
	assert_non_null(strstr(buf_str(&empty.call.answer), "Content-Length: 0\r\n"));
	patch.call.body = "x";
	patch.call.body_bytes = 1;
	run(f, &patch, url);
	assert_non_null(strstr(buf_str(&patch.call.answer), "PATCH / HTTP"));
	run(f, &gone, url);
	assert_non_null(strstr(buf_str(&gone.call.answer), "DELETE / HTTP"));
	assert_int_equal(lb->n_connections, 1); /* reused */
	http_call_release(&empty.call);
	http_call_release(&patch.call);
	http_call_release(&gone.call);
	free(url);
	loopback_stop(lb);
}

/* libcurl repeats a request that failed on a reused connection: if the server may have acted on it, that would create
 * a second comment, or send a check run's annotations twice. */
static void check_not_repeated(struct fixture *f, const char *method)
{
	struct loopback *lb = loopback_start(serve_one_answer, NULL);
	struct one first = {.call = {.method = method, .body = "x", .body_bytes = 1}};
	struct one second = first, get = {0};
	char *url = url_of(lb, "/");

	run(f, &first, url);
	assert_int_equal(first.call.status, 200);
	run(f, &second, url);
	assert_int_equal(second.call.err, ERR_NETWORK);
	assert_true(second.call.was_sent);
	assert_int_equal(lb->n_requests, 2);
	/* the client still works */
	run(f, &get, url);
	assert_int_equal(get.call.status, 200);
	http_call_release(&first.call);
	http_call_release(&second.call);
	http_call_release(&get.call);
	free(url);
	loopback_stop(lb);
}

static void test_requests_are_not_repeated(void **state)
{
	check_not_repeated(*state, "POST");
	check_not_repeated(*state, "PATCH");
}

enum { LONG_MS = 60 * 1000 };

static void check_failure(struct fixture *f, void (*serve)(struct loopback *, int), int err, size_t max_answer_bytes)
{
	struct loopback *lb = loopback_start(serve, NULL);
	struct one o = {0};
	char *url = url_of(lb, "/");
	int64_t began, timeout_ms = err == ERR_TIMEOUT ? 300 : LONG_MS;

	do { /* on a busy machine the time may end before the request is sent */
		http_call_release(&o.call);
		o = (struct one){.call = {.total_timeout_ms = timeout_ms, .max_answer_bytes = max_answer_bytes}};
		began = clock_mono_ms();
		run(f, &o, url);
		timeout_ms *= 4;
	} while (!o.call.was_sent && timeout_ms < LONG_MS);
	assert_int_equal(o.call.err, err);
	/* the beginning of an answer that is too long is returned */
	assert_int_equal(o.call.status, max_answer_bytes ? 200 : 0);
	assert_int_equal(o.call.why.code, err);
	assert_true(o.call.was_sent);
	if (err == ERR_TIMEOUT)
		assert_true(clock_mono_ms() - began >= 250);
	http_call_release(&o.call);
	free(url);
	loopback_stop(lb);
}

static void test_silent(void **state) { check_failure(*state, serve_silent, ERR_TIMEOUT, 0); }

static void test_server_that_falls_silent_after_one_byte(void **state)
{
	check_failure(*state, serve_one_byte, ERR_TIMEOUT, 0);
}

static void test_reset(void **state) { check_failure(*state, serve_reset, ERR_NETWORK, 0); }

static void test_cut(void **state) { check_failure(*state, serve_cut, ERR_PROTOCOL, 0); }

static void test_too_big(void **state) { check_failure(*state, serve_endless, ERR_TOO_BIG, 10000); }

static void test_headers_too_big(void **state) { check_failure(*state, serve_endless_headers, ERR_TOO_BIG, 0); }

static void test_refused_connection(void **state)
{
	struct loopback *lb = loopback_start(serve_silent, NULL);
	struct one o = {0};
	char *url = url_of(lb, "/");

	loopback_stop(lb);
	run(*state, &o, url);
	assert_int_equal(o.call.err, ERR_NETWORK);
	assert_false(o.call.was_sent);
	free(url);
}

static void test_upload(void **state)
{
	struct loopback *lb = loopback_start(serve_echo, NULL);
	size_t n = 3 << 20;
	char *body = xmalloc(n + 1), *url = url_of(lb, "/");
	struct one o = {.call = {.method = "PUT", .body = body, .body_bytes = n}};

	memset(body, 'x', n);
	body[n] = '\0';
	run(*state, &o, url);
	assert_int_equal(o.call.err, 0);
	assert_true(o.call.answer.len > n);
	assert_string_equal(buf_str(&o.call.answer) + o.call.answer.len - n, body);
	http_call_release(&o.call);
	free(body);
	free(url);
	loopback_stop(lb);
}

static void test_redirect_is_an_answer(void **state)
{
	struct loopback *lb = loopback_start(serve_redirect, NULL);
	char *url = url_of(lb, "/"), value[32];
	struct one o = {0};

	run(*state, &o, url);
	assert_int_equal(o.call.err, 0);
	assert_int_equal(o.call.status, 302);
	assert_true(http_call_header(&o.call, "Location", value, sizeof(value)));
	assert_int_equal(lb->n_requests, 1);
	http_call_release(&o.call);
	free(url);
	loopback_stop(lb);
}

static void test_cancel(void **state)
{
	struct fixture *f = *state;
	struct loopback *lb = loopback_start(serve_silent, NULL);
	char *url = url_of(lb, "/");
	struct one at_once = {0}, later = {0}, first = {.call = {.total_timeout_ms = 200}};

	start(f, &at_once, url);
	http_call_cancel(f->client, &at_once.call);
	http_call_cancel(f->client, &at_once.call);
	assert_false(at_once.is_done);
	loop_run_until(f->loop, &at_once.is_done);
	assert_int_equal(at_once.call.err, ERR_CANCELLED);
	http_call_cancel(f->client, &at_once.call);

	start(f, &later, url);
	first.cancel_when_done = &later;
	start(f, &first, url);
	loop_run_until(f->loop, &later.is_done);
	assert_true(first.is_done);
	assert_int_equal(first.call.err, ERR_TIMEOUT);
	assert_int_equal(later.call.err, ERR_CANCELLED);
	free(url);
	loopback_stop(lb);
}

static void test_close_inside_callback(void **state)
{
	struct fixture *f = *state;
	struct loopback *lb = loopback_start(serve_silent, NULL);
	char *url = url_of(lb, "/");
	struct one other = {0}, first = {.call = {.total_timeout_ms = 200}, .close_when_done = true};

	start(f, &other, url);
	start(f, &first, url);
	loop_run_until(f->loop, &first.is_done);
	assert_true(other.is_done);
	assert_int_equal(other.call.err, ERR_CANCELLED);
	free(url);
	loopback_stop(lb);
}

static bool refuse(const uint8_t address[16], void *owner)
{
	static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

	assert_memory_equal(address, loopback, 16);
	++*(int *)owner;
	return false;
}

static void test_address_check(void **state)
{
	struct fixture *f = *state;
	struct loopback *lb = loopback_start(serve_echo, NULL);
	char *url = url_of(lb, "/");
	int n_asked = 0;
	struct one o = {.call = {.allow_address = refuse, .allow_owner = &n_asked, .allow_plain_http = true}},
		   free_one = {0}, again = o, plain = o;

	run(f, &o, url);
	assert_int_equal(o.call.err, ERR_DENIED);
	assert_string_equal(o.call.why.text, "the address 127.0.0.1 is not allowed");
	assert_false(o.call.was_sent);
	assert_int_equal(n_asked, 1);
	assert_int_equal(lb->n_connections, 0);

	/* a connection of another call does not bypass the check */
	run(f, &free_one, url);
	assert_int_equal(free_one.call.err, 0);
	run(f, &again, url);
	assert_int_equal(again.call.err, ERR_DENIED);
	assert_false(again.call.was_sent);
	assert_int_equal(lb->n_requests, 1);

	plain.call.allow_plain_http = false;
	run(f, &plain, url);
	assert_int_equal(plain.call.err, ERR_INVALID);
	http_call_release(&free_one.call);
	free(url);
	loopback_stop(lb);
}

static bool may_go_out(const void *owner) { return *(const bool *)owner; }

/* Asked at the moment of sending, on a new connection and on one that is open. */
static void test_may_go_out(void **state)
{
	struct fixture *f = *state;
	struct loopback *lb = loopback_start(serve_echo, NULL);
	char *url = url_of(lb, "/");
	bool may = true;
	struct one first = {.call = {.may_go_out = may_go_out, .going_owner = &may}}, good = first, reused = first;

	start(f, &first, url);
	may = false;
	loop_run_until(f->loop, &first.is_done);
	assert_int_equal(first.call.err, ERR_CANCELLED);
	assert_false(first.call.was_sent);
	may = true;
	run(f, &good, url);
	assert_int_equal(good.call.err, 0);
	start(f, &reused, url);
	may = false;
	loop_run_until(f->loop, &reused.is_done);
	assert_int_equal(reused.call.err, ERR_CANCELLED);
	assert_false(reused.call.was_sent);
	assert_int_equal(lb->n_requests, 1);
	http_call_release(&good.call);
	free(url);
	loopback_stop(lb);
}

/* The client's end of the connection to the server. */
static int connection_to(const struct loopback *lb)
{
	for (int fd = 3; fd < 1024; fd++) {
		struct sockaddr_in peer;
		socklen_t n = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &n) == 0 && peer.sin_family == AF_INET &&
		    ntohs(peer.sin_port) == lb->port)
			return fd;
	}
	return -1;
}

static void test_confirm_within(void **state)
{
	static const int limits[] = {0, 5000};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct loopback *lb = loopback_start(serve_echo, NULL);
		char *url = url_of(lb, "/");
		struct one o = {0};
		int limit = -1;
		socklen_t n = sizeof(limit);

		http_client_confirm_within(f->client, limits[i]);
		run(f, &o, url);
		assert_int_equal(o.call.err, 0);
		assert_int_equal(getsockopt(connection_to(lb), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &n), 0);
		assert_int_equal(limit, limits[i]);
		http_call_release(&o.call);
		free(url);
		loopback_stop(lb);
	}
}

static void test_unix_socket(void **state)
{
	char folder[] = "/tmp/outpost-test-XXXXXX", *path;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct loopback *lb = xcalloc(1, sizeof(*lb));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct one o = {0};

	assert_non_null(mkdtemp(folder));
	path = xasprintf("%s/socket", folder);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	lb->serve = serve_echo;
	loopback_listen(lb, fd);
	o.call.unix_socket_path = path;
	run(*state, &o, "http://outpost/status");
	assert_int_equal(o.call.err, 0);
	assert_non_null(strstr(buf_str(&o.call.answer), "GET /status HTTP"));
	http_call_release(&o.call);
	loopback_stop(lb);
	unlink(path);
	rmdir(folder);
	free(path);
}

static void test_many(void **state)
{
	enum { N = 200, PER_HOST = 20 };
	struct fixture *f = *state;
	struct loopback *lb = loopback_start(serve_echo, NULL);
	char *url = url_of(lb, "/");
	struct one *all = xcalloc(N, sizeof(*all));

	http_client_limit(f->client, PER_HOST);
	for (int i = 0; i < N; i++)
		start(f, &all[i], url);
	for (int i = 0; i < N; i++) {
		loop_run_until(f->loop, &all[i].is_done);
		assert_int_equal(all[i].call.err, 0);
		http_call_release(&all[i].call);
	}
	assert_int_equal(lb->n_requests, N);
	assert_true(lb->n_connections <= PER_HOST);
	free(all);
	free(url);
	loopback_stop(lb);
}

static void test_waiting_for_a_connection_is_timed(void **state)
{
	struct fixture *f = *state;
	struct loopback *lb = loopback_start(serve_silent, NULL);
	char *url = url_of(lb, "/");
	struct one busy = {0}, waits = {.call = {.total_timeout_ms = 100}};

	http_client_limit(f->client, 1);
	start(f, &busy, url);
	start(f, &waits, url);
	loop_run_until(f->loop, &waits.is_done);
	assert_int_equal(waits.call.err, ERR_TIMEOUT);
	assert_false(waits.call.was_sent);
	assert_false(busy.is_done);
	http_call_cancel(f->client, &busy.call);
	loop_run_until(f->loop, &busy.is_done);
	free(url);
	loopback_stop(lb);
}

struct family {
	bool is_v4_allowed;
	int n_refused;
};

static bool allow_family(const uint8_t address[16], void *owner)
{
	struct family *family = owner;
	bool is_v4 = address[10] == 0xff && address[11] == 0xff;

	family->n_refused += is_v4 != family->is_v4_allowed;
	return is_v4 == family->is_v4_allowed;
}

/* A name with several addresses (libcurl knows localhost as ::1 and 127.0.0.1): the allowed one is used, and the
 * other does not make the successful call fail. One of the two calls meets the forbidden address first. */
static void test_one_address_of_two(void **state)
{
	int n_refused = 0;

	if (!loopback_has_v6())
		skip();
	for (int is_v4 = 0; is_v4 < 2; is_v4++) {
		struct family family = {.is_v4_allowed = is_v4};
		struct loopback *lb = is_v4 ? loopback_start(serve_echo, NULL) : loopback_start_v6(serve_echo, NULL);
		struct one o = {
		    .call = {.allow_address = allow_family, .allow_owner = &family, .allow_plain_http = true}};
		char *url = xasprintf("http://localhost:%d/", lb->port);

		run(*state, &o, url);
		assert_int_equal(o.call.err, 0);
		assert_int_equal(o.call.status, 200);
		assert_int_equal(o.call.why.code, 0);
		assert_int_equal(lb->n_requests, 1);
		n_refused += family.n_refused;
		http_call_release(&o.call);
		free(url);
		loopback_stop(lb);
	}
	assert_true(n_refused > 0);
}

static void test_invalid_requests_are_refused(void **state)
{
	static const char *const headers[] = {"X-A: b\r\nX-Injected: yes", NULL};
	struct one header = {.call = {.headers = headers}}, url = {0}, scheme = {0};

	run(*state, &header, "http://127.0.0.1:1/");
	assert_int_equal(header.call.err, ERR_INVALID);
	assert_null(strstr(header.call.why.text, "Injected"));
	run(*state, &url, "http://a\nb/");
	assert_int_equal(url.call.err, ERR_INVALID);
	run(*state, &scheme, "file:///etc/passwd");
	assert_int_equal(scheme.call.err, ERR_INVALID);
	assert_false(scheme.call.was_sent);
}

static void test_blocking(void **state)
{
	struct loopback *lb = loopback_start(serve_echo, NULL);
	char *url = url_of(lb, "/");
	struct http_call call = {.method = "GET", .url = url};

	(void)state;
	assert_int_equal(http_call_blocking(&call, "outpostctl", NULL), 0);
	assert_int_equal(call.status, 200);
	http_call_release(&call);
	free(url);
	loopback_stop(lb);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_exchange),
	    TEST(test_methods),
	    TEST(test_requests_are_not_repeated),
	    TEST(test_silent),
	    TEST(test_server_that_falls_silent_after_one_byte),
	    TEST(test_reset),
	    TEST(test_cut),
	    TEST(test_too_big),
	    TEST(test_headers_too_big),
	    TEST(test_refused_connection),
	    TEST(test_upload),
	    TEST(test_redirect_is_an_answer),
	    TEST(test_cancel),
	    TEST(test_close_inside_callback),
	    TEST(test_address_check),
	    TEST(test_may_go_out),
	    TEST(test_confirm_within),
	    TEST(test_one_address_of_two),
	    TEST(test_unix_socket),
	    TEST(test_many),
	    TEST(test_waiting_for_a_connection_is_timed),
	    TEST(test_invalid_requests_are_refused),
	    cmocka_unit_test(test_blocking),
	};

	unsetenv("http_proxy");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
