/* An answer in the two forms that people may request, JSON or a page that contains it; and documents of other types. Private to
 * web/; most handlers need only the web_respond…() of web_internal.h. */
#ifndef WEB_ANSWER_H
#define WEB_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "http/server.h"
#include "loop/loop.h"
#include "web/page.h"

/* The form that a request wants, so that the answer can be written without the request. */
struct web_form {
	bool is_page;
	/* page only; owned, except the first */
	const char *title;
	char *id; /* shown in the title */
	char *api, *base, *upstream;
	int64_t now_ms;
};
/* Thread: loop. The owner of r's route is the struct web. */
void web_form_take(struct web_form *f, const struct http_request *r);
void web_form_release(struct web_form *f);

struct web_text {
	char *bytes; /* owned */
	size_t n;
	char etag[ETAG_BYTES];
};
/* Thread: any. Takes the JSON text `json` (free()). */
void web_text_write(struct web_text *t, const struct web_form *f, int status, char *json);
/* Thread: loop. Answers r and all requests that wait for the same answer (gate.h); a client that has it already gets 304.
 * retry_after_s 0: no such header. Releases t. */
void web_text_send(struct web_text *t, const struct web_form *f, struct http_request *r, int status,
    int retry_after_s);

/* A JSON answer of unbounded size: a change with 100,000 verdicts takes a third of a second to write. The pool writes long answers,
 * so that no webhook waits for them; short ones are written at once. */
struct web_render {
	/* Makes the answer, perhaps in the pool: nothing else uses `owner` meanwhile. */
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
	struct web_text text;
};
/* Thread: loop. Answers r->request with 200 now or later; n_items: the number of entries in the answer. */
void web_render(struct loop *l, struct web_render *r, size_t n_items);

struct web;
/* A request that reads the store and then renders its answer: the first member of the struct of such a request. Thread: loop. */
struct web_read {
	struct web_render render;
	struct loop *loop;
	struct http_request *request;
	struct config *config;        /* as of the request */
	void (*release)(void *owner); /* frees the content of the struct; it may run in part */
};
/* A zeroed struct of this size, which begins with a struct web_read. NULL: nothing is configured yet, and r is answered. */
void *web_read_new(
    struct web *w, struct http_request *r, size_t bytes, void (*release)(void *owner));
void web_read_free(void *owner);
/* Returns true if err is 0. Else it answers 404 with not_found (NULL: never), or 503, and frees the struct. */
bool web_read_goes_on(void *owner, int err, const char *not_found);
/* Renders the answer with make, or with render.make_text where make is NULL, and frees the struct. */
void web_read_render(void *owner, json_t *(*make)(void *owner), size_t n_items);

/* An answer that is neither JSON nor a page: a report document, a badge, the feed. Any site may read it. */
struct web_document {
	int status;
	const char *type;        /* Content-Type */
	const char *cache;       /* Cache-Control */
	const char *disposition; /* Content-Disposition; may be NULL */
	char *body;              /* free(): web_document_send() takes it */
	size_t n;
	const char *etag; /* of the body; NULL: computed here, for short bodies */
};
/* Thread: loop. Copies everything else. Answers all requests that wait for the same answer, with 304 as above. */
void web_document_send(struct http_request *r, const struct web_document *d);
/* Thread: loop. Answers all of them with 503, Retry-After and JSON. */
void web_document_busy(struct http_request *r);

#endif
