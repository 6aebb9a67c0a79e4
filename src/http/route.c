#include "http/route.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "http/head.h"

void http_routes_add(struct http_routes *all, const struct http_route *route)
{
	struct http_route_entry *e;
	size_t n = strlen(route->pattern);
	int rc;

	all->at = xrealloc(all->at, (size_t)(all->n + 1) * sizeof(*all->at));
	e = &all->at[all->n++];
	*e = (struct http_route_entry){.route = *route, .memory = xmalloc(n + 2)};
	rc = http_segments_split(route->pattern, n, e->memory, &e->pattern);
	assert(rc == 0);
}

void http_routes_release(struct http_routes *all)
{
	for (int i = 0; i < all->n; i++)
		free(all->at[i].memory);
	free(all->at);
	*all = (struct http_routes){0};
}

int http_segments_split(const char *path, size_t n, char *memory, struct http_segments *ret)
{
	const char *end = path + n;

	*ret = (struct http_segments){0};
	while (path < end) {
		const char *from = path + 1; /* behind the "/" */
		const char *slash = memchr(from, '/', (size_t)(end - from));
		size_t len = (size_t)((slash ? slash : end) - from);
		int64_t decoded = http_percent_decode(from, len, HTTP_DECODE_PATH, memory);

		path = from + len;
		if (decoded < 0)
			return ERR_INVALID;
		if (len == 0 && path == end)
			break;
		if (ret->n == HTTP_MAX_SEGMENTS)
			return ERR_NOT_FOUND;
		ret->at[ret->n++] = memory;
		memory += decoded + 1;
	}
	return 0;
}

static bool matches(const struct http_segments *pattern, const struct http_segments *path,
    struct http_segments *captures)
{
	captures->n = 0;
	if (pattern->n != path->n)
		return false;
	for (int i = 0; i < pattern->n; i++) {
		if (pattern->at[i][0] == '{' && path->at[i][0] != '\0')
			captures->at[captures->n++] = path->at[i];
		else if (!str_eq(pattern->at[i], path->at[i]))
			return false;
	}
	return true;
}

static void add_method(char *allow, size_t n, const char *method)
{
	size_t len = strlen(allow);

	snprintf(allow + len, n - len, "%s%s%s", len ? ", " : "", method,
	    str_eq(method, "GET") ? ", HEAD" : "");
}

int http_routes_find(const struct http_routes *all, const char *method,
    const struct http_segments *path, const struct http_route **ret, struct http_segments *captures,
    char *allow, size_t allow_bytes)
{
	allow[0] = '\0';
	for (int i = 0; i < all->n; i++) {
		const struct http_route *route = &all->at[i].route;

		if (!matches(&all->at[i].pattern, path, captures))
			continue;
		if (str_eq(route->method, method) ||
		    (str_eq(route->method, "GET") && str_eq(method, "HEAD"))) {
			*ret = route;
			return 0;
		}
		add_method(allow, allow_bytes, route->method);
	}
	if (allow[0])
		return ERR_DENIED;
	if (!all->fallback.on_request || (!str_eq(method, "GET") && !str_eq(method, "HEAD")))
		return ERR_NOT_FOUND;
	captures->n = 0;
	*ret = &all->fallback;
	return 0;
}
