/* Who the client is when proxies stand in between: the rightmost address of the chain
 * X-Forwarded-For + peer that is no trusted proxy. What stands left of it is hearsay. */
#ifndef HTTP_CLIENT_ADDRESS_H
#define HTTP_CLIENT_ADDRESS_H

#include <netinet/in.h>

#include "http/head.h"

struct http_conn;

/* IPv4 is mapped; all zero on a unix socket. */
void http_client_address_find(
    const struct http_conn *c, const struct http_head *h, uint8_t ret[16]);
/* Parses "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]:80" in s[0..n). */
int http_address_parse(const char *s, size_t n, uint8_t ret[16]) MUST_CHECK;
void http_address_format(const uint8_t address[16], char out[INET6_ADDRSTRLEN]);

#endif
