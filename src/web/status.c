/* /api/v1/status: what the service is doing, in one object. */
#include "web/status.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/version.h"
#include "model/states.h"

static void finish(struct status_request *s, int err)
{
	s->done(err, s);
	list_experiment_use_release(&s->experiments);
	free(s);
}

static void experiments_read(struct store_query *q)
{
	finish(CONTAINER_OF(q, struct status_request, experiments.q), q->err);
}

static void leases_read(struct store_query *q)
{
	struct status_request *s = CONTAINER_OF(q, struct status_request, leases.q);
	int rc = q->err;

	list_leases_release(&s->leases);
	if (rc || !s->has_experiments) {
		finish(s, rc);
		return;
	}
	s->experiments.q.done = experiments_read;
	s->experiments.now_ms = s->totals.now_ms;
	rc = store_list_experiment_use(s->web->deps.store, &s->experiments);
	if (rc)
		finish(s, rc);
}

static void outbox_read(struct store_query *q)
{
	struct status_request *s = CONTAINER_OF(q, struct status_request, outbox.q);
	int rc = q->err;

	s->leases = (struct list_leases){.q.done = leases_read, .only_active = true, .limit = 1};
	if (!rc)
		rc = store_list_leases(s->web->deps.store, &s->leases);
	if (rc)
		finish(s, rc);
}

static void totals_read(struct store_query *q)
{
	struct status_request *s = CONTAINER_OF(q, struct status_request, totals.q);
	int rc = q->err;

	s->outbox.q.done = outbox_read;
	s->outbox.now_ms = s->totals.now_ms;
	if (!rc)
		rc = store_outbox_stats(s->web->deps.store, &s->outbox);
	if (rc)
		finish(s, rc);
}

void status_read(struct web *w, struct status_request *s)
{
	int rc;

	s->web = w;
	s->totals.q.done = totals_read;
	s->totals.now_ms = clock_wall_ms();
	rc = store_get_totals(w->deps.store, &s->totals);
	if (rc)
		finish(s, rc);
}

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

	json_set_int(v, "queued", s->leases.n_queued);
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

static json_t *experiments_json(const struct list_experiment_use *q)
{
	json_t *v = json_object(), *list = json_array();
	int64_t n_planned = 0, n_started = 0;

	for (size_t i = 0; i < q->n; i++) {
		const struct experiment_use *u = &q->list[i];
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
	json_object_set_new(v, "outbox", outbox_json(&s->outbox));
	json_object_set_new(store, "writable", json_boolean(stats.is_writable));
	json_object_set_new(v, "pull", pull_json(s));
	json_object_set_new(v, "experiments", experiments_json(&s->experiments));
	json_set_int(store, "bytes", s->totals.db_bytes);
	json_set_int(store, "queued", stats.n_queued_ops);
	json_object_set_new(v, "store", store);
	return v;
}

static void answer_status(int err, struct status_request *s)
{
	const struct web_deps *deps = &s->web->deps;
	json_t *v;

	if (err) {
		web_respond_busy(s->request);
		return;
	}
	v = status_json(s);
	if (deps->add_status)
		deps->add_status(v, deps->owner);
	web_respond_json(s->request, 200, v);
}

static void on_status(struct http_request *r, void *owner)
{
	struct status_request *s = xcalloc(1, sizeof(*s));

	s->request = r;
	s->done = answer_status;
	s->has_experiments = true;
	status_read(owner, s);
}

static void hand_status(int err, struct status_request *s)
{
	s->on_json(err, err ? NULL : status_json(s), s->owner);
}

void web_status(struct web *w, void (*done)(int err, json_t *status, void *owner), void *owner)
{
	struct status_request *s = xcalloc(1, sizeof(*s));

	s->done = hand_status;
	s->has_experiments = true;
	s->on_json = done;
	s->owner = owner;
	status_read(w, s);
}

void web_add_status_routes(struct web *w)
{
	web_add_resource(w, "/api/v1/status", NULL, on_status);
}
