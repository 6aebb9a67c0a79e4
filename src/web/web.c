#include "web/web_internal.h"

#include "base/alloc.h"
#include "base/clock.h"

struct web *web_new(const struct web_deps *deps)
{
	struct web *w = xcalloc(1, sizeof(*w));

	w->deps = *deps;
	w->started_wall_ms = clock_wall_ms();
	web_add_health_routes(w);
	web_add_status_routes(w);
	web_add_metrics_routes(w);
	web_add_change_routes(w);
	web_add_accelerator_routes(w);
	web_add_job_routes(w);
	web_add_job_log_routes(w);
	web_add_link_routes(w);
	return w;
}

void web_configure(struct web *w, struct config *config)
{
	config_unref(w->config);
	w->config = config_ref(config);
}

void web_free(struct web *w)
{
	if (!w)
		return;
	config_unref(w->config);
	free(w);
}

void web_respond_json_text(struct http_request *r, int status, const char *text)
{
	/* Anybody's dashboard may read this from a browser: contract 9 has no login. */
	static const struct http_header_line headers[] = {
	    {"Access-Control-Allow-Origin", "*"}, {"Cache-Control", "no-cache"}, {NULL, NULL}};

	http_respond(r, status, "application/json", headers, text, strlen(text));
}

void web_respond_json(struct http_request *r, int status, json_t *v)
{
	char *text = json_text(v);

	web_respond_json_text(r, status, text);
	free(text);
	json_decref(v);
}

void web_respond_not_found(struct http_request *r, const char *text)
{
	http_respond_json1(r, 404, "error", text);
}

void web_respond_failed(struct http_request *r, int err, const char *not_found)
{
	if (err == ERR_NOT_FOUND)
		web_respond_not_found(r, not_found);
	else
		http_respond_busy(r, 1);
}
