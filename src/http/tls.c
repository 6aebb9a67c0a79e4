#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "http/server.h"

/* ---- the certificate, and the versions and ciphers that are allowed ---- */

struct http_tls {
	SSL_CTX *context;
};

static const char *ssl_reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_last_error());

	return text ? text : "not accepted";
}

static int tls_choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_bytes,
    const unsigned char *offered, unsigned offered_bytes, void *owner)
{
	static const unsigned char OURS[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)owner;
	if (SSL_select_next_proto(&chosen, out_bytes, OURS, sizeof(OURS) - 1, offered, offered_bytes) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

int http_tls_new(const char *certificate_pem, struct private_key *key, struct http_tls **ret, struct error *e)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (!context)
		abort(); /* out of memory, as everywhere */
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_PRIORITIZE_CHACHA);
	/* TLS 1.2 with forward secrecy and AEAD only; 1.3 has nothing else. */
	SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	/* Tickets resume sessions without it; a cache only gives strangers memory to fill. */
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_session_id_context(context, (const unsigned char *)"http", 4);
	SSL_CTX_set_alpn_select_cb(context, tls_choose_protocol, NULL);
	ERR_clear_error();
	BIO *pem = BIO_new_mem_buf(certificate_pem, -1);
	X509 *x = PEM_read_bio_X509_AUX(pem, NULL, NULL, NULL);
	bool has_more = true;
	int rc = 0;

	if (!x && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
		rc = error_set(e, ERR_INVALID, "no PEM certificate in it");
	else if (!x)
		rc = error_set(e, ERR_INVALID, "the certificate is damaged: %s", ssl_reason());
	else if (SSL_CTX_use_certificate(context, x) != 1)
		rc = error_set(e, ERR_INVALID, "the certificate cannot be used: %s", ssl_reason());
	X509_free(x);
	for (int i = 2; !rc && has_more; i++) {
		x = PEM_read_bio_X509(pem, NULL, NULL, NULL);
		has_more = x != NULL;
		if (!x && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) {
			ERR_clear_error();
		} else if (!x) {
			rc = error_set(e, ERR_INVALID, "certificate %d of the chain is damaged: %s", i, ssl_reason());
		} else if (SSL_CTX_add0_chain_cert(context, x) != 1) {
			rc = error_set(e, ERR_INVALID, "certificate %d of the chain: %s", i, ssl_reason());
			X509_free(x);
		}
	}
	BIO_free(pem);
	/* counted: the context shares the configuration's key */
	if (rc == 0 &&
	    (SSL_CTX_use_PrivateKey(context, private_key_pkey(key)) != 1 || SSL_CTX_check_private_key(context) != 1))
		rc = error_set(e, ERR_INVALID, "the private key does not belong to the certificate");
	ERR_clear_error();
	if (rc) {
		SSL_CTX_free(context);
		return rc;
	}
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->context = context;
	return 0;
}

void http_tls_free(struct http_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->context); /* counted: sessions keep it */
	free(tls);
}

int http_tls_check(const char *certificate_pem, struct private_key *key, struct error *e)
{
	struct http_tls *tls;
	int rc = http_tls_new(certificate_pem, key, &tls, e);

	if (rc == 0)
		http_tls_free(tls);
	/* libcrypto made a random generator for this thread, often one of the pool's, which has no other use for it. */
	OPENSSL_thread_stop();
	return rc;
}

/* ---- one connection ---- */

struct http_session {
	SSL *ssl;
	BIO *in, *out; /* owned by ssl */
};

struct http_session *http_session_new(struct http_tls *tls)
{
	struct http_session *s = xcalloc(1, sizeof(*s));

	s->ssl = SSL_new(tls->context);
	s->in = BIO_new(BIO_s_mem());
	s->out = BIO_new(BIO_s_mem());
	if (!s->ssl || !s->in || !s->out)
		abort(); /* out of memory, as everywhere */
	BIO_set_mem_eof_return(s->in, -1);
	SSL_set_bio(s->ssl, s->in, s->out);
	SSL_set_accept_state(s->ssl);
	return s;
}

void http_session_free(struct http_session *s)
{
	if (!s)
		return;
	SSL_free(s->ssl);
	free(s);
}

void http_session_push(struct http_session *s, const char *p, size_t n)
{
	if (BIO_write(s->in, p, (int)n) != (int)n)
		abort(); /* a memory buffer fails only without memory */
}

size_t http_session_n_pushed(const struct http_session *s) { return BIO_ctrl_pending(s->in); }

int http_session_pull(struct http_session *s, char *p, size_t n)
{
	ERR_clear_error();
	int got = SSL_read(s->ssl, p, (int)n);
	if (got > 0)
		return got;
	int why = SSL_get_error(s->ssl, got);
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return 0;
	if (why == SSL_ERROR_ZERO_RETURN)
		return ERR_CANCELLED;
	ERR_clear_error();
	return ERR_PROTOCOL;
}

bool http_session_is_up(const struct http_session *s) { return SSL_is_init_finished(s->ssl) != 0; }

int http_session_write(struct http_session *s, const char *p, size_t n)
{
	size_t written;

	ERR_clear_error();
	if (n == 0)
		return 0;
	/* A memory buffer takes everything at once. */
	if (SSL_write_ex(s->ssl, p, n, &written) != 1 || written != n)
		return ERR_PROTOCOL;
	return 0;
}

void http_session_close_notify(struct http_session *s)
{
	ERR_clear_error();
	SSL_shutdown(s->ssl);
	ERR_clear_error();
}

size_t http_session_output(struct http_session *s, const char **ret)
{
	char *data = NULL;
	long n = BIO_get_mem_data(s->out, &data);

	*ret = data;
	return n > 0 ? (size_t)n : 0;
}

void http_session_output_sent(struct http_session *s) { (void)BIO_reset(s->out); }
