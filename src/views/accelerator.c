#include "views/accelerator.h"

#include "db/record_rows.h"
#include "history/run_note.h"
#include "views/record_json.h"

enum { REPOSITORIES_MAX = 2000 };

/* ---- the state ---- */

#define ACCELERATOR_WORDS_RECORD(F, S)                                                                                 \
	F(S, TEXT, name, "name", "", "")                                                                               \
	F(S, TEXT, word, "word", "", "")                                                                               \
	F(S, TEXT, symbol, "symbol", "", "")                                                                           \
	F(S, TEXT, tone, "tone", "", "")
RECORD_DEFINE(accelerator_words, ACCELERATOR_WORDS_RECORD)

json_t *accelerator_words_json(enum accelerator_status s)
{
	return record_json(&accelerator_words_record, accelerator_words(s));
}

json_t *accelerator_state_json(const struct accelerator_state *s)
{
	json_t *v = accelerator_words_json(s->status), *notes = json_array();

	if (s->is_overdue)
		json_array_append_new(notes, json_string("overdue"));
	if (s->has_no_report)
		json_array_append_new(notes, json_string("no report"));
	if (s->is_not_counted)
		json_array_append_new(notes, json_string("not counted"));
	json_object_update_new(v, json_pack("{s:s, s:o, s:o}", "text", accelerator_state_text(s), "since",
				      json_time(s->since_ms), "notes", notes));
	return v;
}

void standing_add_json(json_t *obj, const struct standing *s)
{
	const struct accelerator_facts *f = &s->facts;

	json_object_update_new(
	    obj, json_pack("{s:o, s:o, s:s?, s:b, s:o, s:o}", "state", accelerator_state_json(&s->state), "red_since",
		     json_time(f->red_since_ms), "red_by", red_by_name(f->red_since_ms, f->is_red_in_silence),
		     "overdue", s->state.is_overdue, "pass_rate", share_json(f->n_green, f->n_runs), "last_report",
		     json_time(f->last_report_ms)));
}

/* ---- its figures, and the level that they allow ---- */

static json_t *finding_json(const struct level_finding *f)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:f, s:b, s:o}", "name", level_criterion_name(f->criterion), "unit",
	    f->unit == UNIT_SHARE ? "share" : "seconds", "measured",
	    f->has_measure ? json_real(f->measured) : json_null(), "with_upstream",
	    f->has_measure ? json_real(f->with_upstream) : json_null(), "target", f->target, "at_least", f->is_at_least,
	    "met", f->met == MET_UNKNOWN ? json_null() : json_boolean(f->met == MET_YES));
}

/* The criteria of `level`, measured; t NULL: there is no such level. */
static json_t *step_json(
    const struct level_numbers *n, enum level level, const struct level_thresholds *t, enum level_step step)
{
	const struct level_window *w = step == STEP_UP ? &n->promotion : &n->demotion;
	struct level_finding list[N_CRITERIA];

	if (!t)
		return json_null();
	json_t *criteria = json_array();
	for (size_t i = 0, k = level_findings(n, t, step, list); i < k; i++)
		json_array_append_new(criteria, finding_json(&list[i]));
	return json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:o}", "level", level_name(level), "days",
	    (int)(step == STEP_UP ? PROMOTION_DAYS : DEMOTION_DAYS), "jobs", (json_int_t)w->n_jobs, "passed",
	    (json_int_t)w->n_passed, "timed_out", (json_int_t)w->n_timed_out, "failed_upstream",
	    (json_int_t)w->n_upstream, "list", criteria);
}

static json_t *criteria_json(unsigned bits)
{
	json_t *list = json_array();

	for (int c = 0; c < N_CRITERIA; c++)
		if (bits & 1U << c)
			json_array_append_new(list, json_string(level_criterion_name((enum level_criterion)c)));
	return list;
}

static void quality_add_json(json_t *v, const struct config *c, enum level level, const struct quality *q)
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
	const struct level_thresholds *const of[] = {[LEVEL_3] = &c->level_3, [LEVEL_4] = &c->level_4};
	bool has_next = level == LEVEL_2 || level == LEVEL_3;
	json_t *numbers, *steps, *proposal;

	if (!q || level == LEVEL_1)
		q = &nothing;
	const struct level_numbers *n = &q->level;
	struct level_proposal p = level_propose(level, n, &c->level_3, &c->level_4);
	numbers = json_pack("{s:i, s:I, s:I, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "days",
	    (int)(QUALITY_DAYS_MS / 86400000), "push_runs", (json_int_t)q->n_push_runs, "push_runs_green",
	    (json_int_t)q->n_push_green, "pass_rate", share_json(q->n_push_green, q->n_push_runs), "dispatches",
	    (json_int_t)n->n_dispatches, "deadlines_kept", (json_int_t)n->n_deadlines_met, "deadlines_met",
	    share_json(n->n_deadlines_met, n->n_dispatches), "queue_p50", seconds_json(q->queue_p50_ms), "queue_p90",
	    seconds_json(q->queue_p90_ms), "run_p50", seconds_json(q->run_p50_ms), "run_p90",
	    seconds_json(q->run_p90_ms), "red_episodes", (json_int_t)q->n_episodes, "reaction_time",
	    seconds_json(n->reaction_ms));
	steps = json_pack("{s:o, s:o}", "up",
	    step_json(n, has_next ? level + 1 : level, has_next ? of[level + 1] : NULL, STEP_UP), "down",
	    step_json(n, level, level >= LEVEL_3 ? of[level] : NULL, STEP_DOWN));
	proposal = json_pack("{s:s, s:o, s:o, s:b}", "level", level_name(p.level), "unmet", criteria_json(p.unmet_next),
	    "unmet_now", criteria_json(p.unmet_now), "silent", p.is_silent);
	json_object_update_new(v, json_pack("{s:s?, s:o, s:o, s:o, s:o}", "health",
				      level == LEVEL_1        ? NULL
				      : q->unhealthy_since_ms ? "unhealthy"
							      : "ok",
				      "unhealthy_since", json_time(q->unhealthy_since_ms), "numbers", numbers,
				      "criteria", steps, "proposal", proposal));
}

json_t *accelerator_json(const struct config *c, const struct accelerator *a, const struct accelerator_figures *f)
{
	json_t *v, *runners = json_array();
	struct standing nothing = {.facts.level = a->level};

	nothing.state = accelerator_state_of(&nothing.facts, 0);
	if (a->level == LEVEL_1)
		f = NULL; /* neither its figures nor those from when it was at another level */
	for (size_t i = 0; i < a->n_runners; i++)
		json_array_append_new(
		    runners, json_pack("{s:s, s:s, s:s}", "name", a->runners[i].name, "kind",
				 runner_kind_name(a->runners[i].kind), "reruns", reruns_name(a->runners[i].reruns)));
	v = json_pack("{s:s?, s:s?, s:s?, s:s, s:o, s:o, s:s, s:o, s:I, s:I}", "name", a->name, "title", a->title,
	    "vendor", a->vendor, "level", level_name(a->level), "links", links_json(a->docs_url, a->help_url), "oncall",
	    json_foreign_texts(a->oncall), "trust", trust_name(a->trust), "runners", runners, "dispatches_30d",
	    (json_int_t)(f ? f->n_dispatches : 0), "deadlines_missed_30d", (json_int_t)(f ? f->n_expired : 0));
	standing_add_json(v, f ? &f->at : &nothing);
	quality_add_json(v, c, a->level, f ? &f->quality : NULL);
	return v;
}

/* ---- the repositories at L3 ---- */

RECORD_DEFINE(level_repository, LEVEL_REPOSITORY_RECORD)

static int list_level_status_run(struct store_query *q, const struct view *d)
{
	struct list_level_status *l = CONTAINER_OF(q, struct list_level_status, q);
	struct rows *r = db_rows(d,
	    RECORD_QUERY(LEVEL_REPOSITORY_RECORD,
		"FROM runner r JOIN accelerator a ON a.name = r.accelerator WHERE a.is_gone = 0 "
		"AND r.is_gone = 0 AND r.kind = 'github' AND a.level = ?1 ORDER BY lower(r.target), a.name, r.name "
		"LIMIT ?2"),
	    V_INT(LEVEL_3), V_INT(REPOSITORIES_MAX));

	RECORDS_READ(r, level_repository, l->list, l->n);
	for (size_t i = 0; i < l->n; i++)
		level_read(d, l->list[i].accelerator, l->list[i].runner, l->now_ms, &l->list[i].numbers);
	if (db_status(d))
		list_level_status_release(l);
	return 0;
}

STORE_LIST(list_level_status, level_repository)
