/* The server's certificate and what TLS may be spoken with it. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <string.h>

#include "base/alloc.h"
#include "http/server.h"
#include "http/session.h"
#include "http/tls_internal.h"

struct http_tls {
	SSL_CTX *context;
};

struct ssl_ctx_st *http_tls_context(struct http_tls *tls)
{
	return tls->context;
}

static const char *reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_last_error());

	return text ? text : "not accepted";
}

static int use_chain(SSL_CTX *context, BIO *pem, struct error *e)
{
	for (int i = 2;; i++) {
		X509 *x = PEM_read_bio_X509(pem, NULL, NULL, NULL);

		if (!x) {
			bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;

			if (!is_end)
				return error_set(e, ERR_INVALID,
				    "certificate %d of the chain is damaged: %s", i, reason());
			ERR_clear_error();
			return 0;
		}
		if (SSL_CTX_add0_chain_cert(context, x) != 1) {
			X509_free(x);
			return error_set(
			    e, ERR_INVALID, "certificate %d of the chain: %s", i, reason());
		}
	}
}

static int use_certificate(SSL_CTX *context, const char *text, struct error *e)
{
	BIO *pem = BIO_new_mem_buf(text, -1);
	X509 *x = PEM_read_bio_X509_AUX(pem, NULL, NULL, NULL);
	int rc = 0;

	if (!x && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
		rc = error_set(e, ERR_INVALID, "no PEM certificate in it");
	else if (!x)
		rc = error_set(e, ERR_INVALID, "the certificate is damaged: %s", reason());
	else if (SSL_CTX_use_certificate(context, x) != 1)
		rc = error_set(e, ERR_INVALID, "the certificate cannot be used: %s", reason());
	else
		rc = use_chain(context, pem, e);
	X509_free(x);
	BIO_free(pem);
	return rc;
}

static int use_key(SSL_CTX *context, struct private_key *key, struct error *e)
{
	/* counted: the context shares the configuration's key */
	if (SSL_CTX_use_PrivateKey(context, private_key_pkey(key)) != 1 ||
	    SSL_CTX_check_private_key(context) != 1)
		return error_set(
		    e, ERR_INVALID, "the private key does not belong to the certificate");
	return 0;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_bytes,
    const unsigned char *offered, unsigned offered_bytes, void *owner)
{
	static const unsigned char OURS[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)owner;
	if (SSL_select_next_proto(&chosen, out_bytes, OURS, sizeof(OURS) - 1, offered,
		offered_bytes) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *context_new(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (!context)
		abort(); /* out of memory, as everywhere */
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_PRIORITIZE_CHACHA);
	/* TLS 1.2 with forward secrecy and AEAD only; 1.3 has nothing else. */
	SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	/* Tickets resume sessions without it; a cache only gives strangers memory to fill. */
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_session_id_context(context, (const unsigned char *)"http", 4);
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	return context;
}

int http_tls_new(
    const char *certificate_pem, struct private_key *key, struct http_tls **ret, struct error *e)
{
	SSL_CTX *context = context_new();
	int rc;

	ERR_clear_error();
	rc = use_certificate(context, certificate_pem, e);
	if (rc == 0)
		rc = use_key(context, key, e);
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
	/* libcrypto made a random generator for this thread, often one of the pool's, which has no
	 * other use for it. */
	OPENSSL_thread_stop();
	return rc;
}
