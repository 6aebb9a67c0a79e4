/* The routes: which page shows which part of the API, the answer for unknown paths, and whether the service is healthy. */
#include "web/web.h"

#include "web/gate.h"
#include "web/params.h"
#include "web/web_internal.h"

/* ---- addresses ---- */

enum { API_MAX_BYTES = 32 << 10 };

static void on_preflight(struct http_request *r, void *owner)
{
	static const struct http_header_line headers[] = {{"Access-Control-Allow-Origin", "*"},
	    {"Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"},
	    {"Access-Control-Allow-Headers", "If-None-Match, Range, Last-Event-ID"},
	    {"Access-Control-Max-Age", "86400"}, {NULL, NULL}};

	(void)owner;
	http_respond(r, 204, NULL, headers, "", 0);
}

static void on_healthz(struct http_request *r, void *owner)
{
	(void)owner;
	http_respond(r, 200, "text/plain", NULL, "ok\n", 3);
}

static void on_readyz(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct store_stats stats;
	char text[300];
	const char *why = w->deps.why_not_ready ? w->deps.why_not_ready(w->deps.owner) : NULL;

	store_stats(w->deps.store, &stats);
	store_probe(w->deps.store);
	if (!w->config || !config_is_registry_loaded(w->config)) {
		why = "the registry is not loaded yet";
	} else if (!stats.is_writable) {
		snprintf(text, sizeof(text), "the store cannot be written: %s", stats.why_not_writable);
		why = text;
	}
	if (why)
		http_respond_json1(r, 503, "error", why);
	else
		http_respond(r, 200, "text/plain", NULL, "ready\n", 6);
}

enum route_kind {
	/* JSON and perhaps a page, from web_respond…() in the form that the request wants. It runs when its turn comes, once for all
	 * requests for the same answer (gate.h). */
	ROUTE_RESOURCE,
	ROUTE_DOCUMENT, /* another type, from web_document_…(); waits for its turn, too */
	ROUTE_STREAM,   /* lasts until its readers leave, and waits for no turn */
	ROUTE_PLAIN,    /* waits for no turn, and other sites do not read it */
};

/* page: shows the same answer. title: the tab's before the script runs, in front of the first segment of the address; NULL:
 * that of the service. page_limit: of long lists, for an address without a limit. */
static const struct web_route {
	enum route_kind kind;
	const char *path;
	web_handler *on_request;
	const char *page, *title;
	int64_t page_limit;
} ROUTES[] = {
    {ROUTE_PLAIN, "/healthz", on_healthz, NULL, NULL, 0},
    {ROUTE_PLAIN, "/readyz", on_readyz, NULL, NULL, 0},
    {ROUTE_RESOURCE, "/api/v1/status", web_on_status, NULL, NULL, 0},
    {ROUTE_PLAIN, "/metrics", web_on_metrics, NULL, NULL, 0},
    {ROUTE_RESOURCE, "/api/v1/pulls/{n}", web_on_pull, "/pulls/{n}", "#", PARAMS_LIMIT_MAX},
    {ROUTE_RESOURCE, "/api/v1/commits/{sha}", web_on_commit, "/commits/{sha}", "Commit ", PARAMS_LIMIT_MAX},
    {ROUTE_RESOURCE, "/api/v1/dashboard", web_on_dashboard, "/", NULL, 0},
    {ROUTE_RESOURCE, "/api/v1/accelerators", web_on_accelerators, NULL, NULL, 0},
    {ROUTE_RESOURCE, "/api/v1/accelerators/{name}", web_on_accelerator, "/accelerators/{name}", "", 0},
    {ROUTE_RESOURCE, "/api/v1/accelerators/{name}/jobs", web_on_accelerator_jobs, NULL, NULL, 0},
    {ROUTE_RESOURCE, "/api/v1/accelerators/{name}/numbers", web_on_accelerator_numbers, NULL, NULL, 0},
    {ROUTE_RESOURCE, "/api/v1/known", web_on_known, NULL, NULL, 0},
    {ROUTE_RESOURCE, "/api/crcr/level-status", web_on_level_status, NULL, NULL, 0},
    {ROUTE_RESOURCE, "/api/v1/nightly", web_on_nightly, "/nightly", "Periodic runs", 0},
    {ROUTE_RESOURCE, "/api/v1/platforms", web_on_platforms, "/platforms", "Platforms", 0},
    {ROUTE_RESOURCE, "/api/v1/platforms/{name}", web_on_platform, "/platforms/{name}", "", 0},
    {ROUTE_RESOURCE, "/api/v1/jobs/{id}", web_on_job, "/jobs/{id}", "Job ", PARAMS_LIMIT_MAX},
    {ROUTE_DOCUMENT, "/badge/{file}", web_on_badge, NULL, NULL, 0},
    {ROUTE_DOCUMENT, "/feed.xml", web_on_feed, NULL, NULL, 0},
    {ROUTE_STREAM, "/api/v1/jobs/{id}/log", web_on_job_log, NULL, NULL, 0},
    {ROUTE_PLAIN, "/assets/{name}", web_on_asset, NULL, NULL, 0},
    {ROUTE_STREAM, "/api/v1/events", web_on_events, NULL, NULL, 0},
};

static const struct web_route *find_route(const struct http_request *r)
{
	const char *pattern = http_route_of(r)->pattern;

	for (size_t i = 0; i < ARRAY_LEN(ROUTES); i++)
		if (str_eq(ROUTES[i].path, pattern) || str_eq(ROUTES[i].page, pattern))
			return &ROUTES[i];
	return NULL;
}

static bool is_page(const struct http_request *r) { return strncmp(http_path(r), "/api/", 5) != 0; }

/* NULL: the request is not for a page. */
static const struct web_route *find_page(const struct http_request *r)
{
	const struct web_route *found = is_page(r) ? find_route(r) : NULL;

	return found && found->page ? found : NULL;
}

/* A long list without a limit is a long answer. */
static void on_gated_request(struct http_request *r, void *owner)
{
	struct web *w = owner;
	const struct web_route *its = find_route(r);
	char limit[2];
	bool is_long =
	    its->page_limit && !is_page(r) && http_query_nth(r, "limit", 0, limit, sizeof(limit)) == ERR_NOT_FOUND;

	web_gate_submit(w->gate, r, is_long, its->on_request, w);
}

void web_refuse(struct http_request *r)
{
	if (find_route(r)->kind == ROUTE_DOCUMENT)
		web_document_busy(r);
	else
		web_respond_busy(r);
}

int64_t web_page_limit(const struct http_request *r)
{
	const struct web_route *found = find_page(r);

	return found ? found->page_limit : 0;
}

void web_form_init(struct web_form *f, const struct http_request *r)
{
	const struct web *w = http_route_of(r)->owner;
	const struct web_route *found = find_page(r);
	int64_t page_limit = web_page_limit(r);
	struct buf api = BUF_INIT(API_MAX_BYTES);
	char limit[24], separator = '?';
	int i = 0;

	*f = (struct web_form){.is_page = is_page(r)};
	if (!f->is_page)
		return;
	f->id = xstrdup_or_null(http_segment(r, 0));
	f->now_ms = clock_wall_ms();
	if (w->config) {
		f->base = xstrdup(w->config->public_url);
		f->upstream = xstrdup(w->config->upstream_repository);
	}
	if (!found)
		return;
	f->title = found->title;
	for (const char *p = found->path; *p; p++) {
		if (*p == '{') {
			const char *segment = http_segment(r, i++);

			percent_encode(&api, segment, segment ? strlen(segment) : 0, "");
			p = strchr(p, '}');
		} else {
			buf_append_char(&api, *p);
		}
	}
	/* The query as it came, but only printable ASCII, because it becomes part of a link. */
	if (*http_query(r)) {
		buf_append_char(&api, separator);
		for (const char *c = http_query(r); *c; c++)
			if (*c > ' ' && *c < 0x7f)
				buf_append_char(&api, *c);
		separator = '&';
	}
	if (page_limit && !http_query_get(r, "limit", limit, sizeof(limit)))
		buf_appendf(&api, "%climit=%lld", separator, (long long)page_limit);
	f->api = buf_detach(&api);
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

/* ---- the whole ---- */

enum { SAME_FOR_MS = 5000 }; /* ages and states that follow from the time are exact enough for so long */

/* Commits and configurations that the loop knows of, and the time: an answer that began before one of them may differ. */
static int64_t answers_version(void *owner)
{
	const struct web *w = owner;
	struct store_stats stats;

	store_stats(w->deps.store, &stats);
	return (
	    int64_t)((uint64_t)(stats.n_writes + w->n_configured) << 32 | (uint32_t)(clock_wall_ms() / SAME_FOR_MS));
}

struct web *web_new(const struct web_deps *deps)
{
	struct web *w = xcalloc(1, sizeof(*w));

	w->deps = *deps;
	w->started_wall_ms = clock_wall_ms();
	LIST_INIT(&w->followers);
	w->gate = web_gate_new(web_refuse);
	web_gate_share_begun(w->gate, answers_version, w);
	w->log_readers = http_group_amounts_new();
	web_open_events(w);
	for (size_t i = 0; i < ARRAY_LEN(ROUTES); i++) {
		const struct web_route *its = &ROUTES[i];
		bool is_gated = its->kind == ROUTE_RESOURCE || its->kind == ROUTE_DOCUMENT;
		struct http_route route = {.method = "GET",
		    .pattern = its->path,
		    .on_request = is_gated ? on_gated_request : its->on_request,
		    .owner = w};

		http_server_route(deps->server, &route);
		if (its->page) {
			route.pattern = its->page;
			http_server_route(deps->server, &route);
		}
		if (its->kind == ROUTE_RESOURCE || its->kind == ROUTE_STREAM)
			http_server_route(deps->server,
			    &(struct http_route){
				.method = "OPTIONS", .pattern = its->path, .on_request = on_preflight, .owner = w});
	}
	http_server_fallback(deps->server,
	    &(struct http_route){.method = "GET", .pattern = "/{nothing}", .on_request = on_unknown_path, .owner = w});
	return w;
}

void web_configure(struct web *w, struct config *config)
{
	config_unref(w->config);
	w->config = config_ref(config);
	w->n_configured++;
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
	free(w);
}
