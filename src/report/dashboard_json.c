#include "report/dashboard_json.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "report/accelerator_state_json.h"
#include "report/dashboard_headline.h"
#include "report/json_field.h"
#include "report/schedule_run_json.h"

enum { SUITES_MAX = 40 }; /* columns: more is no table */

const char *day_text(int64_t day, char *out)
{
	char time[RFC3339_BYTES];

	rfc3339_format(day * 86400000, time);
	snprintf(out, DAY_TEXT_BYTES, "%.10s", time);
	return out;
}

void json_set_change_url(json_t *obj, const char *key, const char *public_url,
    enum change_kind kind, int64_t number, const char *sha)
{
	char *url = NULL;

	if (number)
		url = xasprintf("%s/pulls/%lld", public_url, (long long)number);
	else if (sha)
		url = xasprintf("%s/commits/%s%s", public_url, sha,
		    kind == CHANGE_NIGHTLY ? "?kind=nightly" : "");
	json_set_str(obj, key, url);
	free(url);
}

static void set_share(json_t *obj, const char *key, int64_t part, int64_t whole)
{
	json_object_set_new(
	    obj, key, whole > 0 ? json_real((double)part / (double)whole) : json_null());
}

static void set_seconds(json_t *obj, const char *key, int64_t ms)
{
	json_object_set_new(obj, key, ms < 0 ? json_null() : json_real((double)ms / 1000));
}

json_t *test_counts_json(const int64_t *by_status)
{
	json_t *obj = json_object();

	json_set_int(obj, "pass", by_status[TEST_PASS]);
	json_set_int(obj, "fail", by_status[TEST_FAIL]);
	json_set_int(obj, "error", by_status[TEST_ERROR]);
	json_set_int(obj, "miss", by_status[TEST_MISS]);
	json_set_int(obj, "done", by_status[TEST_DONE]);
	json_set_int(obj, "skip", by_status[TEST_SKIP]);
	return obj;
}

/* ---- days ---- */

json_t *trend_json(const struct day_view *days, int n, int64_t last_day, enum trend_detail detail)
{
	json_t *list = json_array();
	char text[DAY_TEXT_BYTES];

	for (int i = 0; i < n; i++) {
		const struct day_view *v = &days[i];
		json_t *obj = json_object();

		json_set_str(obj, "day", day_text(last_day - n + 1 + i, text));
		json_set_int(obj, "runs", v->n_runs);
		json_set_int(obj, "green", v->n_green);
		set_share(obj, "pass_rate", v->n_green, v->n_runs);
		if (detail == TREND_FULL) {
			json_object_set_new(obj, "tests", test_counts_json(v->by_status));
			json_set_int(obj, "flaky", v->n_flaky);
			set_seconds(obj, "queue_p50", v->queue_p50_ms);
			set_seconds(obj, "queue_p90", v->queue_p90_ms);
			set_seconds(obj, "run_p50", v->run_p50_ms);
			set_seconds(obj, "run_p90", v->run_p90_ms);
		}
		json_array_append_new(list, obj);
	}
	return list;
}

json_t *calendar_json(const enum day_outcome *days, int n, int64_t last_day,
    const char *accelerator, const char *public_url)
{
	json_t *list = json_array();
	char text[DAY_TEXT_BYTES];

	for (int i = 0; i < n; i++) {
		json_t *obj = json_object();
		char *url = NULL;

		day_text(last_day - n + 1 + i, text);
		if (days[i] != DAY_NO_RUN)
			url = nightly_day_url(public_url, accelerator, text);
		json_set_str(obj, "day", text);
		json_set_str(obj, "outcome", day_outcome_name(days[i]));
		json_set_str(obj, "url", url);
		json_array_append_new(list, obj);
		free(url);
	}
	return list;
}

/* ---- rows ---- */

static json_t *commit_json(
    const struct dashboard *d, const struct dashboard_row *r, const char *public_url)
{
	bool is_known = r->at.position >= 0 && d->position >= 0;
	int64_t distance = d->position - r->at.position;
	json_t *obj;

	if (!r->at.sha)
		return json_null();
	if (!is_known && strcmp(r->at.sha, d->sha) == 0) {
		is_known = true;
		distance = 0;
	}
	obj = json_object();
	json_set_str(obj, "sha", r->at.sha);
	json_set_time(obj, "at", r->at.commit_ms);
	json_object_set_new(obj, "distance",
	    is_known && distance < DISTANCE_UNKNOWN ? json_integer(distance) : json_null());
	json_set_change_url(obj, "url", public_url, CHANGE_PUSH, 0, r->at.sha);
	return obj;
}

static json_t *no_report_json(const struct dashboard_row *r, const char *public_url)
{
	json_t *obj;

	if (!r->at.silent_sha)
		return json_null();
	obj = json_object();
	json_set_str(obj, "sha", r->at.silent_sha);
	json_set_time(obj, "since", r->at.facts.no_report_ms);
	json_set_change_url(obj, "url", public_url, CHANGE_PUSH, 0, r->at.silent_sha);
	return obj;
}

static json_t *suites_json(const struct dashboard_row *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_suites; i++) {
		const struct suite_view *s = &r->suites[i];
		json_t *obj = json_object();

		json_set_foreign_text(obj, "suite", s->suite);
		json_set_str(obj, "status", test_status_name(s->status));
		json_object_set_new(obj, "tests", test_counts_json(s->by_status));
		json_set_int(obj, "red", s->n_broken);
		json_object_set_new(obj, "job", s->job_id ? json_integer(s->job_id) : json_null());
		json_array_append_new(list, obj);
	}
	return list;
}

static json_t *row_json(
    const struct dashboard *d, const struct dashboard_row *r, const char *public_url)
{
	json_t *obj = json_object(), *links = json_object();

	json_set_str(obj, "name", r->name);
	json_set_foreign_text(obj, "title", r->title);
	json_set_foreign_text(obj, "vendor", r->vendor);
	json_set_str(obj, "level", level_name(r->at.facts.level));
	json_set_foreign_text(links, "docs", r->docs_url);
	json_set_foreign_text(links, "help", r->help_url);
	json_object_set_new(obj, "links", links);
	json_set_str(obj, "health", r->at.facts.is_unhealthy ? "unhealthy" : "ok");
	standing_add_json(obj, &r->at);
	json_object_set_new(obj, "commit", commit_json(d, r, public_url));
	json_object_set_new(obj, "no_report", no_report_json(r, public_url));
	json_object_set_new(obj, "suites", suites_json(r));
	json_object_set_new(
	    obj, "trend", trend_json(r->days, DASHBOARD_DAYS, d->today, TREND_SHORT));
	json_object_set_new(obj, "nightly",
	    calendar_json(r->nightly, DASHBOARD_DAYS, d->today, r->name, public_url));
	json_set_str(obj, "bad_night", day_outcome_name(dashboard_bad_night(r)));
	return obj;
}

/* ---- the whole ---- */

static int by_suite(const void *x, const void *y)
{
	return suite_order(*(const char *const *)x, *(const char *const *)y);
}

/* The columns: every suite that any row has. */
static json_t *columns_json(const struct dashboard *d)
{
	json_t *list = json_array();
	const char **names;
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		n += d->rows[i].n_suites;
	if (!n)
		return list;
	names = xcalloc(n, sizeof(*names));
	n = 0;
	for (size_t i = 0; i < d->n_rows; i++)
		for (size_t k = 0; k < d->rows[i].n_suites; k++)
			names[n++] = d->rows[i].suites[k].suite;
	qsort(names, n, sizeof(*names), by_suite);
	for (size_t i = 0; i < n && json_array_size(list) < SUITES_MAX; i++)
		if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
			json_array_append_new(list, json_foreign_text(names[i]));
	free(names);
	return list;
}

/* How many accelerators are at each state that any is at, the worst first. */
static json_t *states_json(const struct dashboard *d)
{
	int64_t n[N_ACCELERATOR_STATUSES] = {0};
	json_t *list = json_array();

	for (size_t i = 0; i < d->n_rows; i++)
		n[d->rows[i].at.state.status]++;
	for (int s = 0; s < N_ACCELERATOR_STATUSES; s++) {
		const struct accelerator_words *words =
		    accelerator_words((enum accelerator_status)s);
		json_t *obj;

		if (!n[s])
			continue;
		obj = json_object();
		json_set_str(obj, "name", words->name);
		json_set_str(obj, "word", words->word);
		json_set_str(obj, "symbol", words->symbol);
		json_set_str(obj, "tone", words->tone);
		json_set_int(obj, "accelerators", n[s]);
		json_array_append_new(list, obj);
	}
	return list;
}

static json_t *newest_json(const struct dashboard *d)
{
	json_t *obj;

	if (!d->sha)
		return json_null();
	obj = json_object();
	json_set_str(obj, "sha", d->sha);
	json_set_foreign_text(obj, "title", d->title);
	json_set_foreign_text(obj, "author", d->author);
	json_set_time(obj, "at", d->commit_ms);
	json_set_int(obj, "accelerators", (int64_t)d->n_tested);
	return obj;
}

static json_t *running_json(const struct dashboard *d, const char *public_url)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->n_running; i++) {
		const struct running_view *v = &d->running[i];
		json_t *obj = json_object();

		json_set_str(obj, "dispatch", v->id);
		json_set_str(obj, "accelerator", v->accelerator);
		json_set_foreign_text(obj, "runner", v->runner);
		json_set_str(obj, "state", dispatch_state_name(v->state));
		json_set_str(obj, "kind", change_kind_name(v->kind));
		json_object_set_new(
		    obj, "number", v->number ? json_integer(v->number) : json_null());
		json_set_str(obj, "head_sha", v->head_sha);
		json_set_foreign_text(obj, "title", v->title);
		json_set_time(obj, "since", v->since_ms);
		json_set_time(obj, "due", v->due_ms);
		json_set_change_url(obj, "url", public_url, v->kind, v->number, v->head_sha);
		json_array_append_new(list, obj);
	}
	return list;
}

json_t *dashboard_json(
    const struct dashboard *d, const char *repository, const char *branch, const char *public_url)
{
	json_t *obj = json_object(), *rows = json_array();

	json_set_str(obj, "repository", repository);
	json_set_str(obj, "branch", branch);
	json_object_set_new(obj, "headline", dashboard_headline_json(d, branch));
	json_object_set_new(obj, "states", states_json(d));
	json_object_set_new(obj, "newest", newest_json(d));
	json_object_set_new(obj, "suites", columns_json(d));
	for (size_t i = 0; i < d->n_rows; i++)
		json_array_append_new(rows, row_json(d, &d->rows[i], public_url));
	json_object_set_new(obj, "accelerators", rows);
	json_object_set_new(obj, "running", running_json(d, public_url));
	json_set_int(obj, "running_total", d->n_running_total);
	return obj;
}
