/* The server's reading of requests: a table of heads and bodies that must be refused, and
 * with which status, each whole and byte by byte. */
#include <setjmp.h>

#include <cmocka.h>

#include "http/inlet.h"
#include "http/request.h"

#define MAX_HEAD 4096

/* The result of a connection's input. */
struct outcome {
	int n_requests; /* complete ones */
	int status;     /* of the refusal, 0: none */
	const char *why;
	char method[16], target[256];
	char body[512];
	size_t body_bytes;
	bool keeps_alive, expects_continue;
	int minor;
};

static void take_head(struct outcome *o, struct http_head *h)
{
	snprintf(o->method, sizeof(o->method), "%s", h->method);
	snprintf(o->target, sizeof(o->target), "%s", h->text + h->target);
	o->keeps_alive = h->keeps_alive;
	o->expects_continue = h->expects_continue;
	o->minor = h->minor;
	free(h);
}

static void take_piece(struct outcome *o, const struct http_inlet_out *out)
{
	assert_true(o->body_bytes + out->piece_bytes < sizeof(o->body));
	memcpy(o->body + o->body_bytes, out->piece, out->piece_bytes);
	o->body_bytes += out->piece_bytes;
}

/* Feeds s in steps of `step` bytes, as a connection does: unused bytes are passed again. */
static struct outcome run(const char *s, size_t n, size_t step)
{
	struct outcome o = {0};
	struct http_inlet in;
	size_t from = 0, to = 0;

	http_inlet_init(&in, MAX_HEAD);
	for (;;) {
		struct http_inlet_out out;
		/* A copy of exact size, so that the sanitizer sees reads past the end. */
		char *p = xmemdup(s + from, to - from);
		enum http_inlet_event ev = http_inlet_feed(&in, p, to - from, &out);

		from += out.used;
		if (ev == HTTP_INLET_HEAD)
			take_head(&o, out.head);
		if (ev == HTTP_INLET_PIECE)
			take_piece(&o, &out);
		if (ev == HTTP_INLET_END)
			o.n_requests++;
		free(p);
		if (ev == HTTP_INLET_BAD) {
			o.status = out.refusal.status;
			o.why = out.refusal.why;
			return o;
		}
		if (ev != HTTP_INLET_MORE)
			continue;
		if (to == n)
			return o;
		to = n - to < step ? n : to + step;
	}
}

static struct outcome run_all(const char *s, size_t n)
{
	struct outcome whole = run(s, n, n ? n : 1);
	static const size_t STEPS[] = {1, 2, 3, 7, 64};

	for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
		struct outcome o = run(s, n, STEPS[i]);

		assert_int_equal(o.status, whole.status);
		assert_int_equal(o.n_requests, whole.n_requests);
		assert_int_equal(o.body_bytes, whole.body_bytes);
		assert_memory_equal(o.body, whole.body, o.body_bytes);
	}
	return whole;
}

#define H  "Host: x\r\n"
#define L5 "Content-Length: 5\r\n"
#define TE "Transfer-Encoding: chunked\r\n"

static const struct {
	int status;
	const char *text;
} REFUSED[] = {
    /* request line */
    {400, "\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n"},
    {400, "\nGET / HTTP/1.1\r\n" H "\r\n"},
    {400, " GET / HTTP/1.1\r\n" H "\r\n"},
    {400, "\tGET / HTTP/1.1\r\n" H "\r\n"},
    {400, "GET  / HTTP/1.1\r\n" H "\r\n"},
    {400, "GET /  HTTP/1.1\r\n" H "\r\n"},
    {400, "GET / HTTP/1.1 \r\n" H "\r\n"},
    {400, "GET\t/ HTTP/1.1\r\n" H "\r\n"},
    {400, "GET /a b HTTP/1.1\r\n" H "\r\n"},
    {400, "GET /\r\n\r\n"},
    {400, "GET\r\n\r\n"},
    {400, "GET / \r\n\r\n"},
    {400, "GET / http/1.1\r\n" H "\r\n"},
    {400, "GET / HTTP/1.1x\r\n" H "\r\n"},
    {400, "GET / HTTP/11\r\n" H "\r\n"},
    {400, "GET / HTTP/1,1\r\n" H "\r\n"},
    {400, "GET / XTTP/1.1\r\n" H "\r\n"},
    {400, "G@T / HTTP/1.1\r\n" H "\r\n"},
    {400, "GET\x01 / HTTP/1.1\r\n" H "\r\n"},
    {400, "GET /\x80 HTTP/1.1\r\n" H "\r\n"},
    {400, "GET /\x7f HTTP/1.1\r\n" H "\r\n"},
    {400, "GET /#a HTTP/1.1\r\n" H "\r\n"},
    {400, "GET a HTTP/1.1\r\n" H "\r\n"},
    {400, "GET * HTTP/1.1\r\n" H "\r\n"},
    {400, "GET ftp://x/ HTTP/1.1\r\n" H "\r\n"},
    {400, "GET http:///a HTTP/1.1\r\n" H "\r\n"},
    {400, "GET http://u@x/ HTTP/1.1\r\n" H "\r\n"},
    {400, "GET http://x,y/ HTTP/1.1\r\n" H "\r\n"},
    {400, "GET http://x<y/ HTTP/1.1\r\n" H "\r\n"},
    {400, "GET http://x#y/ HTTP/1.1\r\n" H "\r\n"},
    {400, "GET http://x\\y/ HTTP/1.1\r\n" H "\r\n"},
    {400, "\x16\x03\x01\x02\x00\x01\x00"},
    {501, "get / HTTP/1.1\r\n" H "\r\n"},
    {501, "BREW / HTTP/1.1\r\n" H "\r\n"},
    {501, "GETS / HTTP/1.1\r\n" H "\r\n"},
    {501, "GE / HTTP/1.1\r\n" H "\r\n"},
    {501, "CONNECT x:80 HTTP/1.1\r\n" H "\r\n"},
    {505, "GET / HTTP/1.2\r\n" H "\r\n"},
    {505, "GET / HTTP/0.9\r\n" H "\r\n"},
    {505, "GET / HTTP/2.0\r\n" H "\r\n"},
    {505, "GET / HTTP/2\r\n" H "\r\n"},
    {505, "GET / HTTP/3\r\n" H "\r\n"},
    {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    /* lines */
    {400, "GET / HTTP/1.1\n" H "\n"},
    {400, "GET / HTTP/1.1\r\nHost: x\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "\n"},
    {400, "GET / HTTP/1.1\r\n" H "A: b\rc\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "A: b\r\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "A: b\r\n\tc\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n A: b\r\n" H "\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "A : b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "A\t: b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "A b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H ": b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "A(: b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "A\x80: b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "A: b\x01\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "A: b\x7f\r\n\r\n"},
    /* host */
    {400, "GET / HTTP/1.1\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H H "\r\n"},
    {400, "GET / HTTP/1.0\r\n" H "hOST: y\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: x, y\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: x y\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: u@x\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n"},
    /* the body's length */
    {400, "POST / HTTP/1.1\r\n" H L5 L5 "\r\nhello"},
    {400, "POST / HTTP/1.1\r\n" H L5 "content-length: 6\r\n\r\nhello!"},
    {400, "POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\nhello"},
    {400, "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\nhello"},
    {400, "POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\nhello"},
    {400, "POST / HTTP/1.1\r\n" H "Content-Length: 5 5\r\n\r\nhello"},
    {400, "POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\nhello"},
    {400, "POST / HTTP/1.1\r\n" H "Content-Length: 5a\r\n\r\nhello"},
    {400, "POST / HTTP/1.1\r\n" H "Content-Length: \r\n\r\nhello"},
    {400, "POST / HTTP/1.1\r\n" H "Content-Length: 9223372036854775808\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551621\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H L5 TE "\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE L5 "\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE TE "\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.0\r\n" H TE "\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked;q=1\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \x0b"
	  "chunked\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n"},
    {417, "POST / HTTP/1.1\r\n" H L5 "Expect: 200-ok\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H L5 "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "Authorization: a\r\nauthorization: b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "X-Hub-Signature-256: a\r\nX-Hub-Signature-256: a\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" H "X-GitHub-Delivery: a\r\nX-GitHub-Delivery: b\r\n\r\n"},
    /* chunks */
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n5\nhello\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n5\r\nhello\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n5\r\nhelloX\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n5\rXhello\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n 5\r\nhello\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n5 \r\nhello\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n+5\r\nhello\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n0x5\r\nhello\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\ng\r\nhello\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n10000000000000005\r\nhello\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n5;a\nb\r\nhello\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n5;a\x01\r\nhello\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n0\r\n\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n0\r\nA: b\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" H TE "\r\n0\r\n A: b\r\n\r\n"},
};

static void refuses_ambiguous_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
		struct outcome o = run_all(REFUSED[i].text, strlen(REFUSED[i].text));

		if (o.status != REFUSED[i].status || o.n_requests != 0)
			fail_msg("%d instead of %d for: %s", o.status, REFUSED[i].status, REFUSED[i].text);
		assert_non_null(o.why);
	}
}

static void refuses_nul(void **state)
{
	static const char TEXTS[][40] = {
	    "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\0\r\n\r\n",
	    "GET / HTTP/1.1\r\nHo\0st: x\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++)
		assert_int_equal(run_all(TEXTS[i], sizeof(TEXTS[i]) - 8).status, 400);
}

static const struct {
	int n_requests;
	const char *text;
	const char *target; /* of the last */
	const char *body;   /* of all */
} ACCEPTED[] = {
    {1, "GET / HTTP/1.1\r\n" H "\r\n", "/", ""},
    {1, "\r\nGET /a?b=c HTTP/1.1\r\n" H "\r\n", "/a?b=c", ""},
    {1, "GET / HTTP/1.1\r\nhost:x\r\nEmpty:\r\nSpaces: \t \r\nLast: a b \t\r\n\r\n", "/", ""},
    {1, "GET / HTTP/1.1\r\nHost:\r\n\r\n", "/", ""},
    {1, "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "/", ""},
    {1, "GET / HTTP/1.0\r\n\r\n", "/", ""},
    {1, "GET http://x:80/a/b?c HTTP/1.1\r\n" H "\r\n", "/a/b?c", ""},
    {1, "GET https://x?c HTTP/1.1\r\n" H "\r\n", "/?c", ""},
    {1, "GET HTTP://x HTTP/1.1\r\n" H "\r\n", "/", ""},
    {1, "OPTIONS * HTTP/1.1\r\n" H "\r\n", "*", ""},
    {1, "POST / HTTP/1.1\r\n" H L5 "\r\nhello", "/", "hello"},
    {1, "POST / HTTP/1.1\r\n" H "Content-Length: 0005\r\n\r\nhello", "/", "hello"},
    {1, "POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", "/", ""},
    {1, "POST / HTTP/1.1\r\n" H TE "\r\n5\r\nhello\r\n0\r\n\r\n", "/", "hello"},
    {1, "POST / HTTP/1.1\r\n" H "transfer-encoding:  CHUNKED \r\n\r\n1\r\nh\r\n00\r\n\r\n", "/", "h"},
    {1, "POST / HTTP/1.1\r\n" H TE "\r\n5;a=b\r\nhello\r\n0;z\r\nA: b\r\nC: d\r\n\r\n", "/", "hello"},
    {2, "POST /1 HTTP/1.1\r\n" H L5 "\r\nhelloPOST /2 HTTP/1.1\r\n" H L5 "\r\nworld", "/2", "helloworld"},
    {3, "GET /1 HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n\r\nGET /3 HTTP/1.1\r\n" H "\r\n", "/3", ""},
    {0, "POST / HTTP/1.1\r\n" H L5 "\r\nhell", "/", "hell"},
    {0, "POST / HTTP/1.1\r\n" H TE "\r\n5\r\nhello\r\n0\r\n\r", "/", "hello"},
};

static void accepts_plain_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ACCEPTED); i++) {
		struct outcome o = run_all(ACCEPTED[i].text, strlen(ACCEPTED[i].text));

		if (o.status != 0)
			fail_msg("%d %s for: %s", o.status, o.why, ACCEPTED[i].text);
		assert_int_equal(o.n_requests, ACCEPTED[i].n_requests);
		assert_string_equal(o.target, ACCEPTED[i].target);
		assert_int_equal(o.body_bytes, strlen(ACCEPTED[i].body));
		assert_memory_equal(o.body, ACCEPTED[i].body, o.body_bytes);
	}
}

static void reads_connection_flags(void **state)
{
	static const struct {
		const char *text;
		bool keeps_alive, expects_continue;
	} CASES[] = {
	    {"GET / HTTP/1.1\r\n" H "\r\n", true, false},
	    {"GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", false, false},
	    {"GET / HTTP/1.1\r\n" H "Connection: a, Close\r\n\r\n", false, false},
	    {"GET / HTTP/1.1\r\n" H "Connection: keep-alive\r\nConnection: close\r\n\r\n", false, false},
	    {"GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n", true, false},
	    {"GET / HTTP/1.1\r\n" H "Connection: ,\t CLOSE ,\r\n\r\n", false, false},
	    {"GET / HTTP/1.1\r\n" H "Connection:\r\n\r\n", true, false},
	    {"GET / HTTP/1.1\r\n" H "Connection: upgrade\r\nUpgrade: h2c\r\n\r\n", true, false},
	    {"GET / HTTP/1.1\r\n" H "Proxy-Connection: close\r\n\r\n", true, false},
	    {"GET / HTTP/1.0\r\n\r\n", false, false},
	    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, false},
	    {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false, false},
	    {"POST / HTTP/1.1\r\n" H L5 "Expect: 100-Continue\r\n\r\n", true, true},
	    {"POST / HTTP/1.0\r\n" L5 "Expect: 100-continue\r\n\r\n", false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct outcome o = run_all(CASES[i].text, strlen(CASES[i].text));

		assert_int_equal(o.status, 0);
		assert_int_equal(o.keeps_alive, CASES[i].keeps_alive);
		assert_int_equal(o.expects_continue, CASES[i].expects_continue);
	}
}

/* A head of exactly n bytes, made long in its target or in a header. */
static char *long_head(size_t n, bool is_target)
{
	static const char START[] = "GET /", MIDDLE[] = " HTTP/1.1\r\nHost: x\r\nA: ";
	size_t fill = n - strlen(START) - strlen(MIDDLE) - 5;
	char *filler = xmalloc(fill + 1), *s;

	memset(filler, 'a', fill);
	filler[fill] = '\0';
	s = xasprintf("%s%s%s%sb\r\n\r\n", START, is_target ? filler : "", MIDDLE, is_target ? "" : filler);
	free(filler);
	assert_int_equal(strlen(s), n);
	return s;
}

static void limits_heads(void **state)
{
	static const struct {
		size_t bytes;
		bool is_target;
		int status;
	} CASES[] = {
	    {MAX_HEAD, false, 0},
	    {MAX_HEAD + 1, false, 431},
	    {3 * MAX_HEAD, false, 431},
	    {MAX_HEAD, true, 0},
	    {3 * MAX_HEAD, true, 414},
	};
	char *many = xstrdup("GET / HTTP/1.1\r\nHost: x\r\n");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		char *s = long_head(CASES[i].bytes, CASES[i].is_target);

		/* target in the result is cut, which does not matter here */
		assert_int_equal(run(s, CASES[i].bytes, CASES[i].bytes).status, CASES[i].status);
		assert_int_equal(run(s, CASES[i].bytes, 100).status, CASES[i].status);
		free(s);
	}
	for (int i = 0; i < HTTP_MAX_FIELDS; i++) {
		char *more = xasprintf("%sA: b\r\n", many);

		free(many);
		many = more;
	}
	{
		char *s = xasprintf("%s\r\n", many);

		assert_int_equal(run(s, strlen(s), 100).status, 431);
		free(s);
	}
	free(many);
}

static void limits_chunk_overhead(void **state)
{
	size_t fill = 20000;
	char *filler = xmalloc(fill + 1), *s;

	(void)state;
	memset(filler, 'a', fill);
	filler[fill] = '\0';
	s = xasprintf("POST / HTTP/1.1\r\n" H TE "\r\n1;%s\r\n", filler);
	assert_int_equal(run(s, strlen(s), 1000).status, 400);
	free(s);
	s = xasprintf("POST / HTTP/1.1\r\n" H TE "\r\n0\r\nA: %s\r\n\r\n", filler);
	assert_int_equal(run(s, strlen(s), 1000).status, 400);
	free(s);
	free(filler);
}

static void finds_headers(void **state)
{
	static const char TEXT[] = "GET / HTTP/1.1\r\nHost: x\r\nA: 1\r\na: 2\r\nB:  \tc d\t \r\n\r\n";
	struct http_refusal refusal;
	struct http_head *h;

	(void)state;
	assert_int_equal(http_head_parse(TEXT, sizeof(TEXT) - 1, &h, &refusal), 0);
	assert_int_equal(h->n_fields, 4);
	assert_string_equal(http_head_get(h, "HOST"), "x");
	assert_string_equal(http_head_get(h, "a"), "1");
	assert_string_equal(http_head_get(h, "b"), "c d");
	assert_null(http_head_get(h, "c"));
	free(h);
}

static void decodes_percent(void **state)
{
	char out[64];

	(void)state;
	assert_int_equal(http_percent_decode("a%2Fb%41+", 9, HTTP_DECODE_PATH, out), 5);
	assert_string_equal(out, "a/bA+");
	assert_int_equal(http_percent_decode("a+b", 3, HTTP_DECODE_FORM, out), 3);
	assert_string_equal(out, "a b");
	assert_int_equal(http_percent_decode("%00", 3, HTTP_DECODE_PATH, out), ERR_INVALID);
	assert_int_equal(http_percent_decode("%4", 2, HTTP_DECODE_PATH, out), ERR_INVALID);
	assert_int_equal(http_percent_decode("%", 1, HTTP_DECODE_PATH, out), ERR_INVALID);
	assert_int_equal(http_percent_decode("%zz", 3, HTTP_DECODE_PATH, out), ERR_INVALID);
}

static int find(const struct http_routes *all, const char *method, const char *path, const struct http_route **ret,
    char *capture, char *allow)
{
	struct http_segments segments, captures;
	char memory[256];
	int rc = http_segments_split(path, strlen(path), memory, &segments);

	capture[0] = '\0';
	if (rc)
		return rc;
	rc = http_routes_find(all, method, &segments, ret, &captures, allow, 64);
	if (rc == 0 && captures.n)
		snprintf(capture, 64, "%s", captures.at[captures.n - 1]);
	return rc;
}

static void finds_routes(void **state)
{
	static const struct http_route TABLE[] = {
	    {.method = "GET", .pattern = "/"},
	    {.method = "POST", .pattern = "/github/callback"},
	    {.method = "GET", .pattern = "/jobs/{id}"},
	    {.method = "PUT", .pattern = "/jobs/{id}"},
	    {.method = "GET", .pattern = "/jobs/{id}/log"},
	};
	struct http_routes all = {0};
	const struct http_route *r;
	char capture[64], allow[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(TABLE); i++)
		http_routes_add(&all, &TABLE[i]);
	assert_int_equal(find(&all, "GET", "/", &r, capture, allow), 0);
	assert_string_equal(r->pattern, "/");
	assert_int_equal(find(&all, "HEAD", "/", &r, capture, allow), 0);
	assert_int_equal(find(&all, "POST", "/github/callback", &r, capture, allow), 0);
	assert_int_equal(find(&all, "POST", "/github/callback/", &r, capture, allow), 0);
	assert_int_equal(find(&all, "POST", "/git%68ub/callback", &r, capture, allow), 0);
	assert_int_equal(find(&all, "POST", "/github/callback//", &r, capture, allow), ERR_NOT_FOUND);
	assert_int_equal(find(&all, "POST", "//github/callback", &r, capture, allow), ERR_NOT_FOUND);
	assert_int_equal(find(&all, "GET", "/github/callback", &r, capture, allow), ERR_DENIED);
	assert_string_equal(allow, "POST");
	assert_int_equal(find(&all, "PUT", "/jobs/a%2Fb", &r, capture, allow), 0);
	assert_string_equal(capture, "a/b");
	assert_string_equal(r->method, "PUT");
	assert_int_equal(find(&all, "DELETE", "/jobs/7", &r, capture, allow), ERR_DENIED);
	assert_string_equal(allow, "GET, HEAD, PUT");
	assert_int_equal(find(&all, "GET", "/jobs/7/log", &r, capture, allow), 0);
	assert_string_equal(capture, "7");
	assert_int_equal(find(&all, "GET", "/jobs//log", &r, capture, allow), ERR_NOT_FOUND);
	assert_int_equal(find(&all, "GET", "/jobs/%zz", &r, capture, allow), ERR_INVALID);
	assert_int_equal(find(&all, "GET", "/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", &r, capture, allow), ERR_NOT_FOUND);
	http_routes_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(refuses_ambiguous_requests),
	    cmocka_unit_test(refuses_nul),
	    cmocka_unit_test(accepts_plain_requests),
	    cmocka_unit_test(reads_connection_flags),
	    cmocka_unit_test(limits_heads),
	    cmocka_unit_test(limits_chunk_overhead),
	    cmocka_unit_test(finds_headers),
	    cmocka_unit_test(decodes_percent),
	    cmocka_unit_test(finds_routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
