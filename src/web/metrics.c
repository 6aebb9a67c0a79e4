/* /metrics: Prometheus text format 0.0.4. */
#include "base/alloc.h"
#include "base/clock.h"
#include "model/states.h"
#include "web/status.h"

enum { METRICS_MAX_BYTES = 1 << 20 };

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
	put_gauge(out, "outpost_deliveries_waiting",
	    "Accepted deliveries that are not planned yet.", t->n_deliveries_accepted);
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
	put_gauge(
	    out, "outpost_pull_queue", "Dispatches that wait for a machine.", s->leases.n_queued);
	put_gauge(out, "outpost_leases_active", "Jobs that machines are at.", t->n_leases_active);
	put_gauge(
	    out, "outpost_store_writable", "1 when the last commit succeeded.", stats.is_writable);
	put_gauge(out, "outpost_store_bytes", "Size of the database.", t->db_bytes);
	put_gauge(out, "outpost_store_queued", "Operations that wait for the writer.",
	    stats.n_queued_ops);
	put_counter(
	    out, "outpost_store_commits_total", "Commits since the start.", stats.n_commits);
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
	http_respond(s->request, 200, "text/plain; version=0.0.4; charset=utf-8", NULL,
	    buf_str(&out), out.len);
	buf_release(&out);
}

static void on_metrics(struct http_request *r, void *owner)
{
	struct status_request *s = xcalloc(1, sizeof(*s));

	s->request = r;
	s->done = answer_metrics;
	status_read(owner, s);
}

void web_add_metrics_routes(struct web *w)
{
	http_server_route(w->deps.server,
	    &(struct http_route){
		.method = "GET", .pattern = "/metrics", .on_request = on_metrics, .owner = w});
}
