/* Finished logs in S3: a server in this process that keeps objects in memory and fails on demand, and a real one, which checks
 * the signatures (tests/integration/lib/s3-server.py; tests/integration/logs-place.test.mjs has the whole program). */
#include "logs_rig.h"

#include <signal.h>
#include <sys/wait.h>

#include "logs/logs_internal.h"
#include "loopback.h"
#include "secret_of.h"

enum { OBJECTS = 8 };

static struct server {
	struct loopback *lb;
	pthread_mutex_t lock;
	struct object {
		char path[640];
		char *bytes;
		size_t n;
	} objects[OBJECTS];
	/* the next answers: this text instead of the right one; "" closes the connection in the middle of the right one */
	const char *fault;
	int n_faults, n_puts, n_gets;
	const char *fault_after_list; /* becomes the fault of one answer */
	char query[512];              /* of the last list */
	char request[16384];          /* the head of the last request */
} server;

static void header_of(const char *request, const char *name, char *out, size_t size)
{
	const char *at = strcasestr(request, name);

	out[0] = '\0';
	if (at)
		snprintf(out, size, "%.*s", (int)strcspn(at + strlen(name), "\r"), at + strlen(name));
}

static void send_answer(int fd, const char *status, const char *headers, const char *body, size_t n, size_t n_sent)
{
	char head[512];

	snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status, headers, n);
	loopback_send(fd, head, strlen(head));
	loopback_send(fd, body, n_sent);
}

static struct object *object_of(const char *path)
{
	struct object *free_one = NULL;

	for (size_t i = 0; i < OBJECTS; i++) {
		if (str_eq(server.objects[i].path, path))
			return &server.objects[i];
		if (!free_one && !server.objects[i].path[0])
			free_one = &server.objects[i];
	}
	return free_one;
}

static bool answer_get(int fd, const struct object *o, const char *request, bool is_cut)
{
	char range[80], headers[120];
	long long from = 0, to = (long long)o->n - 1;

	if (!o->bytes) {
		static const char body[] = "<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>";

		send_answer(fd, "404 Not Found", "", body, strlen(body), strlen(body));
		return true;
	}
	header_of(request, "\r\nRange: bytes=", range, sizeof(range));
	if (range[0] == '-')
		from = (long long)o->n > atoll(range + 1) ? (long long)o->n - atoll(range + 1) : 0;
	else
		assert_int_equal(sscanf(range, "%lld-%lld", &from, &to), 2);
	snprintf(headers, sizeof(headers), "Content-Range: bytes %lld-%lld/%zu\r\n", from, to, o->n);
	size_t n = (size_t)(to - from + 1);
	send_answer(fd, "206 Partial Content", headers, o->bytes + from, n, is_cut ? n / 2 : n);
	return !is_cut;
}

static void answer_list(int fd)
{
	struct buf body = BUF_INIT(1 << 20);

	buf_append_str(&body, "<?xml version=\"1.0\"?><ListBucketResult><Name>b</Name>");
	for (size_t i = 0; i < OBJECTS; i++)
		if (server.objects[i].bytes && server.objects[i].path[0])
			buf_appendf(&body,
			    "<Contents><Key>%s</Key><LastModified>2026-01-02T03:04:05.678Z</LastModified></Contents>",
			    server.objects[i].path + strlen("/bucket/"));
	buf_append_str(&body, "<Contents><Key>logs/x/README &amp; more</Key></Contents></ListBucketResult>");
	send_answer(fd, "200 OK", "", buf_str(&body), body.len, body.len);
	buf_release(&body);
}

/* False: the connection is to be closed. */
static bool answer_s3(int fd, const struct buf *in)
{
	const char *request = buf_str(in);
	char method[16], target[600];
	bool is_cut = false;

	snprintf(
	    server.request, sizeof(server.request), "%.*s", (int)(strstr(request, "\r\n\r\n") + 4 - request), request);
	if (sscanf(request, "%15s %599s", method, target) != 2)
		return false;
	server.n_puts += str_eq(method, "PUT");
	server.n_gets += str_eq(method, "GET");
	if (server.n_faults > 0) {
		server.n_faults--;
		is_cut = !*server.fault;
		if (!is_cut) {
			loopback_send(fd, server.fault, strlen(server.fault));
			return true;
		}
	}
	char *query = strchr(target, '?');
	if (query) {
		snprintf(server.query, sizeof(server.query), "%s", query + 1);
		answer_list(fd);
		if (server.fault_after_list) {
			server.fault = server.fault_after_list;
			server.n_faults = 1;
			server.fault_after_list = NULL;
		}
		return true;
	}
	struct object *o = object_of(target);
	if (str_eq(method, "PUT") && !is_cut) {
		const char *body = strstr(request, "\r\n\r\n") + 4;

		snprintf(o->path, sizeof(o->path), "%s", target);
		free(o->bytes);
		o->n = in->len - (size_t)(body - request);
		o->bytes = xmemdup(body, o->n);
		send_answer(fd, "200 OK", "", "", 0, 0);
	} else if (str_eq(method, "DELETE")) {
		FREE_AND_NULL(o->bytes);
		o->path[0] = '\0';
		loopback_send(fd, "HTTP/1.1 204 No Content\r\n\r\n", 27);
	} else if (str_eq(method, "GET")) {
		return answer_get(fd, o, request, is_cut);
	}
	return !is_cut;
}

static void serve_s3(struct loopback *lb, int fd)
{
	struct buf in = BUF_INIT(64 << 20);
	bool goes_on = true;

	while (goes_on && loopback_read_request(lb, fd, &in)) {
		pthread_mutex_lock(&server.lock);
		goes_on = answer_s3(fd, &in);
		pthread_mutex_unlock(&server.lock);
	}
	buf_release(&in);
}

static void set_fault(const char *answer, int n)
{
	pthread_mutex_lock(&server.lock);
	server.fault = answer;
	server.n_faults = n;
	pthread_mutex_unlock(&server.lock);
}

static void set_fault_after_list(const char *answer)
{
	pthread_mutex_lock(&server.lock);
	server.fault_after_list = answer;
	pthread_mutex_unlock(&server.lock);
}

static char *endpoint;

static int setup_s3(void **state)
{
	rig_setup_folder(state);
	server = (struct server){.lock = PTHREAD_MUTEX_INITIALIZER};
	server.lb = loopback_start(serve_s3, NULL);
	endpoint = xasprintf("http://127.0.0.1:%d", server.lb->port);
	rig_client = http_client_new(rig_loop, "outpost-test");
	rig_place = (struct log_place_options){.s3 = "bucket/logs/x",
	    .s3_endpoint = endpoint,
	    .s3_region = "eu-test-1",
	    .access_key = secret_of("AKIATEST"),
	    .secret_key = secret_of("sesame")};
	rig_open();
	return 0;
}

static int teardown_s3(void **state)
{
	struct secret *keys[] = {rig_place.access_key, rig_place.secret_key, rig_place.session_token};

	rig_teardown(state);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		secret_unref(keys[i]);
	loopback_stop(server.lb);
	for (size_t i = 0; i < OBJECTS; i++)
		free(server.objects[i].bytes);
	free(endpoint);
	return 0;
}

#define FAULT_503 "HTTP/1.1 503 Slow Down\r\nContent-Length: 46\r\n\r\n<Error><Code>SlowDown</Code><x>abc</x></Error>"
#define FAULT_403 "HTTP/1.1 403 Forbidden\r\nContent-Length: 40\r\n\r\n<Error><Code>AccessDenied</Code></Error>"

/* ---- */

static void a_log_moves_with_one_request_and_a_range_needs_one_more(void **state)
{
	const size_t n = 3 << 20;
	char *text = rig_random_text(n), header[300];

	(void)state;
	rig_put_whole(1234, text);
	rig_wait_moved(1);
	assert_int_equal(server.n_puts, 1);
	assert_string_equal(server.objects[0].path, "/bucket/logs/x/000000001/1234.log.zst");
	server.n_gets = 0;
	assert_int_equal(rig_read(1234, 2000000, 100), 0);
	assert_memory_equal(read_bytes, text + 2000000, 100);
	assert_int_equal(read_end, n);
	assert_int_equal(server.n_gets, 2); /* the table and the frames */
	assert_int_equal(rig_read(1234, 2000100, 50000), 0);
	assert_memory_equal(read_bytes, text + 2000100, read_n);
	assert_int_equal(server.n_gets, 2);
	assert_int_equal(rig_read(1234, 10, 100), 0);
	assert_memory_equal(read_bytes, text + 10, 100);
	assert_int_equal(server.n_gets, 3);
	/* libcurl 7.88 signs each header that it was given, so there must be none that it does not send. */
	header_of(server.request, "SignedHeaders=", header, sizeof(header));
	assert_true(str_has_prefix(header, "host;range;x-amz-content-sha256;x-amz-date,"));
	assert_non_null(strstr(server.request, "Credential=AKIATEST/"));
	assert_non_null(strstr(server.request, "/eu-test-1/s3/aws4_request"));
	assert_null(strstr(server.request, "sesame"));
	assert_null(strcasestr(server.request, "Accept-Encoding"));
	assert_int_equal(rig_read(77, 0, 10), ERR_NOT_FOUND);
	free(text);
}

static void a_log_waits_while_the_server_fails(void **state)
{
	static const char *const faults[] = {
	    FAULT_503, FAULT_403, "", "HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"};
	char text[40];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		int64_t job = (int64_t)i + 1, before = logs_stats(rig_logs)->n_failures;

		set_fault(faults[i], 1);
		snprintf(text, sizeof(text), "the log of job %d", (int)job);
		rig_put_whole(job, text);
		READ_UNTIL_FAILURE(before, job, text);
		rig_wait_moved(job);
		ASSERT_TEXT(job, text);
	}
}

static void a_read_that_fails_is_an_error_and_may_be_repeated(void **state)
{
	static const char *const faults[] = {FAULT_503, FAULT_403, "",
	    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhalf",
	    "HTTP/1.1 206 x\r\nContent-Range: bytes 5--9223372036854775808/3\r\nContent-Length: 4\r\n\r\nhalf",
	    "HTTP/1.1 206 x\r\nContent-Range: bytes 0-3/99999999999999999999\r\nContent-Length: 4\r\n\r\nhalf",
	    "HTTP/1.1 206 x\r\nContent-Length: 4\r\n\r\nhalf", "HTTP/1.1 416 x\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/1.1 404 x\r\nContent-Length: 42\r\n\r\n<Error><Code>NoSuchBucket</Code>padded</x>",
	    "not HTTP\r\n\r\n"};

	(void)state;
	rig_put_whole(1, "one");
	rig_wait_moved(1);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		set_fault(faults[i], i == 2 ? 2 : 1);
		int rc = rig_read(1, 0, 10);
		assert_true(rc && rc != ERR_NOT_FOUND && rc != ERR_RANGE);
		set_fault(NULL, 0);
		ASSERT_TEXT(1, "one");
		rig_reopen(); /* forgets the table */
	}
}

static void the_server_is_asked_before_the_start(void **state)
{
	struct error e = {0};

	(void)state;
	assert_int_equal(logs_check_place(&rig_place, &e), 0);
	assert_string_equal(server.query, "list-type=2&max-keys=1&prefix=logs%2Fx%2F");
	set_fault(FAULT_403, 1);
	assert_int_equal(logs_check_place(&rig_place, &e), ERR_DENIED);
	assert_non_null(strstr(e.text, "/bucket: the server answered 403 AccessDenied"));
	e = (struct error){0};
	set_fault(FAULT_503, 1);
	assert_int_equal(logs_check_place(&rig_place, &e), ERR_NETWORK);
	set_fault("HTTP/1.1 403 x\r\nContent-Length: 30\r\n\r\n<Code>a\x1b[31m\"b</Code>.........", 1);
	e = (struct error){0};
	assert_int_equal(logs_check_place(&rig_place, &e), ERR_DENIED);
	assert_non_null(strstr(e.text, "403 a??31m?b"));
}

static void new_keys_are_used_at_once(void **state)
{
	struct log_place_options o = rig_place;

	(void)state;
	o.access_key = secret_of("AKIANEW");
	o.session_token = secret_of("TOKEN");
	logs_use_keys(rig_logs, &o);
	secret_unref(o.access_key);
	secret_unref(o.session_token);
	rig_put_whole(1, "one");
	rig_wait_moved(1);
	assert_int_equal(rig_read(9, 0, 10), ERR_NOT_FOUND);
	assert_non_null(strstr(server.request, "Credential=AKIANEW/"));
	assert_non_null(strstr(server.request, "X-Amz-Security-Token: TOKEN")
			    ?: strstr(server.request, "x-amz-security-token: TOKEN"));
}

static void old_logs_are_dropped(void **state)
{
	int64_t january;

	(void)state;
	assert_int_equal(rfc3339_parse("2026-01-02T00:00:00Z", &january), 0);
	for (int64_t job = 1; job <= 3; job++)
		rig_put_whole(job, "a log");
	rig_wait_moved(3);
	assert_int_equal(rig_drop(january), 0);
	assert_string_equal(server.query, "list-type=2&max-keys=1000&prefix=logs%2Fx%2F");
	ASSERT_TEXT(2, "a log");
	/* One refusal ends the pass. */
	set_fault_after_list(FAULT_403);
	assert_int_equal(rig_drop(january + 24 * 3600 * 1000), 0);
	assert_int_equal(logs_stats(rig_logs)->n_failures, 1);
	assert_int_equal(rig_drop(january + 24 * 3600 * 1000), 3);
	assert_string_equal(
	    server.query, "list-type=2&max-keys=1000&prefix=logs%2Fx%2F&start-after=logs%2Fx%2F000000000%2F3.log.zst");
	assert_int_equal(rig_read(2, 0, 10), ERR_NOT_FOUND);
}

/* A server that accepts a request and is silent: closing does not wait for it. */
static void serve_silence(struct loopback *lb, int fd)
{
	struct buf in = BUF_INIT(1 << 20);

	if (loopback_read_request(lb, fd, &in))
		loopback_wait_for_close(fd);
	buf_release(&in);
}

static void closing_does_not_wait_for_a_silent_server(void **state)
{
	struct loopback *silent = loopback_start(serve_silence, NULL);
	char *url = xasprintf("http://127.0.0.1:%d", silent->port);
	struct log_read r = {.job_id = 99, .max_bytes = 10, .done = rig_read_done};

	(void)state;
	rig_close();
	rig_place.s3_endpoint = url;
	rig_open();
	rig_put_whole(1, "one");
	read_is_done = false;
	logs_read(rig_logs, &r);
	while (atomic_load(&silent->n_requests) < 2)
		rig_put(2, 0, "", 0, false);
	assert_false(read_is_done);
	rig_close();
	assert_true(read_is_done);
	assert_int_equal(r.err, ERR_CLOSING);
	rig_place.s3_endpoint = endpoint;
	rig_open();
	rig_wait_moved(1);
	ASSERT_TEXT(1, "one");
	loopback_stop(silent);
	free(url);
}

static void a_list_is_read_with_care(void **state)
{
	static const char list[] =
	    "<Contents><Key>p/000000001/1234.log.zst</Key><LastModified>2026-01-02T03:04:05Z</LastModified></Contents>"
	    "<Contents><Key>p/000000001/01234.log.zst</Key><LastModified>2026-01-02T03:04:05Z</LastModified></Contents>"
	    "<Contents><Key>p/000000002/1234.log.zst</Key><LastModified>2026-01-02T03:04:05Z</LastModified></Contents>"
	    "<Contents><Key>q/000000001/1235.log.zst</Key><LastModified>2026-01-02T03:04:05Z</LastModified></Contents>"
	    "<Contents><Key>p/000000001/1236.log.zst</Key><LastModified>yesterday</LastModified></Contents>"
	    "<Contents><Key>p/000000001/-1.log.zst</Key></Contents><Contents><Key>p/</Key></Contents>"
	    "<Contents><LastModified>2026-01-02T03:04:05Z</LastModified></Contents>"
	    "<Contents><Key>p/000000001/1237.log.zst</Key><LastModified>2026-01-02T03:04:05Z</LastModified>";
	struct log_request r = {0};

	(void)state;
	place_s3_read_list(list, strlen(list), "p/", &r);
	assert_int_equal(r.n_objects, 1);
	assert_int_equal(r.objects[0].job_id, 1234);
	free(r.objects);
}

/* ---- a real server ---- */

static pid_t start_swift(const char *folder, int *ret_stdin, int *ret_port)
{
	int in[2], out[2];
	char line[20] = "";

	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		setenv("S3_SECRET", "sesame", 1);
		unsetenv("LD_PRELOAD");
		execl("/usr/bin/python3", "python3", "tests/integration/lib/s3-server.py", folder, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	assert_true(read(out[0], line, sizeof(line) - 1) > 0);
	close(out[0]);
	*ret_stdin = in[1];
	*ret_port = (int)strtol(line, NULL, 10);
	return child;
}

/* On a busy machine the check may exceed its ten seconds. */
static int check_patiently(const struct log_place_options *o, struct error *e)
{
	int rc;

	do {
		*e = (struct error){0};
		rc = logs_check_place(o, e);
	} while (rc == ERR_NETWORK);
	return rc;
}

static void a_real_server_accepts_each_request(void **state)
{
	const size_t n = 2 << 20;
	char *text = rig_random_text(n), *folder = xasprintf("%s/swift", rig_dir), *url;
	struct log_place_options o = rig_place;
	struct error e = {0};
	int in, port;

	(void)state;
	if (access("/usr/lib/python3/dist-packages/swift", F_OK))
		skip();
	rig_close();
	assert_int_equal(mkdir(folder, 0700), 0);
	pid_t swift = start_swift(folder, &in, &port);
	url = xasprintf("http://127.0.0.1:%d", port);
	secret_unref(rig_place.access_key);
	rig_place.access_key = secret_of("outpost:logs");
	rig_place.s3_endpoint = url;
	rig_place.s3 = "logs/a.b~c-d/e_f";
	o = rig_place;
	o.secret_key = secret_of("wrong");
	assert_int_equal(check_patiently(&o, &e), ERR_DENIED);
	assert_non_null(strstr(e.text, "403 SignatureDoesNotMatch"));
	secret_unref(o.secret_key);
	assert_int_equal(check_patiently(&rig_place, &e), 0);
	rig_open();
	rig_put_whole(1234, text);
	rig_put_whole(1, "short");
	rig_put_whole(2, "");
	rig_wait_moved(3);
	for (int64_t at = 0; at < (int64_t)n; at += 300001) {
		assert_int_equal(rig_read(1234, at, 1000), 0);
		assert_memory_equal(read_bytes, text + at, read_n);
		assert_int_equal(read_end, n);
	}
	ASSERT_TEXT(1, "short");
	ASSERT_TEXT(2, "");
	assert_int_equal(rig_read(3, 0, 10), ERR_NOT_FOUND);
	assert_int_equal(rig_drop(clock_wall_ms() - 3600 * 1000), 0);
	assert_int_equal(rig_drop(clock_wall_ms() + 3600 * 1000), 3);
	assert_int_equal(rig_read(1, 0, 10), ERR_NOT_FOUND);
	rig_close();
	close(in);
	kill(swift, SIGKILL);
	waitpid(swift, NULL, 0);
	FREE_ALL(text, folder, url);
}

#define S3_TEST(f) cmocka_unit_test_setup_teardown(f, setup_s3, teardown_s3)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    S3_TEST(a_log_moves_with_one_request_and_a_range_needs_one_more),
	    S3_TEST(a_log_waits_while_the_server_fails),
	    S3_TEST(a_read_that_fails_is_an_error_and_may_be_repeated),
	    S3_TEST(the_server_is_asked_before_the_start),
	    S3_TEST(new_keys_are_used_at_once),
	    S3_TEST(old_logs_are_dropped),
	    S3_TEST(closing_does_not_wait_for_a_silent_server),
	    cmocka_unit_test(a_list_is_read_with_care),
	    S3_TEST(a_real_server_accepts_each_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
