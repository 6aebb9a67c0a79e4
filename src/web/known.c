/* /api/v1/known: which red tests are explained by an issue. */
#include "web/known.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "web/web_internal.h"

json_t *known_list_json(const struct list_known *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++) {
		const struct known_issue *k = &l->list[i];
		json_t *v = json_object();

		json_set_int(v, "id", k->id);
		json_set_str(v, "test", k->pattern);
		json_set_str(v, "accelerator", k->accelerator);
		json_set_str(v, "url", k->url);
		json_set_time(v, "until", k->until_ms);
		json_object_set_new(
		    v, "expired", json_boolean(k->until_ms && k->until_ms <= l->now_ms));
		json_set_time(v, "created", k->created_ms);
		json_set_int(v, "matches", k->n_matches);
		json_set_time(v, "last_match", k->last_match_ms);
		json_object_set_new(v, "used", json_boolean(k->is_used));
		json_array_append_new(list, v);
	}
	return json_pack("{s:o}", "known", list);
}

struct known_request {
	struct list_known list;
	struct http_request *request;
};

static void on_listed(struct store_query *q)
{
	struct known_request *k = CONTAINER_OF(q, struct known_request, list.q);

	if (q->err)
		web_respond_failed(k->request, q->err, "");
	else
		web_respond_json(k->request, 200, known_list_json(&k->list));
	list_known_release(&k->list);
	free(k);
}

static void on_known(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct known_request *k = xcalloc(1, sizeof(*k));

	k->request = r;
	k->list.q.done = on_listed;
	k->list.now_ms = clock_wall_ms();
	if (store_list_known(w->deps.store, &k->list)) {
		web_respond_busy(r);
		free(k);
	}
}

void web_add_known_routes(struct web *w)
{
	web_add_resource(w, "/api/v1/known", NULL, on_known);
}
