/* The read-only face over HTTP: JSON API, health, metrics. No login, nothing is changed
 * here. Thread: loop. */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "config/config.h"
#include "http/server.h"
#include "logs/logs.h"
#include "loop/loop.h"
#include "store/store.h"

struct web;

struct web_deps {
	struct loop *loop;
	struct store *store;
	struct logs *logs;
	struct http_server *server;
	/* Appends what the other layers count, as Prometheus text. */
	void (*write_metrics)(struct buf *out, void *owner);
	/* Adds to /api/v1/status what other layers know, as far as everybody may. NULL: nothing. */
	void (*add_status)(json_t *status, void *owner);
	/* What else /readyz waits for, as people read it; NULL: nothing. May be NULL. */
	const char *(*why_not_ready)(void *owner);
	void *owner;
};

/* Adds its routes to the server. Answers 503 until web_configure() ran once. */
struct web *web_new(const struct web_deps *deps);
/* Takes a reference of its own. */
void web_configure(struct web *w, struct config *config);
/* Cuts the answers that wait for more to come: followed logs, streams of events. Call it when the server closes. */
void web_stop(struct web *w);
/* After the server is closed and the store's queries are done. NULL is fine. */
void web_free(struct web *w);

/* What /api/v1/status shows and `outpostctl status` starts from. done runs once, on the
 * loop; *status is a new reference, or NULL with err set. */
void web_status(struct web *w, void (*done)(int err, json_t *status, void *owner), void *owner);
/* The list that /api/v1/accelerators shows. done runs once, on the loop, where the store is busy
 * inside this call; *list is a new reference, or NULL with err set. */
void web_accelerators(struct web *w, void (*done)(int err, json_t *list, void *owner), void *owner);

#endif
