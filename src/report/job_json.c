#include "report/job_json.h"

#include "base/alloc.h"
#include "base/json.h"
#include "report/dashboard_json.h"
#include "report/json_field.h"

static json_t *counts_json(const struct job_view *j)
{
	json_t *obj;

	if (!j->has_counts)
		return json_null();
	obj = json_object();
	json_set_int(obj, "passed", j->n_passed);
	json_set_int(obj, "failed", j->n_failed);
	json_set_int(obj, "skipped", j->n_skipped);
	json_set_int(obj, "total", j->n_total);
	return obj;
}

json_t *job_view_json(const struct job_view *j)
{
	json_t *obj = json_object();

	json_set_int(obj, "id", j->id);
	json_set_foreign_text(obj, "workflow", j->workflow);
	json_set_foreign_text(obj, "name", j->name);
	json_set_foreign_text(obj, "run_id", j->run_id);
	json_set_int(obj, "run_attempt", j->run_attempt);
	json_set_str(obj, "status", job_status_name(j->status));
	json_set_foreign_text(obj, "conclusion", j->conclusion);
	json_set_foreign_text(obj, "url", j->url);
	json_set_foreign_text(obj, "artifact_url", j->artifact_url);
	json_object_set_new(obj, "test_results", counts_json(j));
	json_set_int(obj, "tests_cut", j->n_cut);
	json_set_time(obj, "started_at", j->started_ms);
	json_set_time(obj, "completed_at", j->completed_ms);
	json_object_set_new(obj, "late", json_boolean(j->is_late));
	return obj;
}

static json_t *number_json(const struct test_result *t)
{
	json_t *obj = json_object();

	json_object_set_new(obj, "value", json_real(t->number));
	json_set_foreign_text(obj, "unit", t->unit);
	return obj;
}

static json_t *test_json(const struct test_result *t, enum attribution why)
{
	json_t *obj = json_object();

	json_set_foreign_text(obj, "suite", t->suite);
	json_set_foreign_text(obj, "name", t->name);
	json_set_str(obj, "status", test_status_name(t->status));
	json_object_set_new(obj, "duration",
	    t->duration_ms < 0 ? json_null() : json_real((double)t->duration_ms / 1000.0));
	json_set_foreign_text(obj, "dtype", t->dtype);
	json_set_foreign_text(obj, "message", t->message);
	json_set_foreign_text(obj, "trace", t->trace);
	json_set_foreign_text(obj, "log_url", t->log_url);
	json_set_foreign_text(obj, "file", t->file);
	json_object_set_new(obj, "line", t->line ? json_integer(t->line) : json_null());
	json_object_set_new(obj, "number", t->has_number ? number_json(t) : json_null());
	json_set_str(obj, "attribution", attribution_name(why));
	return obj;
}

/* An object as text, as it was checked when it came. */
static json_t *stored_json(const char *text)
{
	json_t *v;

	if (!text || json_parse(text, strlen(text), &v, NULL))
		return json_null();
	return v;
}

static json_t *log_json(const struct job_detail *d, const char *public_url)
{
	json_t *obj;
	char *url;

	if (d->log_bytes < 0)
		return json_null();
	obj = json_object();
	url = xasprintf("%s/api/v1/jobs/%lld/log", public_url, (long long)d->job.id);
	json_set_int(obj, "bytes", d->log_bytes);
	json_object_set_new(obj, "complete", json_boolean(d->is_log_complete));
	json_set_str(obj, "url", url);
	free(url);
	return obj;
}

static json_t *cursor_json(int64_t next)
{
	return next ? json_sprintf("%lld", (long long)next) : json_null();
}

/* Null for a job of no experiment. */
static json_t *job_experiment_json(const struct job_experiment *e)
{
	json_t *obj;

	if (!e->id)
		return json_null();
	obj = json_object();
	json_set_int(obj, "id", e->id);
	json_set_str(obj, "side", experiment_side_name(e->side));
	json_set_int(obj, "round", e->round);
	json_set_str(obj, "cause", e->cause);
	json_set_str(obj, "state", e->state);
	json_set_foreign_text(obj, "reason", e->reason);
	json_set_str(obj, "explains", e->explained_sha);
	return obj;
}

json_t *job_detail_json(const struct job_detail *d, const char *public_url)
{
	json_t *obj = job_view_json(&d->job), *tests = json_array();

	json_set_foreign_text(obj, "accelerator", d->accelerator);
	json_set_str(obj, "dispatch", *d->dispatch_id ? d->dispatch_id : NULL);
	json_set_str(obj, "kind", change_kind_name(d->kind));
	json_set_str(obj, "repository", d->repository);
	json_set_str(obj, "head_sha", d->head_sha);
	json_object_set_new(obj, "number", d->number ? json_integer(d->number) : json_null());
	json_set_change_url(obj, "change_url", public_url, d->kind, d->number,
	    d->experiment.id ? d->experiment.explained_sha : d->head_sha);
	json_object_set_new(obj, "experiment", job_experiment_json(&d->experiment));
	json_set_foreign_text(obj, "message", d->message);
	json_object_set_new(obj, "environment", stored_json(d->environment));
	json_object_set_new(obj, "triage", stored_json(d->triage));
	json_set_foreign_text(obj, "machine", d->machine);
	json_object_set_new(obj, "current", json_boolean(d->is_current));
	json_object_set_new(
	    obj, "superseded_by", d->superseded_by ? json_integer(d->superseded_by) : json_null());
	json_object_set_new(obj, "log", log_json(d, public_url));
	for (size_t i = 0; i < d->n_tests; i++)
		json_array_append_new(tests, test_json(&d->tests[i], d->attributions[i]));
	json_object_set_new(obj, "tests", tests);
	json_set_int(obj, "tests_total", d->n_tests_total);
	json_object_set_new(obj, "next", cursor_json(d->next));
	return obj;
}
