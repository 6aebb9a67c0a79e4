/* /api/v1/platforms, /platforms and one of them: the data from which pytorch.org can render a selector. */
#include "views/platforms.h"
#include "history/run_note.h"
#include "web/web_internal.h"

struct platforms_request {
	struct web_read read;
	struct get_platform_tests get;
	char *name;                  /* NULL: all */
	struct platform_entry *list; /* into config and get */
	const char **names;          /* of the list's accelerators; the config's */
	size_t n;
};

static void release_platforms(void *owner)
{
	struct platforms_request *q = owner;

	get_platform_tests_release(&q->get);
	FREE_ALL(q->name, q->list, q->names);
}

static size_t count_platforms(const void *owner)
{
	const struct platforms_request *q = owner;
	size_t n = q->n + q->get.n;

	for (size_t i = 0; i < q->n; i++)
		n += q->list[i].a->platform->n_installs;
	return n;
}

/* The store's list of tests is sorted by accelerator. */
static json_t *make_platforms(void *owner)
{
	struct platforms_request *q = owner;
	const struct platform_test *list = q->get.list;
	const char *public_url = q->read.config->public_url;

	for (size_t k = 0; k < q->n; k++) {
		struct platform_entry *e = &q->list[k];
		size_t i = 0;

		while (i < q->get.n && strcmp(list[i].accelerator, e->a->name) != 0)
			i++;
		e->tests = list + i;
		while (i + e->n_tests < q->get.n && str_eq(list[i + e->n_tests].accelerator, e->a->name))
			e->n_tests++;
		e->at = q->get.standings[k];
	}
	return q->name ? platform_json(&q->list[0], q->get.now_ms, public_url)
		       : platforms_json(q->list, q->n, q->get.now_ms, public_url);
}

static const struct web_read_kind PLATFORMS = {sizeof(struct platforms_request), release_platforms, "no such platform",
    .make = make_platforms, .n_items = count_platforms};

/* Reads all platforms that are shown, or the one with this name, in the registry's order. */
static void start_platforms(struct web *w, struct http_request *r, const char *name)
{
	struct platforms_request *q = web_read_new(w, r, &PLATFORMS);

	if (!q)
		return;
	const struct config *c = q->read.config;
	q->name = xstrdup_or_null(name);
	q->list = xcalloc(c->n_accelerators + 1, sizeof(*q->list));
	q->names = xcalloc(c->n_accelerators + 1, sizeof(*q->names));
	for (size_t i = 0; i < c->n_accelerators; i++) {
		const struct accelerator *a = &c->accelerators[i];

		if (!a->platform || a->level <= LEVEL_1 || (name && !str_eq(name, a->name)))
			continue;
		q->names[q->n] = a->name;
		q->list[q->n++] = (struct platform_entry){.a = a};
	}
	q->get.names = q->names;
	q->get.n_names = q->n;
	q->get.only = q->name;
	q->get.now_ms = clock_wall_ms();
	web_read_await(q, name && !q->n ? ERR_NOT_FOUND : store_get_platform_tests(q->read.store, &q->get));
}

void web_on_platforms(struct http_request *r, void *owner) { start_platforms(owner, r, NULL); }

void web_on_platform(struct http_request *r, void *owner) { start_platforms(owner, r, http_segment(r, 0)); }
