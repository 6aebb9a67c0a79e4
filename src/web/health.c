/* /healthz, /readyz, /metrics and /api/v1/status: is it alive, may it be sent traffic,
 * and what is it doing. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/version.h"
#include "model/states.h"
#include "store/outbox.h"
#include "store/registry.h"
#include "web/web_internal.h"

enum { METRICS_MAX_BYTES = 1 << 20 };

/* Two reads, one after the other, for one answer. */
struct status_request {
	struct get_totals totals;
	struct outbox_stats outbox;
	struct web *web;
	void (*done)(int err, struct status_request *s);
	struct http_request *request;                                  /* /api/v1/status, /metrics */
	void (*on_json)(int err, json_t *status, void *owner); /* web_status() */
	void *owner;
};

static void finish(struct status_request *s, int err)
{
	s->done(err, s);
	free(s);
}

static void outbox_read(struct store_query *q)
{
	struct status_request *s = CONTAINER_OF(q, struct status_request, outbox.q);

	finish(s, q->err);
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

static void read_status(struct web *w, struct status_request *s)
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
	json_set_int(store, "bytes", s->totals.db_bytes);
	json_set_int(store, "queued", stats.n_queued_ops);
	json_object_set_new(v, "store", store);
	return v;
}

/* ---- the two askers of status ---- */

static void answer_status(int err, struct status_request *s)
{
	if (err)
		http_respond_busy(s->request, 1);
	else
		web_respond_json(s->request, 200, status_json(s));
}

static void on_status(struct http_request *r, void *owner)
{
	struct status_request *s = xcalloc(1, sizeof(*s));

	s->request = r;
	s->done = answer_status;
	read_status(owner, s);
}

static void hand_status(int err, struct status_request *s)
{
	s->on_json(err, err ? NULL : status_json(s), s->owner);
}

void web_status(struct web *w, void (*done)(int err, json_t *status, void *owner), void *owner)
{
	struct status_request *s = xcalloc(1, sizeof(*s));

	s->done = hand_status;
	s->on_json = done;
	s->owner = owner;
	read_status(w, s);
}

/* ---- metrics: Prometheus text format 0.0.4 ---- */

static void put_gauge(struct buf *out, const char *name, const char *help, int64_t value)
{
	buf_appendf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %lld\n", name, help, name, name,
	    (long long)value);
}

static void put_counter(struct buf *out, const char *name, const char *help, int64_t value)
{
	buf_appendf(out, "# HELP %s %s\n# TYPE %s counter\n%s %lld\n", name, help, name, name,
	    (long long)value);
}

static int64_t age_s(int64_t now_ms, int64_t then_ms)
{
	return then_ms && now_ms > then_ms ? (now_ms - then_ms) / 1000 : 0;
}

static void put_store_metrics(struct buf *out, const struct status_request *s)
{
	const struct get_totals *t = &s->totals;
	struct store_stats stats;

	store_stats(s->web->deps.store, &stats);
	put_gauge(out, "outpost_deliveries_waiting", "Accepted deliveries that are not planned yet.",
	    t->n_deliveries_accepted);
	put_gauge(out, "outpost_deliveries_failed", "Deliveries that could not be planned.",
	    t->n_deliveries_failed);
	put_gauge(out, "outpost_oldest_delivery_seconds",
	    "Age of the oldest delivery that waits to be planned.",
	    age_s(t->now_ms, t->oldest_accepted_ms));
	buf_append_str(out, "# HELP outpost_dispatches Dispatches by state.\n"
	                    "# TYPE outpost_dispatches gauge\n");
	for (int i = 0; i < N_DISPATCH_STATES; i++)
		buf_appendf(out, "outpost_dispatches{state=\"%s\"} %lld\n",
		    dispatch_state_name((enum dispatch_state)i), (long long)t->n_dispatches[i]);
	put_gauge(out, "outpost_outbox_due", "Effects that are due.", s->outbox.n_due);
	put_gauge(out, "outpost_outbox_waiting", "Effects that are tried again later.",
	    s->outbox.n_waiting);
	put_gauge(out, "outpost_outbox_dead", "Effects that were given up.", s->outbox.n_dead);
	put_gauge(out, "outpost_outbox_oldest_seconds", "Age of the oldest unsent effect.",
	    age_s(t->now_ms, s->outbox.oldest_unsent_ms));
	put_gauge(out, "outpost_store_writable", "1 when the last commit succeeded.",
	    stats.is_writable);
	put_gauge(out, "outpost_store_bytes", "Size of the database.", t->db_bytes);
	put_gauge(out, "outpost_store_queued", "Operations that wait for the writer.",
	    stats.n_queued_ops);
	put_counter(out, "outpost_store_commits_total", "Commits since the start.", stats.n_commits);
	put_counter(out, "outpost_store_failed_commits_total", "Commits that failed.",
	    stats.n_failed_commits);
}

static void answer_metrics(int err, struct status_request *s)
{
	struct web *w = s->web;
	const struct http_counters *c = http_server_counters(w->deps.server);
	struct buf out = BUF_INIT(METRICS_MAX_BYTES);

	put_gauge(&out, "outpost_uptime_seconds", "Seconds since the start.",
	    age_s(clock_wall_ms(), w->started_wall_ms));
	put_gauge(&out, "outpost_http_connections", "Open connections.",
	    http_server_n_connections(w->deps.server));
	put_counter(&out, "outpost_http_requests_total", "Requests.", c->n_requests);
	put_counter(&out, "outpost_http_4xx_total", "Answers 400 to 499.", c->n_answers_4xx);
	put_counter(&out, "outpost_http_5xx_total", "Answers 500 to 599.", c->n_answers_5xx);
	put_counter(&out, "outpost_http_refused_total", "Requests refused because of load.",
	    c->n_refused_busy);
	/* With the store gone the process still has something to say: that it is up. */
	if (!err)
		put_store_metrics(&out, s);
	w->deps.write_metrics(&out, w->deps.owner);
	http_respond(s->request, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, buf_str(&out),
	    out.len);
	buf_release(&out);
}

static void on_metrics(struct http_request *r, void *owner)
{
	struct status_request *s = xcalloc(1, sizeof(*s));

	s->request = r;
	s->done = answer_metrics;
	read_status(owner, s);
}

/* ---- probes ---- */

static void on_healthz(struct http_request *r, void *owner)
{
	(void)owner;
	http_respond(r, 200, "text/plain", NULL, "ok\n", 3);
}

static void on_readyz(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct store_stats stats;

	store_stats(w->deps.store, &stats);
	store_probe(w->deps.store);
	if (!w->config)
		http_respond_json1(r, 503, "error", "the registry is not loaded yet");
	else if (!stats.is_writable)
		http_respond_json1(r, 503, "error", "the store cannot be written");
	else
		http_respond(r, 200, "text/plain", NULL, "ready\n", 6);
}

void web_add_health_routes(struct web *w)
{
	static const struct {
		const char *path;
		void (*on_request)(struct http_request *r, void *owner);
	} routes[] = {
	    {"/healthz", on_healthz},
	    {"/readyz", on_readyz},
	    {"/metrics", on_metrics},
	    {"/api/v1/status", on_status},
	};

	for (size_t i = 0; i < ARRAY_LEN(routes); i++)
		http_server_route(w->deps.server,
		    &(struct http_route){.method = "GET", .pattern = routes[i].path,
		        .on_request = routes[i].on_request, .owner = w});
}
