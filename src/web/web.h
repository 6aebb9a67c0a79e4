/* The read-only interface over HTTP: pages, JSON API, health, metrics. There is no login, and it changes nothing. Thread: loop. */
#pragma once

#include "config/config.h"
#include "db/store.h"
#include "http/server.h"
#include "logs/logs.h"
#include "loop/loop.h"
#include "verdict/known_issues.h"

struct web;

struct web_deps {
	struct loop *loop;
	struct store *store;
	struct logs *logs;
	struct http_server *server;
	/* Appends the metrics of other layers, as Prometheus text. */
	void (*write_metrics)(struct buf *out, void *owner);
	/* Adds the public members of other layers to /api/v1/status. May be NULL. */
	void (*add_status)(json_t *status, void *owner);
	/* Returns why /readyz fails, for people; NULL: it does not. May be NULL. */
	const char *(*why_not_ready)(void *owner);
	void *owner;
};

/* Adds its routes to the server. Answers 503 until web_configure() ran once. Owns: the caller, with web_free(). */
struct web *web_new(const struct web_deps *deps);
/* Takes a reference to config. */
void web_configure(struct web *w, struct config *config);
/* Cuts the answers that have no end yet: followed logs, streams of events. Call it when the server closes. */
void web_stop(struct web *w);
/* After the server is closed and the store's queries are done. NULL is fine. */
void web_free(struct web *w);

/* The status of /api/v1/status and `outpostctl status`. done runs once; *status is a new reference, or NULL if q->err says why not. */
void web_status(struct web *w, void (*done)(const struct store_query *q, json_t *status, void *owner), void *owner);
/* The list of /api/v1/accelerators. done runs once, inside this call if the store is busy; *list is a new reference, or NULL with
 * err set. */
void web_accelerators(struct web *w, void (*done)(const struct store_query *q, json_t *list, void *owner), void *owner);
/* {"known": [...]} as in docs/operators.md: the answer of /api/v1/known and `outpostctl known`. A new reference. */
json_t *web_known_json(const struct list_known *l);
