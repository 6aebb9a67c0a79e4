#ifndef HTTP_TLS_INTERNAL_H
#define HTTP_TLS_INTERNAL_H

struct http_tls;
struct ssl_ctx_st;

/* Borrowed. */
struct ssl_ctx_st *http_tls_context(struct http_tls *tls);

#endif
