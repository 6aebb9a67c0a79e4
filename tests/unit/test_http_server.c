/* The server against a raw client on loopback: order, limits, refusals, deadlines. */
#include <setjmp.h>

#include <cmocka.h>

#include "http_rig.h"

#define HOST "Host: x\r\n"

/* ---- handlers ---- */

static void echo(struct http_request *r, void *owner)
{
	size_t n;
	char *body = http_detach_body(r, &n);

	(void)owner;
	http_respond(r, 200, "application/octet-stream", NULL, body, n);
	http_recycle_body(body);
}

/* Describes the request in its body. */
static void describe(struct http_request *r, void *owner)
{
	char a[16] = "-";
	char *text;

	(void)owner;
	http_query_get(r, "a", a, sizeof(a));
	text = xasprintf("%s %s %s %s %s", http_method(r), http_path(r), http_segment(r, 0) ? http_segment(r, 0) : "-",
	    a, http_client_address(r));
	http_respond(r, 200, "text/plain", NULL, text, strlen(text));
	free(text);
}

struct later {
	struct http_request *request;
	struct timer *timer;
};

static void on_later(struct timer *t)
{
	struct later *l = timer_owner(t);

	http_respond_json1(l->request, 200, "later", http_path(l->request));
	timer_close(t);
	free(l);
}

/* Answers in another turn of the loop. */
static void answer_later(struct http_request *r, void *owner)
{
	struct rig *g = owner;
	struct later *l = xcalloc(1, sizeof(*l));

	l->request = r;
	l->timer = timer_new(g->loop, on_later, l);
	timer_start(l->timer, 1);
}

static struct http_request *kept;

static void keep(struct http_request *r, void *owner)
{
	struct rig *g = owner;

	kept = r;
	sem_post(&g->event);
}

/* Of a body of 60000 bytes. */
#define ALL_BUT_ONE 59999

static void refuse_in_headers(struct http_request *r, void *owner)
{
	(void)owner;
	if (!http_header(r, "X-Key"))
		http_respond_json1(r, 400, "error", "no \"key\"");
}

static void count_piece(struct http_request *r, const char *p, size_t n, void *owner)
{
	struct rig *g = owner;
	uintptr_t so_far = (uintptr_t)http_user(r) + n;

	(void)p;
	http_set_user(r, (void *)so_far);
	if (so_far == ALL_BUT_ONE)
		sem_post(&g->event);
}

static void answer_count(struct http_request *r, void *owner)
{
	size_t n;

	(void)owner;
	http_body(r, &n);
	assert((uintptr_t)http_user(r) == n);
	http_respond_busy(r, 7);
}

#define LARGE_BYTES ((size_t)16 << 20) /* more than a socket's buffers ever hold */

static void answer_large(struct http_request *r, void *owner)
{
	struct rig *g = owner;
	char *text = xcalloc(1, LARGE_BYTES);

	http_respond(r, 200, "text/plain", NULL, text, LARGE_BYTES);
	free(text);
	sem_post(&g->event);
}

static const struct http_route ROUTES[] = {
    {.method = "GET", .pattern = "/large", .on_request = answer_large},
    {.method = "POST", .pattern = "/echo", .max_body_bytes = 4 << 20, .on_request = echo},
    {.method = "GET", .pattern = "/describe/{what}", .on_request = describe},
    {.method = "GET", .pattern = "/kept/{n}", .on_request = keep},
    {.method = "POST", .pattern = "/later/{n}", .max_body_bytes = 100, .on_request = answer_later},
    {.method = "POST",
	.pattern = "/guarded",
	.max_body_bytes = 1 << 20,
	.on_headers = refuse_in_headers,
	.on_piece = count_piece,
	.on_request = answer_count},
};

static void serve(const struct http_limits *limits, void (*client)(struct rig *g))
{
	struct rig g = {0};

	rig_open(&g, limits, ROUTES, ARRAY_LEN(ROUTES));
	rig_run(&g, client);
}

/* ---- plain use ---- */

static char *pattern(size_t n)
{
	char *p = xmalloc(n + 1);

	for (size_t i = 0; i < n; i++)
		p[i] = (char)('a' + (i * 7 + i / 251) % 26);
	p[n] = '\0';
	return p;
}

static void echo_once(int fd, size_t n, bool is_chunked)
{
	char *body = pattern(n), *head;
	struct rig_answer a;

	if (is_chunked)
		head = xasprintf("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", n);
	else
		head = xasprintf("POST /echo HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", n);
	rig_say(fd, head);
	rig_send(fd, body, n);
	if (is_chunked)
		rig_say(fd, n ? "\r\n0\r\n\r\n" : "\r\n");
	a = rig_answer(fd, false);
	assert(a.status == 200 && a.body.len == n && memcmp(buf_str(&a.body), body, n) == 0);
	assert(strstr(a.head.data, "\r\nDate: ") && !strstr(a.head.data, "\r\nConnection:"));
	assert(strstr(a.head.data, "\r\nX-Content-Type-Options: nosniff\r\n"));
	rig_answer_release(&a);
	free(head);
	free(body);
}

static void echoes_client(struct rig *g)
{
	static const size_t SIZES[] = {0, 1, 3000, 4096, 23225, 32767, 32768, 32769, 70000, 3000000};
	int fd = rig_connect(g);

	for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
		echo_once(fd, SIZES[i], false);
		echo_once(fd, SIZES[i], true);
	}
	close(fd);
}

static void echoes_bodies_on_one_connection(void **state)
{
	(void)state;
	serve(NULL, echoes_client);
}

static void describe_is(int fd, const char *request, const char *expected)
{
	struct rig_answer a;

	rig_say(fd, request);
	a = rig_answer(fd, false);
	assert(a.status == 200);
	assert(strcmp(buf_str(&a.body), expected) == 0);
	rig_answer_release(&a);
}

static void describes_client(struct rig *g)
{
	int fd = rig_connect(g);
	struct rig_answer a;

	describe_is(
	    fd, "GET /describe/a%2Fb?x=1&a=c+%64 HTTP/1.1\r\n" HOST "\r\n", "GET /describe/a/b a/b c d 127.0.0.1");
	describe_is(fd, "GET http://h/describe/x/?a HTTP/1.1\r\n" HOST "\r\n", "GET /describe/x/ x - 127.0.0.1");
	rig_say(fd, "HEAD /describe/x HTTP/1.1\r\n" HOST "\r\n");
	a = rig_answer(fd, true);
	assert(a.status == 200 && strstr(a.head.data, "Content-Length: "));
	rig_answer_release(&a);
	/* An HTTP/1.0 connection stays open only on request, and the answer says so. */
	rig_say(fd, "GET /describe/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	a = rig_answer(fd, false);
	assert(strstr(a.head.data, "\r\nConnection: keep-alive\r\n"));
	rig_answer_release(&a);
	rig_say(fd, "GET /describe/x HTTP/1.0\r\n\r\n");
	a = rig_answer(fd, false);
	assert(strstr(a.head.data, "\r\nConnection: close\r\n") && rig_is_closed(fd));
	rig_answer_release(&a);
	close(fd);
	fd = rig_connect(g);
	assert(rig_ask(fd, "GET /describe/x HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n") == 200);
	assert(rig_is_closed(fd));
	close(fd);
}

static void describes_requests(void **state)
{
	(void)state;
	serve(NULL, describes_client);
}

#define N_PIPELINED 800

/* More than the server reads ahead, so that it must stop reading and start again. */
static void *send_pipelined(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < N_PIPELINED; i++) {
		char *s = xasprintf("POST /later/%d HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody", i);

		rig_say(fd, s);
		free(s);
	}
	return NULL;
}

static void pipelines_client(struct rig *g)
{
	int fd = rig_connect(g);
	pthread_t sender;

	pthread_create(&sender, NULL, send_pipelined, &fd);
	for (int i = 0; i < N_PIPELINED; i++) {
		struct rig_answer a = rig_answer(fd, false);
		char *expected = xasprintf("{\"later\":\"/later/%d\"}", i);

		assert(a.status == 200 && strcmp(buf_str(&a.body), expected) == 0);
		free(expected);
		rig_answer_release(&a);
	}
	pthread_join(sender, NULL);
	/* A client that has shut down its side still gets the answers. */
	rig_say(fd, "POST /later/1 HTTP/1.1\r\n" HOST "\r\nPOST /later/2 HTTP/1.1\r\n" HOST "\r\n");
	shutdown(fd, SHUT_WR);
	assert(rig_ask(fd, "") == 200 && rig_ask(fd, "") == 200 && rig_is_closed(fd));
	close(fd);
}

static void answers_pipelined_requests_in_order(void **state)
{
	(void)state;
	serve(NULL, pipelines_client);
}

/* The server reads the end of a body into the memory of the request, and with it the first byte of the next request. The block for a body has
 * 32 KiB, with a NUL, and grows when it is full. */
static const int BODY_BYTES[] = {20000, 32766, 32767, 32768, 70000, 4, 65535, 65536};

static void *send_bodies(void *arg)
{
	int fd = *(int *)arg;

	for (size_t i = 0; i < ARRAY_LEN(BODY_BYTES); i++) {
		char *body = pattern((size_t)BODY_BYTES[i]);
		char *s =
		    xasprintf("POST /echo HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n%s\r\n", BODY_BYTES[i], body);

		rig_say(fd, s);
		free(s);
		free(body);
	}
	return NULL;
}

static void bodies_client(struct rig *g)
{
	int fd = rig_connect(g);
	pthread_t sender;

	pthread_create(&sender, NULL, send_bodies, &fd);
	for (size_t i = 0; i < ARRAY_LEN(BODY_BYTES); i++) {
		struct rig_answer a = rig_answer(fd, false);
		char *body = pattern((size_t)BODY_BYTES[i]);

		assert(a.status == 200 && strcmp(buf_str(&a.body), body) == 0);
		free(body);
		rig_answer_release(&a);
	}
	pthread_join(sender, NULL);
	close(fd);
}

static void separates_large_bodies_from_the_next_request(void **state)
{
	(void)state;
	serve(NULL, bodies_client);
}

/* ---- refusals ---- */

static const struct {
	int status;
	bool closes;
	const char *request;
	const char *in_head;
} REFUSALS[] = {
    {404, false, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n", NULL},
    {404, false, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", NULL},
    {404, true, "POST /nowhere HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", NULL},
    {405, false, "GET /echo HTTP/1.1\r\n" HOST "\r\n", "\r\nAllow: POST\r\n"},
    {405, false, "OPTIONS /echo HTTP/1.1\r\n" HOST "\r\n", "\r\nAllow: POST\r\n"},
    {405, false, "DELETE /describe/x HTTP/1.1\r\n" HOST "\r\n", "\r\nAllow: GET, HEAD\r\n"},
    {400, true, "GET /%zz HTTP/1.1\r\n" HOST "\r\n", NULL},
    {400, true, "GET / HTTP/1.1\r\n\r\n", NULL},
    {400, true, "GET / HTTP/1.1\nHost: x\n\n", NULL},
    {400, true, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX", NULL},
    {413, true, "POST /later/1 HTTP/1.1\r\n" HOST "Content-Length: 101\r\n\r\n", NULL},
    {413, true, "GET /describe/x HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n", NULL},
    {413, true,
	"POST /later/1 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	"20\r\n01234567890123456789012345678901\r\n20\r\n01234567890123456789012345678901\r\n"
	"20\r\n01234567890123456789012345678901\r\n20\r\n01234567890123456789012345678901\r\n",
	NULL},
    {413, true, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 99999999999\r\n\r\n", NULL},
    {417, true, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\nExpect: x\r\n\r\n", NULL},
    {501, true, "FETCH / HTTP/1.1\r\n" HOST "\r\n", NULL},
    {505, true, "GET / HTTP/2.0\r\n" HOST "\r\n", NULL},
    {400, true, "POST /guarded HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", NULL},
    {400, false, "POST /guarded HTTP/1.1\r\n" HOST "\r\n", NULL},
    {503, false, "POST /guarded HTTP/1.1\r\n" HOST "X-Key: 1\r\nContent-Length: 5\r\n\r\nhello",
	"\r\nRetry-After: 7\r\n"},
};

static void refusals_client(struct rig *g)
{
	for (size_t i = 0; i < ARRAY_LEN(REFUSALS); i++) {
		int fd = rig_connect(g);
		struct rig_answer a;

		rig_say(fd, REFUSALS[i].request);
		a = rig_answer(fd, false);
		if (a.status != REFUSALS[i].status)
			fprintf(stderr, "%d for: %s\n", a.status, REFUSALS[i].request);
		assert(a.status == REFUSALS[i].status);
		assert(strncmp(buf_str(&a.body), "{\"error\":\"", 10) == 0);
		assert(!REFUSALS[i].in_head || strstr(a.head.data, REFUSALS[i].in_head));
		assert(REFUSALS[i].closes == (strstr(a.head.data, "\r\nConnection: close\r\n") != NULL));
		if (REFUSALS[i].closes)
			assert(rig_is_closed(fd));
		else
			assert(rig_ask(fd, "GET /describe/x HTTP/1.1\r\n" HOST "\r\n") == 200);
		rig_answer_release(&a);
		close(fd);
	}
}

static void refuses_bad_requests(void **state)
{
	(void)state;
	serve(NULL, refusals_client);
}

static void header_limits_client(struct rig *g)
{
	char *filler = pattern(20000);
	int fd = rig_connect(g);
	char *s = xasprintf("GET /%s HTTP/1.1\r\n" HOST "\r\n", filler);

	assert(rig_ask(fd, s) == 414);
	assert(rig_is_closed(fd));
	close(fd);
	free(s);
	fd = rig_connect(g);
	s = xasprintf("GET / HTTP/1.1\r\n" HOST "A: %s\r\n\r\n", filler);
	assert(rig_ask(fd, s) == 431);
	assert(rig_is_closed(fd));
	close(fd);
	free(s);
	free(filler);
}

static void limits_headers(void **state)
{
	(void)state;
	serve(NULL, header_limits_client);
}

/* The client sends a body that no handler wants, and reads only then. */
static void stubborn_client(struct rig *g)
{
	size_t n = 6 << 20;
	char *body = pattern(n);
	int fd = rig_connect(g);

	rig_say(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 6291456\r\n\r\n");
	assert(rig_send(fd, body, n));
	assert(rig_ask(fd, "") == 413);
	assert(rig_is_closed(fd));
	close(fd);
	free(body);
}

static void refusal_reaches_a_client_that_still_sends(void **state)
{
	(void)state;
	serve(NULL, stubborn_client);
}

static void expects_client(struct rig *g)
{
	int fd = rig_connect(g);

	assert(rig_ask(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n"
			   "Expect: 100-continue\r\n\r\n") == 100);
	assert(rig_ask(fd, "hello") == 200);
	/* No Continue if no body will be read. */
	assert(rig_ask(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n"
			   "Expect: 100-continue\r\n\r\n") == 200);
	assert(rig_ask(fd, "POST /guarded HTTP/1.1\r\n" HOST "Content-Length: 5\r\n"
			   "Expect: 100-continue\r\n\r\n") == 400);
	close(fd);
}

static void sends_continue_when_the_handler_reads_the_body(void **state)
{
	(void)state;
	serve(NULL, expects_client);
}

/* ---- deadlines and bounds ---- */

/* Each test shortens only the deadline that it is about: a busy machine may be late for any other. */
static struct http_limits patient(void)
{
	struct http_limits l = HTTP_LIMITS_DEFAULT;

	l.header_timeout_ms = l.body_timeout_ms = l.idle_timeout_ms = l.first_byte_timeout_ms = l.write_timeout_ms =
	    3600 * 1000;
	return l;
}

static void slow_head_client(struct rig *g)
{
	int fd = rig_connect(g);

	assert(rig_ask(fd, "GET /des") == 408);
	assert(rig_is_closed(fd));
	close(fd);
}

static void an_unfinished_head_is_refused(void **state)
{
	struct http_limits limits = patient();

	(void)state;
	limits.header_timeout_ms = 100;
	serve(&limits, slow_head_client);
}

static void slow_body_client(struct rig *g)
{
	int fd = rig_connect(g);

	assert(rig_ask(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nhello") == 408);
	assert(rig_is_closed(fd));
	close(fd);
}

static void an_unfinished_body_is_refused(void **state)
{
	struct http_limits limits = patient();

	(void)state;
	limits.body_timeout_ms = 100;
	serve(&limits, slow_body_client);
}

static void silent_client(struct rig *g)
{
	int fd = rig_connect(g);

	assert(rig_is_closed(fd));
	close(fd);
}

/* The server closes without an answer. */
static void a_client_that_sends_nothing_is_dropped(void **state)
{
	struct http_limits limits = patient();

	(void)state;
	limits.first_byte_timeout_ms = 100;
	serve(&limits, silent_client);
}

static void idle_client(struct rig *g)
{
	int fd = rig_connect(g);
	char *body, *post;

	assert(rig_ask(fd, "GET /describe/x HTTP/1.1\r\n" HOST "\r\n") == 200);
	assert(rig_is_closed(fd));
	close(fd);
	/* the same with an empty line behind a body, which the server reads in two parts */
	body = pattern(9000);
	post = xasprintf("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9000\r\n\r\n%s\r\n", body);
	fd = rig_connect(g);
	assert(rig_ask(fd, post) == 200);
	assert(rig_is_closed(fd));
	close(fd);
	free(body);
	free(post);
}

/* The server closes without a further answer. */
static void a_client_that_sends_no_other_request_is_dropped(void **state)
{
	struct http_limits limits = patient();

	(void)state;
	limits.idle_timeout_ms = 100;
	serve(&limits, idle_client);
}

/* One header line as often as the server allows: the deadline covers the whole head. */
static void dripping_client(struct rig *g)
{
	int fd = rig_connect(g);
	const struct timespec pause = {.tv_nsec = 5000000};

	rig_say(fd, "GET / HTTP/1.1\r\n");
	while (rig_say(fd, "A: b\r\n")) {
		char c;

		if (recv(fd, &c, 1, MSG_DONTWAIT) >= 0)
			break;
		nanosleep(&pause, NULL);
	}
	close(fd);
}

/* Faster than the minimal rate, but so slow that the body would take memory for ever. */
static void dawdling_client(struct rig *g)
{
	int fd = rig_connect(g), n = 0;
	const struct timespec pause = {.tv_nsec = 5000000};
	char c;

	rig_say(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4000000\r\n\r\n");
	while (recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && n++ < 2000) {
		rig_say(fd, "0123456789");
		nanosleep(&pause, NULL);
	}
	assert(n < 2000 && rig_ask(fd, "") == 408);
	close(fd);
}

static void slow_bodies_are_dropped(void **state)
{
	struct http_limits limits = patient();

	(void)state;
	limits.body_timeout_ms = 100;
	serve(&limits, dawdling_client);
}

static void slow_headers_are_dropped(void **state)
{
	struct http_limits limits = patient();

	(void)state;
	limits.header_timeout_ms = 100;
	serve(&limits, dripping_client);
}

static void crowd_client(struct rig *g)
{
	int first = rig_connect(g), second = rig_connect(g), third;

	assert(rig_ask(first, "GET /describe/x HTTP/1.1\r\n" HOST "\r\n") == 200);
	assert(rig_ask(second, "GET /describe/x HTTP/1.1\r\n" HOST "\r\n") == 200);
	/* All connections are idle, so the newcomer takes the place of the first. */
	third = rig_connect(g);
	assert(rig_ask(third, "GET /describe/x HTTP/1.1\r\n" HOST "\r\n") == 200);
	assert(rig_is_closed(first));
	close(first);
	close(second);
	close(third);
}

static void connections_are_bounded(void **state)
{
	struct http_limits limits = HTTP_LIMITS_DEFAULT;

	(void)state;
	limits.max_connections = 2;
	serve(&limits, crowd_client);
}

static void heavy_client(struct rig *g)
{
	char *body = pattern(60000);
	int first = rig_connect(g), second = rig_connect(g);
	struct rig_answer a;

	rig_say(first, "POST /guarded HTTP/1.1\r\n" HOST "X-Key: 1\r\n"
		       "Content-Length: 60000\r\n\r\n");
	rig_send(first, body, ALL_BUT_ONE);
	/* The first holds nearly all that is allowed. */
	rig_wait(g);
	rig_say(second, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 60000\r\n\r\n");
	rig_send(second, body, 60000);
	a = rig_answer(second, false);
	assert(a.status == 503 && strstr(a.head.data, "\r\nRetry-After: 5\r\n"));
	rig_answer_release(&a);
	close(second);
	rig_send(first, body + ALL_BUT_ONE, 1);
	a = rig_answer(first, false);
	assert(a.status == 503 && strstr(a.head.data, "\r\nRetry-After: 7\r\n"));
	rig_answer_release(&a);
	/* And it is free again. */
	echo_once(first, 60000, false);
	close(first);
	free(body);
}

static void body_bytes_are_bounded(void **state)
{
	struct http_limits limits = HTTP_LIMITS_DEFAULT;

	(void)state;
	limits.max_total_body_bytes = 80000;
	limits.slow_body_ms = 100000; /* the first is not slow */
	serve(&limits, heavy_client);
}

/* ---- answers that the client does not read ---- */

static void hoarding_client(struct rig *g)
{
	int hoarder = rig_connect_from(g, 4096), fd = rig_connect(g), status = 503;
	struct buf body = BUF_INIT(1 << 16);
	char *request;

	rig_say(hoarder, "GET /large HTTP/1.1\r\n" HOST "\r\n");
	rig_wait(g);
	for (int i = 0; i < 2000; i++)
		buf_append_char(&body, 'x');
	request = xasprintf("POST /echo HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n%s", body.len, body.data);
	assert(rig_ask(fd, request) == 503);
	/* Short answers are always sent. */
	assert(rig_ask(fd, "GET /describe/x HTTP/1.1\r\n" HOST "\r\n") == 200);
	close(hoarder);
	for (int i = 0; i < 1000 && status == 503; i++) {
		const struct timespec pause = {.tv_nsec = 5000000};

		nanosleep(&pause, NULL);
		status = rig_ask(fd, request);
	}
	assert(status == 200);
	free(request);
	buf_release(&body);
	close(fd);
}

static void unsent_bytes_are_bounded(void **state)
{
	struct http_limits limits = HTTP_LIMITS_DEFAULT;

	(void)state;
	limits.max_total_unsent_bytes = 80000;
	serve(&limits, hoarding_client);
}

/* ---- proxies ---- */

static bool trusts_loopback_and_ten(const uint8_t address[16], void *owner)
{
	(void)owner;
	return address[12] == 127 || address[12] == 10;
}

static void proxied_client(struct rig *g)
{
	static const struct {
		const char *header, *client;
	} CASES[] = {
	    {"", "127.0.0.1"},
	    {"X-Forwarded-For: 192.0.2.7\r\n", "192.0.2.7"},
	    {"X-Forwarded-For: 203.0.113.1, 192.0.2.7, 10.0.0.1\r\n", "192.0.2.7"},
	    {"X-Forwarded-For: 203.0.113.1, 192.0.2.7\r\nX-Forwarded-For: 10.0.0.1\r\n", "192.0.2.7"},
	    {"X-Forwarded-For: 10.0.0.2,10.0.0.1\r\n", "10.0.0.2"},
	    {"X-Forwarded-For: 192.0.2.7:443\r\n", "192.0.2.7"},
	    {"X-Forwarded-For: [2001:db8::1]:443 , 10.0.0.1\r\n", "2001:db8::1"},
	    {"X-Forwarded-For: 192.0.2.7, unknown, 10.0.0.1\r\n", "10.0.0.1"},
	    {"X-Forwarded-For: ,,\r\n", "127.0.0.1"},
	    {"X-Forwarded-For:\r\n", "127.0.0.1"},
	};
	int fd = rig_connect(g);

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		char *request = xasprintf("GET /describe/x HTTP/1.1\r\n" HOST "%s\r\n", CASES[i].header);
		char *expected = xasprintf("GET /describe/x x - %s", CASES[i].client);

		describe_is(fd, request, expected);
		free(request);
		free(expected);
	}
	close(fd);
}

static void trusts_headers_of_trusted_proxies_only(void **state)
{
	struct rig g = {0};

	(void)state;
	rig_open(&g, NULL, ROUTES, ARRAY_LEN(ROUTES));
	http_server_trust_proxies(g.server, trusts_loopback_and_ten, NULL);
	rig_run(&g, proxied_client);
}

static void ask_and_wait(struct rig *g)
{
	int fd = rig_connect(g);

	rig_say(fd, "GET /kept/7 HTTP/1.1\r\n" HOST "\r\n");
	rig_wait(g);
	close(fd);
}

static void answer_kept(struct rig *g)
{
	assert_string_equal(http_route_of(kept)->pattern, "/kept/{n}");
	assert_ptr_equal(http_route_of(kept)->owner, g);
	assert_string_equal(http_segment(kept, 0), "7");
	http_respond_json1(kept, 200, "later", http_path(kept));
}

/* A page's database query may take longer than the server's grace period. */
static void a_request_that_outlives_the_server_has_its_route(void **state)
{
	struct rig g = {.grace_ms = 1, .on_end = answer_kept};

	(void)state;
	rig_open(&g, NULL, ROUTES, ARRAY_LEN(ROUTES));
	rig_run(&g, ask_and_wait);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(echoes_bodies_on_one_connection),
	    cmocka_unit_test(describes_requests),
	    cmocka_unit_test(answers_pipelined_requests_in_order),
	    cmocka_unit_test(separates_large_bodies_from_the_next_request),
	    cmocka_unit_test(refuses_bad_requests),
	    cmocka_unit_test(a_request_that_outlives_the_server_has_its_route),
	    cmocka_unit_test(limits_headers),
	    cmocka_unit_test(refusal_reaches_a_client_that_still_sends),
	    cmocka_unit_test(sends_continue_when_the_handler_reads_the_body),
	    cmocka_unit_test(an_unfinished_head_is_refused),
	    cmocka_unit_test(an_unfinished_body_is_refused),
	    cmocka_unit_test(a_client_that_sends_nothing_is_dropped),
	    cmocka_unit_test(a_client_that_sends_no_other_request_is_dropped),
	    cmocka_unit_test(slow_headers_are_dropped),
	    cmocka_unit_test(slow_bodies_are_dropped),
	    cmocka_unit_test(connections_are_bounded),
	    cmocka_unit_test(body_bytes_are_bounded),
	    cmocka_unit_test(unsent_bytes_are_bounded),
	    cmocka_unit_test(trusts_headers_of_trusted_proxies_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
