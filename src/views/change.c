#include "views/change.h"

#include "db/cell_sets.h"
#include "db/db.h"
#include "db/key.h"
#include "db/record_rows.h"
#include "history/standings.h"
#include "store/changes.h"
#include "text/summary.h"
#include "views/accelerator.h"
#include "views/job.h"
#include "views/record_json.h"

enum {
	ROWS_MAX = 20000,      /* dispatches or jobs of one change, far above any real one */
	EXPERIMENTS_MAX = 500, /* of one change; RESULTS_MAX: of all of them */
	RESULTS_MAX = 5000,
	SUMMARY_TEXT_MAX_BYTES = 8192,
};

/* ---- the query ---- */

static int64_t find_change(const struct view *d, const struct get_change *g)
{
	if (!g->repository)
		return g->change_id;
	struct repository_key key = repository_key(g->repository);
	if (g->number > 0)
		return db_int(d, 0, "SELECT change_id FROM pull WHERE repository_key = ?1 AND number = ?2",
		    V_TEXT(key.text), V_INT(g->number));
	if (g->head_sha) /* a self-report must not hide what was tested on request */
		return db_int(d, 0,
		    "SELECT id FROM change c WHERE repository_key = ?1 AND head_sha = ?2 AND kind <> 'experiment'"
		    " AND (?3 = 0 OR (?3 & CASE kind WHEN 'pull_request' THEN ?4 WHEN 'push'"
		    "  THEN ?5 ELSE ?6 END) <> 0)"
		    " ORDER BY NOT EXISTS (SELECT 1 FROM dispatch WHERE change_id = c.id),"
		    " kind = 'nightly', id DESC LIMIT 1",
		    V_TEXT(key.text), V_TEXT(g->head_sha), V_INT(g->kinds), V_INT(1 << CHANGE_PULL_REQUEST),
		    V_INT(1 << CHANGE_PUSH), V_INT(1 << CHANGE_NIGHTLY));
	return g->change_id;
}

/* `pull` as p. */
#define PULL_RECORD(F, S)                                                                                              \
	F(S, TEXT, title, NULL, "p.title", "")                                                                         \
	F(S, TEXT, author, NULL, "p.author", "")                                                                       \
	F(S, TEXT, base_ref, NULL, "CASE p.change_id WHEN ?3 THEN p.base_ref END", "")                                 \
	F(S, TEXT, base_sha, NULL, "CASE p.change_id WHEN ?3 THEN p.base_sha END", "")                                 \
	F(S, TEXTS, labels, NULL, "p.labels", "")                                                                      \
	F(S, BOOL, is_open, NULL, "p.state = 'open'", "")
RECORD_LOCAL(pull, PULL_RECORD)

static void replace_text(char **old, char **new)
{
	char *text = *old;

	if (!*new)
		return;
	*old = *new;
	*new = text;
}

/* The title, the labels and, of its current head, the base are those of the pull request through which people look at
 * the change. Of two pull requests with this head one may be closed while the other one is open. */
static void read_pull(const struct view *d, int64_t asked, struct change_view *v)
{
	int64_t number = asked;
	struct pull pull;

	if (number <= 0)
		number = change_pull(d, v->change_id);
	if (!number)
		number = db_int(d, 0, "SELECT MIN(number) FROM pull_head WHERE change_id = ?1", V_INT(v->change_id));
	if (!record_read_first(
		db_rows(d, RECORD_QUERY(PULL_RECORD, "FROM pull p WHERE p.repository_key = ?1 AND p.number = ?2"),
		    V_TEXT(repository_key(v->repository).text), V_INT(number), V_INT(v->change_id)),
		&pull_record, &pull))
		return;
	v->number = number;
	replace_text(&v->title, &pull.title);
	replace_text(&v->author, &pull.author);
	replace_text(&v->base_ref, &pull.base_ref);
	replace_text(&v->base_sha, &pull.base_sha);
	strv_free(v->labels);
	v->labels = pull.labels;
	pull.labels = NULL;
	if (asked > 0 && !pull.is_open)
		v->state = CHANGE_CLOSED;
	record_release(&pull_record, &pull);
}

static void read_accelerators(const struct view *d, struct change_view *v, int64_t now_ms)
{
	struct upstream_branch u = upstream_branch_read(d);
	struct rows *r = db_rows(d,
	    RECORD_QUERY(ACCELERATOR_VIEW_RECORD,
		"FROM (SELECT accelerator FROM dispatch WHERE change_id = ?1 AND accelerator <> '' "
		" UNION SELECT accelerator FROM job WHERE change_id = ?1 AND is_current = 1) u "
		"LEFT JOIN accelerator m ON m.name = u.accelerator ORDER BY u.accelerator"),
	    V_INT(v->change_id));

	RECORDS_READ(r, accelerator_view, v->accelerators, v->n_accelerators);
	for (size_t i = 0; i < v->n_accelerators; i++) {
		struct accelerator_view *a = &v->accelerators[i];

		a->delta.fixed = strv_copy(NULL);
		a->delta.disappeared = strv_copy(NULL);
		a->delta.newly_skipped = strv_copy(NULL);
	}
	DB_PIPELINE (d)
		for (size_t i = 0; i < v->n_accelerators; i++)
			standing_read(d, v->accelerators[i].name, &u, now_ms, &v->accelerators[i].at);
}

static void read_dispatches_and_jobs(const struct view *d, struct change_view *v)
{
	struct accelerator_view *a;
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BY("x.accelerator", DISPATCH_VIEW_RECORD,
		"FROM dispatch x WHERE x.change_id = ?1 AND x.accelerator <> '' ORDER BY "
		"x.accelerator, x.created_ms DESC, x.round DESC, x.is_current DESC, x.runner LIMIT ?2"),
	    V_INT(v->change_id), V_INT(ROWS_MAX));

	while (rows_next(r))
		if ((a = change_view_accelerator(v, rows_key(r))) != NULL)
			record_read(r, &dispatch_view_record, ARRAY_PUSH(a->dispatches, a->n_dispatches));
	r = db_rows(d,
	    RECORD_QUERY_BY("j.accelerator", JOB_VIEW_RECORD,
		"FROM job j WHERE j.change_id = ?1 AND j.is_current = 1 ORDER BY j.accelerator, "
		"j.workflow, j.name, j.id LIMIT ?2"),
	    V_INT(v->change_id), V_INT(ROWS_MAX));
	while (rows_next(r))
		if ((a = change_view_accelerator(v, rows_key(r))) != NULL)
			record_read(r, &job_view_record, ARRAY_PUSH(a->jobs, a->n_jobs));
}

static struct experiment_view *find_experiment(const struct change_view *v, int64_t id)
{
	for (size_t i = 0; i < v->n_accelerators; i++)
		for (size_t j = 0; j < v->accelerators[i].n_experiments; j++)
			if (v->accelerators[i].experiments[j].id == id)
				return &v->accelerators[i].experiments[j];
	return NULL;
}

/* Cut at the newest, because a member may ask for many runs by comment. */
static void read_experiments(const struct view *d, struct change_view *v)
{
	int64_t oldest = INT64_MAX;
	struct experiment_view *e = NULL;
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BY("e.accelerator", EXPERIMENT_VIEW_RECORD,
		"FROM experiment e WHERE e.change_id = ?1 ORDER BY e.id DESC LIMIT ?2"),
	    V_INT(v->change_id), V_INT(EXPERIMENTS_MAX));

	while (rows_next(r)) {
		struct accelerator_view *a = change_view_accelerator(v, rows_key(r));

		if (!a)
			continue;
		e = ARRAY_PUSH(a->experiments, a->n_experiments);
		*e = (struct experiment_view){.id = 0};
		record_read(r, &experiment_view_record, e);
		oldest = e->id;
	}
	if (!e)
		return;
	r = db_rows(d,
	    RECORD_QUERY_BY("e.id", EXPERIMENT_RESULT_RECORD,
		"FROM experiment e JOIN experiment_test x ON x.experiment_id = e.id JOIN test t ON "
		"t.id = x.test_id LEFT JOIN cell c ON c.change_id = e.run_change_id AND "
		"c.accelerator = e.accelerator AND c.test_id = x.test_id WHERE e.change_id = ?1 "
		"AND e.id >= ?2 ORDER BY e.id DESC, t.suite, t.name, t.dtype LIMIT ?3"),
	    V_INT(v->change_id), V_INT(oldest), V_INT(RESULTS_MAX));
	while (rows_next(r)) {
		if (!e || e->id != rows_key_number(r))
			e = find_experiment(v, rows_key_number(r));
		if (e)
			record_read(r, &experiment_result_record, ARRAY_PUSH(e->results, e->n_results));
	}
}

static int get_change_run(struct store_query *q, const struct view *d)
{
	struct get_change *g = CONTAINER_OF(q, struct get_change, q);
	struct change_view *v = xcalloc(1, sizeof(*v));
	struct cell_sets cells;

	if (!record_read_first(
		db_rows(d, RECORD_QUERY(CHANGE_VIEW_RECORD, "FROM change c WHERE c.id = ?1"), V_INT(find_change(d, g))),
		&change_view_record, v)) {
		free(v);
		return ERR_NOT_FOUND;
	}
	if (v->kind == CHANGE_PULL_REQUEST)
		read_pull(d, g->number, v);
	read_accelerators(d, v, g->now_ms);
	read_dispatches_and_jobs(d, v);
	cell_sets_read(d, v->change_id, NULL, &cells);
	change_cells_read(d, v, &cells, g->max_verdicts, g->choice);
	/* Only for a moment: if GitHub does not answer in time, the page shows the facts that it has. */
	v->is_being_attributed =
	    db_has(d, "SELECT 1 FROM attribution_due WHERE change_id = ?1 AND n_tries = 0 AND since_ms > ?2",
		V_INT(v->change_id), V_INT(g->now_ms - EVIDENCE_WAIT_MS));
	change_deltas_read(d, v, &cells);
	cell_sets_release(&cells);
	read_experiments(d, v);
	if (db_status(d)) /* a view with holes would show wrong results */
		change_view_free(v);
	else
		g->view = v;
	return 0;
}

STORE_QUERY(get_change)

/* ---- the JSON ---- */

static json_t *requirement_json(const char *key, const char *name, enum requirement_state state)
{
	static const char *const words[] = {[REQUIREMENT_MET] = "met",
	    [REQUIREMENT_RED] = "failed",
	    [REQUIREMENT_NOT_PASSED] = "not_passed",
	    [REQUIREMENT_NOT_REPORTED] = "not_reported",
	    [REQUIREMENT_UNKNOWN] = "unknown"};

	return json_pack("{s:o, s:s}", key, json_foreign_text(name), "state", words[state]);
}

static void accelerator_view_out(struct buf *out, const struct accelerator_view *a, const struct requirements *q)
{
	json_t *required = json_array();

	for (size_t i = 0; i < q->n_suites; i++)
		json_array_append_new(required, requirement_json("suite", a->required_suites[i], q->suites[i]));
	for (size_t i = 0; i < q->n_tests; i++)
		json_array_append_new(required, requirement_json("test", a->must_pass[i], q->tests[i]));
	json_out_open(out, NULL, '{');
	record_out(out, &accelerator_view_record, a);
	json_out_members(out,
	    json_pack("{s:o, s:o, s:o, s:o, s:o, s:s?, s:b}", "links", links_json(a->docs_url, a->help_url), "required",
		required, "delta", a->delta.base_sha ? record_json(&base_delta_record, &a->delta) : json_null(),
		"branch_state", accelerator_state_json(&a->at.state), "red_since", json_time(a->at.facts.red_since_ms),
		"red_by", red_by_name(a->at.facts.red_since_ms, a->at.facts.is_red_in_silence), "overdue",
		a->at.state.is_overdue));
	record_list_out(
	    out, "dispatches", &dispatch_view_record, a->dispatches, a->n_dispatches, sizeof(*a->dispatches));
	json_out_open(out, "jobs", '[');
	for (size_t i = 0; i < a->n_jobs; i++) {
		json_out_open(out, NULL, '{');
		job_view_out(out, &a->jobs[i]);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
	json_out_open(out, "experiments", '[');
	for (size_t i = 0; i < a->n_experiments; i++) {
		const struct experiment_view *e = &a->experiments[i];

		json_out_open(out, NULL, '{');
		record_out(out, &experiment_view_record, e);
		record_list_out(
		    out, "results", &experiment_result_record, e->results, e->n_results, sizeof(*e->results));
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
	json_out_close(out, '}');
}

static void append_plain(struct buf *out, const char *title) { buf_append_str(out, title ? title : ""); }

char *change_json(const struct change_view *v, const char *public_url, const struct verdict_choice *choice)
{
	static const struct summary_style style = {.bold_on = "", .bold_off = "", .append_title = append_plain};
	struct buf out = BUF_INIT(SIZE_MAX / 2), text = BUF_INIT(SUMMARY_TEXT_MAX_BYTES);
	const char *sentence;
	json_t *summary;
	struct table t;

	/* The figures, and the first sentence of the comment without its symbol, which `verdict` replaces. */
	table_init(&t, v);
	summary = verdict_json(&t);
	summary_append(&t, &style, &text);
	sentence = strchr(buf_str(&text), ' ');
	json_set_foreign_text(summary, "text", sentence ? sentence + 1 : buf_str(&text));
	buf_release(&text);
	json_out_open(&out, NULL, '{');
	record_out(&out, &change_view_record, v);
	json_out_members(&out, json_pack("{s:o, s:b}", "summary", summary, "verdicts_cut", v->is_cut));
	json_out_open(&out, "accelerators", '[');
	for (size_t i = 0; i < v->n_accelerators; i++)
		for (size_t c = 0; c < t.n_columns; c++)
			if (t.columns[c].accelerator == &v->accelerators[i])
				accelerator_view_out(&out, &v->accelerators[i], &t.columns[c].required);
	json_out_close(&out, ']');
	table_release(&t);
	change_cells_out(&out, v, choice, public_url);
	json_out_close(&out, '}');
	return buf_detach(&out);
}
