/* The routes: which page shows which part of the API, the answer for unknown paths, and whether the service is healthy. */
#include "web/web.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/str.h"
#include "web/answer.h"
#include "web/gate.h"
#include "web/params.h"
#include "web/web_internal.h"

/* ---- addresses ---- */

enum { API_MAX_BYTES = 32 << 10 };

/* The tab's title before the script runs; the value of the first segment follows. */
static const struct {
	const char *page, *title;
} TITLES[] = {
    {"/pulls/{n}", "#"},
    {"/commits/{sha}", "Commit "},
    {"/accelerators/{name}", ""},
    {"/jobs/{id}", "Job "},
    {"/nightly", "Periodic runs"},
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

void web_add_plain(
    struct web *w, const char *pattern, void (*on_request)(struct http_request *r, void *owner))
{
	http_server_route(w->deps.server,
	    &(struct http_route){
		.method = "GET", .pattern = pattern, .on_request = on_request, .owner = w});
}

void web_add_stream(
    struct web *w, const char *pattern, void (*on_request)(struct http_request *r, void *owner))
{
	web_add_plain(w, pattern, on_request);
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

static void on_gated_request(struct http_request *r, void *owner)
{
	struct web *w = owner;

	web_gate_ask(w->gate, r, find_resource(w, http_route_of(r)->pattern)->on_request, w);
}

void web_add_resource(struct web *w, const char *api, const char *page,
    void (*on_request)(struct http_request *r, void *owner))
{
	*ARRAY_PUSH(w->resources, w->n_resources) =
	    (struct web_resource){.api = api, .page = page, .on_request = on_request};
	web_add_stream(w, api, on_gated_request);
	if (page)
		web_add_plain(w, page, on_gated_request);
}

void web_add_document(
    struct web *w, const char *pattern, void (*on_request)(struct http_request *r, void *owner))
{
	*ARRAY_PUSH(w->resources, w->n_resources) =
	    (struct web_resource){.document = pattern, .on_request = on_request};
	web_add_plain(w, pattern, on_gated_request);
}

void web_refuse(struct http_request *r)
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

char *web_api_of_page(const struct http_request *r)
{
	const struct http_route *route = http_route_of(r);
	const struct web_resource *found = find_page(route->owner, route->pattern);
	int64_t page_limit = web_page_limit(r);
	struct buf out = BUF_INIT(API_MAX_BYTES);
	char limit[24], separator = '?';
	int i = 0;

	if (!found)
		return NULL;
	for (const char *p = found->api; *p; p++) {
		if (*p == '{') {
			const char *segment = http_segment(r, i++);

			percent_encode(&out, segment, segment ? strlen(segment) : 0, "");
			p = strchr(p, '}');
		} else {
			buf_append_char(&out, *p);
		}
	}
	/* The query as it came, but only printable ASCII, because it becomes part of a link. */
	if (*http_query(r)) {
		buf_append_char(&out, separator);
		for (const char *c = http_query(r); *c; c++)
			if (*c > ' ' && *c < 0x7f)
				buf_append_char(&out, *c);
		separator = '&';
	}
	if (page_limit && !http_query_get(r, "limit", limit, sizeof(limit)))
		buf_appendf(&out, "%climit=%lld", separator, (long long)page_limit);
	return buf_take(&out);
}

/* A browser gets a page, a program gets JSON. */
static void on_unknown_path(struct http_request *r, void *owner)
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

/* ---- health: is it alive, and may it get traffic ---- */

static void on_healthz(struct http_request *r, void *owner)
{
	(void)owner;
	http_respond(r, 200, "text/plain", NULL, "ok\n", 3);
}

static void on_readyz(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct store_stats stats;
	const char *why = w->deps.why_not_ready ? w->deps.why_not_ready(w->deps.owner) : NULL;

	store_stats(w->deps.store, &stats);
	store_probe(w->deps.store);
	if (!w->config || !config_is_registry_loaded(w->config))
		http_respond_json1(r, 503, "error", "the registry is not loaded yet");
	else if (!stats.is_writable)
		http_respond_json1(r, 503, "error", "the store cannot be written");
	else if (why)
		http_respond_json1(r, 503, "error", why);
	else
		http_respond(r, 200, "text/plain", NULL, "ready\n", 6);
}

/* ---- the whole ---- */

struct web *web_new(const struct web_deps *deps)
{
	struct web *w = xcalloc(1, sizeof(*w));

	w->deps = *deps;
	w->started_wall_ms = clock_wall_ms();
	LIST_INIT(&w->followers);
	w->gate = web_gate_new(web_refuse);
	w->log_readers = http_group_amounts_new();
	web_add_plain(w, "/healthz", on_healthz);
	web_add_plain(w, "/readyz", on_readyz);
	web_add_status_routes(w);
	web_add_metrics_routes(w);
	web_add_change_routes(w);
	web_add_dashboard_routes(w);
	web_add_accelerator_routes(w);
	web_add_known_routes(w);
	web_add_level_status_routes(w);
	web_add_nightly_routes(w);
	web_add_platform_routes(w);
	web_add_job_routes(w);
	web_add_badge_routes(w);
	web_add_feed_routes(w);
	web_add_job_log_routes(w);
	web_add_asset_routes(w);
	web_add_event_routes(w);
	http_server_fallback(deps->server, &(struct http_route){.method = "GET",
					       .pattern = "/{nothing}",
					       .on_request = on_unknown_path,
					       .owner = w});
	return w;
}

void web_configure(struct web *w, struct config *config)
{
	config_unref(w->config);
	w->config = config_ref(config);
}

void web_stop(struct web *w)
{
	w->is_stopping = true;
	web_cut_followers(w);
	web_cut_events(w);
	web_gate_close(w->gate);
}

void web_free(struct web *w)
{
	if (!w)
		return;
	config_unref(w->config);
	web_free_events(w);
	web_gate_close(w->gate);
	web_gate_free(w->gate);
	http_group_amounts_free(w->log_readers);
	free(w->resources);
	free(w);
}
