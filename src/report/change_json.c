/* Field by field as the contract lists them. Unlike the comment, it hides nothing but L1. */
#include "report/change_json.h"

#include "base/alloc.h"
#include "base/json.h"
#include "report/accelerator_state_json.h"
#include "report/job_json.h"
#include "report/json_field.h"
#include "report/requirements.h"
#include "report/summary.h"
#include "report/verdict_json.h"

enum { SUMMARY_TEXT_MAX_BYTES = 8192 };

static void set_int_or_null(json_t *obj, const char *key, int64_t value)
{
	if (value > 0)
		json_set_int(obj, key, value);
	else
		json_set_str(obj, key, NULL);
}

static json_t *dispatch_json(const struct dispatch_view *d)
{
	json_t *obj = json_object();

	json_set_str(obj, "id", d->id);
	json_set_foreign_text(obj, "runner", d->runner);
	json_set_str(obj, "runner_kind", d->runner_kind);
	json_set_str(obj, "state", dispatch_state_name(d->state));
	json_set_foreign_text(obj, "held_reason", d->held_reason);
	json_set_foreign_text(obj, "error", d->last_error);
	json_object_set_new(obj, "current", json_boolean(d->is_current));
	json_set_time(obj, "created_at", d->created_ms);
	json_set_time(obj, "sent_at", d->sent_ms);
	json_set_time(obj, "due_at", d->due_ms);
	return obj;
}

static json_t *texts_json(char **list)
{
	json_t *array = json_array();

	for (size_t i = 0; list && list[i]; i++) {
		json_t *holder = json_object();

		json_set_foreign_text(holder, "text", list[i]);
		json_array_append(array, json_object_get(holder, "text"));
		json_decref(holder);
	}
	return array;
}

/* Null where there is nothing to compare with. */
static json_t *delta_json(const struct base_delta *d)
{
	json_t *obj;

	if (!d->base_sha)
		return json_null();
	obj = json_object();
	json_set_str(obj, "base_sha", d->base_sha);
	json_set_int(obj, "distance", d->distance);
	json_set_int(obj, "newly_failing", (int64_t)d->n_newly_failing);
	json_set_int(obj, "fixed", (int64_t)d->n_fixed);
	json_set_int(obj, "disappeared", (int64_t)d->n_disappeared);
	json_set_int(obj, "newly_skipped", (int64_t)d->n_newly_skipped);
	json_object_set_new(obj, "fixed_tests", texts_json(d->fixed));
	json_object_set_new(obj, "disappeared_tests", texts_json(d->disappeared));
	json_object_set_new(obj, "newly_skipped_tests", texts_json(d->newly_skipped));
	return obj;
}

static void append_required(
    json_t *list, const char *key, const char *name, enum requirement_state state)
{
	static const char *const words[] = {[REQUIREMENT_MET] = "met",
	    [REQUIREMENT_RED] = "failed",
	    [REQUIREMENT_NOT_PASSED] = "not_passed",
	    [REQUIREMENT_NOT_REPORTED] = "not_reported",
	    [REQUIREMENT_UNKNOWN] = "unknown"};
	json_t *obj = json_object();

	json_set_foreign_text(obj, key, name);
	json_set_str(obj, "state", words[state]);
	json_array_append_new(list, obj);
}

static json_t *required_json(const struct requirements *q)
{
	json_t *list = json_array();

	for (size_t i = 0; i < q->n_suites; i++)
		append_required(list, "suite", q->accelerator->required_suites[i], q->suites[i]);
	for (size_t i = 0; i < q->n_tests; i++)
		append_required(list, "test", q->accelerator->must_pass[i], q->tests[i]);
	return list;
}

static json_t *links_json(const struct accelerator_view *a)
{
	json_t *obj = json_object();

	json_set_foreign_text(obj, "docs", a->docs_url);
	json_set_foreign_text(obj, "help", a->help_url);
	return obj;
}

static json_t *result_json(const struct experiment_result *r)
{
	json_t *obj = json_object();

	json_set_foreign_text(obj, "suite", r->suite);
	json_set_foreign_text(obj, "test", r->test);
	json_set_foreign_text(obj, "dtype", r->dtype);
	json_set_str(
	    obj, "status", r->status < N_TEST_STATUSES ? test_status_name(r->status) : NULL);
	set_int_or_null(obj, "job", r->job);
	return obj;
}

static json_t *experiment_view_json(const struct experiment_view *e)
{
	json_t *obj = json_object(), *results = json_array();

	json_set_int(obj, "id", e->id);
	json_set_str(obj, "side", experiment_side_name(e->side));
	json_set_str(obj, "sha", e->sha);
	json_set_int(obj, "round", e->round);
	json_set_str(obj, "cause", e->cause);
	json_set_str(obj, "state", e->state);
	json_set_foreign_text(obj, "reason", e->reason);
	json_set_foreign_text(obj, "runner", e->runner);
	json_set_int(obj, "tests", e->n_tests);
	for (size_t i = 0; i < e->n_results; i++)
		json_array_append_new(results, result_json(&e->results[i]));
	json_object_set_new(obj, "results", results);
	set_int_or_null(obj, "job", e->job);
	json_set_time(obj, "created_at", e->created_ms);
	json_set_time(obj, "started_at", e->started_ms);
	json_set_time(obj, "ended_at", e->ended_ms);
	return obj;
}

static json_t *experiments_json(const struct accelerator_view *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->n_experiments; i++)
		json_array_append_new(list, experiment_view_json(&a->experiments[i]));
	return list;
}

static json_t *accelerator_json(const struct accelerator_view *a, const struct requirements *q)
{
	json_t *obj = json_object(), *dispatches = json_array(), *jobs = json_array();

	json_set_str(obj, "name", a->name);
	json_set_foreign_text(obj, "title", a->title);
	json_set_str(obj, "level", level_name(a->level));
	json_object_set_new(obj, "links", links_json(a));
	json_object_set_new(obj, "oncall", texts_json(a->oncall));
	for (size_t i = 0; i < a->n_dispatches; i++)
		json_array_append_new(dispatches, dispatch_json(&a->dispatches[i]));
	json_object_set_new(obj, "dispatches", dispatches);
	for (size_t i = 0; i < a->n_jobs; i++)
		json_array_append_new(jobs, job_view_json(&a->jobs[i]));
	json_object_set_new(obj, "jobs", jobs);
	json_object_set_new(obj, "experiments", experiments_json(a));
	json_object_set_new(obj, "required", required_json(q));
	json_object_set_new(obj, "delta", delta_json(&a->delta));
	json_object_set_new(obj, "unhealthy", json_boolean(a->is_unhealthy));
	json_object_set_new(obj, "branch_state", accelerator_state_json(&a->at.state));
	json_set_time(obj, "red_since", a->at.facts.red_since_ms);
	json_set_str(
	    obj, "red_by", red_by_name(a->at.facts.red_since_ms, a->at.facts.is_red_in_silence));
	json_object_set_new(obj, "overdue", json_boolean(a->at.state.is_overdue));
	return obj;
}

/* free(); NULL: there is none. */
static char *evidence_url(const struct verdict_evidence *e, const char *public_url)
{
	if (e->issue_url)
		return xstrdup(e->issue_url);
	return e->job ? xasprintf("%s/jobs/%lld", public_url, (long long)e->job) : NULL;
}

static json_t *cell_json(
    const struct change_view *v, const struct verdict_view *w, const char *public_url)
{
	json_t *obj = json_object();
	struct verdict_evidence evidence = verdict_evidence_of(w);
	char *url = evidence_url(&evidence, public_url);

	json_set_str(obj, "accelerator", v->accelerators[w->accelerator].name);
	json_set_foreign_text(obj, "suite", w->suite);
	json_set_foreign_text(obj, "test", w->test);
	json_set_foreign_text(obj, "dtype", w->dtype);
	json_set_str(obj, "status", test_status_name(w->status));
	json_set_str(obj, "attribution", attribution_name(w->attribution));
	json_set_str(obj, "group",
	    test_status_is_red(w->status)
		? failure_group_name(table_failure_group(&v->accelerators[w->accelerator], w))
		: NULL);
	json_set_foreign_text(obj, "reason", w->reason);
	json_set_foreign_text(obj, "message", w->message);
	json_set_foreign_text(obj, "file", w->file);
	set_int_or_null(obj, "line", w->line);
	set_int_or_null(obj, "job", w->job);
	set_int_or_null(obj, "evidence_job", evidence.job);
	json_set_foreign_text(obj, "evidence_url", url);
	json_object_set_new(obj, "late", json_boolean(w->is_late));
	json_set_str(obj, "rerun", rerun_state_name(w->rerun));
	set_int_or_null(obj, "rerun_job", w->rerun_job);
	free(url);
	return obj;
}

static json_t *accelerators_json(const struct change_view *v)
{
	json_t *list = json_array();
	struct requirements *required;
	struct table t;

	table_init(&t, v);
	required = requirements_read(&t);
	for (size_t i = 0; i < v->n_accelerators; i++)
		for (size_t c = 0; c < t.n_columns; c++)
			if (t.columns[c].accelerator == &v->accelerators[i])
				json_array_append_new(
				    list, accelerator_json(&v->accelerators[i], &required[c]));
	requirements_free(required, &t);
	table_release(&t);
	return list;
}

static void append_plain(struct buf *out, const char *title)
{
	buf_append_str(out, title ? title : "");
}

/* The figures, and the sentence that the comment begins with. */
static json_t *summary_json(const struct change_view *v)
{
	static const struct summary_style style = {
	    .bold_on = "", .bold_off = "", .append_title = append_plain};
	json_t *obj = verdict_json(v);
	struct buf text = BUF_INIT(SUMMARY_TEXT_MAX_BYTES);
	const char *sentence;
	struct table t;

	table_init(&t, v);
	summary_append(&t, &style, &text);
	sentence = strchr(buf_str(&text), ' '); /* behind the sign, which `verdict` says */
	json_set_foreign_text(obj, "text", sentence ? sentence + 1 : buf_str(&text));
	table_release(&t);
	buf_release(&text);
	return obj;
}

json_t *change_json(
    const struct change_view *v, const char *public_url, const struct verdict_choice *choice)
{
	json_t *obj = json_object();

	json_set_str(obj, "repository", v->repository);
	set_int_or_null(obj, "number", v->number);
	json_set_str(obj, "head_sha", v->head_sha);
	json_set_str(obj, "merge_base_sha", v->merge_base_sha);
	json_set_time(obj, "merge_base_at", v->merge_base_ms);
	json_set_str(obj, "state", change_state_name(v->state));
	json_set_str(obj, "kind", change_kind_name(v->kind));
	json_set_foreign_text(obj, "title", v->title);
	json_set_foreign_text(obj, "author", v->author);
	json_object_set_new(obj, "labels", texts_json(v->labels));
	json_set_time(obj, "created_at", v->created_ms);
	json_object_set_new(obj, "summary", summary_json(v));
	json_object_set_new(obj, "accelerators", accelerators_json(v));
	verdict_list_json(obj, v, choice, cell_json, public_url);
	json_object_set_new(obj, "verdicts_cut", json_boolean(v->is_cut));
	return obj;
}
