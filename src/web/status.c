/* /api/v1/status: what the service is doing, in one object. */
#include "base/alloc.h"
#include "base/clock.h"
#include "model/states.h"
#include "store/registry.h"
#include "web/web_internal.h"

struct status_request {
	struct get_totals totals;
	struct web *web;
	struct http_request *request;                          /* /api/v1/status */
	void (*on_json)(int err, json_t *status, void *owner); /* or web_status() */
	void *owner;
};

static json_t *deliveries_json(const struct get_totals *t)
{
	json_t *v = json_object();

	json_set_int(v, "accepted", t->n_deliveries_accepted);
	json_set_int(v, "planned", t->n_deliveries_planned);
	json_set_int(v, "ignored", t->n_deliveries_ignored);
	json_set_int(v, "failed", t->n_deliveries_failed);
	json_set_time(v, "oldest_waiting", t->oldest_accepted_ms);
	return v;
}

static json_t *pull_json(const struct status_request *s)
{
	json_t *v = json_object();

	json_set_int(v, "queued", s->totals.n_queued);
	json_set_int(v, "leases", s->totals.n_leases_active);
	return v;
}

static json_t *outbox_json(const struct outbox_stats *o)
{
	json_t *v = json_object();

	json_set_int(v, "due", o->n_due);
	json_set_int(v, "sending", o->n_sending);
	json_set_int(v, "waiting", o->n_waiting);
	json_set_int(v, "dead", o->n_dead);
	json_set_time(v, "oldest_unsent", o->oldest_unsent_ms);
	return v;
}

static json_t *experiments_json(const struct experiment_use_list *l)
{
	json_t *v = json_object(), *list = json_array();
	int64_t n_planned = 0, n_started = 0;

	for (size_t i = 0; i < l->n; i++) {
		const struct experiment_use *u = &l->at[i];
		json_t *one = json_object();

		n_planned += u->n_planned;
		n_started += u->n_started;
		json_set_str(one, "name", u->name);
		json_set_int(one, "planned", u->n_planned);
		json_set_int(one, "started", u->n_started);
		json_set_int(one, "seconds_24h", u->spent_ms / 1000);
		json_set_int(one, "seconds_allowed_24h", u->allowed_ms / 1000);
		json_array_append_new(list, one);
	}
	json_set_int(v, "planned", n_planned);
	json_set_int(v, "started", n_started);
	json_object_set_new(v, "accelerators", list);
	return v;
}

static json_t *status_json(const struct status_request *s)
{
	const struct web *w = s->web;
	struct store_stats stats;
	json_t *v = json_object(), *dispatches = json_object(), *store = json_object();

	store_stats(w->deps.store, &stats);
	json_set_str(v, "version", OUTPOST_VERSION);
	json_set_time(v, "started_at", w->started_wall_ms);
	json_set_int(v, "uptime", (s->totals.now_ms - w->started_wall_ms) / 1000);
	json_set_str(v, "upstream", w->config ? w->config->upstream_repository : NULL);
	json_set_int(v, "accelerators", w->config ? (int64_t)w->config->n_accelerators : 0);
	json_set_int(v, "open_changes", s->totals.n_open_changes);
	json_object_set_new(v, "deliveries", deliveries_json(&s->totals));
	for (int i = 0; i < N_DISPATCH_STATES; i++)
		json_set_int(dispatches, dispatch_state_name((enum dispatch_state)i),
		    s->totals.n_dispatches[i]);
	json_object_set_new(v, "dispatches", dispatches);
	json_set_int(v, "jobs", s->totals.n_jobs);
	json_set_int(v, "results", s->totals.n_results);
	json_object_set_new(v, "outbox", outbox_json(&s->totals.outbox));
	json_object_set_new(store, "writable", json_boolean(stats.is_writable));
	json_object_set_new(v, "pull", pull_json(s));
	json_object_set_new(v, "experiments", experiments_json(&s->totals.experiments));
	json_set_int(store, "bytes", s->totals.db_bytes);
	json_set_int(store, "queued", stats.n_queued_ops);
	json_object_set_new(v, "store", store);
	return v;
}

static void answer_status(struct status_request *s, int err)
{
	const struct web_deps *deps = &s->web->deps;
	json_t *v = err ? NULL : status_json(s);

	if (s->on_json) {
		s->on_json(err, v, s->owner);
	} else if (err) {
		web_respond_busy(s->request);
	} else {
		if (deps->add_status)
			deps->add_status(v, deps->owner);
		web_respond_json(s->request, 200, v);
	}
	get_totals_release(&s->totals);
	free(s);
}

static void on_totals(struct store_query *q)
{
	answer_status(CONTAINER_OF(q, struct status_request, totals.q), q->err);
}

/* Takes s, from calloc(). */
static void read_status(struct web *w, struct status_request *s)
{
	int rc;

	s->web = w;
	s->totals.q.done = on_totals;
	s->totals.now_ms = clock_wall_ms();
	s->totals.has_experiments = true;
	rc = store_get_totals(w->deps.store, &s->totals);
	if (rc)
		answer_status(s, rc);
}

static void on_status(struct http_request *r, void *owner)
{
	struct status_request *s = xcalloc(1, sizeof(*s));

	s->request = r;
	read_status(owner, s);
}

void web_status(struct web *w, void (*done)(int err, json_t *status, void *owner), void *owner)
{
	struct status_request *s = xcalloc(1, sizeof(*s));

	s->on_json = done;
	s->owner = owner;
	read_status(w, s);
}

void web_add_status_routes(struct web *w)
{
	web_add_resource(w, "/api/v1/status", NULL, on_status);
}
