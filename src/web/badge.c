/* /badge/{accelerator}.svg. Whoever is not registered and whoever shows nothing (L1) look the same:
 * 404, with an image that says so, because images are what READMEs show. */
#include "report/badge.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "store/registry.h"
#include "web/document.h"
#include "web/web_internal.h"

enum { BADGE_MAX_BYTES = 16 << 10 };

struct badge_request {
	struct get_figures get;
	struct http_request *request;
	char *name, *title;
};

static void badge_request_free(struct badge_request *b)
{
	get_figures_release(&b->get);
	free(b->name);
	free(b->title);
	free(b);
}

static void send_badge(struct http_request *r, const struct badge *b)
{
	struct buf out = BUF_INIT(BADGE_MAX_BYTES);
	size_t n;

	if (b)
		badge_write(&out, b);
	else
		badge_write_unknown(&out);
	n = out.len;
	web_document_send(r, &(struct web_document){
				 .status = b ? 200 : 404,
				 .type = "image/svg+xml; charset=utf-8",
				 .cache = "public, max-age=300",
				 .n = n,
				 .body = buf_take(&out),
			     });
}

static void figures_read(struct store_query *q)
{
	struct badge_request *b = CONTAINER_OF(q, struct badge_request, get.q);
	struct badge badge = {.title = b->title, .now_ms = b->get.now_ms};

	if (q->err) {
		web_document_busy(b->request);
		badge_request_free(b);
		return;
	}
	if (b->get.n) {
		const struct accelerator_figures *f = &b->get.list[0];

		badge.state = f->at.state;
		badge.n_runs = f->at.facts.n_runs;
		badge.n_green = f->at.facts.n_green;
	}
	send_badge(b->request, &badge);
	badge_request_free(b);
}

static void on_badge(struct http_request *r, void *owner)
{
	struct web *w = owner;
	const char *file = http_segment(r, 0);
	const struct accelerator *a = NULL;
	struct badge_request *b;
	char *name;

	if (!w->config) {
		web_document_busy(r);
		return;
	}
	name = xstrdup(file);
	if (str_has_suffix(name, ".svg")) {
		name[strlen(name) - strlen(".svg")] = '\0';
		a = config_accelerator(w->config, name);
	}
	if (!a || a->level == LEVEL_1) {
		free(name);
		send_badge(r, NULL);
		return;
	}
	b = xcalloc(1, sizeof(*b));
	b->request = r;
	b->name = name;
	b->title = xstrdup(a->title);
	b->get.now_ms = clock_wall_ms();
	b->get.only = b->name;
	b->get.q.done = figures_read;
	if (store_get_figures(w->deps.store, &b->get)) {
		web_document_busy(r);
		badge_request_free(b);
	}
}

void web_add_badge_routes(struct web *w)
{
	web_add_document(w, "/badge/{file}", on_badge);
}
