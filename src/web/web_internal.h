/* Shared by the files of web/; private to them. Thread: loop. */
#pragma once

#include "http/client_group.h"
#include "web/page.h"
#include "web/web.h"

struct log_get;
struct web_events;
struct web_answer;
struct web_gate;

struct web {
	struct web_deps deps;
	struct config *config; /* NULL until configured */
	int64_t n_configured;
	int64_t started_wall_ms;
	LIST_HEAD(, log_get) followers; /* of logs that may grow */
	int n_followers;
	int n_log_readers_stuck;                /* whose socket has not accepted their last piece */
	struct http_group_amounts *log_readers; /* of either kind, by client */
	struct web_events *events;
	struct web_gate *gate; /* gate.h */
	bool is_stopping;
};

/* The `limit` of a page whose address has none (params_limit()); 0: it has none, or it is not a page. */
int64_t web_page_limit(const struct http_request *r);

/* The handlers of the routes (the table of web.c). The owner of each is the struct web. */
typedef void web_handler(struct http_request *r, void *owner);
web_handler web_on_pull, web_on_commit, web_on_known, web_on_dashboard, web_on_nightly;
web_handler web_on_accelerators, web_on_accelerator, web_on_accelerator_jobs;
web_handler web_on_accelerator_numbers, web_on_level_status, web_on_platforms, web_on_platform;
web_handler web_on_job, web_on_job_log, web_on_badge, web_on_feed, web_on_asset, web_on_events;
web_handler web_on_status, web_on_metrics;

/* Answer in the form that the address wants: JSON with CORS, or the page that contains it. A 200 has an ETag and respects
 * If-None-Match. The owner of r's route is the struct web. v: stolen. */
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

/* ---- answers in the two forms that people may request, JSON or a page that contains it, and documents of other types; most
 * handlers need only the functions above and struct web_read ---- */

/* The form that a request wants, so that the answer can be written without the request. For a page, all texts are owned,
 * except the title. */
struct web_form {
	bool is_page;
	const char *title;     /* in front of the id; NULL: that of the service. Static */
	char *id;              /* the first segment of the address */
	char *api;             /* the path and query of the same answer in the API, of URL characters only */
	char *base, *upstream; /* NULL until configured */
	int64_t now_ms;
};
/* The owner of r's route is the struct web. Owns: the caller of it. */
void web_form_init(struct web_form *f, const struct http_request *r);

/* A JSON answer of unbounded size: a change with 100,000 verdicts takes a third of a second to write. The pool writes long answers,
 * so that no webhook waits for them; short ones are written at once. */
struct web_render {
	/* Makes the answer, perhaps in the pool: nothing else uses `owner` meanwhile. It depends only on the database, the configuration
	 * and the time, because later requests get it until one of them changes (web.c). */
	json_t *(*make)(void *owner);
	/* Or its text, which the renderer frees. */
	char *(*make_text)(void *owner);
	/* Runs once, on the loop, after the answer was sent: frees owner. */
	void (*over)(void *owner);
	void *owner;
	struct http_request *request;
	/* ---- the renderer's own ---- */
	struct pool_work work;
	struct web_form form;
	struct web_answer *answer;
};
/* Thread: loop. Answers r->request with 200 now or later; n_items: the number of entries in the answer. */
void web_render(struct loop *l, struct web_render *r, size_t n_items);

struct web_read_kind;

/* A request that reads the store and answers with the result. The struct of such a request begins with this one, and directly after it
 * follows the struct of the query, which begins with its struct store_query. Thread: loop. */
struct web_read {
	_Alignas(max_align_t) struct web_render render;
	const struct web_read_kind *kind;
	struct web *web;
	struct store *store; /* for the query */
	struct http_request *request;
	struct config *config;                 /* as of the request */
	const struct accelerator *accelerator; /* the config's; NULL: the request is not about a single one */
	const char *not_found;                 /* the text of a 404, at first that of the kind */
};
/* The constants of a kind of requests. Each function gets the request's own struct. */
struct web_read_kind {
	size_t bytes;                 /* of that struct, which begins zeroed */
	void (*release)(void *owner); /* frees its content */
	const char *not_found;        /* the text of a 404; NULL: a query that finds nothing is answered with 503 */
	/* Returns a code to answer with in place of the query's success; may be NULL. */
	int (*check)(void *owner);
	/* Renders the answer (struct web_render) with one of these. n_items: the number of entries in it; NULL: many. */
	json_t *(*make)(void *owner);
	char *(*make_text)(void *owner);
	size_t (*n_items)(const void *owner);
	/* Or answers without rendering, and calls web_read_free(), now or later. */
	void (*answer)(void *owner);
};
/* A new request, whose query is ready to be submitted. NULL: nothing is configured yet, and r is answered. */
void *web_read_new(struct web *w, struct http_request *r, const struct web_read_kind *kind);
void web_read_free(void *owner);
/* Waits for the query, then answers and frees the request. err: of the store's function that submitted the query. Not 0: answers 404
 * or 503 at once. */
void web_read_await(void *owner, int err);

/* An answer that is neither JSON nor a page: a report document, a badge, the feed. Any site may read it. */
struct web_document {
	int status;
	const char *type;        /* Content-Type; static */
	const char *cache;       /* Cache-Control; static */
	const char *disposition; /* Content-Disposition; may be NULL */
	char *body;              /* free(): web_document_send() takes it */
	size_t n;
	const char *etag; /* of the body; NULL: computed here, for short bodies */
};
/* Thread: loop. Copies everything else. Answers all requests that wait for the same answer, with 304 as above. */
void web_document_send(struct http_request *r, const struct web_document *d);
/* Thread: loop. Answers all of them with 503, Retry-After and JSON. */
void web_document_busy(struct http_request *r);

/* Their parts of web_new(), web_stop() and web_free(). */
void web_cut_followers(struct web *w);
void web_cut_events(struct web *w);
void web_open_events(struct web *w);
void web_free_events(struct web *w);
/* The number of open streams of events. */
int web_n_event_streams(const struct web *w);
