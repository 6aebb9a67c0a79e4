/* /metrics: Prometheus text format 0.0.4. */
#include <dirent.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "model/states.h"
#include "views/gauges.h"
#include "web/web_internal.h"

enum { METRICS_MAX_BYTES = 4 << 20, PROC_MAX_BYTES = 4096 };

/* The store is read first; the pool adds the metrics of the process, because /proc is files. */
struct metrics_request {
	struct get_gauges gauges;
	struct pool_work work;
	struct http_request *request;
	struct web *web;
	struct config *config; /* as of the request */
	struct buf out;
};

/* ---- the process ---- */

static void put_process_metric(struct buf *out, const char *name, const char *type, const char *help, double value)
{
	metric_head(out, name, type, help);
	buf_appendf(out, "%s %.15g\n", name, value);
}

/* Field 22 of stat(5), in clock ticks since the machine's start. The name before it may contain any character, also ")". */
static void put_start_time(struct buf *out)
{
	struct buf text = BUF_INIT(PROC_MAX_BYTES);
	unsigned long long ticks;
	struct timespec up;
	const char *p;

	if (file_read("/proc/self/stat", &text, NULL) == 0 && (p = strrchr(buf_str(&text), ')')) != NULL &&
	    sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		&ticks) == 1 &&
	    clock_gettime(CLOCK_BOOTTIME, &up) == 0) {
		double age_s =
		    (double)up.tv_sec + (double)up.tv_nsec / 1e9 - (double)ticks / (double)sysconf(_SC_CLK_TCK);

		put_process_metric(out, "process_start_time_seconds", "gauge",
		    "When the process was started, since 1970.",
		    (double)(int64_t)((double)clock_wall_ms() / 1000 - age_s));
	}
	buf_release(&text);
}

/* The process itself, under the names of Prometheus' own clients. Thread: the pool, because /proc is files. */
static void write_process_metrics(struct pool_work *work)
{
	struct metrics_request *m = CONTAINER_OF(work, struct metrics_request, work);
	struct buf text = BUF_INIT(PROC_MAX_BYTES), *out = &m->out;
	double page = (double)sysconf(_SC_PAGESIZE);
	long long virtual_pages, resident_pages;
	DIR *dir = opendir("/proc/self/fd");
	struct rlimit limit;
	struct statvfs v;
	struct rusage u;
	int n = -3; /* ".", ".." and the directory's own */

	if (getrusage(RUSAGE_SELF, &u) == 0)
		put_process_metric(out, "process_cpu_seconds_total", "counter",
		    "User and system CPU time that was used.",
		    (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	if (file_read("/proc/self/statm", &text, NULL) == 0 &&
	    sscanf(buf_str(&text), "%lld %lld", &virtual_pages, &resident_pages) == 2) {
		put_process_metric(out, "process_virtual_memory_bytes", "gauge", "Size of the virtual memory.",
		    (double)virtual_pages * page);
		put_process_metric(out, "process_resident_memory_bytes", "gauge", "Size of the resident memory.",
		    (double)resident_pages * page);
	}
	buf_release(&text);
	if (dir) {
		while (readdir(dir))
			n++;
		closedir(dir);
		put_process_metric(out, "process_open_fds", "gauge", "Open file descriptors.", n);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		put_process_metric(
		    out, "process_max_fds", "gauge", "How many file descriptors may be open.", (double)limit.rlim_cur);
	put_start_time(out);
	if (statvfs(m->config->state_dir, &v) != 0)
		return;
	put_process_metric(out, "outpost_disk_free_bytes", "gauge", "Free for us on the disk that holds state_dir.",
	    (double)v.f_bavail * (double)v.f_frsize);
	put_process_metric(out, "outpost_disk_size_bytes", "gauge", "Size of the disk that holds state_dir.",
	    (double)v.f_blocks * (double)v.f_frsize);
}

/* ---- the service ---- */

static int64_t age_s(int64_t now_ms, int64_t then_ms)
{
	return then_ms && now_ms > then_ms ? (now_ms - then_ms) / 1000 : 0;
}

static void put_totals(struct buf *out, const struct get_gauges *q)
{
	const struct get_totals *t = &q->totals;

	metric_gauge(out, "outpost_deliveries_waiting", "Accepted deliveries that are not planned yet.",
	    t->n_deliveries_accepted);
	metric_gauge(out, "outpost_deliveries_failed", "Deliveries that could not be planned.", t->n_deliveries_failed);
	metric_gauge(out, "outpost_oldest_delivery_seconds", "Age of the oldest delivery that waits to be planned.",
	    age_s(t->now_ms, t->oldest_accepted_ms));
	metric_head(out, "outpost_dispatches", "gauge", "Dispatches by state.");
	for (int i = 0; i < N_DISPATCH_STATES; i++)
		buf_appendf(out, "outpost_dispatches{state=\"%s\"} %lld\n", dispatch_state_name((enum dispatch_state)i),
		    (long long)t->n_dispatches[i]);
	metric_head(out, "outpost_experiments_total", "counter", "Experiments that came into a state.");
	for (int i = 0; i < N_EXPERIMENT_STATES; i++)
		buf_appendf(out, "outpost_experiments_total{state=\"%s\"} %lld\n", experiment_state_name(i),
		    (long long)t->n_experiments[i]);
	metric_gauge(out, "outpost_outbox_due", "Effects that are due.", t->outbox.n_due);
	metric_gauge(out, "outpost_outbox_waiting", "Effects that are tried again later.", t->outbox.n_waiting);
	metric_gauge(out, "outpost_outbox_dead", "Effects that were given up.", t->outbox.n_dead);
	metric_gauge(out, "outpost_outbox_oldest_seconds", "Age of the oldest unsent effect.",
	    age_s(t->now_ms, t->outbox.oldest_unsent_ms));
	metric_gauge(out, "outpost_accelerators_unhealthy", "Accelerators that the circuit breaker does not count.",
	    q->n_unhealthy);
	metric_gauge(out, "outpost_accelerators_red", "Accelerators whose state is red.", q->n_red);
	metric_gauge(out, "outpost_pull_queue", "Dispatches that wait for a machine.", t->n_queued);
	metric_gauge(out, "outpost_leases_active", "Jobs that machines are at.", t->n_leases_active);
	metric_gauge(out, "outpost_store_bytes", "Size of the database.", t->db_bytes);
}

/* They are known also while the database is away. */
static void put_commits(struct buf *out, struct store *store)
{
	struct store_stats stats;

	store_stats(store, &stats);
	metric_gauge(out, "outpost_store_writable", "1 when the last commit succeeded.", stats.is_writable);
	metric_gauge(out, "outpost_store_queued", "Operations that wait for the writer.", stats.n_queued_ops);
	metric_head(out, "outpost_store_commit_seconds", "histogram",
	    "How long a batch of writes took, from its begin until it was on disk.");
	histogram_write(out, &stats.commit_times, "outpost_store_commit_seconds", "");
	metric_counter(out, "outpost_store_commits_total", "Commits since the start.", stats.n_commits);
	metric_counter(out, "outpost_store_failed_commits_total", "Commits that failed.", stats.n_failed_commits);
}

/* ---- by accelerator and by kind of effect; names are [a-z0-9-] ---- */

static void put_labelled(struct buf *out, const struct get_gauges *q)
{
	static const struct {
		const char *name, *help;
	} metrics[] = {
	    {"outpost_accelerator_red_since_timestamp_seconds",
		"Since when it is red on an upstream branch, 0: it is not."},
	    {"outpost_accelerator_unhealthy_since_timestamp_seconds",
		"Since when the circuit breaker does not count it, 0: it does."},
	    {"outpost_accelerator_last_report_timestamp_seconds", "When it last reported anything."},
	    {"outpost_accelerator_pass_ratio",
		"Share of its runs of pushes in the last 30 days that were green, 0 to 1."},
	    {"outpost_accelerator_deadlines_missed", "Dispatches of the last 30 days that it let expire."},
	    {"outpost_accelerator_queue", "Dispatches that wait for one of its machines."},
	};
	static const char experiments[] = "outpost_accelerator_experiments";

	for (size_t m = 0; m < ARRAY_LEN(metrics); m++) {
		metric_head(out, metrics[m].name, "gauge", metrics[m].help);
		for (size_t i = 0; i < q->n; i++) {
			const struct accelerator_gauges *g = &q->list[i];
			const struct accelerator_facts *f = &g->at.facts;
			/* NAN: the value is not known, so the metric has no line. */
			const double values[ARRAY_LEN(metrics)] = {(double)f->red_since_ms / 1000,
			    (double)g->unhealthy_since_ms / 1000,
			    f->last_report_ms ? (double)f->last_report_ms / 1000 : NAN,
			    f->n_runs ? (double)f->n_green / (double)f->n_runs : NAN, (double)g->n_expired,
			    (double)g->n_queued};

			if (!isnan(values[m]))
				buf_appendf(out, "%s{accelerator=\"%s\"} %.15g\n", metrics[m].name, g->name, values[m]);
		}
	}
	/* One line for each accelerator: its state as the label. */
	metric_head(
	    out, "outpost_accelerator_state", "gauge", "1, with the state that the dashboard shows as its label.");
	for (size_t i = 0; i < q->n; i++)
		buf_appendf(out, "outpost_accelerator_state{accelerator=\"%s\",state=\"%s\"} 1\n", q->list[i].name,
		    accelerator_words(q->list[i].at.state.status)->name);
	metric_head(out, experiments, "gauge",
	    "Experiments that were started and ended in the last 24 hours, by how they ended.");
	for (size_t i = 0; i < q->n; i++) {
		const struct accelerator_gauges *g = &q->list[i];
		const struct {
			const char *state;
			int64_t n;
		} ends[] = {{"done", g->n_experiments_done}, {"expired", g->n_experiments_expired},
		    {"void", g->n_experiments_void}};

		for (size_t k = 0; k < ARRAY_LEN(ends); k++)
			buf_appendf(out, "%s{accelerator=\"%s\",state=\"%s\"} %lld\n", experiments, g->name,
			    ends[k].state, (long long)ends[k].n);
	}
	metric_head(out, "outpost_outbox_unsent", "gauge", "Effects that are not sent yet, by kind.");
	for (int k = 0; k < N_OUTBOX_KINDS; k++)
		buf_appendf(out, "outpost_outbox_unsent{kind=\"%s\"} %lld\n", outbox_kind_name((enum outbox_kind)k),
		    (long long)q->outbox[k].n_unsent);
	metric_head(out, "outpost_outbox_age_seconds", "gauge", "Age of the oldest unsent effect, by kind.");
	for (int k = 0; k < N_OUTBOX_KINDS; k++)
		buf_appendf(out, "outpost_outbox_age_seconds{kind=\"%s\"} %lld\n",
		    outbox_kind_name((enum outbox_kind)k), (long long)age_s(q->now_ms, q->outbox[k].oldest_ms));
}

/* ---- how long requests take ---- */

/* A few groups for many routes. The requests of machines are held open on purpose, so they are a group of their own. */
enum route_group { GROUP_WEBHOOK, GROUP_REPORT, GROUP_MACHINE, GROUP_API, GROUP_OTHER, N_GROUPS };
static const char *const GROUPS[N_GROUPS] = {"webhook", "report", "machine", "api", "other"};

static void add_times(const struct http_route *r, const struct histogram *times, void *owner)
{
	struct histogram *groups = owner;
	enum route_group group = GROUP_OTHER;
	static const struct {
		const char *prefix;
		enum route_group group;
	} prefixes[] = {{"/github/webhook", GROUP_WEBHOOK}, {"/github/callback", GROUP_REPORT},
	    {"/api/v1/runner/", GROUP_MACHINE}, {"/api/", GROUP_API}};

	for (size_t i = 0; i < ARRAY_LEN(prefixes) && group == GROUP_OTHER; i++)
		if (str_has_prefix(r->pattern, prefixes[i].prefix))
			group = prefixes[i].group;
	if (group == GROUP_API && !str_eq(r->method, "GET"))
		group = GROUP_REPORT;
	histogram_merge(&groups[group], times);
}

static void put_by_reason(struct buf *out, const char *name, const char *help, int64_t n_full, int64_t n_share)
{
	metric_head(out, name, "counter", help);
	buf_appendf(out, "%s{reason=\"full\"} %lld\n%s{reason=\"client_share\"} %lld\n", name, (long long)n_full, name,
	    (long long)n_share);
}

/* Connections and bodies that were closed while the server was full (http/eviction.c). */
static void put_evictions(struct buf *out, const struct http_counters *c)
{
	put_by_reason(out, "outpost_http_evicted_connections_total",
	    "Connections that were closed for newer ones, because the table was full or because their client had its "
	    "share.",
	    c->n_evicted_full, c->n_evicted_share);
	metric_counter(out, "outpost_http_refused_connections_total", "New connections that found no place.",
	    c->n_refused_connections);
	put_by_reason(out, "outpost_http_evicted_bodies_total",
	    "Slow request bodies that were dropped for newer ones, because the memory for bodies was full or because "
	    "their client had its share.",
	    c->n_bodies_evicted_full, c->n_bodies_evicted_share);
	metric_counter(
	    out, "outpost_http_refused_bodies_total", "Request bodies that found no memory.", c->n_bodies_refused);
}

static void put_service(struct metrics_request *m)
{
	struct web *w = m->web;
	const struct http_counters *c = http_server_counters(w->deps.server);
	struct buf *out = &m->out;
	struct histogram times[N_GROUPS] = {0};
	char label[32];

	metric_head(out, "outpost_build_info", "gauge", "1, with the version as its label.");
	buf_append_str(out, "outpost_build_info{version=\"" OUTPOST_VERSION "\"} 1\n");
	metric_gauge(
	    out, "outpost_uptime_seconds", "Seconds since the start.", age_s(clock_wall_ms(), w->started_wall_ms));
	metric_gauge(out, "outpost_http_connections", "Open connections.", http_server_n_connections(w->deps.server));
	metric_counter(out, "outpost_http_requests_total", "Requests.", c->n_requests);
	metric_counter(out, "outpost_http_4xx_total", "Answers 400 to 499.", c->n_answers_4xx);
	metric_counter(out, "outpost_http_5xx_total", "Answers 500 to 599.", c->n_answers_5xx);
	metric_counter(out, "outpost_http_refused_total", "Requests refused because of load.", c->n_refused_busy);
	put_evictions(out, c);
	http_server_times(w->deps.server, add_times, times);
	metric_head(out, "outpost_http_request_seconds", "histogram",
	    "From a request's head until its answer, by kind; streamed answers are not counted.");
	for (int g = 0; g < N_GROUPS; g++) {
		snprintf(label, sizeof(label), "kind=\"%s\"", GROUPS[g]);
		histogram_write(out, &times[g], "outpost_http_request_seconds", label);
	}
}

/* ---- the request: the store, then /proc in the pool ---- */

static void answer_metrics(struct pool_work *work)
{
	struct metrics_request *m = CONTAINER_OF(work, struct metrics_request, work);

	http_respond(m->request, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, buf_str(&m->out), m->out.len);
	buf_release(&m->out);
	config_unref(m->config);
	free(m);
}

static void on_gauges(struct store_query *q)
{
	struct metrics_request *m = CONTAINER_OF(q, struct metrics_request, gauges.q);
	const struct web_deps *deps = &m->web->deps;

	if (!q->err)
		put_totals(&m->out, &m->gauges);
	put_commits(&m->out, deps->store);
	deps->write_metrics(&m->out, deps->owner);
	if (!q->err)
		put_labelled(&m->out, &m->gauges);
	get_gauges_release(&m->gauges);
	m->work = (struct pool_work){.work = write_process_metrics, .after = answer_metrics};
	pool_submit(deps->loop, &m->work);
}

void web_on_metrics(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct metrics_request *m;

	if (!w->config) {
		http_respond_busy(r, 1);
		return;
	}
	m = xcalloc(1, sizeof(*m));
	m->request = r;
	m->web = w;
	m->config = config_ref(w->config);
	buf_init(&m->out, METRICS_MAX_BYTES);
	m->gauges.q.done = on_gauges;
	m->gauges.now_ms = clock_wall_ms();
	put_service(m); /* now: the server may be closed and freed before the store answers */
	int err = store_get_gauges(w->deps.store, &m->gauges); /* 0: the query belongs to a reader now */
	if (err) {
		m->gauges.q.err = err;
		on_gauges(&m->gauges.q);
	}
}
