#include "daemon/space.h"

#include "store/space.h"

enum { SMALL_FILE_BYTES = 64 << 20 };
static const int64_t AGAIN_MS = 10 * 60 * 1000;

struct space_watch {
	struct store *const *store;
	struct get_space get;
	bool is_measuring;
	json_t *last; /* NULL: none yet */
	int64_t last_mono_ms;
	STAILQ_HEAD(, space_wait) waiting;
};

struct space_watch *space_watch_new(struct store *const *store)
{
	struct space_watch *w = xcalloc(1, sizeof(*w));

	w->store = store;
	STAILQ_INIT(&w->waiting);
	return w;
}

void space_watch_free(struct space_watch *w)
{
	if (!w)
		return;
	json_decref(w->last);
	free(w);
}

/* A server's database has no free space of its own. */
static json_t *space_json(const struct get_space *g, bool is_file)
{
	json_t *tables = json_array(), *accelerators = json_array();

	for (size_t i = 0; i < g->n_tables; i++)
		json_array_append_new(tables,
		    json_pack("{s:s, s:I}", "name", g->tables[i].name, "bytes", (json_int_t)g->tables[i].bytes));
	for (size_t i = 0; i < g->n_accelerators; i++) {
		const struct accelerator_space *a = &g->accelerators[i];

		json_array_append_new(
		    accelerators, json_pack("{s:s, s:I, s:I, s:I}", "name", a->name, "jobs", (json_int_t)a->n_jobs,
				      "results", (json_int_t)a->n_results, "bytes", (json_int_t)a->bytes));
	}
	return json_pack("{s:o, s:I, s:o, s:b, s:o, s:o}", "measured_at", json_time(clock_wall_ms()), "bytes",
	    (json_int_t)g->file_bytes, "free", is_file ? json_integer(g->free_bytes) : json_null(), "shrinks",
	    g->can_shrink, "tables", tables, "accelerators", accelerators);
}

static json_t *last_space(const struct space_watch *w) { return w->last ? json_incref(w->last) : json_null(); }

static void on_measured(struct store_query *q)
{
	struct space_watch *w = CONTAINER_OF(q, struct space_watch, get.q);
	struct space_wait *wait;

	w->is_measuring = false;
	if (!q->err) {
		json_decref(w->last);
		w->last = space_json(&w->get, !store_is_shared(*w->store));
		w->last_mono_ms = clock_mono_ms();
	} else if (q->err != ERR_CANCELLED && q->err != ERR_CLOSING) {
		log_event(LOG_WARN, "space_not_measured", LOG_S("error", q->why.text));
	}
	get_space_release(&w->get);
	while ((wait = STAILQ_FIRST(&w->waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&w->waiting, link);
		wait->done(last_space(w), wait->owner);
	}
}

void space_ask(struct space_watch *w, int64_t file_bytes, struct space_wait *wait)
{
	bool is_small = file_bytes <= SMALL_FILE_BYTES;

	if (!w->is_measuring && (is_small || !w->last || clock_mono_ms() - w->last_mono_ms > AGAIN_MS)) {
		w->get.q.done = on_measured;
		w->is_measuring = store_get_space(*w->store, &w->get) == 0;
	}
	if (w->is_measuring && is_small)
		STAILQ_INSERT_TAIL(&w->waiting, wait, link);
	else
		wait->done(last_space(w), wait->owner);
}
