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
	const struct level_numbers *n = &q->numbers;
	json_t *v = json_object();

	json_set_int(v, "days", QUALITY_DAYS_MS / 86400000);
	json_set_int(v, "push_runs", n->n_push_runs);
	json_set_int(v, "push_runs_green", n->n_push_green);
	set_share(v, "pass_rate", n->n_push_green, n->n_push_runs);
	json_set_int(v, "dispatches", n->n_dispatches);
	json_set_int(v, "deadlines_kept", n->n_deadlines_met);
	set_share(v, "deadlines_met", n->n_deadlines_met, n->n_dispatches);
	set_seconds(v, "queue_p50", q->queue_p50_ms);
	set_seconds(v, "queue_p90", n->queue_p90_ms);
	set_seconds(v, "run_p50", q->run_p50_ms);
	set_seconds(v, "run_p90", n->run_p90_ms);
	json_set_int(v, "red_episodes", n->n_episodes);
	set_seconds(v, "reaction_time", n->reaction_ms);
	return v;
}

static json_t *thresholds_json(const struct level_thresholds *t)
{
	json_t *v = json_object();

	json_set_int(v, "push_runs", t->n_runs);
	json_object_set_new(v, "pass_rate", json_real(t->pass_percent / 100.0));
	json_object_set_new(v, "deadlines_met", json_real(t->deadlines_percent / 100.0));
	set_seconds(v, "queue_time", t->queue_ms);
	set_seconds(v, "run_time", t->run_ms);
	set_seconds(v, "reaction_time", t->reaction_ms);
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
	return v;
}

void quality_add_json(json_t *v, const struct config *c, enum level level, const struct quality *q)
{
	static const struct quality nothing = {
	    .numbers = {.queue_p90_ms = -1, .run_p90_ms = -1, .reaction_ms = -1},
	    .queue_p50_ms = -1,
	    .run_p50_ms = -1,
	};
	json_t *thresholds = json_object();

	if (!q || level == LEVEL_1)
		q = &nothing;
	json_set_str(v, "health",
	    level == LEVEL_1        ? NULL
	    : q->unhealthy_since_ms ? "unhealthy"
				    : "ok");
	json_set_time(v, "unhealthy_since", q->unhealthy_since_ms);
	json_object_set_new(v, "numbers", numbers_json(q));
	json_object_set_new(thresholds, "L3", thresholds_json(&c->level_3));
	json_object_set_new(thresholds, "L4", thresholds_json(&c->level_4));
	json_object_set_new(v, "thresholds", thresholds);
	json_object_set_new(v, "proposal", proposal_json(c, level, &q->numbers));
}
