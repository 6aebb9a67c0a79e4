/* /api/v1/accelerators and /api/v1/accelerators/{name}: who takes part, and how well. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "store/registry.h"
#include "web/web_internal.h"

struct figures_request {
	struct get_figures get;
	struct http_request *request;
	struct config *config; /* as of the request */
	char *name;            /* NULL: all */
};

static void figures_request_free(struct figures_request *f)
{
	get_figures_release(&f->get);
	config_unref(f->config);
	free(f->name);
	free(f);
}

static json_t *runners_json(const struct accelerator *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->n_runners; i++)
		json_array_append_new(list, json_pack("{s:s, s:s}", "name", a->runners[i].name,
						"kind", runner_kind_name(a->runners[i].kind)));
	return list;
}

static const struct accelerator_figures *find_figures(
    const struct get_figures *get, const char *name)
{
	for (size_t i = 0; i < get->n; i++)
		if (str_eq(get->list[i].name, name))
			return &get->list[i];
	return NULL;
}

static void add_figures(json_t *v, const struct accelerator_figures *f)
{
	int64_t n_counted = f ? f->n_pass + f->n_fail : 0;

	json_object_set_new(v, "pass_rate",
	    n_counted ? json_real((double)f->n_pass / (double)n_counted) : json_null());
	json_set_time(v, "red_since", f ? f->red_since_ms : 0);
	json_set_int(v, "dispatches_30d", f ? f->n_dispatches : 0);
	json_set_int(v, "deadlines_missed_30d", f ? f->n_expired : 0);
	json_set_time(v, "last_report", f ? f->last_report_ms : 0);
}

static json_t *accelerator_json(const struct accelerator *a, const struct accelerator_figures *f)
{
	json_t *v = json_object(), *links = json_object(), *oncall = json_array();

	json_set_str(v, "name", a->name);
	json_set_str(v, "title", a->title);
	json_set_str(v, "vendor", a->vendor);
	json_set_str(v, "level", level_name(a->level));
	json_set_str(links, "docs", a->docs_url);
	json_set_str(links, "help", a->help_url);
	json_object_set_new(v, "links", links);
	for (char **login = a->oncall; login && *login; login++)
		json_array_append_new(oncall, json_string(*login));
	json_object_set_new(v, "oncall", oncall);
	json_set_str(v, "trust", trust_name(a->trust));
	json_object_set_new(v, "runners", runners_json(a));
	add_figures(v, f);
	return v;
}

static void figures_done(struct store_query *q)
{
	struct figures_request *f = CONTAINER_OF(q, struct figures_request, get.q);
	json_t *list;

	if (q->err) {
		web_respond_failed(f->request, q->err, "no such accelerator");
	} else if (f->name) {
		const struct accelerator *a = config_accelerator(f->config, f->name);

		web_respond_json(
		    f->request, 200, accelerator_json(a, find_figures(&f->get, f->name)));
	} else {
		list = json_array();
		for (size_t i = 0; i < f->config->n_accelerators; i++) {
			const struct accelerator *a = &f->config->accelerators[i];

			json_array_append_new(
			    list, accelerator_json(a, find_figures(&f->get, a->name)));
		}
		web_respond_json(f->request, 200, json_pack("{s:o}", "accelerators", list));
	}
	figures_request_free(f);
}

static void start(struct web *w, struct http_request *r, const char *name)
{
	struct figures_request *f;

	if (!w->config) {
		http_respond_busy(r, 1);
		return;
	}
	if (name && !config_accelerator(w->config, name)) {
		web_respond_not_found(r, "no such accelerator");
		return;
	}
	f = xcalloc(1, sizeof(*f));
	f->request = r;
	f->config = config_ref(w->config);
	f->name = xstrdup_or_null(name);
	f->get.now_ms = clock_wall_ms();
	f->get.q.done = figures_done;
	if (store_get_figures(w->deps.store, &f->get)) {
		http_respond_busy(r, 1);
		figures_request_free(f);
	}
}

static void on_list(struct http_request *r, void *owner)
{
	start(owner, r, NULL);
}

static void on_one(struct http_request *r, void *owner)
{
	start(owner, r, http_segment(r, 0));
}

void web_add_accelerator_routes(struct web *w)
{
	http_server_route(w->deps.server, &(struct http_route){.method = "GET",
					      .pattern = "/api/v1/accelerators",
					      .on_request = on_list,
					      .owner = w});
	http_server_route(w->deps.server, &(struct http_route){.method = "GET",
					      .pattern = "/api/v1/accelerators/{name}",
					      .on_request = on_one,
					      .owner = w});
}
