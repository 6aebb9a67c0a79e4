/* Groups requests by client, so that one client cannot use up the connections, the memory for bodies, the followers of logs
 * or the places of waiting pages. A client is one IPv4 address or one IPv6 /64, because one subscriber gets at least a /64
 * (RFC 6177) and can use every address in it.
 *
 * Thread: loop, every function. Owns: the caller owns a table, with http_group_amounts_free(). */
#pragma once

#include <netinet/in.h>

/* A plain value: copy it, and compare it with http_client_group_equal(). */
struct http_client_group {
	uint8_t address[16]; /* IPv4 mapped and whole; IPv6 with its lower 64 bits zero */
};

struct http_request;

/* The group of http_client_address(): behind a trusted proxy this is the client named in X-Forwarded-For,
 * otherwise the peer. All requests on unix sockets are one group. The function may be called as long as
 * the request exists, also after its client closed the connection. */
struct http_client_group http_client_group(const struct http_request *r);
/* The group of an address; IPv4 is mapped (::ffff:192.0.2.1). */
struct http_client_group http_client_group_of(const uint8_t address[16]);
bool http_client_group_equal(const struct http_client_group *a, const struct http_client_group *b);

/* Parses "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]:80" in s[0..n). IPv4 is mapped. */
int http_address_parse(const char *s, size_t n, uint8_t ret[16]) MUST_CHECK;
/* The IPv4 address at `v4` (4 bytes) as a mapped one. */
void http_address_map_v4(const void *v4, uint8_t ret[16]);
void http_address_format(const uint8_t address[16], char out[INET6_ADDRSTRLEN]);

/* A table with an amount for each group, for example its number of connections. A group without an entry
 * has the amount 0, and an entry is removed when its amount becomes 0, so the table only holds groups
 * that use something. The hash is seeded, so that a client cannot choose addresses that collide. */
struct http_group_amounts;
struct http_group_amounts *http_group_amounts_new(void);
void http_group_amounts_free(struct http_group_amounts *t); /* NULL is fine */
int64_t http_group_amount(const struct http_group_amounts *t, const struct http_client_group *g);
/* Adds n. A negative n subtracts an amount that was added before. */
void http_group_amount_add(struct http_group_amounts *t, const struct http_client_group *g, int64_t n);
/* Adds n and returns true, or returns false and adds nothing if the sum would be above `limit`. */
bool http_group_amount_reserve(
    struct http_group_amounts *t, const struct http_client_group *g, int64_t n, int64_t limit);
/* Removes the groups whose amount is `limit` or less. */
void http_group_amounts_keep_above(struct http_group_amounts *t, int64_t limit);
/* The number of groups with an amount other than 0. */
size_t http_group_amounts_n(const struct http_group_amounts *t);
