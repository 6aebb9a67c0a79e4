/* A JSON answer whose size others decide: a change with 100,000 verdicts takes a third of a
 * second to write down. That is done in the pool, so that no webhook waits for it; what is
 * short is written at once. */
#ifndef WEB_RENDER_H
#define WEB_RENDER_H

#include <stddef.h>

#include "base/json.h"
#include "http/server.h"
#include "loop/loop.h"
#include "web/answer.h"

struct web_render {
	/* Makes the answer, perhaps in the pool: `owner` is nobody else's meanwhile. */
	json_t *(*make)(void *owner);
	/* Instead, its text, which is the renderer's to free. */
	char *(*make_text)(void *owner);
	/* Runs once, on the loop, when the answer is given: frees owner. */
	void (*over)(void *owner);
	void *owner;
	struct http_request *request;
	/* ---- the renderer's own ---- */
	struct pool_work work;
	struct web_form form;
	struct web_text text;
};

/* Answers r->request with 200 now or later; n_items: how many entries it will have. */
void web_render(struct loop *l, struct web_render *r, size_t n_items);

#endif
