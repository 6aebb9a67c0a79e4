/* Which handler a path belongs to. Pure. */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include <stddef.h>

#include "base/histogram.h"
#include "http/server.h"

#define HTTP_MAX_SEGMENTS 16

/* A path's segments, each decoded on its own: an escaped "/" does not split. */
struct http_segments {
	int n;
	const char *at[HTTP_MAX_SEGMENTS];
};

struct http_route_entry {
	struct http_route route;
	struct http_segments pattern; /* braced ones keep their braces */
	struct histogram times;       /* of answers in one piece */
	char *memory;
};

struct http_routes {
	struct http_route_entry *at;
	int n;
	struct http_route fallback; /* on_request NULL: none */
};

void http_routes_add(struct http_routes *all, const struct http_route *route);
void http_routes_release(struct http_routes *all);
/* Splits and decodes path[0..n) into memory (n+2 bytes). A trailing "/" is dropped.
 * ERR_INVALID: a bad escape; ERR_NOT_FOUND: more segments than any route has. */
int http_segments_split(
    const char *path, size_t n, char *memory, struct http_segments *ret) MUST_CHECK;
/* 0: *ret, also the fallback; *captures are the braced segments, borrowed from `path`. ERR_NOT_FOUND: no such
 * path. ERR_DENIED: not with this method, and `allow` has those that are. */
int http_routes_find(const struct http_routes *all, const char *method,
    const struct http_segments *path, const struct http_route **ret, struct http_segments *captures,
    char *allow, size_t allow_bytes) MUST_CHECK;

#endif
