#include "daemon/control.h"
#include "daemon/space.h"
#include "daemon/wire.h"

enum { BUDGETS_MAX = 64, REASONS_MAX_BYTES = 64 * 1024 };

/* ---- /metrics ---- */

struct sample {
	const char *label;
	int64_t value;
};

/* One counter with a label, e.g. answers by kind. */
static void write_family(
    struct buf *out, const char *name, const char *help, const char *label, const struct sample *list, size_t n)
{
	metric_head(out, name, "counter", help);
	for (size_t i = 0; i < n; i++)
		buf_appendf(out, "%s{%s=\"%s\"} %lld\n", name, label, list[i].label, (long long)list[i].value);
}

static void write_intake(struct buf *out, const struct intake_counters *c)
{
	const struct sample answers[] = {{"accepted", c->n_accepted}, {"duplicate", c->n_duplicate},
	    {"pong", c->n_pong}, {"ignored", c->n_ignored}, {"bad_request", c->n_bad_request},
	    {"bad_signature", c->n_bad_signature}, {"busy", c->n_busy}};

	write_family(out, "outpost_webhooks_total", "Webhooks by answer.", "answer", answers, ARRAY_LEN(answers));
	metric_counter(out, "outpost_webhook_bytes_total", "Bytes of accepted webhooks.", c->n_bytes_accepted);
}

static void write_runners(struct buf *out, const struct runners *runners)
{
	const struct runners_counters *c = runners_counters(runners);
	struct runners_gauges g;
	const struct sample answers[] = {{"recorded", c->n_recorded}, {"unchanged", c->n_unchanged},
	    {"ignored", c->n_ignored}, {"bad_request", c->n_bad_request}, {"bad_token", c->n_bad_token},
	    {"denied", c->n_denied}, {"conflict", c->n_conflict}, {"over_rate", c->n_over_rate}, {"busy", c->n_busy}};

	write_family(out, "outpost_reports_total", "Reports of jobs and requests of machines, by answer.", "answer",
	    answers, ARRAY_LEN(answers));
	metric_counter(out, "outpost_identities_refused_total",
	    "Tokens refused because their repository's ids differ from the pinned or recorded ones.",
	    c->n_identity_refused);
	metric_counter(out, "outpost_oidc_key_fetches_total", "Fetches of issuers' keys.", c->n_key_fetches);
	metric_counter(out, "outpost_oidc_key_fetch_failures_total", "Of these, failed ones.", c->n_key_fetch_failures);
	runners_read_gauges(runners, &g);
	metric_gauge(out, "outpost_machines", "Machines that sent a request in the last two minutes.", g.n_machines);
	metric_gauge(out, "outpost_claims_waiting", "Requests for work that wait for a job.", g.n_claims_waiting);
	metric_gauge(
	    out, "outpost_heartbeats_waiting", "Heartbeats that wait for their answer.", g.n_heartbeats_waiting);
	metric_counter(out, "outpost_leases_granted_total", "Jobs that machines took.", c->n_leases_granted);
	metric_counter(out, "outpost_leases_returned_total", "Jobs that machines returned.", c->n_leases_returned);
	metric_counter(out, "outpost_leases_expired_total", "Leases that expired.", c->n_leases_expired);
	metric_counter(out, "outpost_wrong_tokens_total", "Vendors' tokens that were not valid.", g.n_wrong_tokens);
}

static void write_dispatch(struct buf *out, const struct dispatch_counters *c)
{
	const struct sample sent[] = {{"github", c->n_github_sent}, {"webhook", c->n_webhooks_sent}};

	write_family(out, "outpost_dispatches_sent_total", "Dispatch requests that were accepted.", "kind", sent,
	    ARRAY_LEN(sent));
	metric_head(
	    out, "outpost_plan_seconds", "histogram", "From a webhook's arrival until its dispatches were recorded.");
	histogram_write(out, &c->plan_times, "outpost_plan_seconds", "");
	metric_head(out, "outpost_dispatch_seconds", "histogram",
	    "From a recorded dispatch until its request was accepted, with every attempt and wait.");
	histogram_write(out, &c->send_times, "outpost_dispatch_seconds", "");
	metric_counter(out, "outpost_dispatch_retries_total", "Attempts that are retried.", c->n_retries);
	metric_counter(out, "outpost_dispatch_dead_total", "Dispatches that failed for good.", c->n_dead);
	metric_counter(out, "outpost_dispatch_expired_total", "Deadlines that vendors missed.", c->n_expired);
	metric_counter(
	    out, "outpost_redeliveries_total", "Redeliveries requested from GitHub.", c->n_redeliveries_asked);
	metric_counter(out, "outpost_reconciled_total", "Changes found without a webhook.", c->n_reconciled);
	metric_counter(out, "outpost_reconcile_failures_total", "Searches for lost webhooks that failed.",
	    c->n_reconcile_failures);
	metric_gauge(out, "outpost_last_reconcile_timestamp_seconds",
	    "Time of the last successful search for lost webhooks.", c->last_reconcile_wall_ms / 1000);
	metric_counter(out, "outpost_clock_jumps_total", "Jumps of the wall clock.", c->n_clock_jumps);
}

static void write_evidence(struct buf *out, const struct evidence_counters *c)
{
	const struct sample outcomes[] = {{"moved", c->n_moved}, {"unchanged", c->n_attributed - c->n_moved}};

	write_family(out, "outpost_attributions_total", "Changes whose red cells were judged again with new evidence.",
	    "outcome", outcomes, ARRAY_LEN(outcomes));
	metric_counter(
	    out, "outpost_evidence_requests_total", "Merge bases and changed files requested from GitHub.", c->n_asked);
	metric_counter(out, "outpost_evidence_failures_total", "Of these, failed ones.", c->n_failures);
	metric_gauge(out, "outpost_evidence_in_hand", "Changes with a request for evidence under way.", c->n_in_hand);
}

static void write_publish(struct buf *out, const struct publish_counters *c)
{
	const struct sample comments[] = {{"created", c->n_created}, {"edited", c->n_edited},
	    {"unchanged", c->n_unchanged}, {"put_off", c->n_put_off}, {"paced", c->n_paced}, {"retried", c->n_retries},
	    {"dead", c->n_dead}};

	const struct sample checks[] = {
	    {"created", c->n_checks_created}, {"updated", c->n_checks_written - c->n_checks_created}};

	write_family(out, "outpost_comments_total", "Comments by outcome.", "outcome", comments, ARRAY_LEN(comments));
	write_family(out, "outpost_check_runs_total", "Writes of check runs.", "write", checks, ARRAY_LEN(checks));
}

static void write_github(struct buf *out, const struct github *g)
{
	struct github_budget_stats budgets[BUDGETS_MAX];
	struct github_stats s;
	size_t n = github_read_budgets(g, budgets, BUDGETS_MAX);

	github_read_stats(g, &s);
	metric_counter(out, "outpost_github_requests_total", "Requests to GitHub.", s.n_requests);
	metric_counter(
	    out, "outpost_github_token_requests_total", "Of these, for installation tokens.", s.n_token_requests);
	metric_counter(out, "outpost_github_4xx_total", "Answers 400 to 499.", s.n_answers_4xx);
	metric_counter(out, "outpost_github_5xx_total", "Answers 500 to 599.", s.n_answers_5xx);
	metric_counter(out, "outpost_github_failures_total", "Requests without an answer.", s.n_failures);
	metric_counter(out, "outpost_github_rate_limited_total", "Answers that named a rate limit.", s.n_rate_limited);
	metric_gauge(out, "outpost_github_in_flight", "Requests without an answer yet.", s.n_in_flight);
	metric_gauge(out, "outpost_github_waiting", "Requests that wait for a budget.", s.n_waiting);
	metric_gauge(
	    out, "outpost_github_oldest_token_seconds", "Age of the oldest token.", s.oldest_token_age_ms / 1000);
	metric_head(out, "outpost_github_quota_remaining", "gauge", "GitHub's hourly quota left, by installation.");
	for (size_t i = 0; i < n && i < BUDGETS_MAX; i++)
		if (budgets[i].remaining >= 0)
			buf_appendf(out, "outpost_github_quota_remaining{installation=\"%lld\"} %lld\n",
			    (long long)budgets[i].installation_id, (long long)budgets[i].remaining);
	metric_head(out, "outpost_github_blocked_seconds", "gauge",
	    "How long no daemon sends to GitHub because of a limit, by installation.");
	for (size_t i = 0; i < n && i < BUDGETS_MAX; i++)
		buf_appendf(out, "outpost_github_blocked_seconds{installation=\"%lld\"} %lld\n",
		    (long long)budgets[i].installation_id, (long long)(budgets[i].blocked_ms + 999) / 1000);
}

static void write_schedules(struct buf *out, const struct dispatch_counters *c)
{
	const struct sample runs[] = {{"dispatched", c->n_nightlies_dispatched}, {"skipped", c->n_nightlies_skipped},
	    {"failed", c->n_nightlies_failed}};
	const struct sample heads[] = {{"upstream", c->n_upstream_heads_asked}, {"source", c->n_source_heads_asked}};
	const struct sample answers[] = {{"unchanged", c->n_upstream_heads_unchanged}, {"failed", c->n_head_failures}};

	write_family(out, "outpost_schedule_runs_total", "Periodic runs by outcome.", "state", runs, ARRAY_LEN(runs));
	write_family(out, "outpost_schedule_head_requests_total",
	    "Requests for the heads of upstream's branch and of vendors' sources.", "of", heads, ARRAY_LEN(heads));
	write_family(out, "outpost_schedule_head_answers_total",
	    "Of these, unchanged heads of upstream (304) and failures.", "answer", answers, ARRAY_LEN(answers));
}

void metrics_write(struct buf *out, void *owner)
{
	struct daemon *d = owner;
	struct dispatch_counters dispatch;
	struct publish_counters publish;
	struct evidence_counters evidence;
	const struct logs_stats *s = logs_stats(d->logs);
	const struct registry_status *r = registry_status(d->registry);

	evidence_read_counters(d->evidence, &evidence);
	dispatch_read_counters(d->dispatch, &dispatch);
	publish_read_counters(d->publish, &publish);
	write_intake(out, intake_counters(d->intake));
	write_runners(out, d->runners);
	write_dispatch(out, &dispatch);
	write_schedules(out, &dispatch);
	write_evidence(out, &evidence);
	write_publish(out, &publish);
	write_github(out, d->github);
	metric_counter(out, "outpost_log_appends_total", "Appends to jobs' logs.", s->n_appends);
	metric_counter(out, "outpost_log_bytes_total", "Bytes of logs that were stored.", s->n_bytes_in);
	metric_counter(out, "outpost_log_reads_total", "Reads of logs.", s->n_reads);
	metric_counter(out, "outpost_logs_compressed_total", "Logs that were compressed.", s->n_packed);
	metric_counter(out, "outpost_logs_moved_total", "Logs that were moved to where `logs` says.", s->n_moved);
	metric_gauge(
	    out, "outpost_logs_to_move", "Finished logs that wait to be moved to where `logs` says.", s->n_to_move);
	metric_counter(out, "outpost_log_failures_total",
	    "Failures of the disk under the logs, or of the place in `logs`.", s->n_failures);
	metric_gauge(out, "outpost_config_loaded_timestamp_seconds",
	    "Time at which the configuration in force was read.", d->config_loaded_wall_ms / 1000);
	metric_gauge(out, "outpost_config_refused", "1 while the last reload is refused.", d->config_error != NULL);
	if (!r->is_used)
		return;
	metric_gauge(
	    out, "outpost_registry_loaded", "1 when a commit of accelerators.git is in force.", *r->commit != '\0');
	metric_gauge(out, "outpost_registry_refused", "1 while its newest commit is refused.", *r->refused != '\0');
	metric_gauge(out, "outpost_registry_fetch_failed", "1 when the last fetch failed.", r->fetch_error != NULL);
	metric_gauge(out, "outpost_registry_fetched_timestamp_seconds", "Time of the last successful fetch.",
	    r->fetched_wall_ms / 1000);
	metric_gauge(out, "outpost_registry_commit_timestamp_seconds",
	    "Time at which the commit in force came into force.", r->commit_wall_ms / 1000);
}

/* ---- the status ---- */

struct status_request {
	struct control_request base;
	json_t *status;
	struct list_identities identities;
	struct space_wait space;
};

static json_t *registry_json(const struct daemon *d, bool is_public)
{
	const struct registry_status *s = registry_status(d->registry);

	if (!s->is_used)
		return json_null();
	json_t *v = json_pack("{s:s?, s:s?, s:s?, s:s?, s:o, s:o, s:s?}", "url", d->config->accelerators_git_url,
	    "branch", d->config->accelerators_git_branch, "path", d->config->accelerators_git_path, "commit",
	    *s->commit ? s->commit : NULL, "in_force_since", json_time(s->commit_wall_ms), "fetched_at",
	    json_time(s->fetched_wall_ms), "refused", *s->refused ? s->refused : NULL);
	if (is_public && s->refused_why) {
		struct buf kept = BUF_INIT(REASONS_MAX_BYTES);
		const char *end;

		/* Only the mistakes in the registry's own files: these are public, outpost.yml is not. */
		for (const char *line = s->refused_why; *line; line = end) {
			end = strchrnul(line, '\n');
			end += *end != '\0';
			if (str_has_prefix(line, "accelerators.git@"))
				buf_append(&kept, line, (size_t)(end - line));
		}
		json_object_set_new(v, "refused_why",
		    json_string(kept.len ? buf_str(&kept) : "it is not valid together with the configuration"));
		buf_release(&kept);
	} else {
		json_set_str(v, "refused_why", s->refused_why);
	}
	json_set_str(v, "fetch_error", s->fetch_error);
	return v;
}

void status_add_public(json_t *status, void *owner)
{
	json_object_set_new(status, "registry", registry_json(owner, true));
}

/* ---- the request: web/ reads the store, then the accelerators, then the identities, then the space ---- */

static void release_status(struct control_request *base)
{
	struct status_request *q = CONTAINER_OF(base, struct status_request, base);

	list_identities_release(&q->identities);
	json_decref(q->status);
}

static void on_space_known(json_t *space, void *owner)
{
	struct status_request *q = owner;

	json_object_set_new(q->status, "space", space);
	control_answer(&q->base, json_incref(q->status));
}

static void on_identities_read(struct store_query *s)
{
	struct status_request *q = CONTAINER_OF(s, struct status_request, identities.q);

	if (!control_goes_on(&q->base, s->err, s->why.text))
		return;
	json_object_set_new(q->status, "refused_identities", identities_json(&q->identities));
	q->space = (struct space_wait){.done = on_space_known, .owner = q};
	space_ask(q->base.daemon->space, json_integer_value(json_at(q->status, "store", "bytes", NULL)), &q->space);
}

static void on_accelerators_read(const struct store_query *figures, json_t *list, void *owner)
{
	struct status_request *q = owner;
	int err = figures->err;

	if (!err) {
		json_object_set_new(q->status, "accelerator_list", list);
		q->identities.only_refused = true;
		q->identities.q.done = on_identities_read;
		err = store_list_identities(q->base.daemon->store, &q->identities);
	}
	(void)control_goes_on(&q->base, err, figures->why.text);
}

/* Adds the state of this process to the store's figures. */
static void on_status_read(const struct store_query *totals, json_t *status, void *owner)
{
	struct status_request *q = owner;
	const struct daemon *d = q->base.daemon;
	const struct runners_counters *c = runners_counters(d->runners);
	struct dispatch_counters dispatch;
	struct publish_counters publish;
	struct github_stats s;
	struct runners_gauges g;
	json_t *comments, *github, *config, *machines;
	struct error why = {0};

	if (!control_goes_on(&q->base, totals->err, totals->why.text))
		return;
	publish_read_counters(d->publish, &publish);
	github_read_stats(d->github, &s);
	runners_read_gauges(d->runners, &g);
	dispatch_read_counters(d->dispatch, &dispatch);
	comments = json_pack("{s:I, s:I, s:o, s:o}", "created", (json_int_t)publish.n_created, "edited",
	    (json_int_t)publish.n_edited, "last_error",
	    json_foreign_text(*publish.last_error ? publish.last_error : NULL), "last_error_at",
	    json_time(publish.last_error_wall_ms));
	github = json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "bot",
	    json_foreign_text(github_bot_login(d->github)), "requests", (json_int_t)s.n_requests, "rate_limited",
	    (json_int_t)s.n_rate_limited, "failures", (json_int_t)s.n_failures, "in_flight", (json_int_t)s.n_in_flight,
	    "waiting", (json_int_t)s.n_waiting, "trouble", json_foreign_text(*s.trouble ? s.trouble : NULL),
	    "trouble_at", json_time(*s.trouble ? s.trouble_wall_ms : 0));
	config = json_pack("{s:o, s:o, s:o, s:o}", "file", json_foreign_text(d->config_path), "loaded_at",
	    json_time(d->config_loaded_wall_ms), "refused", json_foreign_text(d->config_error), "refused_at",
	    json_time(d->config_error ? d->config_error_wall_ms : 0));
	machines = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "lately", (json_int_t)g.n_machines,
	    "claims_waiting", (json_int_t)g.n_claims_waiting, "heartbeats_waiting", (json_int_t)g.n_heartbeats_waiting,
	    "leases_granted", (json_int_t)c->n_leases_granted, "leases_returned", (json_int_t)c->n_leases_returned,
	    "leases_expired", (json_int_t)c->n_leases_expired, "wrong_tokens", (json_int_t)g.n_wrong_tokens);
	if (store_check_writable(d->store, &why)) /* the public text of the store names no host */
		json_set_foreign_text(json_object_get(status, "store"), "error", why.text);
	json_object_update_new(
	    status, json_pack("{s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o}", "node", store_node_name(d->store), "address",
			d->address, "last_reconcile", json_time(dispatch.last_reconcile_wall_ms), "comments", comments,
			"github", github, "config", config, "registry", registry_json(d, false), "machines", machines));
	q->status = status;
	web_accelerators(d->web, on_accelerators_read, q);
}

static int begin_status(struct control_request *base)
{
	base->release = release_status;
	web_status(base->daemon->web, on_status_read, CONTAINER_OF(base, struct status_request, base));
	return 0;
}

const struct control_route CONTROL_STATUS[] = {
    {"GET", "/control/status", sizeof(struct status_request), begin_status},
    {.method = NULL},
};
