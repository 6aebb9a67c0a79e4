#include "daemon/metrics.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "daemon/nightly_metrics.h"
#include "daemon/registry_status.h"
#include "daemon/runner_status.h"
#include "daemon/wire.h"

enum { BUDGETS_MAX = 64 };

struct labelled {
	const char *label;
	int64_t value;
};

static void put_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_appendf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_one(
    struct buf *out, const char *name, const char *type, const char *help, int64_t value)
{
	put_head(out, name, type, help);
	buf_appendf(out, "%s %lld\n", name, (long long)value);
}

/* One counter family with a label, e.g. answers by kind. */
static void put_family(struct buf *out, const char *name, const char *help, const char *label,
    const struct labelled *list, size_t n)
{
	put_head(out, name, "counter", help);
	for (size_t i = 0; i < n; i++)
		buf_appendf(out, "%s{%s=\"%s\"} %lld\n", name, label, list[i].label,
		    (long long)list[i].value);
}

static void put_intake(struct buf *out, const struct intake_counters *c)
{
	const struct labelled answers[] = {
	    {"accepted", c->n_accepted},
	    {"duplicate", c->n_duplicate},
	    {"pong", c->n_pong},
	    {"ignored", c->n_ignored},
	    {"bad_request", c->n_bad_request},
	    {"bad_signature", c->n_bad_signature},
	    {"busy", c->n_busy},
	};

	put_family(out, "outpost_webhooks_total", "Webhooks by answer.", "answer", answers,
	    ARRAY_LEN(answers));
	put_one(out, "outpost_webhook_bytes_total", "counter", "Bytes of accepted webhooks.",
	    c->n_bytes_accepted);
}

static void put_runners(struct buf *out, const struct runners_counters *c)
{
	const struct labelled answers[] = {
	    {"recorded", c->n_recorded},
	    {"unchanged", c->n_unchanged},
	    {"ignored", c->n_ignored},
	    {"bad_request", c->n_bad_request},
	    {"bad_token", c->n_bad_token},
	    {"denied", c->n_denied},
	    {"conflict", c->n_conflict},
	    {"over_rate", c->n_over_rate},
	    {"busy", c->n_busy},
	};

	put_family(out, "outpost_reports_total",
	    "Reports of jobs, and what machines ask, by answer.", "answer", answers,
	    ARRAY_LEN(answers));
	put_one(out, "outpost_identities_refused_total", "counter",
	    "Tokens refused because their repository's ids are not those pinned or on record.",
	    c->n_identity_refused);
	put_one(out, "outpost_oidc_key_fetches_total", "counter", "Fetches of issuers' keys.",
	    c->n_key_fetches);
	put_one(out, "outpost_oidc_key_fetch_failures_total", "counter", "Of these, failed ones.",
	    c->n_key_fetch_failures);
}

static void put_logs(struct buf *out, const struct logs_stats *s)
{
	put_one(out, "outpost_log_appends_total", "counter", "Pieces of jobs' logs.", s->n_appends);
	put_one(out, "outpost_log_bytes_total", "counter", "Bytes of logs that were stored.",
	    s->n_bytes_in);
	put_one(out, "outpost_log_reads_total", "counter", "Reads of logs.", s->n_reads);
	put_one(out, "outpost_logs_compressed_total", "counter", "Logs that were compressed.",
	    s->n_packed);
	put_one(out, "outpost_log_failures_total", "counter",
	    "Failures of the disk under the logs.", s->n_failures);
}

static void put_dispatch(struct buf *out, const struct dispatch_counters *c)
{
	const struct labelled sent[] = {
	    {"github", c->n_github_sent},
	    {"webhook", c->n_webhooks_sent},
	};

	put_family(out, "outpost_dispatches_sent_total", "Dispatch requests that were taken.",
	    "kind", sent, ARRAY_LEN(sent));
	put_head(out, "outpost_plan_seconds", "histogram",
	    "From a webhook's arrival until its dispatches were on record.");
	histogram_write(out, &c->plan_times, "outpost_plan_seconds", "");
	put_head(out, "outpost_dispatch_seconds", "histogram",
	    "From a dispatch on record until its request was taken, with every try and wait.");
	histogram_write(out, &c->send_times, "outpost_dispatch_seconds", "");
	put_one(out, "outpost_dispatch_retries_total", "counter", "Tries that are made again.",
	    c->n_retries);
	put_one(out, "outpost_dispatch_dead_total", "counter", "Dispatches that were given up.",
	    c->n_dead);
	put_one(out, "outpost_dispatch_expired_total", "counter", "Deadlines that vendors missed.",
	    c->n_expired);
	put_one(out, "outpost_redeliveries_total", "counter", "Redeliveries asked of GitHub.",
	    c->n_redeliveries_asked);
	put_one(out, "outpost_reconciled_total", "counter", "Changes that no webhook had told of.",
	    c->n_reconciled);
	put_one(out, "outpost_reconcile_failures_total", "counter", "Looks that failed.",
	    c->n_reconcile_failures);
	put_one(out, "outpost_last_reconcile_timestamp_seconds", "gauge",
	    "When the last look for lost webhooks went through.", c->last_reconcile_wall_ms / 1000);
	put_one(out, "outpost_clock_jumps_total", "counter", "Jumps of the wall clock.",
	    c->n_clock_jumps);
}

static void put_evidence(struct buf *out, const struct evidence_counters *c)
{
	const struct labelled outcomes[] = {
	    {"moved", c->n_moved},
	    {"unchanged", c->n_attributed - c->n_moved},
	};

	put_family(out, "outpost_attributions_total",
	    "Changes whose red cells were looked at again with new evidence.", "outcome", outcomes,
	    ARRAY_LEN(outcomes));
	put_one(out, "outpost_evidence_requests_total", "counter",
	    "Merge bases and changed files asked of GitHub.", c->n_asked);
	put_one(out, "outpost_evidence_failures_total", "counter", "Of these, failed ones.",
	    c->n_failures);
	put_one(out, "outpost_evidence_in_hand", "gauge", "Changes that are asked about now.",
	    c->n_in_hand);
}

static void put_publish(struct buf *out, const struct publish_counters *c)
{
	const struct labelled wishes[] = {
	    {"created", c->n_created},
	    {"edited", c->n_edited},
	    {"unchanged", c->n_unchanged},
	    {"put_off", c->n_put_off},
	    {"paced", c->n_paced},
	    {"retried", c->n_retries},
	    {"dead", c->n_dead},
	};

	const struct labelled checks[] = {
	    {"created", c->n_checks_created},
	    {"updated", c->n_checks_written - c->n_checks_created},
	};

	put_family(out, "outpost_comments_total", "Comments by what became of the wish to write.",
	    "outcome", wishes, ARRAY_LEN(wishes));
	put_family(out, "outpost_check_runs_total", "Writes of check runs.", "write", checks,
	    ARRAY_LEN(checks));
}

static void put_github(struct buf *out, const struct github *g)
{
	struct github_budget_stats budgets[BUDGETS_MAX];
	struct github_stats s;
	size_t n = github_read_budgets(g, budgets, BUDGETS_MAX);

	github_read_stats(g, &s);
	put_one(
	    out, "outpost_github_requests_total", "counter", "Requests to GitHub.", s.n_requests);
	put_one(out, "outpost_github_token_requests_total", "counter",
	    "Of these, for installation tokens.", s.n_token_requests);
	put_one(out, "outpost_github_4xx_total", "counter", "Answers 400 to 499.", s.n_answers_4xx);
	put_one(out, "outpost_github_5xx_total", "counter", "Answers 500 to 599.", s.n_answers_5xx);
	put_one(out, "outpost_github_failures_total", "counter", "Requests without an answer.",
	    s.n_failures);
	put_one(out, "outpost_github_rate_limited_total", "counter", "Answers that named a limit.",
	    s.n_rate_limited);
	put_one(out, "outpost_github_in_flight", "gauge", "Requests in the air.", s.n_in_flight);
	put_one(out, "outpost_github_waiting", "gauge", "Requests that wait for a budget.",
	    s.n_waiting);
	put_one(out, "outpost_github_oldest_token_seconds", "gauge", "Age of the oldest token.",
	    s.oldest_token_age_ms / 1000);
	put_head(out, "outpost_github_quota_remaining", "gauge",
	    "GitHub's hourly quota left, by installation.");
	for (size_t i = 0; i < n && i < BUDGETS_MAX; i++)
		if (budgets[i].remaining >= 0)
			buf_appendf(out,
			    "outpost_github_quota_remaining{installation=\"%lld\"} %lld\n",
			    (long long)budgets[i].installation_id, (long long)budgets[i].remaining);
}

void metrics_write(struct buf *out, void *owner)
{
	struct daemon *d = owner;
	struct dispatch_counters dispatch;
	struct publish_counters publish;
	struct evidence_counters evidence;

	evidence_read_counters(d->evidence, &evidence);
	dispatch_read_counters(d->dispatch, &dispatch);
	publish_read_counters(d->publish, &publish);
	put_intake(out, intake_counters(d->intake));
	put_runners(out, runners_counters(d->runners));
	runner_status_write_metrics(out, d);
	put_dispatch(out, &dispatch);
	nightly_metrics_write(out, &dispatch);
	put_evidence(out, &evidence);
	put_publish(out, &publish);
	put_github(out, d->github);
	put_logs(out, logs_stats(d->logs));
	put_one(out, "outpost_config_loaded_timestamp_seconds", "gauge",
	    "When the configuration in force was read.", d->config_loaded_wall_ms / 1000);
	put_one(out, "outpost_config_refused", "gauge", "1 while the last reload stands refused.",
	    d->config_error != NULL);
	registry_status_write_metrics(out, d);
}
