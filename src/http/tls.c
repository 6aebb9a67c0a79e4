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

/* Never ask on a terminal: an encrypted key is an error here. */
static int no_password(char *buf, int size, int is_writing, void *owner)
{
	(void)buf;
	(void)size;
	(void)is_writing;
	*(bool *)owner = true;
	return 0;
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

static int use_key(SSL_CTX *context, const char *text, struct error *e)
{
	BIO *pem = BIO_new_mem_buf(text, -1);
	bool is_encrypted = false;
	EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, no_password, &is_encrypted);
	int rc = 0;

	/* OpenSSL's own reasons say nothing of the key's content. */
	if (!key && is_encrypted)
		rc = error_set(e, ERR_INVALID,
		    "the private key is encrypted; store it without a "
		    "password, readable by the service alone");
	else if (!key)
		rc = error_set(e, ERR_INVALID, "no PEM private key in it, or a damaged one");
	else if (SSL_CTX_use_PrivateKey(context, key) != 1 ||
		 SSL_CTX_check_private_key(context) != 1)
		rc =
		    error_set(e, ERR_INVALID, "the private key does not belong to the certificate");
	EVP_PKEY_free(key);
	BIO_free(pem);
	return rc;
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

int http_tls_new(const char *certificate_pem, const char *private_key_pem, struct http_tls **ret,
    struct error *e)
{
	SSL_CTX *context = context_new();
	int rc;

	ERR_clear_error();
	rc = use_certificate(context, certificate_pem, e);
	if (rc == 0)
		rc = use_key(context, private_key_pem, e);
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

int http_tls_check(const char *certificate_pem, const char *private_key_pem, struct error *e)
{
	struct http_tls *tls;
	int rc = http_tls_new(certificate_pem, private_key_pem, &tls, e);

	if (rc == 0)
		http_tls_free(tls);
	return rc;
}
