/* Shared by the files of web/; private to them. Thread: loop. */
#ifndef WEB_WEB_INTERNAL_H
#define WEB_WEB_INTERNAL_H

#include <sys/queue.h>

#include "http/client_group.h"
#include "web/web.h"

struct log_get;
struct web_events;
struct web_gate;

struct web_resource {
	const char *api, *page; /* NULL: none */
	const char *document;   /* instead of them */
	int64_t page_limit;     /* 0: none */
	void (*on_request)(struct http_request *r, void *owner);
};

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
	struct web_resource *resources; /* owned */
	size_t n_resources;
};

/* Adds an answer that is shown as JSON and as a page: `on_request` serves both, with `w` as its owner, and answers with the
 * web_respond…() below, which write the form that the request wants. It runs when its turn comes, once for all requests for the same
 * answer (gate.h). page may be NULL. Patterns are borrowed for ever. */
void web_add_resource(struct web *w, const char *api, const char *page,
    void (*on_request)(struct http_request *r, void *owner));
/* Adds an answer from the store of another type, which is sent with web_document_send() or web_document_busy(). It waits for its turn,
 * too. */
void web_add_document(
    struct web *w, const char *pattern, void (*on_request)(struct http_request *r, void *owner));
/* Adds a part of the API whose answers last until their readers leave: it waits for no turn. */
void web_add_stream(
    struct web *w, const char *pattern, void (*on_request)(struct http_request *r, void *owner));
/* Adds a path outside of the API that waits for no turn. */
void web_add_plain(
    struct web *w, const char *pattern, void (*on_request)(struct http_request *r, void *owner));
/* The request is for the page: long lists are cut to a first part then, and the page requests the rest. */
bool web_is_page(const struct http_request *r);
/* The `limit` of a page whose address has none (params_limit()). Call it after web_add_resource(). */
void web_set_page_limit(struct web *w, const char *page, int64_t limit);
int64_t web_page_limit(const struct http_request *r); /* 0: it has none, or it is not a page */
/* The title of the page before its first segment; NULL: it has the title of the service. Borrowed for ever. */
const char *web_page_title(const struct http_request *r);
/* The path and query of the same answer in the API, of URL characters only; NULL: the request is not for a resource. free(). */
char *web_api_of_page(const struct http_request *r);

/* Each file adds its routes. */
void web_add_change_routes(struct web *w);
void web_add_dashboard_routes(struct web *w);
void web_add_nightly_routes(struct web *w);
void web_add_accelerator_routes(struct web *w);
void web_add_known_routes(struct web *w);
void web_add_level_status_routes(struct web *w);
void web_add_platform_routes(struct web *w);
void web_add_job_routes(struct web *w);
void web_add_job_log_routes(struct web *w);
void web_add_badge_routes(struct web *w);
void web_add_feed_routes(struct web *w);
void web_add_asset_routes(struct web *w);
void web_add_event_routes(struct web *w);
void web_add_status_routes(struct web *w);
void web_add_metrics_routes(struct web *w);

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

/* Their parts of web_stop() and web_free(). */
void web_cut_followers(struct web *w);
void web_cut_events(struct web *w);
void web_free_events(struct web *w);
/* The number of open streams of events. */
int web_n_event_streams(const struct web *w);

#endif
