#include "base/alloc.h"
#include "base/json.h"
#include "base/strv.h"
#include "steps/job_folder.h"

enum { RESULT_MAX_BYTES = 4 << 20 };

static const char *const conclusions[] = {
    "success", "failure", "timed_out", "cancelled", "startup_failure", "action_required", NULL};

static json_t *outcome_json(const struct step_outcome *o)
{
	json_t *v = json_object();

	json_set_str(v, "name", o->name);
	json_set_int(v, "exit_code", o->exit_code);
	json_set_int(v, "signal", o->signal);
	json_object_set_new(v, "timeout", json_boolean(o->is_timeout));
	json_set_int(v, "duration_ms", o->duration_ms);
	return v;
}

int job_result_write(const char *folder, const struct job_result *r, struct error *e)
{
	json_t *v = json_object(), *steps = json_array();
	char *text;
	int rc;

	json_set_str(v, "conclusion", r->conclusion);
	json_set_str(v, "message", r->message);
	for (size_t i = 0; i < r->n_steps; i++)
		json_array_append_new(steps, outcome_json(&r->steps[i]));
	json_object_set_new(v, "steps", steps);
	json_set_int(v, "started_ms", r->started_ms);
	json_set_int(v, "completed_ms", r->completed_ms);
	json_object_set_new(v, "report", json_boolean(r->has_report));
	text = json_text(v);
	rc = job_folder_write(folder, "result.json", text, strlen(text), e);
	free(text);
	json_decref(v);
	return rc;
}

static void read_outcome(const json_t *v, struct step_outcome *ret)
{
	const char *name = json_get_str(v, "name");

	ret->name = xstrdup(name ? name : "");
	ret->exit_code = (int)json_get_int(v, "exit_code", -1);
	ret->signal = (int)json_get_int(v, "signal", 0);
	ret->is_timeout = json_get_bool(v, "timeout", false);
	ret->duration_ms = json_get_int(v, "duration_ms", 0);
}

static int read_result(const json_t *v, struct job_result *ret)
{
	const char *conclusion = json_get_str(v, "conclusion");
	const json_t *steps = json_object_get(v, "steps");

	if (!conclusion || !strv_contains(conclusions, conclusion))
		return ERR_CORRUPT;
	ret->conclusion = xstrdup(conclusion);
	ret->message = xstrdup_or_null(json_get_str(v, "message"));
	ret->n_steps = json_array_size(steps);
	ret->steps = xcalloc(ret->n_steps, sizeof(*ret->steps));
	for (size_t i = 0; i < ret->n_steps; i++)
		read_outcome(json_array_get(steps, i), &ret->steps[i]);
	ret->started_ms = json_get_int(v, "started_ms", 0);
	ret->completed_ms = json_get_int(v, "completed_ms", 0);
	ret->has_report = json_get_bool(v, "report", false);
	return 0;
}

int job_result_read(const char *folder, struct job_result *ret, struct error *e)
{
	json_t *v = NULL;
	char *text = NULL;
	size_t n = 0;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = job_folder_read(folder, "result.json", RESULT_MAX_BYTES, &text, &n, e);
	if (rc)
		return rc;
	rc = json_parse(text, n, &v, NULL);
	if (!rc)
		rc = read_result(v, ret);
	if (rc)
		rc = error_set(e, ERR_CORRUPT, "%s/result.json: not a job's result", folder);
	json_decref(v);
	free(text);
	return rc;
}

void job_result_release(struct job_result *r)
{
	for (size_t i = 0; i < r->n_steps; i++)
		free(r->steps[i].name);
	free(r->steps);
	free(r->conclusion);
	free(r->message);
	memset(r, 0, sizeof(*r));
}
