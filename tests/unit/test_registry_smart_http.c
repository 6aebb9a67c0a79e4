/* Finding 11: the redirect of a git server is not followed, not even to another path of the same server; also other
 * answers that are not git's. tests/integration uses real git servers. */
#include <setjmp.h>

#include <cmocka.h>

#include <sys/eventfd.h>

#include "loopback.h"
#include "registry/fetch.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"
#define REFS                                                                                                           \
	"001e# service=git-upload-pack\n0000"                                                                          \
	"0052" SHA " refs/heads/main\0 ofs-delta agent=x/1\n"                                                          \
	"0000"

static const char *head; /* status line and headers of the next answers */
static bool is_elsewhere_asked;

/* A path other than the requested one has the references that must not be read. */
static void serve(struct loopback *lb, int fd)
{
	static const char refs[] = REFS;
	struct buf in = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);

	while (loopback_read_request(lb, fd, &in)) {
		bool is_elsewhere = strncmp(buf_str(&in), "GET /elsewhere", 14) == 0;

		is_elsewhere_asked |= is_elsewhere;
		buf_clear(&out);
		buf_appendf(&out, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n",
		    is_elsewhere ? "200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement" : head,
		    sizeof(refs) - 1);
		buf_append(&out, refs, sizeof(refs) - 1);
		loopback_send(fd, out.data, out.len);
	}
	buf_release(&in);
	buf_release(&out);
}

struct asked {
	int err;
	char sha[41], why[504];
};

static struct asked ask_with(const char *answer, size_t n_bytes)
{
	struct loopback *server = loopback_start(serve, NULL);
	struct bounds b = {.deadline_mono_ms = clock_mono_ms() + 60000,
	    .n_bytes_left = (int64_t)n_bytes,
	    .cancel_fd = eventfd(0, EFD_CLOEXEC)};
	char *url = xasprintf("http://127.0.0.1:%d/x.git/", server->port);
	struct error e = {0};
	struct asked r = {0};

	head = answer;
	is_elsewhere_asked = false;
	assert_int_equal(fetch_setup(&e), 0);
	r.err = fetch_head(url, "main", &b, r.sha, &e);
	snprintf(r.why, sizeof(r.why), "%s", e.text);
	assert_false(is_elsewhere_asked);
	loopback_stop(server);
	close(b.cancel_fd);
	free(url);
	return r;
}

static void git_answers(void **state)
{
	struct asked r = ask_with("200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement", 10000);

	(void)state;
	assert_int_equal(r.err, 0);
	assert_string_equal(r.sha, SHA);
}

static void no_redirect_is_followed(void **state)
{
	static const char *const answers[] = {
	    "301 x\r\nLocation: /elsewhere/x.git/info/refs?service=git-upload-pack",
	    "302 x\r\nLocation: /elsewhere/x.git/info/refs?service=git-upload-pack",
	    "303 x\r\nLocation: /elsewhere/x.git/info/refs?service=git-upload-pack",
	    "307 x\r\nLocation: /elsewhere/x.git/info/refs?service=git-upload-pack",
	    "308 x\r\nLocation: /elsewhere/x.git/info/refs?service=git-upload-pack",
	    "302 x\r\nLocation: /elsewhere\r\nContent-Type: "
	    "application/x-git-upload-pack-advertisement",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct asked r = ask_with(answers[i], 10000);

		assert_int_equal(r.err, ERR_DENIED);
		assert_non_null(strstr(r.why, "it redirects to /elsewhere"));
	}
}

static void a_location_is_shown_sanitized_and_short(void **state)
{
	char *answer = xasprintf("302 x\r\nLocation: /\x1b[31m\xe2\x80\xae%0900d", 1);
	struct asked r = ask_with(answer, 10000);

	(void)state;
	assert_int_equal(r.err, ERR_DENIED);
	assert_null(strchr(r.why, '\x1b'));
	assert_null(strstr(r.why, "\xe2\x80\xae"));
	assert_non_null(strstr(r.why, ", and redirects are not followed"));
	free(answer);
}

static void other_answers_have_their_reason(void **state)
{
	(void)state;
	assert_string_equal(ask_with("404 x", 10000).why, "the server answered 404");
	assert_string_equal(ask_with("401 x", 10000).why, "the server answered 401");
	assert_non_null(strstr(ask_with("200 OK\r\nContent-Type: text/html", 10000).why, "the answer is not git's"));
	assert_non_null(strstr(ask_with("200 OK", 10000).why, "the answer is not git's"));
}

static void the_bytes_are_bounded(void **state)
{
	struct asked r = ask_with("200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement", 20);

	(void)state;
	assert_int_equal(r.err, ERR_TOO_BIG);
	assert_string_equal(r.why, "the server sends too much, cancelled");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(git_answers),
	    cmocka_unit_test(no_redirect_is_followed),
	    cmocka_unit_test(a_location_is_shown_sanitized_and_short),
	    cmocka_unit_test(other_answers_have_their_reason),
	    cmocka_unit_test(the_bytes_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
