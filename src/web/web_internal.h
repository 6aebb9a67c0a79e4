/* Shared by the files of web/; private to them. Thread: loop. */
#ifndef WEB_WEB_INTERNAL_H
#define WEB_WEB_INTERNAL_H

#include <sys/queue.h>

#include "http/client_group.h"
#include "web/web.h"

struct log_get;
struct web_events;
struct web_gate;

struct web {
	struct web_deps deps;
	struct config *config; /* NULL until configured */
	int64_t started_wall_ms;
	LIST_HEAD(, log_get) followers; /* of logs that may grow */
	int n_followers;
	int n_log_readers_stuck;                /* whose socket has not accepted their last piece */
	struct http_group_amounts *log_readers; /* of either kind, by client */
	struct web_events *events;
	struct web_gate *gate; /* gate.h */
	bool is_stopping;
};

/* The request is for the page: long lists are cut to a first part then, and the page requests the rest. */
bool web_is_page(const struct http_request *r);
/* The `limit` of a page whose address has none (params_limit()). */
int64_t web_page_limit(const struct http_request *r); /* 0: it has none, or it is not a page */
/* The title of the page before its first segment; NULL: it has the title of the service. Borrowed for ever. */
const char *web_page_title(const struct http_request *r);
/* The path and query of the same answer in the API, of URL characters only; NULL: the request is not for a resource. free(). */
char *web_api_of_page(const struct http_request *r);

/* The handlers of the routes (the table of web.c). The owner of each is the struct web. */
typedef void web_handler(struct http_request *r, void *owner);
web_handler web_on_pull, web_on_commit, web_on_known, web_on_dashboard, web_on_nightly;
web_handler web_on_accelerators, web_on_accelerator, web_on_accelerator_jobs;
web_handler web_on_accelerator_numbers, web_on_level_status, web_on_platforms, web_on_platform;
web_handler web_on_job, web_on_job_log, web_on_badge, web_on_feed, web_on_asset, web_on_events;
web_handler web_on_status, web_on_metrics;

/* Answer in the form that the address wants: JSON with CORS, or the page that contains it. A 200 has an ETag and respects
 * If-None-Match. The owner of r's route is the struct web. They send a JSON text, or v (stolen). */
void web_respond_json_text(struct http_request *r, int status, const char *text);
void web_respond_json(struct http_request *r, int status, json_t *v);
/* {"error": text}. */
void web_respond_error(struct http_request *r, int status, const char *text);
/* 404. */
void web_respond_not_found(struct http_request *r, const char *text);
/* 503 with Retry-After. */
void web_respond_busy(struct http_request *r);
/* The same for a resource or a document, in the form that the request wants. */
void web_refuse(struct http_request *r);
/* 429 with Retry-After: this client has reached its share. */
void web_respond_too_many(struct http_request *r, const char *text);
/* The answer for a store call that failed: 404, or 503 with Retry-After. */
void web_respond_failed(struct http_request *r, int err, const char *not_found);

/* Their parts of web_new(), web_stop() and web_free(). */
void web_cut_followers(struct web *w);
void web_cut_events(struct web *w);
void web_open_events(struct web *w);
void web_free_events(struct web *w);
/* The number of open streams of events. */
int web_n_event_streams(const struct web *w);

#endif
