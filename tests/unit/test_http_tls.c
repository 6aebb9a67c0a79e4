/* TLS with a real client: versions, swap of the certificate, bad pairs, hostile bytes. */
#include <setjmp.h>

#include <cmocka.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "http/server.h"
#include "http_rig.h"
#include "test_keys.h"

#define HOST "Host: x\r\n"

/* ---- certificates ---- */

struct pair {
	char *certificate;
	struct private_key *key;
	X509 *x;
	EVP_PKEY *pkey;
};

/* A certificate for `name`, signed by `issuer` or by itself. */
static struct pair pair_new(const char *name, const struct pair *issuer)
{
	struct pair p = {.x = X509_new(), .pkey = EVP_EC_gen("P-256")};
	X509_NAME *subject = X509_get_subject_name(p.x);
	BIO *b = BIO_new(BIO_s_mem());
	char *key;

	X509_set_version(p.x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(p.x), 1);
	X509_gmtime_adj(X509_getm_notBefore(p.x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(p.x), 3600);
	X509_set_pubkey(p.x, p.pkey);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(p.x, issuer ? X509_get_subject_name(issuer->x) : subject);
	assert_true(X509_sign(p.x, issuer ? issuer->pkey : p.pkey, EVP_sha256()) > 0);
	PEM_write_bio_X509(b, p.x);
	p.certificate = pem_text(b);
	key = pem_pkcs8(p.pkey);
	p.key = private_key_of(key, NULL);
	free(key);
	return p;
}

static void pair_free(struct pair *p)
{
	X509_free(p->x);
	EVP_PKEY_free(p->pkey);
	free(p->certificate);
	private_key_free(p->key);
}

/* ---- server ---- */

static void echo(struct http_request *r, void *owner)
{
	size_t n;
	const char *body = http_body(r, &n);

	(void)owner;
	http_respond(r, 200, "text/plain", NULL, body, n);
}

static int n_to_stream;

static void write_more(struct http_request *r)
{
	static char piece[10000];

	memset(piece, 'x', sizeof(piece));
	while (n_to_stream && http_stream_pending(r) < sizeof(piece)) {
		n_to_stream--;
		http_stream_write(r, piece, sizeof(piece));
	}
	if (n_to_stream == 0)
		http_stream_end(r);
}

static void stream(struct http_request *r, void *owner)
{
	(void)owner;
	n_to_stream = 300;
	http_stream_begin(r, 200, "text/plain", NULL, write_more);
}

/* Longer than one TLS record. */
static void share(struct http_request *r, void *owner)
{
	enum { N = 300000 };
	char *bytes = xmalloc(N);
	struct http_shared *body = http_shared_new(bytes, N);

	(void)owner;
	memset(bytes, 's', N);
	memcpy(bytes + N - 3, "end", 3);
	http_respond_shared(r, 200, "text/plain", NULL, body);
	http_shared_unref(body);
}

static const struct http_route ROUTES[] = {
    {.method = "GET", .pattern = "/shared", .on_request = share},
    {.method = "POST", .pattern = "/echo", .max_body_bytes = 1 << 20, .on_request = echo},
    {.method = "GET", .pattern = "/stream", .on_request = stream},
};

static struct pair current;

static void serve(const struct http_limits *limits, void (*client)(struct rig *g))
{
	struct rig g = {0};
	struct error e = {0};
	struct pair root = pair_new("root", NULL), middle = pair_new("middle", &root);
	char *chain;

	current = pair_new("first", &middle);
	chain = xasprintf("%s%s", current.certificate, middle.certificate);
	rig_open(&g, limits, ROUTES, ARRAY_LEN(ROUTES));
	assert_int_equal(http_server_use_tls(g.server, chain, current.key, &e), 0);
	rig_run(&g, client);
	free(chain);
	pair_free(&current);
	pair_free(&middle);
	pair_free(&root);
}

/* ---- client ---- */

struct tls_client {
	SSL_CTX *context;
	SSL *ssl;
	int fd;
	bool is_up;
};

static struct tls_client client_open(struct rig *g, int version, const char *alpn)
{
	struct tls_client c = {.context = SSL_CTX_new(TLS_client_method()), .fd = rig_connect(g)};

	SSL_CTX_set_security_level(c.context, 0);
	SSL_CTX_set_min_proto_version(c.context, version);
	SSL_CTX_set_max_proto_version(c.context, version);
	c.ssl = SSL_new(c.context);
	SSL_set_fd(c.ssl, c.fd);
	if (alpn)
		SSL_set_alpn_protos(c.ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
	c.is_up = SSL_connect(c.ssl) == 1;
	ERR_clear_error();
	return c;
}

static void client_close(struct tls_client *c)
{
	SSL_free(c->ssl);
	SSL_CTX_free(c->context);
	close(c->fd);
}

static void client_send(struct tls_client *c, const char *p, size_t n)
{
	int rc = SSL_write(c->ssl, p, (int)n);

	assert(rc == (int)n);
}

/* Reads until the text ends with `tail`. */
static void client_receive(struct tls_client *c, struct buf *b, const char *tail)
{
	while (!str_has_suffix(buf_str(b), tail)) {
		char chunk[4096];
		int n = SSL_read(c->ssl, chunk, sizeof(chunk));

		assert(n > 0);
		buf_append(b, chunk, (size_t)n);
	}
}

static void client_echo(struct tls_client *c, size_t n)
{
	struct buf b = BUF_INIT(1 << 21);
	char *body = xmalloc(n + 6);
	char *head = xasprintf("POST /echo HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", n + 5);

	memset(body, 'z', n);
	memcpy(body + n, "-end-", 6);
	client_send(c, head, strlen(head));
	client_send(c, body, n + 5);
	client_receive(c, &b, "-end-");
	assert(str_has_prefix(b.data, "HTTP/1.1 200 OK\r\n"));
	assert(b.len > n && memcmp(b.data + b.len - n - 5, body, n + 5) == 0);
	buf_release(&b);
	free(head);
	free(body);
}

static void versions_client(struct rig *g)
{
	static const int GOOD[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	struct tls_client c;

	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		const unsigned char *chosen;
		unsigned n;

		c = client_open(g, GOOD[i], "\x02h2\x08http/1.1");
		assert(c.is_up && SSL_version(c.ssl) == GOOD[i]);
		SSL_get0_alpn_selected(c.ssl, &chosen, &n);
		assert(n == 8 && memcmp(chosen, "http/1.1", 8) == 0);
		/* Leaf and intermediate were sent. */
		assert(sk_X509_num(SSL_get_peer_cert_chain(c.ssl)) == 2);
		client_echo(&c, 0);
		client_echo(&c, 23000);
		client_echo(&c, 700000);
		client_echo(&c, 10);
		client_close(&c);
	}
	c = client_open(g, TLS1_1_VERSION, NULL);
	assert(!c.is_up);
	client_close(&c);
	c = client_open(g, TLS1_3_VERSION, "\x02h2");
	assert(!c.is_up);
	client_close(&c);
}

static void speaks_1_2_and_1_3_only(void **state)
{
	(void)state;
	serve(NULL, versions_client);
}

static void pipelines_client(struct rig *g)
{
	static const char TWO[] = "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none"
				  "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\ntwo";
	struct buf b = BUF_INIT(1 << 24);
	struct tls_client c = client_open(g, TLS1_3_VERSION, NULL);

	assert(c.is_up);
	client_send(&c, TWO, sizeof(TWO) - 1);
	client_receive(&c, &b, "two");
	assert(strstr(b.data, "\r\n\r\noneHTTP/1.1 200 OK\r\n"));
	buf_clear(&b);
	client_send(&c, "GET /stream HTTP/1.1\r\n" HOST "\r\n", 33);
	client_receive(&c, &b, "\r\n0\r\n\r\n");
	assert(b.len > 3000000);
	buf_clear(&b);
	client_send(&c, "GET /shared HTTP/1.1\r\n" HOST "\r\n", 33);
	client_receive(&c, &b, "end");
	assert(b.len > 300000 && strspn(strstr(b.data, "\r\n\r\n") + 4, "s") == 300000 - 3);
	/* A broken request is answered, and TLS is closed in order. */
	client_send(&c, "GET /\n\n", 7);
	buf_clear(&b);
	client_receive(&c, &b, "}");
	assert(str_has_prefix(b.data, "HTTP/1.1 400 "));
	{
		char rest[16];
		int n = SSL_read(c.ssl, rest, sizeof(rest));

		assert(n == 0 && SSL_get_error(c.ssl, n) == SSL_ERROR_ZERO_RETURN);
	}
	client_close(&c);
	buf_release(&b);
}

static void pipelines_streams_and_closes_in_order(void **state)
{
	(void)state;
	serve(NULL, pipelines_client);
}

static void name_is(struct tls_client *c, const char *name)
{
	X509 *x = SSL_get1_peer_certificate(c->ssl);
	char text[32];

	X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, text, sizeof(text));
	assert(strcmp(text, name) == 0);
	X509_free(x);
}

static void on_swap(struct inbox_item *item);

static struct inbox_item swap_item = {.on_loop = on_swap};
static struct rig *swap_rig;

static void on_swap(struct inbox_item *item)
{
	struct pair second = pair_new("second", NULL), other = pair_new("other", NULL);
	struct error e = {0};
	int rc;

	(void)item;
	rc = http_server_use_tls(swap_rig->server, second.certificate, second.key, &e);
	assert(rc == 0);
	/* A bad pair changes nothing. */
	rc = http_server_use_tls(swap_rig->server, other.certificate, second.key, &e);
	assert(rc == ERR_INVALID);
	pair_free(&second);
	pair_free(&other);
	sem_post(&swap_rig->event);
}

static void swap_client(struct rig *g)
{
	struct tls_client before = client_open(g, TLS1_3_VERSION, NULL), after;

	assert(before.is_up);
	name_is(&before, "first");
	client_echo(&before, 10);
	swap_rig = g;
	inbox_post(g->inbox, &swap_item);
	rig_wait(g);
	after = client_open(g, TLS1_2_VERSION, NULL);
	assert(after.is_up);
	name_is(&after, "second");
	client_echo(&after, 10);
	client_echo(&before, 10);
	client_close(&before);
	client_close(&after);
}

static void swaps_the_certificate(void **state)
{
	(void)state;
	serve(NULL, swap_client);
}

/* Three places: one for an active client, two for unfinished handshakes. */
static void crowding_client(struct rig *g)
{
	struct tls_client first = client_open(g, TLS1_3_VERSION, NULL), second;
	int silent, half;

	client_echo(&first, 10);
	silent = rig_connect(g);
	half = rig_connect(g);
	rig_send(half, "\x16\x03\x01\x02\x00\x01", 6);
	client_echo(&first, 10);
	second = client_open(g, TLS1_3_VERSION, NULL);
	assert(second.is_up && rig_is_closed(silent));
	client_echo(&second, 10);
	client_echo(&first, 10);
	client_close(&second);
	/* A connection in half a handshake gives way too. */
	silent = rig_connect(g);
	second = client_open(g, TLS1_3_VERSION, NULL);
	client_echo(&second, 10);
	client_close(&second);
	close(silent);
	assert(rig_is_closed(half));
	client_close(&first);
}

static void a_pending_handshake_gives_way(void **state)
{
	struct http_limits limits = HTTP_LIMITS_DEFAULT;

	(void)state;
	limits.max_connections = 3;
	limits.header_timeout_ms = limits.first_byte_timeout_ms = 3600000;
	serve(&limits, crowding_client);
}

static void hostile_client(struct rig *g)
{
	int fd = rig_connect(g);

	/* Plain HTTP, garbage, nothing at all, and half a hello. */
	rig_say(fd, "GET / HTTP/1.1\r\n" HOST "\r\n");
	while (!rig_is_closed(fd))
		continue;
	close(fd);
	fd = rig_connect(g);
	rig_send(fd, "\x16\x03\x01\x00\x05\xff\xff\xff\xff\xff", 10);
	while (!rig_is_closed(fd))
		continue;
	close(fd);
	fd = rig_connect(g);
	assert(rig_is_closed(fd));
	close(fd);
	fd = rig_connect(g);
	rig_send(fd, "\x16\x03\x01\x02\x00\x01", 6);
	assert(rig_is_closed(fd));
	close(fd);
}

static void survives_hostile_bytes(void **state)
{
	struct http_limits limits = HTTP_LIMITS_DEFAULT;

	(void)state;
	limits.header_timeout_ms = 100;
	serve(&limits, hostile_client);
}

static void says(const char *certificate, struct private_key *key, const char *text)
{
	struct error e = {0};

	assert_int_equal(http_tls_check(certificate, key, &e), ERR_INVALID);
	if (!strstr(e.text, text))
		fail_msg("'%s' instead of '%s'", e.text, text);
}

static void names_the_mistake_in_a_key_pair(void **state)
{
	struct pair one = pair_new("one", NULL), two = pair_new("two", NULL);
	char *damaged = xstrdup(one.certificate), *chain;
	struct error e = {0};

	(void)state;
	memset(damaged + 60, '!', 20);
	chain = xasprintf("%s%s", one.certificate, damaged);
	assert_int_equal(http_tls_check(one.certificate, one.key, &e), 0);
	says("", one.key, "no PEM certificate");
	says(damaged, one.key, "certificate is damaged");
	says(chain, one.key, "certificate 2 of the chain is damaged");
	says(one.certificate, two.key, "does not belong to the certificate");
	free(damaged);
	free(chain);
	pair_free(&one);
	pair_free(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(speaks_1_2_and_1_3_only),
	    cmocka_unit_test(pipelines_streams_and_closes_in_order),
	    cmocka_unit_test(swaps_the_certificate),
	    cmocka_unit_test(a_pending_handshake_gives_way),
	    cmocka_unit_test(survives_hostile_bytes),
	    cmocka_unit_test(names_the_mistake_in_a_key_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
