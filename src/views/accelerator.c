#include "views/accelerator.h"

#include "base/alloc.h"
#include "base/json.h"
#include "db/record_rows.h"
#include "history/run_jobs.h"
#include "views/record_json.h"

enum { REPOSITORIES_MAX = 2000 };

/* ---- the state ---- */

#define ACCELERATOR_WORDS_RECORD(F, S)                                                             \
	F(S, TEXT, name, "name", "", "")                                                           \
	F(S, TEXT, word, "word", "", "")                                                           \
	F(S, TEXT, symbol, "symbol", "", "")                                                       \
	F(S, TEXT, tone, "tone", "", "")
RECORD_DEFINE(accelerator_words, ACCELERATOR_WORDS_RECORD)

json_t *accelerator_words_json(enum accelerator_status s)
{
	return record_json(&accelerator_words_record, accelerator_words(s));
}

json_t *accelerator_state_json(const struct accelerator_state *s)
{
	json_t *obj = accelerator_words_json(s->status), *notes = json_array();

	if (s->is_overdue)
		json_array_append_new(notes, json_string("overdue"));
	if (s->has_no_report)
		json_array_append_new(notes, json_string("no report"));
	if (s->is_not_counted)
		json_array_append_new(notes, json_string("not counted"));
	json_set_str(obj, "text", accelerator_state_text(s));
	json_set_time(obj, "since", s->since_ms);
	json_object_set_new(obj, "notes", notes);
	return obj;
}

void standing_add_json(json_t *obj, const struct standing *s)
{
	const struct accelerator_facts *f = &s->facts;

	json_object_set_new(obj, "state", accelerator_state_json(&s->state));
	json_set_time(obj, "red_since", f->red_since_ms);
	json_set_str(obj, "red_by", red_by_name(f->red_since_ms, f->is_red_in_silence));
	json_object_set_new(obj, "overdue", json_boolean(s->state.is_overdue));
	json_set_share(obj, "pass_rate", f->n_green, f->n_runs);
	json_set_time(obj, "last_report", f->last_report_ms);
}

/* ---- its figures, and the level that they allow ---- */

static void json_set_seconds(json_t *obj, const char *key, int64_t ms)
{
	json_object_set_new(obj, key, ms < 0 ? json_null() : json_real((double)ms / 1000));
}

static json_t *quality_numbers_json(const struct quality *q)
{
	const struct level_numbers *n = &q->level;
	json_t *v = json_object();

	json_set_int(v, "days", QUALITY_DAYS_MS / 86400000);
	json_set_int(v, "push_runs", q->n_push_runs);
	json_set_int(v, "push_runs_green", q->n_push_green);
	json_set_share(v, "pass_rate", q->n_push_green, q->n_push_runs);
	json_set_int(v, "dispatches", n->n_dispatches);
	json_set_int(v, "deadlines_kept", n->n_deadlines_met);
	json_set_share(v, "deadlines_met", n->n_deadlines_met, n->n_dispatches);
	json_set_seconds(v, "queue_p50", q->queue_p50_ms);
	json_set_seconds(v, "queue_p90", q->queue_p90_ms);
	json_set_seconds(v, "run_p50", q->run_p50_ms);
	json_set_seconds(v, "run_p90", q->run_p90_ms);
	json_set_int(v, "red_episodes", q->n_episodes);
	json_set_seconds(v, "reaction_time", n->reaction_ms);
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

/* The criteria of `level`, measured; t NULL: there is no such level. */
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

static void quality_add_json(
    json_t *v, const struct config *c, enum level level, const struct quality *q)
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
	json_object_set_new(v, "numbers", quality_numbers_json(q));
	json_object_set_new(v, "criteria", steps_json(c, level, &q->level));
	json_object_set_new(v, "proposal", proposal_json(c, level, &q->level));
}

json_t *accelerator_json(
    const struct config *c, const struct accelerator *a, const struct accelerator_figures *f)
{
	json_t *v = json_object(), *oncall = json_array(), *runners = json_array();
	struct standing nothing = {.facts.level = a->level};

	nothing.state = accelerator_state_of(&nothing.facts, 0);
	if (a->level ==
	    LEVEL_1) /* neither its figures nor those from when it was at another level */
		f = NULL;
	for (char **login = a->oncall; login && *login; login++)
		json_array_append_new(oncall, json_string(*login));
	for (size_t i = 0; i < a->n_runners; i++)
		json_array_append_new(
		    runners, json_pack("{s:s, s:s, s:s}", "name", a->runners[i].name, "kind",
				 runner_kind_name(a->runners[i].kind), "reruns",
				 reruns_name(a->runners[i].reruns)));
	json_set_str(v, "name", a->name);
	json_set_str(v, "title", a->title);
	json_set_str(v, "vendor", a->vendor);
	json_set_str(v, "level", level_name(a->level));
	json_object_set_new(v, "links", links_json(a->docs_url, a->help_url));
	json_object_set_new(v, "oncall", oncall);
	json_set_str(v, "trust", trust_name(a->trust));
	json_object_set_new(v, "runners", runners);
	json_set_int(v, "dispatches_30d", f ? f->n_dispatches : 0);
	json_set_int(v, "deadlines_missed_30d", f ? f->n_expired : 0);
	standing_add_json(v, f ? &f->at : &nothing);
	quality_add_json(v, c, a->level, f ? &f->quality : NULL);
	return v;
}

/* ---- the repositories at L3 ---- */

RECORD_DEFINE(level_repository, LEVEL_REPOSITORY_RECORD)

static int level_status_run(struct store_query *q, struct db *d)
{
	struct list_level_status *l = CONTAINER_OF(q, struct list_level_status, q);
	struct rows *r = db_rows(d,
	    RECORD_SELECT(LEVEL_REPOSITORY_RECORD) " FROM runner r"
						   " JOIN accelerator a ON a.name = r.accelerator"
						   " WHERE a.is_gone = 0 AND r.is_gone = 0 AND "
						   "r.kind = 'github' AND a.level = ?1"
						   " ORDER BY lower(r.target), a.name LIMIT ?2",
	    V_INT(LEVEL_3), V_INT(REPOSITORIES_MAX));

	RECORDS_READ(r, level_repository, l->list, l->n);
	for (size_t i = 0; i < l->n; i++)
		level_read(
		    d, l->list[i].accelerator, l->list[i].runner, l->now_ms, &l->list[i].numbers);
	if (db_status(d))
		list_level_status_release(l);
	return 0;
}

int store_list_level_status(struct store *s, struct list_level_status *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = level_status_run;
	return store_query(s, &q->q);
}

void list_level_status_release(struct list_level_status *q)
{
	RECORDS_RELEASE(level_repository, q->list, q->n);
}
