#include "web/accelerator_page_json.h"

#include "base/alloc.h"
#include "base/strv.h"
#include "report/dashboard_json.h"
#include "report/json_field.h"
#include "report/schedule_run_json.h"
#include "store/red_episodes.h"
#include "web/accelerator_json.h"
#include "web/params.h"

/* ---- jobs ---- */

static void set_seconds(json_t *obj, const char *key, int64_t ms)
{
	json_object_set_new(obj, key, ms < 0 ? json_null() : json_real((double)ms / 1000));
}

static json_t *job_json(const struct page_job *j, const char *public_url)
{
	json_t *obj = json_object();
	char *url = xasprintf("%s/jobs/%lld", public_url, (long long)j->id);
	bool has_ended = j->started_ms && j->completed_ms >= j->started_ms;

	json_set_int(obj, "id", j->id);
	json_set_foreign_text(obj, "workflow", j->workflow);
	json_set_foreign_text(obj, "name", j->name);
	json_set_str(obj, "status", j->status);
	json_set_foreign_text(obj, "conclusion", j->conclusion);
	json_set_str(obj, "verdict", j->verdict);
	json_set_str(obj, "kind", change_kind_name(j->kind));
	json_object_set_new(obj, "number", j->number ? json_integer(j->number) : json_null());
	json_set_str(obj, "head_sha", j->head_sha);
	json_set_time(obj, "started_at", j->started_ms);
	json_set_time(obj, "completed_at", j->completed_ms);
	set_seconds(obj, "queued", j->queued_ms);
	set_seconds(obj, "duration", has_ended ? j->completed_ms - j->started_ms : -1);
	json_object_set_new(obj, "late", json_boolean(j->is_late));
	json_object_set_new(
	    obj, "tests", j->has_counts ? test_counts_json(j->by_status) : json_null());
	json_set_str(obj, "url", url);
	json_set_change_url(obj, "change_url", public_url, j->kind, j->number, j->head_sha);
	free(url);
	return obj;
}

json_t *page_jobs_json(const struct page_jobs *l, const char *public_url)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(list, job_json(&l->at[i], public_url));
	return list;
}

static json_t *cursor_json(char *text)
{
	char *cursor = params_make_cursor(text, strlen(text));
	json_t *v = json_string(cursor);

	free(cursor);
	free(text);
	return v;
}

json_t *page_jobs_next(const struct page_jobs *l)
{
	if (!l->has_more || !l->n)
		return json_null();
	return cursor_json(xasprintf("%lld", (long long)l->at[l->n - 1].id));
}

/* ---- numbers ---- */

static json_t *point_json(const struct number_point *p)
{
	json_t *obj = json_object();

	json_set_time(obj, "at", p->at_ms);
	json_object_set_new(obj, "value", json_real(p->value));
	json_set_str(obj, "sha", *p->sha ? p->sha : NULL);
	json_object_set_new(obj, "job", p->job_id ? json_integer(p->job_id) : json_null());
	return obj;
}

static json_t *series_json(const struct number_series *s)
{
	json_t *obj = json_object(), *points = json_array();

	json_set_foreign_text(obj, "suite", s->suite);
	json_set_foreign_text(obj, "name", s->name);
	json_set_foreign_text(obj, "dtype", s->dtype && s->dtype[0] ? s->dtype : NULL);
	json_set_foreign_text(obj, "unit", s->unit[0] ? s->unit : NULL);
	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(points, point_json(&s->points[i]));
	json_object_set_new(obj, "points", points);
	return obj;
}

json_t *numbers_json(const struct list_numbers *l, int64_t days)
{
	json_t *obj = json_object(), *series = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(series, series_json(&l->list[i]));
	json_set_int(obj, "days", days);
	json_object_set_new(obj, "series", series);
	json_object_set_new(obj, "next",
	    l->has_more ? cursor_json(xasprintf("%lld %s", (long long)l->next_test, l->next_unit))
			: json_null());
	return obj;
}

/* ---- the page ---- */

static json_t *page_runners_json(const struct accelerator *a, const struct get_accelerator_page *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->n_runners; i++) {
		const struct runner *r = &a->runners[i];
		json_t *obj = json_object(), *machines = json_array();

		/* Which of several pull runners a machine serves, only its labels say, at each
		 * claim: it is listed with all. */
		for (size_t k = 0; r->kind == RUNNER_PULL && k < p->n_machines; k++) {
			const struct page_machine *m = &p->machines[k];
			json_t *v = json_object();

			json_set_foreign_text(v, "name", m->name);
			json_set_time(v, "last_seen", m->last_seen_ms);
			json_object_set_new(v, "busy",
			    json_boolean(
				strv_contains((const char *const *)m->busy_with, r->name)));
			json_array_append_new(machines, v);
		}
		json_set_str(obj, "name", r->name);
		json_set_str(obj, "kind", runner_kind_name(r->kind));
		json_set_str(obj, "reruns", reruns_name(r->reruns));
		json_object_set_new(obj, "machines", machines);
		json_array_append_new(list, obj);
	}
	return list;
}

/* Null where no runner takes experiments. */
static json_t *experiments_json(const struct accelerator *a, const struct get_accelerator_page *p)
{
	bool takes_any = false;
	json_t *obj;

	for (size_t i = 0; i < a->n_runners; i++)
		takes_any |= a->runners[i].reruns != RERUNS_NONE;
	if (!takes_any)
		return json_null();
	obj = json_object();
	json_set_int(obj, "pending", p->n_experiments_pending);
	json_object_set_new(obj, "seconds_24h", json_real((double)p->experiments_24h_ms / 1000.0));
	json_object_set_new(obj, "share", json_real(a->experiments.share_permille / 1000.0));
	return obj;
}

static json_t *schedule_json(
    const struct accelerator *a, const struct get_accelerator_page *p, const char *public_url)
{
	json_t *obj, *crons = NULL;

	if (!p->crons || json_parse(p->crons, strlen(p->crons), &crons, NULL))
		return json_null();
	obj = json_object();
	json_object_set_new(obj, "cron", crons);
	json_set_time(obj, "next", p->next_ms);
	json_object_set_new(obj, "last", schedule_run_json(&p->last_run, a->name, public_url));
	json_object_set_new(obj, "skip_next", json_boolean(p->is_next_skipped));
	return obj;
}

static json_t *commit_json(const struct page_commit *c, const char *public_url)
{
	json_t *obj;

	if (!c->sha)
		return json_null();
	obj = json_object();
	json_set_str(obj, "sha", c->sha);
	json_set_time(obj, "at", c->at_ms);
	json_set_change_url(obj, "url", public_url, CHANGE_PUSH, 0, c->sha);
	return obj;
}

static json_t *red_json(const struct get_accelerator_page *p, const char *public_url)
{
	json_t *obj, *tests = json_array();
	char *issue = NULL;

	for (char **t = p->red_tests; t && *t; t++)
		json_array_append_new(tests, json_foreign_text(*t));
	if (p->issue_repository && p->issue_number)
		issue = xasprintf("https://github.com/%s/issues/%lld", p->issue_repository,
		    (long long)p->issue_number);
	obj = json_object();
	json_set_time(obj, "since", p->red_since_ms);
	json_object_set_new(obj, "first_bad", commit_json(&p->first_bad, public_url));
	json_object_set_new(obj, "last_good", commit_json(&p->last_good, public_url));
	json_set_time(obj, "overdue_at", p->red_since_ms + RED_OVERDUE_MS);
	json_set_str(obj, "issue_url", issue);
	json_object_set_new(obj, "tests", tests);
	free(issue);
	return obj;
}

json_t *accelerator_page_json(
    const struct config *c, const struct accelerator *a, const struct get_accelerator_page *p)
{
	struct get_accelerator_page *silent = NULL;
	json_t *v = accelerator_json(c, a, &p->figures);

	if (a->level == LEVEL_1) {
		silent = xcalloc(1, sizeof(*silent));
		silent->today = p->today;
		for (int i = 0; i < PAGE_TREND_DAYS; i++)
			silent->trend[i] = (struct day_view){.queue_p50_ms = -1,
			    .queue_p90_ms = -1,
			    .run_p50_ms = -1,
			    .run_p90_ms = -1};
		p = silent;
	}
	json_object_set_new(v, "runners", page_runners_json(a, p));
	json_object_set_new(v, "experiments", experiments_json(a, p));
	json_object_set_new(
	    v, "trend", trend_json(p->trend, PAGE_TREND_DAYS, p->today, TREND_FULL));
	json_object_set_new(v, "calendar",
	    calendar_json(p->calendar, PAGE_CALENDAR_DAYS, p->today, a->name, c->public_url));
	json_object_set_new(v, "schedule", schedule_json(a, p, c->public_url));
	json_object_set_new(v, "red", p->red_since_ms ? red_json(p, c->public_url) : json_null());
	json_object_set_new(v, "jobs", page_jobs_json(&p->jobs, c->public_url));
	json_object_set_new(v, "jobs_next", page_jobs_next(&p->jobs));
	free(silent);
	return v;
}
