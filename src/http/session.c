#include "http/session.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/alloc.h"
#include "http/tls_internal.h"

struct http_session {
	SSL *ssl;
	BIO *in, *out; /* owned by ssl */
};

struct http_session *http_session_new(struct http_tls *tls)
{
	struct http_session *s = xcalloc(1, sizeof(*s));

	s->ssl = SSL_new(http_tls_context(tls));
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

size_t http_session_n_pushed(const struct http_session *s)
{
	return BIO_ctrl_pending(s->in);
}

int http_session_pull(struct http_session *s, char *p, size_t n)
{
	int got;

	ERR_clear_error();
	got = SSL_read(s->ssl, p, (int)n);
	if (got > 0)
		return got;
	switch (SSL_get_error(s->ssl, got)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		return ERR_CANCELLED;
	default:
		ERR_clear_error();
		return ERR_PROTOCOL;
	}
}

bool http_session_is_up(const struct http_session *s)
{
	return SSL_is_init_finished(s->ssl) != 0;
}

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

void http_session_output_sent(struct http_session *s)
{
	(void)BIO_reset(s->out);
}
