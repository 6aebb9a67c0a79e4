/* /api/v1/status: what the service is doing, in one object. */
#include "model/states.h"
#include "store/registry.h"
#include "web/web_internal.h"

struct status_request {
	struct get_totals totals;
	struct web *web;
	void (*on_json)(const struct store_query *q, json_t *status, void *owner);
	void *owner;
};

static json_t *experiments_json(const struct experiment_use_list *l)
{
	json_t *list = json_array();
	int64_t n_planned = 0, n_started = 0;

	for (size_t i = 0; i < l->n; i++) {
		const struct experiment_use *u = &l->at[i];

		n_planned += u->n_planned;
		n_started += u->n_started;
		json_array_append_new(
		    list, json_pack("{s:s, s:I, s:I, s:I, s:I}", "name", u->name, "planned", (json_int_t)u->n_planned,
			      "started", (json_int_t)u->n_started, "seconds_24h", (json_int_t)(u->spent_ms / 1000),
			      "seconds_allowed_24h", (json_int_t)(u->allowed_ms / 1000)));
	}
	return json_pack("{s:I, s:I, s:o}", "planned", (json_int_t)n_planned, "started", (json_int_t)n_started,
	    "accelerators", list);
}

static json_t *nodes_json(const struct seat_nodes *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++) {
		const struct seat_node *node = &l->at[i];
		json_t *seats = json_array();

		for (int s = 0; s < N_SEATS; s++)
			if (node->has_seat[s])
				json_array_append_new(seats, json_string(seat_name((enum seat)s)));
		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o}", "name", node->name, "version",
						node->version, "seen_at", json_time(node->seen_ms), "seats", seats));
	}
	return list;
}

/* With a file the only daemon has all of them. */
static json_t *free_seats_json(const struct seat_nodes *l, bool is_shared)
{
	json_t *list = json_array();

	for (int s = 0; s < N_SEATS && is_shared; s++) {
		bool is_held = false;

		for (size_t i = 0; i < l->n; i++)
			is_held |= l->at[i].has_seat[s];
		if (!is_held)
			json_array_append_new(list, json_string(seat_name((enum seat)s)));
	}
	return list;
}

static json_t *status_json(const struct status_request *s)
{
	const struct web *w = s->web;
	const struct get_totals *t = &s->totals;
	const struct outbox_stats *o = &t->outbox;
	struct store_stats stats;
	json_t *v, *dispatches = json_object(), *deliveries, *outbox, *pull, *store;
	bool is_shared = store_is_shared(w->deps.store);

	store_stats(w->deps.store, &stats);
	for (int i = 0; i < N_DISPATCH_STATES; i++)
		json_set_int(dispatches, dispatch_state_name((enum dispatch_state)i), t->n_dispatches[i]);
	deliveries = json_pack("{s:I, s:I, s:I, s:I, s:o}", "accepted", (json_int_t)t->n_deliveries_accepted, "planned",
	    (json_int_t)t->n_deliveries_planned, "ignored", (json_int_t)t->n_deliveries_ignored, "failed",
	    (json_int_t)t->n_deliveries_failed, "oldest_waiting", json_time(t->oldest_accepted_ms));
	outbox = json_pack("{s:I, s:I, s:I, s:I, s:o}", "due", (json_int_t)o->n_due, "sending",
	    (json_int_t)o->n_sending, "waiting", (json_int_t)o->n_waiting, "dead", (json_int_t)o->n_dead,
	    "oldest_unsent", json_time(o->oldest_unsent_ms));
	pull = json_pack("{s:I, s:I}", "queued", (json_int_t)t->n_queued, "leases", (json_int_t)t->n_leases_active);
	store = json_pack("{s:s, s:b, s:s?, s:I, s:I}", "engine", is_shared ? "postgresql" : "sqlite", "writable",
	    stats.is_writable, "why_not_writable", stats.why_not_writable, "bytes", (json_int_t)t->db_bytes, "queued",
	    (json_int_t)stats.n_queued_ops);
	v = json_pack("{s:s, s:o, s:I, s:s?, s:I, s:I, s:o, s:o}", "version", OUTPOST_VERSION, "started_at",
	    json_time(w->started_wall_ms), "uptime", (json_int_t)((t->now_ms - w->started_wall_ms) / 1000), "upstream",
	    w->config ? w->config->upstream_repository : NULL, "accelerators",
	    (json_int_t)(w->config ? w->config->n_accelerators : 0), "open_changes", (json_int_t)t->n_open_changes,
	    "deliveries", deliveries, "dispatches", dispatches);
	json_object_update_new(
	    v, json_pack("{s:I, s:I, s:o, s:o, s:o, s:{s:I, s:o}, s:o, s:o, s:o}", "jobs", (json_int_t)t->n_jobs,
		   "results", (json_int_t)t->n_results, "outbox", outbox, "pull", pull, "experiments",
		   experiments_json(&t->experiments), "attribution", "due", (json_int_t)t->n_attribution_due, "next",
		   json_time(t->next_attribution_ms), "store", store, "nodes", nodes_json(&t->nodes), "free_seats",
		   free_seats_json(&t->nodes, is_shared)));
	return v;
}

static void on_totals(struct store_query *q)
{
	struct status_request *s = CONTAINER_OF(q, struct status_request, totals.q);

	s->on_json(q, q->err ? NULL : status_json(s), s->owner);
	get_totals_release(&s->totals);
	free(s);
}

void web_status(struct web *w, void (*done)(const struct store_query *q, json_t *status, void *owner), void *owner)
{
	struct status_request *s = xcalloc(1, sizeof(*s));

	s->web = w;
	s->on_json = done;
	s->owner = owner;
	s->totals.q.done = on_totals;
	s->totals.now_ms = clock_wall_ms();
	s->totals.has_experiments = true;
	int err = store_get_totals(w->deps.store, &s->totals); /* 0: the query belongs to a reader now */
	if (err) {
		s->totals.q.err = err;
		on_totals(&s->totals.q);
	}
}

static void respond_status(const struct store_query *q, json_t *status, void *owner)
{
	struct http_request *r = owner;
	const struct web_deps *deps = &((struct web *)http_route_of(r)->owner)->deps;

	if (q->err) {
		web_respond_busy(r);
		return;
	}
	if (deps->add_status)
		deps->add_status(status, deps->owner);
	web_respond_json(r, 200, status);
}

void web_on_status(struct http_request *r, void *owner) { web_status(owner, respond_status, r); }
