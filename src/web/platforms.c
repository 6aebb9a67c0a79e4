/* /api/v1/platforms, /platforms and one of them: the data from which pytorch.org can render a selector. */
#include "views/platforms.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "history/platform_tests.h"
#include "web/answer.h"
#include "web/web_internal.h"

struct platforms_request {
	struct get_platform_tests get;
	struct web_render render;
	struct loop *loop;
	struct config *config; /* as of the request */
	char *name;            /* NULL: all */
	int64_t now_ms;
	struct platform_entry *list; /* into config and get */
	const char **names;          /* of the list's accelerators; the config's */
	size_t n, n_items;
};

static void platforms_request_free(void *p)
{
	struct platforms_request *q = p;

	get_platform_tests_release(&q->get);
	config_unref(q->config);
	free(q->name);
	free(q->list);
	free(q->names);
	free(q);
}

static bool is_platform_shown(const struct accelerator *a)
{
	return a->platform && a->level > LEVEL_1;
}

/* All platforms that are shown, or the requested one, in the registry's order. */
static void choose_platforms(struct platforms_request *q)
{
	const struct config *c = q->config;

	q->list = xcalloc(c->n_accelerators + 1, sizeof(*q->list));
	q->names = xcalloc(c->n_accelerators + 1, sizeof(*q->names));
	for (size_t i = 0; i < c->n_accelerators; i++) {
		const struct accelerator *a = &c->accelerators[i];

		if (!is_platform_shown(a) || (q->name && !str_eq(q->name, a->name)))
			continue;
		q->names[q->n] = a->name;
		q->list[q->n++] = (struct platform_entry){.a = a};
	}
	q->get.names = q->names;
	q->get.n_names = q->n;
}

/* The store's list of tests is sorted by accelerator. */
static void fill_platform(
    struct platforms_request *q, struct platform_entry *e, const struct standing *at)
{
	size_t i = 0;

	while (i < q->get.n && strcmp(q->get.list[i].accelerator, e->a->name) != 0)
		i++;
	e->tests = q->get.list + i;
	while (i + e->n_tests < q->get.n &&
	       str_eq(q->get.list[i + e->n_tests].accelerator, e->a->name))
		e->n_tests++;
	e->at = *at;
	q->n_items += 1 + e->n_tests + e->a->platform->n_installs;
}

static json_t *make_platforms(void *owner)
{
	struct platforms_request *q = owner;

	if (q->name)
		return platform_json(&q->list[0], q->now_ms, q->config->public_url);
	return platforms_json(q->list, q->n, q->now_ms, q->config->public_url);
}

static void on_tests(struct store_query *sq)
{
	struct platforms_request *q = CONTAINER_OF(sq, struct platforms_request, get.q);

	if (sq->err) {
		web_respond_failed(q->render.request, sq->err, "no such platform");
		platforms_request_free(q);
		return;
	}
	for (size_t i = 0; i < q->n; i++)
		fill_platform(q, &q->list[i], &q->get.standings[i]);
	web_render(q->loop, &q->render, q->n_items);
}

static void start_platforms(struct web *w, struct http_request *r, const char *name)
{
	const struct accelerator *a;
	struct platforms_request *q;

	if (!w->config) {
		web_respond_busy(r);
		return;
	}
	a = name ? config_accelerator(w->config, name) : NULL;
	if (name && (!a || !is_platform_shown(a))) {
		web_respond_not_found(r, "no such platform");
		return;
	}
	q = xcalloc(1, sizeof(*q));
	q->loop = w->deps.loop;
	q->config = config_ref(w->config);
	q->name = xstrdup_or_null(name);
	q->now_ms = clock_wall_ms();
	q->render = (struct web_render){
	    .make = make_platforms, .over = platforms_request_free, .owner = q, .request = r};
	choose_platforms(q);
	q->get.only = q->name;
	q->get.now_ms = q->now_ms;
	q->get.q.done = on_tests;
	if (store_get_platform_tests(w->deps.store, &q->get)) {
		web_respond_busy(r);
		platforms_request_free(q);
	}
}

static void on_platforms(struct http_request *r, void *owner)
{
	start_platforms(owner, r, NULL);
}

static void on_platform(struct http_request *r, void *owner)
{
	start_platforms(owner, r, http_segment(r, 0));
}

void web_add_platform_routes(struct web *w)
{
	web_add_resource(w, "/api/v1/platforms", "/platforms", on_platforms);
	web_add_resource(w, "/api/v1/platforms/{name}", "/platforms/{name}", on_platform);
}
