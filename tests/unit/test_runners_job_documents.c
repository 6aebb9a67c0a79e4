/* PUT …/log and …/report on a real server and real files; each test sets the store's answers: which callers are
 * allowed, the answers, and that an unauthorized request causes no query. */
#include "parts_rig.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "model/client_payload.h"
#include "replaces.h"
#include "runners/credentials.h"
#include "runners/runners.h"
#include "secret_of.h"
#include "store/credentials.h"
#include "store/jobs.h"
#include "views/job.h"

REPLACES(store_find_job);
REPLACES(find_job_release);
REPLACES(store_note_log);
REPLACES(store_put_report);

#define DISPATCH "abcdefghijklmnopqrstuvwxyz"
#define JUNIT    "<testsuites><testsuite name=\"s\"><testcase name=\"a\"/></testsuite></testsuites>"

struct fixture {
	struct parts parts;
	struct logs *logs;
	struct runners *runners;
	struct secret *callback_key;
};

/* ---- a fake store ---- */

static struct {
	struct loop *loop;
	int find_err, note_err, put_err;
	const char *dispatch_id, *accelerator;
	enum report_outcome outcome;
	int n_finds, n_notes, n_puts;
	int64_t noted_bytes;
	bool is_noted_complete;
	size_t n_tests;
} fake;

static void end_query(void *p)
{
	struct store_query *q = p;

	q->err = fake.find_err;
	q->done(q);
}

int store_find_job(struct store *s, struct find_job *q)
{
	(void)s;
	fake.n_finds++;
	if (!fake.find_err) {
		q->dispatch_id = xstrdup(fake.dispatch_id);
		q->accelerator = xstrdup(fake.accelerator);
	}
	loop_reap(fake.loop, end_query, &q->q);
	return 0;
}

void find_job_release(struct find_job *q)
{
	FREE_AND_NULL(q->dispatch_id);
	FREE_AND_NULL(q->accelerator);
}

static void end_note(void *p)
{
	struct store_op *op = p;

	op->err = fake.note_err;
	op->done(op);
}

int store_note_log(struct store *s, struct note_log *op)
{
	(void)s;
	fake.n_notes++;
	fake.noted_bytes = op->bytes;
	fake.is_noted_complete = op->is_complete;
	loop_reap(fake.loop, end_note, &op->op);
	return 0;
}

static void end_put(void *p)
{
	struct store_op *op = p;

	op->err = fake.put_err;
	op->done(op);
}

int store_put_report(struct store *s, struct put_report *op)
{
	(void)s;
	fake.n_puts++;
	fake.n_tests = op->n_tests;
	op->outcome = fake.outcome;
	loop_reap(fake.loop, end_put, &op->op);
	return 0;
}

/* ---- the parts ---- */

static void write_accelerator(const char *name, const char *level)
{
	char *path = xasprintf("accelerators.d/%s.yml", name);
	char *text = xasprintf("name: %s\ntitle: %s\nlevel: %s\nrunners:\n"
			       "  - {name: ci, github: {repository: %s/%s}}\n",
	    name, name, level, name, name);

	folder_write(path, text);
	free(path);
	free(text);
}

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof *f);
	struct error e = {0};

	folder_setup(state);
	write_accelerator("lab", "L2");
	write_accelerator("other", "L2");
	write_accelerator("quiet", "L1");
	folder_write("outpost.yml", MINIMAL_YML "accelerators:\n  directory: accelerators.d\n");
	parts_open(&f->parts);
	f->callback_key = secret_of("kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk");
	memset(&fake, 0, sizeof fake);
	fake.loop = f->parts.loop;
	fake.dispatch_id = DISPATCH;
	fake.accelerator = "lab";
	if (logs_open(f->parts.loop, "state", &f->logs, &e))
		fail_msg("%s", e.text);
	f->runners = runners_new(f->parts.loop, f->parts.store, f->parts.client, f->parts.server, f->callback_key);
	runners_accept_documents(f->runners, f->parts.server, f->logs);
	runners_configure(f->runners, f->parts.config);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	bool is_closed = false, are_logs_closed = false;

	runners_stop(f->runners);
	parts_close_server(&f->parts);
	runners_close(f->runners, parts_on_closed, &is_closed);
	loop_run_until(f->parts.loop, &is_closed);
	logs_close(f->logs, parts_on_closed, &are_logs_closed);
	loop_run_until(f->parts.loop, &are_logs_closed);
	parts_close_store(&f->parts);
	runners_free(f->runners);
	secret_unref(f->callback_key);
	parts_close(&f->parts);
	free(f);
	return folder_teardown(state);
}

/* ---- asking ---- */

static char *token_for(struct fixture *f, const char *dispatch_id, const char *accelerator)
{
	return callback_token_make(f->callback_key, dispatch_id, accelerator, clock_wall_ms() + 60000);
}

/* The answer must contain `expected`. token NULL: no header. Takes the token. */
static int put(struct fixture *f, const char *path, char *token, const char *body, const char *expected)
{
	char *line = xasprintf("Authorization: Bearer %s", token ? token : "");
	const char *headers[] = {token ? line : NULL, NULL};
	struct ask a = {.url = xasprintf("%s%s", f->parts.url, path)};
	int status;

	a.call = (struct http_call){
	    .method = "PUT",
	    .url = a.url,
	    .headers = headers,
	    .body = body,
	    .body_bytes = strlen(body),
	    .allow_plain_http = true,
	    .done = ask_on_done,
	};
	http_call_start(f->parts.client, &a.call);
	status = ask_wait(&f->parts, &a);
	if (!strstr(buf_str(&a.call.answer), expected))
		fail_msg("%d %s", status, buf_str(&a.call.answer));
	assert_int_equal(ask_has_header(&a, "WWW-Authenticate"), status == 401);
	assert_int_equal(ask_has_header(&a, "Retry-After"), status == 429 || status == 503);
	ask_release(&a);
	free(line);
	free(token);
	return status;
}

static int put_own(struct fixture *f, const char *path, const char *body, const char *expected)
{
	return put(f, path, token_for(f, DISPATCH, "lab"), body, expected);
}

#define LOG    "/api/v1/jobs/7/log"
#define REPORT "/api/v1/jobs/7/report"

static const char *const BOTH[] = {LOG, REPORT};

/* ---- authorization ---- */

static void test_an_unauthorized_request_causes_no_query(void **state)
{
	struct fixture *f = *state;
	char *expired = callback_token_make(f->callback_key, DISPATCH, "lab", clock_wall_ms() - 5000);

	for (size_t i = 0; i < ARRAY_LEN(BOTH); i++) {
		assert_int_equal(put(f, BOTH[i], NULL, JUNIT, "missing"), 401);
		assert_int_equal(put(f, BOTH[i], xstrdup("x"), JUNIT, "not valid"), 401);
		assert_int_equal(put(f, BOTH[i], xstrdup("oct1."), JUNIT, "not valid"), 401);
		assert_int_equal(put(f, BOTH[i], xstrdup("oct1.a.b.c.d"), JUNIT, "not valid"), 401);
		assert_int_equal(put(f, BOTH[i], xstrdup(expired), JUNIT, "expired"), 401);
	}
	free(expired);
	assert_int_equal(fake.n_finds, 0);
}

static void test_the_job_must_be_the_callers(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(BOTH); i++) {
		assert_int_equal(put(f, BOTH[i], token_for(f, "bcd", "lab"), JUNIT, "not"), 403);
		assert_int_equal(put(f, BOTH[i], token_for(f, DISPATCH, "other"), JUNIT, "not"), 403);
		assert_int_equal(put(f, BOTH[i], token_for(f, DISPATCH, "gone"), JUNIT, "registry"), 403);
		fake.accelerator = "quiet";
		assert_int_equal(put(f, BOTH[i], token_for(f, DISPATCH, "quiet"), JUNIT, "no such job"), 404);
		fake.accelerator = "lab";
		fake.find_err = ERR_NOT_FOUND;
		assert_int_equal(put_own(f, BOTH[i], JUNIT, "no such job"), 404);
		fake.find_err = ERR_BUSY;
		assert_int_equal(put_own(f, BOTH[i], JUNIT, "busy"), 503);
		fake.find_err = 0;
		assert_int_equal(put_own(f, BOTH[i], JUNIT, "\"ok\":true"), 200);
	}
	assert_int_equal(fake.n_puts, 1);
	assert_int_equal(runners_counters(f->runners)->n_busy, ARRAY_LEN(BOTH));
}

/* ---- logs ---- */

static void test_the_end_of_a_log_is_stored(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put_own(f, LOG "?offset=0", "abc", "{\"ok\":true,\"bytes\":3}"), 200);
	assert_int_equal(fake.n_notes, 1);
	assert_false(fake.is_noted_complete);
	/* Not after every piece. */
	assert_int_equal(put_own(f, LOG "?offset=3", "def", "\"bytes\":6"), 200);
	assert_int_equal(fake.n_notes, 1);
	/* Bytes that cannot be recorded are not acknowledged; the client tries again. */
	fake.note_err = ERR_FULL;
	assert_int_equal(put_own(f, LOG "?offset=6&last=1", "g", "detail"), 503);
	fake.note_err = 0;
	assert_int_equal(put_own(f, LOG "?offset=6&last=1", "g", "\"bytes\":7"), 200);
	assert_true(fake.is_noted_complete);
	assert_int_equal(fake.noted_bytes, 7);
	assert_int_equal(put_own(f, LOG, "abcdefg", "\"bytes\":7"), 200);
	assert_int_equal(put_own(f, LOG, "abcdefgh", "\"bytes\":7"), 409);
	assert_int_equal(put_own(f, LOG "?offset=3", "xxxxxx", "complete already"), 409);
}

static void test_the_size_of_a_long_log_is_stored_from_time_to_time(void **state)
{
	const size_t n = 3 << 20;
	struct fixture *f = *state;
	char *text = xmalloc(n + 1), *expected = xasprintf("\"bytes\":%zu}", n);

	memset(text, 'x', n);
	text[n] = '\0';
	assert_int_equal(put_own(f, LOG, text, expected), 200);
	assert_in_range(fake.n_notes, 2, 5);
	assert_true(fake.is_noted_complete);
	free(expected);
	free(text);
}

static void test_wrong_parameters_are_named(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put_own(f, LOG "?offset=-1", "x", "offset"), 400);
	assert_int_equal(put_own(f, LOG "?offset=", "x", "offset"), 400);
	assert_int_equal(put_own(f, LOG "?offset=111111111111111111111111111", "x", "offset"), 400);
	assert_int_equal(put_own(f, LOG "?offset=0&last=yes", "x", "last"), 400);
	assert_int_equal(put_own(f, LOG "?offset=268435456", "x", "256 MiB"), 413);
	assert_int_equal(put_own(f, LOG "?offset=9", "x", "\"bytes\":0"), 409);
}

/* ---- reports ---- */

static void test_answers_each_outcome(void **state)
{
	static const struct {
		enum report_outcome outcome;
		int err, status;
		const char *expected;
	} table[] = {
	    {REPORT_RECORDED, 0, 200, "{\"ok\":true,\"tests\":1,\"cut\":0}"},
	    {REPORT_UNCHANGED, 0, 200, "{\"ok\":true,\"tests\":1,\"cut\":0}"},
	    {REPORT_CONFLICT, 0, 409, "report already"},
	    {REPORT_NO_DISPATCH, 0, 404, "no such job"},
	    {REPORT_TOO_MANY_RESULTS, 0, 413, "1,000,000 results"},
	    {REPORT_RECORDED, ERR_FULL, 503, "try again"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		fake.outcome = table[i].outcome;
		fake.put_err = table[i].err;
		assert_int_equal(put_own(f, REPORT, JUNIT, table[i].expected), table[i].status);
	}
	assert_int_equal(fake.n_tests, 1);
	fake.n_puts = 0;
	assert_int_equal(put_own(f, REPORT, "", "neither"), 400);
	assert_int_equal(put_own(f, REPORT, "hello", "neither"), 400);
	assert_int_equal(put_own(f, REPORT, "<testsuites><x", "line"), 400);
	assert_int_equal(fake.n_puts, 0);
}

/* ---- authorization that ends while the document arrives ---- */

struct step {
	bool is_done;
	struct add_token add;
	struct revoke_token revoke;
	struct credentials_wait known;
};

static void on_added(struct store_op *op) { CONTAINER_OF(op, struct step, add.op)->is_done = true; }

static void on_revoked(struct store_op *op) { CONTAINER_OF(op, struct step, revoke.op)->is_done = true; }

static void on_known(struct credentials_wait *w) { CONTAINER_OF(w, struct step, known)->is_done = true; }

static void wait_until_known(struct fixture *f)
{
	struct step s = {.known.done = on_known};

	credentials_await(runners_credentials(f->runners), &s.known);
	loop_run_until(f->parts.loop, &s.is_done);
}

/* An API token of the lab's; free(). */
static char *add_token(struct fixture *f)
{
	char text[CREDENTIAL_TEXT_BYTES];
	struct step s = {
	    .add = {
		.op.done = on_added, .kind = TOKEN_API, .accelerator = "lab", .name = "", .now_ms = clock_wall_ms()}};

	credential_make(TOKEN_API, text);
	credential_hash(text, s.add.hash);
	assert_int_equal(store_add_token(f->parts.store, &s.add), 0);
	loop_run_until(f->parts.loop, &s.is_done);
	wait_until_known(f);
	return xstrdup(text);
}

static void revoke_token(struct fixture *f)
{
	struct step s = {
	    .revoke = {
		.op.done = on_revoked, .kind = TOKEN_API, .accelerator = "lab", .name = "", .now_ms = clock_wall_ms()}};

	assert_int_equal(store_revoke_token(f->parts.store, &s.revoke), 0);
	loop_run_until(f->parts.loop, &s.is_done);
	assert_int_equal(s.revoke.n_revoked, 1);
	wait_until_known(f);
}

static void drop_the_lab(struct fixture *f)
{
	assert_int_equal(unlink("accelerators.d/lab.yml"), 0);
	config_unref(f->parts.config);
	f->parts.config = folder_load();
	runners_configure(f->runners, f->parts.config);
}

static void poll_again(struct timer *t) { *(bool *)timer_owner(t) = true; }

/* Runs one turn of the loop, which takes a millisecond. */
static void turn(struct fixture *f)
{
	bool is_over = false;
	struct timer *t = timer_new(f->parts.loop, poll_again, &is_over);

	timer_start(t, 1);
	loop_run_until(f->parts.loop, &is_over);
	timer_close(t);
}

/* Sends the beginning of a document and leaves it unfinished; returns the socket. */
static int begin_put(struct fixture *f, const char *path, const char *token)
{
	struct sockaddr_in sin = {
	    .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)strtol(strrchr(f->parts.url, ':') + 1, NULL, 10)),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), n = fake.n_finds;
	char *text = xasprintf("PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
			       "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	    path, token);

	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
	free(text);
	while (fake.n_finds == n)
		turn(f);
	turn(f); /* granted */
	return fd;
}

static void expect_end(struct fixture *f, int fd, const char *status, const char *detail)
{
	char text[2048] = "";
	size_t n = 0;

	while (n + 1 < sizeof(text) && !strstr(text, detail)) {
		ssize_t got = recv(fd, text + n, sizeof(text) - 1 - n, MSG_DONTWAIT);

		if (got == 0)
			fail_msg("%s", text);
		n += got > 0 ? (size_t)got : 0;
		text[n] = '\0';
		turn(f);
	}
	assert_ptr_equal(strstr(text, status), text);
	close(fd);
}

static void test_a_revoked_token_ends_the_upload(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(BOTH); i++) {
		char *token = add_token(f);
		int fd = begin_put(f, BOTH[i], token);

		revoke_token(f);
		expect_end(f, fd, "HTTP/1.1 401 ", "revoked");
		free(token);
	}
	assert_int_equal(fake.n_puts, 0);
	assert_int_equal(put_own(f, LOG "?offset=9", "x", "\"bytes\":5"), 409); /* it is kept */
}

/* Sends this number of bytes more in one chunk, and waits until all are sent. */
static void send_more(struct fixture *f, int fd, size_t n)
{
	char *head = xasprintf("%zx\r\n", n), *bytes = xmalloc(n);

	memset(bytes, ' ', n);
	assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), (ssize_t)strlen(head));
	for (size_t done = 0; done < n;) {
		ssize_t sent = send(fd, bytes + done, n - done, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno != EAGAIN)
			break; /* refused meanwhile */
		done += sent > 0 ? (size_t)sent : 0;
		turn(f);
	}
	free(bytes);
	free(head);
}

static void test_one_accelerator_leaves_memory_for_others(void **state)
{
	enum { N = 3, BYTES = 21 << 20 };
	struct fixture *f = *state;
	char *token = token_for(f, DISPATCH, "lab");
	int fds[N], over;

	for (int i = 0; i < N; i++) {
		fds[i] = begin_put(f, REPORT, token);
		send_more(f, fds[i], BYTES);
	}
	over = begin_put(f, REPORT, token);
	send_more(f, over, 2 << 20);
	expect_end(f, over, "HTTP/1.1 503 ", "busy");
	fake.accelerator = "other";
	assert_int_equal(put(f, REPORT, token_for(f, DISPATCH, "other"), JUNIT, "\"ok\":true"), 200);
	for (int i = 0; i < N; i++)
		close(fds[i]);
	free(token);
}

static void test_an_accelerator_that_leaves_ends_the_upload(void **state)
{
	struct fixture *f = *state;
	char *token = add_token(f);
	int log = begin_put(f, LOG, token), report = begin_put(f, REPORT, token);

	drop_the_lab(f);
	expect_end(f, log, "HTTP/1.1 403 ", "left the registry");
	expect_end(f, report, "HTTP/1.1 403 ", "left the registry");
	assert_int_equal(fake.n_puts, 0);
	free(token);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_an_unauthorized_request_causes_no_query),
	    TEST(test_the_job_must_be_the_callers),
	    TEST(test_the_end_of_a_log_is_stored),
	    TEST(test_the_size_of_a_long_log_is_stored_from_time_to_time),
	    TEST(test_wrong_parameters_are_named),
	    TEST(test_answers_each_outcome),
	    TEST(test_a_revoked_token_ends_the_upload),
	    TEST(test_one_accelerator_leaves_memory_for_others),
	    TEST(test_an_accelerator_that_leaves_ends_the_upload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
