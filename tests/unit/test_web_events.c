/* Streams of events as their readers see them, from a real server with a real store: a reader that does not read is
 * disconnected, and an idle stream still gets comments. The test controls the clock. */
#include "parts_rig.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <uv.h>

#include "store/registry.h"
#include "web/web_internal.h"

/* Long, so that a few events are many bytes. */
#define NAME "an-accelerator-whose-name-is-as-long-as-it-may-be-at-most"

enum { OF_ONE_CLIENT_MAX = 125, SECOND_MS = 1000, UNSENT_MAX_BYTES = 16 << 10, SMALL_BYTES = 2048 };

/* ---- a clock that the test sets ---- */

/* The loop's; 0 on other threads, which have the real one. */
static _Thread_local int64_t now_ms;

/* Replaces libc's function, also for libuv. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	if (!now_ms || (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE && id != CLOCK_BOOTTIME))
		return (int)syscall(SYS_clock_gettime, id, t);
	*t = (struct timespec){.tv_sec = now_ms / 1000, .tv_nsec = now_ms % 1000 * 1000000};
	return 0;
}

/* Advances the clock before the next turn of the loop. */
static void pass(int64_t ms) { now_ms += ms; }

/* ---- the server ---- */

static struct parts parts;
static struct web *web;

static void no_metrics(struct buf *out, void *owner)
{
	(void)out;
	(void)owner;
}

static int set_up(void **state)
{
	struct web_deps deps = {.write_metrics = no_metrics};

	folder_setup(state);
	now_ms = clock_mono_ms();
	parts = (struct parts){0};
	parts_open(&parts);
	deps.loop = parts.loop;
	deps.store = parts.store;
	deps.server = parts.server;
	web = web_new(&deps);
	web_configure(web, parts.config);
	return 0;
}

static int tear_down(void **state)
{
	web_stop(web);
	parts_close_server(&parts);
	parts_close_store(&parts);
	web_free(web);
	parts_close(&parts);
	return folder_teardown(state);
}

static void on_put(struct store_op *op) { assert_int_equal(op->err, 0); }

/* Changes the accelerator. The commit comes before the watchers are notified. */
static void change(void)
{
	static char *none[] = {NULL};
	static struct accelerator npu = {
	    .name = (char *)NAME, .level = LEVEL_2, .oncall = none, .must_pass = none, .skip = none};
	static struct mirror_registry m;
	static char title[24];
	static int n;

	snprintf(title, sizeof(title), "NPU %d", ++n);
	npu.title = title;
	m = (struct mirror_registry){.op.done = on_put, .list = &npu, .n = 1, .now_ms = n};
	assert_int_equal(store_mirror_registry(parts.store, &m), 0);
}

/* ---- a reader ---- */

struct reader {
	int fd;
	uv_poll_t poll;
	struct buf got;
	const char *awaited;
	size_t n_awaited;
	bool is_there, is_ended, is_closed;
};

static size_t count(const struct reader *r, const char *text)
{
	size_t n = 0;

	for (const char *at = buf_str(&r->got); (at = strstr(at, text)) != NULL; at++)
		n++;
	return n;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct reader *r = CONTAINER_OF(poll, struct reader, poll);
	char piece[4096];
	ssize_t n = recv(r->fd, piece, sizeof(piece), MSG_DONTWAIT);

	(void)status;
	(void)events;
	if (n > 0)
		buf_append(&r->got, piece, (size_t)n);
	else
		r->is_ended = true;
	if (r->is_ended)
		uv_poll_stop(poll); /* otherwise the end would be reported for ever */
	if (r->is_ended || (r->awaited && count(r, r->awaited) >= r->n_awaited))
		r->is_there = true;
}

static void await(struct reader *r, const char *text, size_t n)
{
	r->awaited = text;
	r->n_awaited = n;
	r->is_there = count(r, text) >= n;
	loop_run_until(parts.loop, &r->is_there);
	assert_int_equal(count(r, text), n);
}

static void read_on(struct reader *r) { assert_int_equal(uv_poll_start(&r->poll, UV_READABLE, on_readable), 0); }

/* From 127.0.0.`client`; receive_bytes 0: as the kernel likes it. */
static void open_reader_of(struct reader *r, uint8_t client, const char *query, int receive_bytes)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + client)};
	char *request = xasprintf("GET /api/v1/events?%s HTTP/1.1\r\nHost: x\r\n\r\n", query);
	struct sockaddr_in sin = {
	    .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)strtol(strrchr(parts.url, ':') + 1, NULL, 10)),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	*r = (struct reader){.got = BUF_INIT(1 << 20)};
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (receive_bytes)
		setsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
	assert_int_equal(bind(r->fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(connect(r->fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(send(r->fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
	free(request);
	assert_int_equal(uv_poll_init(loop_uv(parts.loop), &r->poll, r->fd), 0);
	read_on(r);
}

static void open_reader(struct reader *r, const char *query, int receive_bytes)
{
	open_reader_of(r, 1, query, receive_bytes);
}

static void on_poll_closed(uv_handle_t *handle) { CONTAINER_OF(handle, struct reader, poll)->is_closed = true; }

static void close_reader(struct reader *r)
{
	uv_close((uv_handle_t *)&r->poll, on_poll_closed);
	loop_run_until(parts.loop, &r->is_closed);
	close(r->fd);
	buf_release(&r->got);
}

/* The kernel would buffer megabytes for a client that does not read. */
static void take_little(uv_handle_t *handle, void *owner)
{
	struct sockaddr_in mine, peer;
	socklen_t n = sizeof(mine);
	int peer_bytes = sizeof(peer), bytes = SMALL_BYTES;

	getsockname(((struct reader *)owner)->fd, (struct sockaddr *)&mine, &n);
	if (handle->type == UV_TCP &&
	    uv_tcp_getpeername((uv_tcp_t *)handle, (struct sockaddr *)&peer, &peer_bytes) == 0 &&
	    peer.sin_port == mine.sin_port)
		assert_int_equal(uv_send_buffer_size(handle, &bytes), 0);
}

/* ---- the tests ---- */

#define COMMENT "\r\n:\n\n\r\n"
#define EVENT   "data: {\"watch\":\"accelerators/" NAME "\"}\n\n"
#define WATCH   "watch=accelerators/" NAME
#define FOUR    WATCH "&" WATCH "&" WATCH "&" WATCH
#define EIGHT   FOUR "&" FOUR

static void an_idle_stream_gets_comments(void **state)
{
	struct reader first, second;

	(void)state;
	open_reader(&first, WATCH, 0);
	await(&first, EVENT, 1);
	pass(15 * SECOND_MS - 1);
	open_reader(&second, WATCH, 0);
	await(&second, EVENT, 1);
	assert_int_equal(count(&first, COMMENT), 0);
	pass(1);
	await(&first, COMMENT, 1);
	await(&second, COMMENT, 1);
	pass(15 * SECOND_MS);
	await(&first, COMMENT, 2);
	await(&second, COMMENT, 2);
	assert_int_equal(count(&first, EVENT), 1);
	close_reader(&first);
	close_reader(&second);
}

static void a_client_that_does_not_read_is_disconnected(void **state)
{
	struct reader reads, sleeps;
	size_t n = 0;

	(void)state;
	open_reader(&reads, EIGHT, 0);
	open_reader(&sleeps, EIGHT, SMALL_BYTES);
	await(&reads, EVENT, 8);
	await(&sleeps, EVENT, 8);
	uv_poll_stop(&sleeps.poll);
	uv_walk(loop_uv(parts.loop), take_little, &sleeps);
	while (web_n_event_streams(web) == 2) {
		n++;
		change();
		pass(SECOND_MS);
		await(&reads, EVENT, 8 * (n + 1));
	}
	assert_int_equal(web_n_event_streams(web), 1);
	/* Not before this amount was unread, and long before the timeout. */
	assert_true(reads.got.len > UNSENT_MAX_BYTES);
	assert_in_range(n * SECOND_MS, 1, HTTP_LIMITS_DEFAULT.write_timeout_ms - 1);
	read_on(&sleeps);
	loop_run_until(parts.loop, &sleeps.is_ended);
	assert_true(sleeps.got.len < reads.got.len);
	change();
	pass(SECOND_MS);
	await(&reads, EVENT, 8 * (n + 2));
	assert_false(reads.is_ended);
	close_reader(&reads);
	close_reader(&sleeps);
}

/* Finding 14. */
static void one_client_has_a_share_of_the_streams(void **state)
{
	static struct reader all[OF_ONE_CLIENT_MAX];
	struct reader more, other;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		open_reader(&all[i], WATCH, 0);
		await(&all[i], EVENT, 1);
	}
	open_reader(&more, WATCH, 0);
	await(&more, "HTTP/1.1 429 Too Many Requests\r\n", 1);
	await(&more, "\r\nRetry-After: ", 1);
	open_reader_of(&other, 2, WATCH, 0);
	await(&other, EVENT, 1);
	assert_int_equal(web_n_event_streams(web), OF_ONE_CLIENT_MAX + 1);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		close_reader(&all[i]);
	close_reader(&more);
	/* Its places are free again when the server has noticed that it left. */
	while (web_n_event_streams(web) > 1) {
		pass(SECOND_MS);
		uv_run(loop_uv(parts.loop), UV_RUN_ONCE);
	}
	open_reader(&more, WATCH, 0);
	await(&more, EVENT, 1);
	close_reader(&more);
	close_reader(&other);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(an_idle_stream_gets_comments),
	    TEST(a_client_that_does_not_read_is_disconnected),
	    TEST(one_client_has_a_share_of_the_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
