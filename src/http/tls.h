/* TLS: the server's certificate, and the session of one connection. A session reads and writes memory buffers;
 * conn_input.c and conn_output.c move the bytes to and from the socket.
 *
 * Thread: loop, except http_tls_new(). Owns: the caller, with the free function. */
#pragma once

struct http_tls; /* a certificate and its key */
struct http_session;

int http_tls_new(
    const char *certificate_pem, struct private_key *key, struct http_tls **ret, struct error *e) MUST_CHECK;
/* NULL is fine. Running sessions keep the parts that they use. */
void http_tls_free(struct http_tls *tls);

struct http_session *http_session_new(struct http_tls *tls);
void http_session_free(struct http_session *s);
/* Adds bytes from the socket. */
void http_session_push(struct http_session *s, const char *p, size_t n);
size_t http_session_n_pushed(const struct http_session *s); /* not decrypted yet */
/* Decrypts into p[0..n) and continues the handshake. Returns the number of bytes; 0: it needs more input;
 * ERR_CANCELLED: the client closed the session; ERR_PROTOCOL: the client broke TLS. */
int http_session_pull(struct http_session *s, char *p, size_t n) MUST_CHECK;
bool http_session_is_up(const struct http_session *s);
int http_session_write(struct http_session *s, const char *p, size_t n) MUST_CHECK;
void http_session_close_notify(struct http_session *s);
/* The number of encrypted bytes for the socket, and in *ret their address; borrowed until the next call. */
size_t http_session_output(struct http_session *s, const char **ret);
/* The socket has taken them all. */
void http_session_output_sent(struct http_session *s);
