/* TLS of one connection, between memory buffers: the socket stays with conn.c. */
#ifndef HTTP_SESSION_H
#define HTTP_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/private_key.h"

struct http_tls; /* a certificate in force */
struct http_session;

int http_tls_new(const char *certificate_pem, struct private_key *key, struct http_tls **ret,
    struct error *e) MUST_CHECK;
/* NULL is fine; sessions in hand keep what they need. */
void http_tls_free(struct http_tls *tls);

struct http_session *http_session_new(struct http_tls *tls);
void http_session_free(struct http_session *s);
/* Bytes from the socket. */
void http_session_push(struct http_session *s, const char *p, size_t n);
size_t http_session_n_pushed(const struct http_session *s); /* not decrypted yet */
/* Decrypts into p[0..n): bytes, 0 when more input is needed, ERR_CANCELLED when the client
 * closed in order, ERR_PROTOCOL when TLS is broken. Also moves the handshake on. */
int http_session_pull(struct http_session *s, char *p, size_t n) MUST_CHECK;
bool http_session_is_up(const struct http_session *s);
int http_session_write(struct http_session *s, const char *p, size_t n) MUST_CHECK;
void http_session_close_notify(struct http_session *s);
/* Encrypted bytes that wait for the socket; borrowed until the next call. */
size_t http_session_output(struct http_session *s, const char **ret);
void http_session_output_sent(struct http_session *s);

#endif
