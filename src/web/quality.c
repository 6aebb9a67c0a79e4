#include "web/quality.h"

static void set_seconds(json_t *v, const char *key, int64_t ms)
{
	json_object_set_new(v, key, ms < 0 ? json_null() : json_real((double)ms / 1000));
}

static void set_share(json_t *v, const char *key, int64_t part, int64_t whole)
{
	json_object_set_new(
	    v, key, whole > 0 ? json_real((double)part / (double)whole) : json_null());
}

static json_t *numbers_json(const struct quality *q)
{
	const struct level_numbers *n = &q->level;
	json_t *v = json_object();

	json_set_int(v, "days", QUALITY_DAYS_MS / 86400000);
	json_set_int(v, "push_runs", q->n_push_runs);
	json_set_int(v, "push_runs_green", q->n_push_green);
	set_share(v, "pass_rate", q->n_push_green, q->n_push_runs);
	json_set_int(v, "dispatches", n->n_dispatches);
	json_set_int(v, "deadlines_kept", n->n_deadlines_met);
	set_share(v, "deadlines_met", n->n_deadlines_met, n->n_dispatches);
	set_seconds(v, "queue_p50", q->queue_p50_ms);
	set_seconds(v, "queue_p90", q->queue_p90_ms);
	set_seconds(v, "run_p50", q->run_p50_ms);
	set_seconds(v, "run_p90", q->run_p90_ms);
	json_set_int(v, "red_episodes", q->n_episodes);
	set_seconds(v, "reaction_time", n->reaction_ms);
	return v;
}

static json_t *finding_json(const struct level_finding *f)
{
	json_t *v = json_object();

	json_set_str(v, "name", level_criterion_name(f->criterion));
	json_set_str(v, "unit", f->unit == UNIT_SHARE ? "share" : "seconds");
	json_object_set_new(v, "measured", f->has_measure ? json_real(f->measured) : json_null());
	json_object_set_new(
	    v, "with_upstream", f->has_measure ? json_real(f->with_upstream) : json_null());
	json_object_set_new(v, "target", json_real(f->target));
	json_object_set_new(v, "at_least", json_boolean(f->is_at_least));
	json_object_set_new(
	    v, "met", f->met == MET_UNKNOWN ? json_null() : json_boolean(f->met == MET_YES));
	return v;
}

/* What `level` demands, measured; t NULL: there is no such level. */
static json_t *step_json(const struct level_numbers *n, enum level level,
    const struct level_thresholds *t, enum level_step step)
{
	const struct level_window *w = step == STEP_UP ? &n->promotion : &n->demotion;
	struct level_finding list[N_CRITERIA];
	json_t *v, *criteria;

	if (!t)
		return json_null();
	v = json_object();
	criteria = json_array();
	json_set_str(v, "level", level_name(level));
	json_set_int(v, "days", step == STEP_UP ? PROMOTION_DAYS : DEMOTION_DAYS);
	json_set_int(v, "jobs", w->n_jobs);
	json_set_int(v, "passed", w->n_passed);
	json_set_int(v, "timed_out", w->n_timed_out);
	json_set_int(v, "failed_upstream", w->n_upstream);
	for (size_t i = 0, k = level_findings(n, t, step, list); i < k; i++)
		json_array_append_new(criteria, finding_json(&list[i]));
	json_object_set_new(v, "list", criteria);
	return v;
}

static json_t *steps_json(const struct config *c, enum level level, const struct level_numbers *n)
{
	const struct level_thresholds *const of[] = {
	    [LEVEL_3] = &c->level_3, [LEVEL_4] = &c->level_4};
	json_t *v = json_object();
	bool has_next = level == LEVEL_2 || level == LEVEL_3;

	json_object_set_new(v, "up",
	    step_json(n, has_next ? level + 1 : level, has_next ? of[level + 1] : NULL, STEP_UP));
	json_object_set_new(
	    v, "down", step_json(n, level, level >= LEVEL_3 ? of[level] : NULL, STEP_DOWN));
	return v;
}

static json_t *criteria_json(unsigned bits)
{
	json_t *list = json_array();

	for (int c = 0; c < N_CRITERIA; c++)
		if (bits & 1U << c)
			json_array_append_new(
			    list, json_string(level_criterion_name((enum level_criterion)c)));
	return list;
}

static json_t *proposal_json(
    const struct config *c, enum level level, const struct level_numbers *n)
{
	struct level_proposal p = level_propose(level, n, &c->level_3, &c->level_4);
	json_t *v = json_object();

	json_set_str(v, "level", level_name(p.level));
	json_object_set_new(v, "unmet", criteria_json(p.unmet_next));
	json_object_set_new(v, "unmet_now", criteria_json(p.unmet_now));
	json_object_set_new(v, "silent", json_boolean(p.is_silent));
	return v;
}

void quality_add_json(json_t *v, const struct config *c, enum level level, const struct quality *q)
{
	static const struct quality nothing = {
	    .level = {.promotion = {.end_to_end_ms = -1, .queue_ms = -1},
		.demotion = {.end_to_end_ms = -1, .queue_ms = -1},
		.tenure_ms = -1,
		.data_ms = -1,
		.reaction_ms = -1},
	    .queue_p50_ms = -1,
	    .queue_p90_ms = -1,
	    .run_p50_ms = -1,
	    .run_p90_ms = -1,
	};

	if (!q || level == LEVEL_1)
		q = &nothing;
	json_set_str(v, "health",
	    level == LEVEL_1        ? NULL
	    : q->unhealthy_since_ms ? "unhealthy"
				    : "ok");
	json_set_time(v, "unhealthy_since", q->unhealthy_since_ms);
	json_object_set_new(v, "numbers", numbers_json(q));
	json_object_set_new(v, "criteria", steps_json(c, level, &q->level));
	json_object_set_new(v, "proposal", proposal_json(c, level, &q->level));
}
