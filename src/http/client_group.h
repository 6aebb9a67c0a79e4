/* Which requests share one client's part of what everybody uses: connections, memory for bodies,
 * followers of a log, waiting pages. A client is one IPv4 address or one IPv6 /64, because a
 * single subscriber gets at least a /64 (RFC 6177) and may use every address in it.
 *
 * Thread: loop, every function. */
#ifndef HTTP_CLIENT_GROUP_H
#define HTTP_CLIENT_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A plain value: copy it, and compare it with http_client_group_equal(). */
struct http_client_group {
	uint8_t address[16]; /* IPv4 mapped and whole; IPv6 with its lower 64 bits zero */
};

struct http_request;

/* The group of http_client_address(): behind a trusted proxy that of the client which
 * X-Forwarded-For names, else that of the peer. All requests on unix sockets are one group of
 * their own. Valid as long as the request; also after its client has left. */
struct http_client_group http_client_group(const struct http_request *r);
/* The group of an address; IPv4 is mapped (::ffff:192.0.2.1). */
struct http_client_group http_client_group_of(const uint8_t address[16]);
bool http_client_group_equal(const struct http_client_group *a, const struct http_client_group *b);

/* An amount per group, e.g. how many connections each has. A group without an entry has the
 * amount 0, and an entry goes when its amount becomes 0, so the table is as large as what is
 * counted. The hash is seeded, so that nobody can choose addresses that collide. */
struct http_group_amounts;
struct http_group_amounts *http_group_amounts_new(void);
void http_group_amounts_free(struct http_group_amounts *t); /* NULL is fine */
int64_t http_group_amount(const struct http_group_amounts *t, const struct http_client_group *g);
/* Adds n; a negative n gives back what was added before. */
void http_group_amount_add(
    struct http_group_amounts *t, const struct http_client_group *g, int64_t n);
/* Adds n unless the sum would pass `limit`; then it adds nothing and returns false. */
bool http_group_amount_take(
    struct http_group_amounts *t, const struct http_client_group *g, int64_t n, int64_t limit);
/* Removes every group whose amount is not above `limit`. */
void http_group_amounts_keep_above(struct http_group_amounts *t, int64_t limit);
/* How many groups have an amount. */
size_t http_group_amounts_n(const struct http_group_amounts *t);

#endif
