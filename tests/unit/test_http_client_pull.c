/* Answers that are read piece by piece, from servers that are verbose, silent or broken. */
#include <setjmp.h>

#include <cmocka.h>

#include <sys/eventfd.h>

#include "http/client.h"
#include "loopback.h"
#include "secret_of.h"

enum { PIECES = 600, PIECE_BYTES = 64 * 1024 }; /* more than a puller keeps in memory */

struct fixture {
	struct loopback *server;
	struct http_puller *puller;
	struct http_call call;
	char *url;
};

static void open_at(struct fixture *f, void (*serve)(struct loopback *lb, int fd))
{
	*f = (struct fixture){.server = loopback_start(serve, NULL), .puller = http_puller_new("outpost-test")};
	f->url = xasprintf("http://127.0.0.1:%d/", f->server->port);
	f->call.method = "GET";
	f->call.url = f->url;
}

static void close_all(struct fixture *f)
{
	http_puller_free(f->puller);
	http_call_release(&f->call);
	loopback_stop(f->server);
	free(f->url);
}

static void serve_long(struct loopback *lb, int fd)
{
	struct buf in = BUF_INIT(1 << 20);
	char *piece = xcalloc(1, PIECE_BYTES), head[100];

	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", PIECES * PIECE_BYTES);
	while (loopback_read_request(lb, fd, &in)) {
		loopback_send(fd, head, strlen(head));
		for (int i = 0; i < PIECES; i++) {
			memset(piece, 'a' + i % 26, PIECE_BYTES);
			loopback_send(fd, piece, PIECE_BYTES);
		}
	}
	free(piece);
	buf_release(&in);
}

static void a_long_answer_arrives_whole_over_one_connection(void **state)
{
	struct fixture f;
	char *piece = xcalloc(1, 100001);

	(void)state;
	open_at(&f, serve_long);
	for (int round = 0; round < 2; round++) {
		size_t total = 0, n;

		assert_int_equal(http_pull_start(f.puller, &f.call, -1), 0);
		assert_int_equal(f.call.status, 200);
		for (;;) {
			assert_int_equal(http_pull_read(f.puller, piece, 100001, &n), 0);
			if (!n)
				break;
			assert_int_equal(piece[0], 'a' + (int)(total / PIECE_BYTES) % 26);
			assert_int_equal(piece[n - 1], 'a' + (int)((total + n - 1) / PIECE_BYTES) % 26);
			total += n;
			assert_true(f.call.answer.len < 8 << 20);
		}
		assert_int_equal(total, PIECES * PIECE_BYTES);
		http_pull_end(f.puller);
	}
	assert_int_equal(atomic_load(&f.server->n_connections), 1);
	free(piece);
	close_all(&f);
}

static void an_exchange_may_end_in_the_middle(void **state)
{
	struct fixture f;
	char piece[10];
	size_t n;

	(void)state;
	open_at(&f, serve_long);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(http_pull_start(f.puller, &f.call, -1), 0);
		assert_int_equal(http_pull_read(f.puller, piece, sizeof(piece), &n), 0);
		assert_memory_equal(piece, "aaaaaaaaaa", 10);
		http_pull_end(f.puller);
	}
	close_all(&f);
}

static void serve_redirect(struct loopback *lb, int fd)
{
	static const char answer[] = "HTTP/1.1 307 x\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";
	struct buf in = BUF_INIT(1 << 20);

	while (loopback_read_request(lb, fd, &in))
		loopback_send(fd, answer, sizeof(answer) - 1);
	buf_release(&in);
}

static void a_redirect_is_an_answer(void **state)
{
	struct fixture f;
	char location[20], piece[10];
	size_t n;

	(void)state;
	open_at(&f, serve_redirect);
	assert_int_equal(http_pull_start(f.puller, &f.call, -1), 0);
	assert_int_equal(f.call.status, 307);
	assert_true(http_call_header(&f.call, "Location", location, sizeof(location)));
	assert_string_equal(location, "/elsewhere");
	assert_int_equal(http_pull_read(f.puller, piece, sizeof(piece), &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(atomic_load(&f.server->n_requests), 1);
	close_all(&f);
}

static void serve_silent(struct loopback *lb, int fd)
{
	(void)lb;
	loopback_wait_for_close(fd);
}

static void a_silent_server_is_ended_by_a_timeout_or_a_cancel(void **state)
{
	const uint64_t one = 1;
	int cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct fixture f;

	(void)state;
	open_at(&f, serve_silent);
	f.call.total_timeout_ms = 50;
	assert_int_equal(http_pull_start(f.puller, &f.call, cancel_fd), ERR_TIMEOUT);
	assert_int_equal(f.call.err, ERR_TIMEOUT);
	f.call.why.code = 0;
	f.call.total_timeout_ms = 0;
	assert_int_equal(write(cancel_fd, &one, sizeof(one)), sizeof(one));
	assert_int_equal(http_pull_start(f.puller, &f.call, cancel_fd), ERR_CANCELLED);
	close(cancel_fd);
	close_all(&f);
}

static void serve_cut(struct loopback *lb, int fd)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
	struct buf in = BUF_INIT(1 << 20);

	if (loopback_read_request(lb, fd, &in))
		loopback_send(fd, text, sizeof(text) - 1);
	buf_release(&in);
}

static void a_truncated_answer_is_an_error_after_its_bytes(void **state)
{
	struct fixture f;
	char piece[10];
	size_t n;

	(void)state;
	open_at(&f, serve_cut);
	assert_int_equal(http_pull_start(f.puller, &f.call, -1), 0);
	assert_int_equal(http_pull_read(f.puller, piece, sizeof(piece), &n), 0);
	assert_int_equal(n, 4);
	assert_int_equal(http_pull_read(f.puller, piece, sizeof(piece), &n), ERR_PROTOCOL);
	assert_int_equal(n, 0);
	close_all(&f);
}

static bool allow_none(const uint8_t address[16], void *owner)
{
	(void)address;
	(void)owner;
	return false;
}

static void an_address_may_be_refused(void **state)
{
	struct fixture f;

	(void)state;
	open_at(&f, serve_redirect);
	f.call.allow_address = allow_none;
	f.call.allow_plain_http = true;
	assert_int_equal(http_pull_start(f.puller, &f.call, -1), ERR_DENIED);
	assert_int_equal(atomic_load(&f.server->n_connections), 0);
	f.call.why.code = 0;
	f.call.allow_plain_http = false;
	assert_int_equal(http_pull_start(f.puller, &f.call, -1), ERR_INVALID);
	close_all(&f);
}

/* Answers with the request. */
static void serve_echo(struct loopback *lb, int fd)
{
	struct buf in = BUF_INIT(8 << 20);
	char head[100];

	while (loopback_read_request(lb, fd, &in)) {
		snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", in.len);
		loopback_send(fd, head, strlen(head));
		loopback_send(fd, in.data, in.len);
	}
	buf_release(&in);
}

static void pull_all(struct fixture *f, struct buf *out)
{
	char piece[10000];
	size_t n = 1;

	while (n) {
		assert_int_equal(http_pull_read(f->puller, piece, sizeof(piece), &n), 0);
		assert_int_equal(buf_append(out, piece, n), 0);
	}
}

static void a_file_is_sent_and_the_request_is_signed(void **state)
{
	static const char *const headers[] = {
	    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", NULL};
	const size_t n = 3 << 20;
	char *text = xmalloc(n);
	FILE *file = tmpfile();
	struct buf echo = BUF_INIT(8 << 20);
	struct secret *access_key = secret_of("AKIA"), *secret_key = secret_of("sesame");
	const struct http_signing signing = {.region = "eu-1", .access_key = access_key, .secret_key = secret_key};
	struct http_file whole = {.fd = fileno(file), .bytes = (int64_t)n},
			 longer = {.fd = fileno(file), .bytes = (int64_t)n + 1};
	struct fixture f;

	(void)state;
	memset(text, 'x', n);
	memcpy(text + n - 3, "end", 3);
	assert_int_equal(fwrite(text, 1, n, file), n);
	assert_int_equal(fflush(file), 0);
	open_at(&f, serve_echo);
	f.call.method = "PUT";
	f.call.headers = headers;
	f.call.file = &whole;
	f.call.signing = &signing;
	assert_int_equal(http_pull_start(f.puller, &f.call, -1), 0);
	pull_all(&f, &echo);
	const char *body = strstr(buf_str(&echo), "\r\n\r\n") + 4;
	assert_int_equal(echo.len - (size_t)(body - echo.data), n);
	assert_memory_equal(body, text, n);
	assert_non_null(strstr(echo.data, "Authorization: AWS4-HMAC-SHA256 Credential=AKIA/"));
	assert_non_null(
	    strstr(echo.data, "/eu-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, "));
	assert_null(strstr(echo.data, "Content-Type"));
	http_pull_end(f.puller);
	/* The file is shorter than it was. */
	f.call.file = &longer;
	assert_int_equal(http_pull_start(f.puller, &f.call, -1), ERR_IO);
	close_all(&f);
	secret_unref(access_key);
	secret_unref(secret_key);
	buf_release(&echo);
	fclose(file);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_long_answer_arrives_whole_over_one_connection),
	    cmocka_unit_test(an_exchange_may_end_in_the_middle),
	    cmocka_unit_test(a_redirect_is_an_answer),
	    cmocka_unit_test(a_silent_server_is_ended_by_a_timeout_or_a_cancel),
	    cmocka_unit_test(a_truncated_answer_is_an_error_after_its_bytes),
	    cmocka_unit_test(an_address_may_be_refused),
	    cmocka_unit_test(a_file_is_sent_and_the_request_is_signed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
