/* Bodies that several answers share: each reader gets all of it at its own pace, it is in memory once, and each
 * client has a bounded share of that memory. */
#include <setjmp.h>
#include <stdatomic.h>

#include <cmocka.h>

#include "http/client_group.h"
#include "http/server.h"
#include "http/server_internal.h"
#include "http_rig.h"

#define HOST "Host: x\r\n\r\n"

enum {
	BODY_BYTES = 4 << 20, /* more than the kernel buffers for a client that does not read */
	N_READERS = 12,
	UNSENT_MAX_BYTES = 6 * BODY_BYTES, /* a client that has one may have no other */
	SENDING_MAX = 16,                  /* of one client at the same time */
	N_CROWD = 40,
};

static const char LOCAL[] = "a text that lives for ever";
static struct http_shared *shared, *kept;
static int n_readers, n_taken;

static char *long_body(char c)
{
	char *body = xmalloc(BODY_BYTES);

	memset(body, c, BODY_BYTES);
	body[BODY_BYTES - 1] = '!';
	return body;
}

/* All readers get one body. */
static void same(struct http_request *r, void *owner)
{
	(void)owner;
	if (!shared)
		shared = http_shared_new(long_body('s'), BODY_BYTES);
	http_respond_shared(r, 200, "text/plain", NULL, shared);
	if (++n_taken < n_readers)
		return;
	http_shared_unref(shared);
	shared = NULL;
}

/* Each reader gets one of its own. */
static void other(struct http_request *r, void *owner)
{
	struct http_shared *b = http_shared_new(long_body('o'), BODY_BYTES);

	(void)owner;
	http_respond_shared(r, 200, "text/plain", NULL, b);
	http_shared_unref(b);
}

static void keep(struct http_request *r, void *owner)
{
	(void)owner;
	if (!kept)
		kept = http_shared_new(long_body('k'), BODY_BYTES);
	http_shared_keep(kept, true);
	http_respond_shared(r, 200, "text/plain", NULL, kept);
}

static void borrowed(struct http_request *r, void *owner)
{
	struct http_shared *b = http_shared_borrow(LOCAL, sizeof(LOCAL) - 1);

	(void)owner;
	http_respond_shared(r, 200, "text/plain", NULL, b);
	http_shared_unref(b);
}

/* The number of bodies that are being sent to 127.0.0.1, and whether more wait. */
static void count(struct http_request *r, void *owner)
{
	static const uint8_t LOOPBACK[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [13] = 0, [14] = 0, [15] = 1};
	const struct rig *g = owner;
	struct http_client_group group = http_client_group_of(LOOPBACK);
	char text[32];

	snprintf(text, sizeof(text), "%d%s", (int)http_group_amount(g->server->n_sending, &group),
	    TAILQ_EMPTY(&g->server->waiting_to_send) ? "" : " and more");
	http_respond(r, 200, "text/plain", NULL, text, strlen(text));
}

static const struct http_route ROUTES[] = {
    {.method = "GET", .pattern = "/count", .on_request = count},
    {.method = "GET", .pattern = "/same", .on_request = same},
    {.method = "GET", .pattern = "/other", .on_request = other},
    {.method = "GET", .pattern = "/kept", .on_request = keep},
    {.method = "GET", .pattern = "/borrowed", .on_request = borrowed},
};

static void serve_few(int max_connections, int n, void (*client)(struct rig *g))
{
	struct http_limits limits = HTTP_LIMITS_DEFAULT;
	struct rig g = {0};

	limits.max_total_unsent_bytes = UNSENT_MAX_BYTES;
	limits.max_connections = max_connections;
	/* The subject is memory. A client that waits for its turn on a busy machine stays. */
	limits.first_byte_timeout_ms = limits.write_timeout_ms = 600000;
	n_readers = n;
	n_taken = 0;
	rig_open(&g, &limits, ROUTES, ARRAY_LEN(ROUTES));
	rig_run(&g, client);
}

static void serve(int n, void (*client)(struct rig *g)) { serve_few(HTTP_LIMITS_DEFAULT.max_connections, n, client); }

/* The head only: its answer has begun. */
static void begin(int fd, const char *path, int status)
{
	struct buf head = BUF_INIT(1 << 16);
	char *request = xasprintf("GET %s HTTP/1.1\r\n" HOST, path);

	rig_say(fd, request);
	assert(rig_receive_head(fd, &head));
	assert(strtol(head.data + 9, NULL, 10) == status);
	free(request);
	buf_release(&head);
}

static void read_body(int fd, char c)
{
	struct buf body = BUF_INIT(BODY_BYTES);

	assert(rig_receive(fd, &body, BODY_BYTES));
	assert(body.data[0] == c && memcmp(body.data, body.data + 1, BODY_BYTES - 2) == 0);
	assert(body.data[BODY_BYTES - 1] == '!');
	buf_release(&body);
}

static int ask(int fd, const char *path)
{
	char *request = xasprintf("GET %s HTTP/1.1\r\n" HOST, path);
	int status = rig_ask(fd, request);

	free(request);
	return status;
}

/* Finding 9: copies of these would take twice the memory of all answers together. */
static void slow_readers_client(struct rig *g)
{
	int readers[N_READERS], more = rig_connect(g);

	for (int i = 0; i < N_READERS; i++) {
		readers[i] = rig_connect_from(g, 8192);
		begin(readers[i], "/same", 200);
	}
	assert(ask(more, "/borrowed") == 200);
	for (int i = N_READERS - 1; i >= 0; i--) {
		/* Every second client leaves while it receives the body. */
		if (i % 2)
			read_body(readers[i], 's');
		assert(i % 2 == 0 || ask(readers[i], "/borrowed") == 200);
		close(readers[i]);
	}
	close(more);
}

static void one_body_serves_all_its_readers(void **state)
{
	(void)state;
	serve(N_READERS, slow_readers_client);
}

static void says(struct rig *g, const char *text)
{
	int fd = rig_connect_as(g, 3);
	struct rig_answer a;

	rig_say(fd, "GET /count HTTP/1.1\r\n" HOST);
	a = rig_answer(fd, false);
	assert(strcmp(buf_str(&a.body), text) == 0);
	rig_answer_release(&a);
	close(fd);
}

static void crowd_client(struct rig *g)
{
	int crowd[N_CROWD], visitor = rig_connect_as(g, 2);

	for (int i = 0; i < N_CROWD; i++) {
		crowd[i] = rig_connect_from(g, 8192);
		begin(crowd[i], "/same", 200);
	}
	says(g, "16 and more");
	begin(visitor, "/same", 200);
	read_body(visitor, 's');
	close(visitor);
	/* A client that receives a body leaves, and a client that waits. */
	close(crowd[SENDING_MAX - 1]);
	close(crowd[N_CROWD - 1]);
	for (int i = 0; i < N_CROWD - 1; i++) {
		if (i == SENDING_MAX - 1)
			continue;
		read_body(crowd[i], 's');
		close(crowd[i]);
	}
}

static void a_client_receives_a_few_at_a_time_without_delaying_others(void **state)
{
	(void)state;
	serve(N_CROWD + 1, crowd_client);
}

static void full_client(struct rig *g)
{
	int readers[3], fd;

	for (int i = 0; i < 3; i++) {
		readers[i] = rig_connect_as(g, 66);
		begin(readers[i], "/same", 200);
	}
	fd = rig_connect_as(g, 2);
	assert(ask(fd, "/borrowed") == 200);
	for (int i = 0; i < 3; i++)
		close(readers[i]);
	close(fd);
}

static void an_answer_that_is_not_read_gives_way_to_a_new_one(void **state)
{
	(void)state;
	serve_few(3, 3, full_client);
}

static void hoarding_client(struct rig *g)
{
	int first = rig_connect_from(g, 8192), second = rig_connect(g);

	begin(first, "/other", 200);
	begin(second, "/other", 503);
	/* Short bodies, and those that take no memory, are always sent. */
	close(second);
	second = rig_connect(g);
	assert(ask(second, "/borrowed") == 200);
	assert(ask(second, "/nowhere") == 404);
	read_body(first, 'o');
	begin(second, "/other", 200);
	read_body(second, 'o');
	close(first);
	close(second);
}

static void a_client_that_reads_nothing_has_a_part_of_the_memory(void **state)
{
	(void)state;
	serve(1, hoarding_client);
}

static void keeping_client(struct rig *g)
{
	int first = rig_connect_from(g, 8192), second = rig_connect(g);

	for (int i = 0; i < 2; i++) {
		begin(first, "/kept", 200);
		begin(second, "/other", 503);
		close(second);
		read_body(first, 'k');
		second = rig_connect(g);
		begin(second, "/other", 200);
		read_body(second, 'o');
	}
	close(first);
	close(second);
}

static void a_kept_body_counts_only_while_a_client_receives_it(void **state)
{
	(void)state;
	serve(1, keeping_client);
	http_shared_keep(kept, false);
	http_shared_unref(kept);
}

static void odd_client(struct rig *g)
{
	struct buf b = BUF_INIT(BODY_BYTES + 4096);
	int fd = rig_connect(g);

	/* HEAD: the length, and no body. */
	rig_say(fd, "HEAD /other HTTP/1.1\r\n" HOST "HEAD /nowhere HTTP/1.1\r\n" HOST);
	for (int i = 0; i < 2; i++) {
		struct rig_answer a = rig_answer(fd, true);

		assert(a.status == (i ? 404 : 200));
		assert(i || strstr(a.head.data, "Content-Length: 4194304\r\n"));
		rig_answer_release(&a);
	}
	/* The next request, sent ahead, is answered after it. */
	begin(fd, "/other", 200);
	rig_say(fd, "GET /borrowed HTTP/1.1\r\n" HOST);
	read_body(fd, 'o');
	assert(rig_ask(fd, "") == 200);
	close(fd);
	/* A client that has shut down its side still gets all of it. */
	fd = rig_connect_from(g, 8192);
	rig_say(fd, "GET /other HTTP/1.0\r\n\r\n");
	shutdown(fd, SHUT_WR);
	rig_receive_all(fd, &b);
	assert(b.len > BODY_BYTES && b.data[b.len - 1] == '!');
	buf_release(&b);
	close(fd);
}

static void a_shared_answer_behaves_like_any_other(void **state)
{
	(void)state;
	serve(1, odd_client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_body_serves_all_its_readers),
	    cmocka_unit_test(a_client_receives_a_few_at_a_time_without_delaying_others),
	    cmocka_unit_test(a_client_that_reads_nothing_has_a_part_of_the_memory),
	    cmocka_unit_test(a_kept_body_counts_only_while_a_client_receives_it),
	    cmocka_unit_test(an_answer_that_is_not_read_gives_way_to_a_new_one),
	    cmocka_unit_test(a_shared_answer_behaves_like_any_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
