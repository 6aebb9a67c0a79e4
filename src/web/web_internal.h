/* Shared by the files of web/ only. */
#ifndef WEB_WEB_INTERNAL_H
#define WEB_WEB_INTERNAL_H

#include "web/web.h"

struct log_get;

struct web {
	struct web_deps deps;
	struct config *config; /* NULL until configured */
	int64_t started_wall_ms;
	struct log_get *followers; /* of logs that may grow */
	int n_followers;
	int n_log_readers_stuck; /* whose socket has not taken their last piece */
	bool is_stopping;
};

/* One file a group of routes. */
void web_add_change_routes(struct web *w);
void web_add_accelerator_routes(struct web *w);
void web_add_job_routes(struct web *w);
void web_add_job_log_routes(struct web *w);
void web_add_link_routes(struct web *w);
void web_add_health_routes(struct web *w);
void web_add_status_routes(struct web *w);
void web_add_metrics_routes(struct web *w);

/* Sends a JSON text, or v (stolen), as application/json. */
void web_respond_json_text(struct http_request *r, int status, const char *text);
void web_respond_json(struct http_request *r, int status, json_t *v);
/* 404 {"error": text}. */
void web_respond_not_found(struct http_request *r, const char *text);
/* The answer for a store call that failed: 404, or 503 with Retry-After. */
void web_respond_failed(struct http_request *r, int err, const char *not_found);

#endif
