/* Certificates are always verified; the environment selects the trusted ones. */
#include <setjmp.h>

#include <cmocka.h>
#include <openssl/x509v3.h>

#include "http/client.h"
#include "http/server.h"
#include "test_keys.h"

struct fixture {
	struct loop *loop;
	struct http_server *server;
	char *url, *ca_file;
	bool is_closed;
};

static char *self_signed(EVP_PKEY *key, const char *alt_name)
{
	X509 *x = X509_new();
	X509_EXTENSION *alt;
	BIO *bio = BIO_new(BIO_s_mem());

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(
	    X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	alt = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alt_name);
	X509_add_ext(x, alt, -1);
	X509_sign(x, key, EVP_sha256());
	PEM_write_bio_X509(bio, x);
	X509_EXTENSION_free(alt);
	X509_free(x);
	return pem_text(bio);
}

static void on_request(struct http_request *r, void *owner)
{
	(void)owner;
	http_respond(r, 200, "text/plain", NULL, "hello", 5);
}

static void start_server(struct fixture *f, const char *alt_name)
{
	static const struct http_route route = {.method = "GET", .pattern = "/", .on_request = on_request};
	EVP_PKEY *key = shared_rsa_key();
	struct private_key *private_key;
	char *pem = pem_pkcs8(key), *certificate = self_signed(key, alt_name), *address;
	char path[] = "/tmp/outpost-test-ca-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, certificate, strlen(certificate)), strlen(certificate));
	close(fd);
	f->ca_file = xstrdup(path);
	f->loop = loop_new();
	f->server = http_server_new(f->loop, &HTTP_LIMITS_DEFAULT);
	http_server_route(f->server, &route);
	private_key = private_key_of(pem, NULL);
	assert_int_equal(http_server_use_tls(f->server, certificate, private_key, NULL), 0);
	private_key_free(private_key);
	assert_int_equal(http_server_listen(f->server, "127.0.0.1:0", &address, NULL), 0);
	f->url = xasprintf("https://%s/", address);
	EVP_PKEY_free(key);
	free(pem);
	free(certificate);
	free(address);
}

static void on_closed(void *owner) { *(bool *)owner = true; }

static void stop_server(struct fixture *f)
{
	http_server_close(f->server, 0, on_closed, &f->is_closed);
	loop_run_until(f->loop, &f->is_closed);
	loop_free(f->loop);
	unlink(f->ca_file);
	free(f->ca_file);
	free(f->url);
}

struct one {
	struct http_call call;
	bool is_done;
};

static void on_done(struct http_call *call) { CONTAINER_OF(call, struct one, call)->is_done = true; }

/* One call by a client that was made with this variable in the environment. */
static void call_under(
    struct fixture *f, const char *variable, const char *value, const char *own_ca_file, struct one *o)
{
	struct http_client *c;
	bool is_closed = false;

	setenv(variable, value, 1);
	c = http_client_new(f->loop, "outpost-test");
	if (own_ca_file)
		http_client_use_ca(c, own_ca_file);
	o->call.method = "GET";
	o->call.url = f->url;
	o->call.done = on_done;
	http_call_start(c, &o->call);
	loop_run_until(f->loop, &o->is_done);
	http_client_close(c, on_closed, &is_closed);
	loop_run_until(f->loop, &is_closed);
	unsetenv(variable);
}

static void call_with(struct fixture *f, const char *ca_file, struct one *o)
{
	call_under(f, "CURL_CA_BUNDLE", ca_file, NULL, o);
}

static void test_trusted(void **state)
{
	struct fixture f = {0};
	struct one o = {0};

	(void)state;
	start_server(&f, "IP:127.0.0.1");
	call_with(&f, f.ca_file, &o);
	assert_int_equal(o.call.err, 0);
	assert_int_equal(o.call.status, 200);
	http_call_release(&o.call);
	stop_server(&f);
}

static void test_unknown_authority(void **state)
{
	struct fixture f = {0};
	struct one o = {0};

	(void)state;
	start_server(&f, "IP:127.0.0.1");
	call_with(&f, "/etc/ssl/certs/ca-certificates.crt", &o);
	assert_int_equal(o.call.err, ERR_NETWORK);
	assert_false(o.call.was_sent);
	stop_server(&f);
}

static void test_other_name(void **state)
{
	struct fixture f = {0};
	struct one o = {0};

	(void)state;
	start_server(&f, "DNS:example.org");
	call_with(&f, f.ca_file, &o);
	assert_int_equal(o.call.err, ERR_NETWORK);
	assert_false(o.call.was_sent);
	stop_server(&f);
}

/* A folder holds its certificates under the names that `openssl rehash` gives them. */
static void test_folder(void **state)
{
	char folder[] = "/tmp/outpost-test-ca-folder-XXXXXX", *link;
	struct one trusted = {0}, own_file = {0};
	struct fixture f = {0};
	X509 *x;
	FILE *pem;

	(void)state;
	start_server(&f, "IP:127.0.0.1");
	pem = fopen(f.ca_file, "re");
	x = PEM_read_X509(pem, NULL, NULL, NULL);
	fclose(pem);
	assert_non_null(mkdtemp(folder));
	link = xasprintf("%s/%08lx.0", folder, X509_subject_name_hash(x));
	X509_free(x);
	assert_int_equal(symlink(f.ca_file, link), 0);
	call_under(&f, "SSL_CERT_DIR", folder, NULL, &trusted);
	assert_int_equal(trusted.call.status, 200);
	http_call_release(&trusted.call);
	/* If a file is given, only this file is used. */
	call_under(&f, "SSL_CERT_DIR", folder, "/etc/ssl/certs/ca-certificates.crt", &own_file);
	assert_int_equal(own_file.call.err, ERR_NETWORK);
	assert_false(own_file.call.was_sent);
	unlink(link);
	rmdir(folder);
	free(link);
	stop_server(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_trusted),
	    cmocka_unit_test(test_unknown_authority),
	    cmocka_unit_test(test_other_name),
	    cmocka_unit_test(test_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
