/* /healthz and /readyz: is it alive, and may it be sent traffic. */
#include "web/web_internal.h"

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

void web_add_health_routes(struct web *w)
{
	http_server_route(w->deps.server,
	    &(struct http_route){
		.method = "GET", .pattern = "/healthz", .on_request = on_healthz, .owner = w});
	http_server_route(w->deps.server,
	    &(struct http_route){
		.method = "GET", .pattern = "/readyz", .on_request = on_readyz, .owner = w});
}
