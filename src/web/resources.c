/* Addresses: which page shows which part of the API, and what is said where there is nothing. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "web/document.h"
#include "web/gate.h"
#include "web/params.h"
#include "web/web_internal.h"

enum { API_MAX_BYTES = 32 << 10 };

/* What is on the tab before the script runs; the first segment's value stands behind it. */
static const struct {
	const char *page, *title;
} TITLES[] = {
    {"/pulls/{n}", "#"},
    {"/commits/{sha}", "Commit "},
    {"/accelerators/{name}", ""},
    {"/jobs/{id}", "Job "},
    {"/nightly", "Nightly"},
    {"/platforms", "Platforms"},
    {"/platforms/{name}", ""},
};

static void on_preflight(struct http_request *r, void *owner)
{
	static const struct http_header_line headers[] = {{"Access-Control-Allow-Origin", "*"},
	    {"Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"},
	    {"Access-Control-Allow-Headers", "If-None-Match, Range, Last-Event-ID"},
	    {"Access-Control-Max-Age", "86400"}, {NULL, NULL}};

	(void)owner;
	http_respond(r, 204, NULL, headers, "", 0);
}

static void add_get(
    struct web *w, const char *pattern, void (*on_request)(struct http_request *r, void *owner))
{
	http_server_route(w->deps.server,
	    &(struct http_route){
		.method = "GET", .pattern = pattern, .on_request = on_request, .owner = w});
}

static void add_api(
    struct web *w, const char *pattern, void (*on_request)(struct http_request *r, void *owner))
{
	add_get(w, pattern, on_request);
	http_server_route(w->deps.server,
	    &(struct http_route){
		.method = "OPTIONS", .pattern = pattern, .on_request = on_preflight, .owner = w});
}

static const struct web_resource *find_resource(const struct web *w, const char *pattern)
{
	for (size_t i = 0; i < w->n_resources; i++)
		if (str_eq(w->resources[i].api, pattern) || str_eq(w->resources[i].page, pattern) ||
		    str_eq(w->resources[i].document, pattern))
			return &w->resources[i];
	return NULL;
}

static void on_ask(struct http_request *r, void *owner)
{
	struct web *w = owner;

	web_gate_ask(w->gate, r, find_resource(w, http_route_of(r)->pattern)->on_request, w);
}

static void add_resource(struct web *w, const struct web_resource *resource)
{
	w->resources = xrealloc(w->resources, (w->n_resources + 1) * sizeof(*w->resources));
	w->resources[w->n_resources++] = *resource;
}

void web_add_resource(struct web *w, const char *api, const char *page,
    void (*on_request)(struct http_request *r, void *owner))
{
	add_resource(w, &(struct web_resource){.api = api, .page = page, .on_request = on_request});
	add_api(w, api, on_ask);
	if (page)
		add_get(w, page, on_ask);
}

void web_add_document(
    struct web *w, const char *pattern, void (*on_request)(struct http_request *r, void *owner))
{
	add_resource(w, &(struct web_resource){.document = pattern, .on_request = on_request});
	add_get(w, pattern, on_ask);
}

void web_add_stream(
    struct web *w, const char *api, void (*on_request)(struct http_request *r, void *owner))
{
	add_api(w, api, on_request);
}

void web_refuse_turn(struct http_request *r)
{
	const struct http_route *route = http_route_of(r);

	if (find_resource(route->owner, route->pattern)->document)
		web_document_busy(r);
	else
		web_respond_busy(r);
}

bool web_is_page(const struct http_request *r)
{
	return strncmp(http_path(r), "/api/", 5) != 0;
}

static struct web_resource *find_page(const struct web *w, const char *pattern)
{
	for (size_t i = 0; pattern && i < w->n_resources; i++)
		if (str_eq(w->resources[i].page, pattern))
			return &w->resources[i];
	return NULL;
}

void web_set_page_limit(struct web *w, const char *page, int64_t limit)
{
	find_page(w, page)->page_limit = limit;
}

int64_t web_page_limit(const struct http_request *r)
{
	const struct http_route *route = http_route_of(r);
	const struct web_resource *found =
	    web_is_page(r) ? find_page(route->owner, route->pattern) : NULL;

	return found ? found->page_limit : 0;
}

const char *web_page_title(const struct http_request *r)
{
	for (size_t i = 0; i < ARRAY_LEN(TITLES); i++)
		if (str_eq(TITLES[i].page, http_route_of(r)->pattern))
			return TITLES[i].title;
	return NULL;
}

static void append_segment(struct buf *out, const char *text)
{
	static const char plain[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; text && *text; text++) {
		if (strchr(plain, *text))
			buf_append_char(out, *text);
		else
			buf_appendf(out, "%%%02X", (unsigned char)*text);
	}
}

/* The query as it came, as far as it is printable ASCII: it goes into a link. */
static void append_query(struct buf *out, const struct http_request *r)
{
	char limit[24];
	char separator = '?';
	int64_t page_limit = web_page_limit(r);

	if (*http_query(r)) {
		buf_append_char(out, separator);
		for (const char *c = http_query(r); *c; c++)
			if (*c > ' ' && *c < 0x7f)
				buf_append_char(out, *c);
		separator = '&';
	}
	if (page_limit && !http_query_get(r, "limit", limit, sizeof(limit)))
		buf_appendf(out, "%climit=%lld", separator, (long long)page_limit);
}

char *web_api_of_page(const struct http_request *r)
{
	const struct http_route *route = http_route_of(r);
	const struct web_resource *found = find_page(route->owner, route->pattern);
	struct buf out = BUF_INIT(API_MAX_BYTES);
	int i = 0;

	if (!found)
		return NULL;
	for (const char *p = found->api; *p; p++) {
		if (*p == '{') {
			append_segment(&out, http_segment(r, i++));
			p = strchr(p, '}');
		} else {
			buf_append_char(&out, *p);
		}
	}
	append_query(&out, r);
	return buf_take(&out);
}

/* Who follows a link with a browser gets a page that says so; programs, as ever, JSON. */
static void on_nothing(struct http_request *r, void *owner)
{
	static const char *const not_pages[] = {"/api/", "/github/", "/assets/"};
	const char *accept = http_header(r, "Accept");
	bool wants_page = accept && strstr(accept, "text/html");

	(void)owner;
	for (size_t i = 0; i < ARRAY_LEN(not_pages); i++)
		wants_page = wants_page && !str_has_prefix(http_path(r), not_pages[i]);
	if (wants_page)
		web_respond_not_found(r, "no such page");
	else
		http_respond_json1(r, 404, "error", "no such path");
}

void web_add_fallback(struct web *w)
{
	http_server_fallback(w->deps.server,
	    &(struct http_route){
		.method = "GET", .pattern = "/{nothing}", .on_request = on_nothing, .owner = w});
}
