/* /api/v1/accelerators: who takes part, and how well. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "store/registry.h"
#include "web/accelerator_json.h"
#include "web/web_internal.h"

struct figures_request {
	struct get_figures get;
	struct http_request *request; /* NULL: on_json gets the list */
	void (*on_json)(int err, json_t *list, void *owner);
	void *owner;
	struct config *config; /* as of the request */
};

static void figures_request_free(struct figures_request *f)
{
	get_figures_release(&f->get);
	config_unref(f->config);
	free(f);
}

static const struct accelerator_figures *find_figures(
    const struct get_figures *get, const char *name)
{
	for (size_t i = 0; i < get->n; i++)
		if (str_eq(get->list[i].name, name))
			return &get->list[i];
	return NULL;
}

static json_t *list_json(const struct config *c, const struct get_figures *get)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_accelerators; i++) {
		const struct accelerator *a = &c->accelerators[i];

		json_array_append_new(list, accelerator_json(c, a, find_figures(get, a->name)));
	}
	return list;
}

static void figures_done(struct store_query *q)
{
	struct figures_request *f = CONTAINER_OF(q, struct figures_request, get.q);
	json_t *list;

	if (f->on_json) {
		f->on_json(q->err, q->err ? NULL : list_json(f->config, &f->get), f->owner);
		figures_request_free(f);
		return;
	}
	if (q->err) {
		web_respond_failed(f->request, q->err, "no accelerators");
	} else {
		list = list_json(f->config, &f->get);
		web_respond_json(f->request, 200, json_pack("{s:o}", "accelerators", list));
	}
	figures_request_free(f);
}

void web_accelerators(struct web *w, void (*done)(int err, json_t *list, void *owner), void *owner)
{
	struct figures_request *f;
	int rc;

	if (!w->config) {
		done(ERR_BUSY, NULL, owner);
		return;
	}
	f = xcalloc(1, sizeof(*f));
	f->on_json = done;
	f->owner = owner;
	f->config = config_ref(w->config);
	f->get.now_ms = clock_wall_ms();
	f->get.q.done = figures_done;
	rc = store_get_figures(w->deps.store, &f->get);
	if (rc) {
		figures_request_free(f);
		done(rc, NULL, owner);
	}
}

static void on_list(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct figures_request *f;

	if (!w->config) {
		web_respond_busy(r);
		return;
	}
	f = xcalloc(1, sizeof(*f));
	f->request = r;
	f->config = config_ref(w->config);
	f->get.now_ms = clock_wall_ms();
	f->get.q.done = figures_done;
	if (store_get_figures(w->deps.store, &f->get)) {
		web_respond_busy(r);
		figures_request_free(f);
	}
}

void web_add_accelerator_routes(struct web *w)
{
	web_add_resource(w, "/api/v1/accelerators", NULL, on_list);
}
