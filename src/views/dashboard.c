#include "views/dashboard.h"

#include "db/record_rows.h"
#include "experiments/experiments.h"
#include "history/days.h"
#include "history/run_note.h"
#include "history/standings.h"
#include "store/branch_commits.h"
#include "store/dispatches.h"
#include "views/accelerator.h"
#include "views/days.h"
#include "views/record_json.h"

enum {
	ROWS_MAX = 1000,
	SUITES_MAX = 40, /* columns: a table with more is unreadable */
	NAMED_MAX = 3,
	TITLE_MAX_CHARS = 40,
	TEXT_MAX_BYTES = 8192,
};

/* ---- the query ---- */

static int compare_suites(const void *x, const void *y)
{
	const struct suite_view *a = x, *b = y;

	return suite_order(a->suite, b->suite);
}

#define SUITE_TESTS(F, S) TEST_COUNTS_RECORD(F, S, "n_")

static void read_suites(const struct view *d, struct dashboard_row *a)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BOTH(SUITE_VIEW_RECORD, SUITE_TESTS,
		"FROM run_suite WHERE change_id = ?1 AND accelerator = ?2 AND NOT (suite = "
		"'dispatch' AND job_id IS NULL AND n_fail + n_error + n_pass + n_done + n_skip = 0)"),
	    V_INT(a->at.change_id), V_TEXT(a->name));

	RECORDS_RELEASE(suite_view, a->suites, a->n_suites);
	while (rows_next(r)) {
		struct suite_view *s = ARRAY_PUSH(a->suites, a->n_suites);

		record_read(r, &suite_view_record, s);
		record_read(r, &test_counts_record, &s->tests);
	}
	if (a->n_suites)
		qsort(a->suites, a->n_suites, sizeof(*a->suites), compare_suites);
}

static void read_newest(const struct view *d, struct dashboard *v, const struct upstream_branch *u)
{
	const struct standing *newest = NULL;

	for (size_t i = 0; i < v->n_rows; i++) {
		const struct standing *at = &v->rows[i].at;

		if (at->sha && (!newest || at->position > newest->position ||
				   (at->position == newest->position && at->change_id > newest->change_id)))
			newest = at;
	}
	v->position = newest ? newest->position : -1;
	if (newest)
		record_read_first(db_rows(d,
				      RECORD_QUERY(DASHBOARD_RECORD,
					  "FROM change c LEFT JOIN branch_commit b ON b.repository_key = ?2 AND "
					  "b.ref = ?3 AND b.sha = c.head_sha WHERE c.id = ?1"),
				      V_INT(newest->change_id), V_TEXT(u->repository.text), V_TEXT(u->name)),
		    &dashboard_record, v);
}

/* A page shows an experiment with the change that it explains. (|| '': SQLite uses the index of the states.) */
#define GOING " x.is_current = 1 AND " DISPATCH_IS_AT_WORK("x.") " AND x.event_type || '' <> 'experiment'"
#define HELD  " x.is_current = 1 AND x.state = 'held'"
/* The infra repository's own row is not an accelerator, and L1 shows nothing. */
#define SHOWN                                                                                                          \
	" FROM dispatch x JOIN accelerator a ON a.name = x.accelerator AND a.is_gone = 0"                              \
	" AND a.level > 1"
#define RUNNING                                                                                                        \
	RECORD_SELECT(RUNNING_VIEW_RECORD)                                                                             \
	SHOWN " JOIN change c ON c.id = x.change_id LEFT JOIN pull p"                                                  \
	      " ON p.repository_key = c.repository_key AND p.number = x.number WHERE"
#define OLDEST_FIRST " ORDER BY x.created_ms, x.change_id, x.accelerator, x.runner LIMIT ?1"

static int get_dashboard_run(struct store_query *q, const struct view *d)
{
	struct get_dashboard *g = CONTAINER_OF(q, struct get_dashboard, q);
	struct upstream_branch u = {.repository = repository_key(g->repository)};
	struct dashboard *v = xcalloc(1, sizeof(*v));
	struct rows *r = db_rows(d,
	    RECORD_QUERY(
		DASHBOARD_ROW_RECORD, "FROM accelerator WHERE is_gone = 0 AND level > 1 ORDER BY name LIMIT ?1"),
	    V_INT(ROWS_MAX));

	snprintf(u.name, sizeof(u.name), "%s", branch_name(g->branch));
	v->today = day_of(g->now_ms);
	RECORDS_READ(r, dashboard_row, v->rows, v->n_rows);
	DB_PIPELINE (d)
		for (struct dashboard_row *a = v->rows; a < v->rows + v->n_rows; a++) {
			standing_read(d, a->name, &u, g->now_ms, &a->at);
			read_suites(d, a);
			days_read(d, a->name, v->today, a->days, DASHBOARD_DAYS);
			nightly_days_read(d, a->name, v->today, a->nightly, DASHBOARD_DAYS);
		}
	read_newest(d, v, &u);
	/* A held dispatch may wait for a member forever, so those that make progress come first. */
	r = db_rows(d, RUNNING GOING OLDEST_FIRST, V_INT(DASHBOARD_RUNNING_MAX));
	RECORDS_READ(r, running_view, v->running, v->n_running);
	r = db_rows(d, RUNNING HELD OLDEST_FIRST, V_INT(DASHBOARD_RUNNING_MAX - (int64_t)v->n_running));
	RECORDS_READ(r, running_view, v->running, v->n_running);
	v->n_running_total =
	    db_int(d, 0, "SELECT COUNT(*)" SHOWN " WHERE" GOING) + db_int(d, 0, "SELECT COUNT(*)" SHOWN " WHERE" HELD);
	dashboard_sort(v);
	if (db_status(d))
		dashboard_free(v);
	else
		g->view = v;
	return 0;
}

STORE_QUERY(get_dashboard)

/* ---- the headline ---- */

/* Facts about a row as bits. Each of the first N_SENTENCES is a sentence of the rest. */
enum trait {
	IS_OVERDUE,
	IS_UNHEALTHY,
	IS_SILENT,
	IS_WITHOUT_REPORT,
	IS_STALE,
	IS_WITHOUT_PASS,
	IS_UNTESTED,
	IS_EXPLAINED,
	IS_BAD_BY_NIGHT,
	N_SENTENCES,
	IS_RED = N_SENTENCES,
	IS_GREEN,
	IS_PASSING,
};

static const struct {
	const char *one, *many; /* "A is silent", "A and B are silent" */
} SENTENCES[N_SENTENCES] = {
    [IS_OVERDUE] = {"is overdue (more than 72 hours)", "are overdue (more than 72 hours)"},
    [IS_UNHEALTHY] = {"is unhealthy, so not counted", "are unhealthy, so not counted"},
    [IS_SILENT] = {"is silent", "are silent"},
    [IS_WITHOUT_REPORT] = {"let a deadline pass without a report", "let a deadline pass without a report"},
    [IS_STALE] = {"was not tested recently", "were not tested recently"},
    [IS_WITHOUT_PASS] = {"ended its newest test without a pass", "ended their newest tests without a pass"},
    [IS_UNTESTED] = {"is not tested yet", "are not tested yet"},
    [IS_EXPLAINED] = {"passes but for flaky tests or known issues", "pass but for flaky tests or known issues"},
    [IS_BAD_BY_NIGHT] = {"is green, but its newest periodic run is not",
	"are green, but their newest periodic runs are not"},
};

static bool row_has(const struct dashboard_row *r, enum trait t)
{
	enum accelerator_status s = r->at.state.status;
	bool is_passing = accelerator_status_is_green(s);
	unsigned traits =
	    (unsigned)r->at.state.is_overdue << IS_OVERDUE | (unsigned)r->at.facts.is_unhealthy << IS_UNHEALTHY |
	    (unsigned)(s == ACCELERATOR_SILENT) << IS_SILENT |
	    (unsigned)(s == ACCELERATOR_NO_REPORT) << IS_WITHOUT_REPORT |
	    (unsigned)(s == ACCELERATOR_STALE) << IS_STALE | (unsigned)(s == ACCELERATOR_NO_PASS) << IS_WITHOUT_PASS |
	    (unsigned)(s == ACCELERATOR_UNTESTED) << IS_UNTESTED |
	    (unsigned)(s == ACCELERATOR_EXPLAINED) << IS_EXPLAINED |
	    (unsigned)(is_passing && dashboard_bad_night(r) != DAY_NO_RUN) << IS_BAD_BY_NIGHT |
	    (unsigned)accelerator_status_is_red(s) << IS_RED | (unsigned)(s == ACCELERATOR_GREEN) << IS_GREEN |
	    (unsigned)is_passing << IS_PASSING;

	return traits >> t & 1;
}

static size_t count_rows(const struct dashboard *d, enum trait t)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		n += row_has(&d->rows[i], t);
	return n;
}

/* "A", "A and B", "A, B and C", "5 accelerators" */
static void append_names(struct buf *out, const struct dashboard *d, enum trait t)
{
	size_t n = count_rows(d, t), i_name = 0;

	if (n > NAMED_MAX) {
		buf_appendf(out, "%zu accelerators", n);
		return;
	}
	for (size_t i = 0; i < d->n_rows; i++) {
		const struct dashboard_row *r = &d->rows[i];

		if (!row_has(r, t))
			continue;
		if (i_name > 0)
			buf_append_str(out, i_name == n - 1 ? " and " : ", ");
		escape_line(out, r->title && r->title[0] ? r->title : r->name, TITLE_MAX_CHARS);
		i_name++;
	}
}

static bool are_of_the_same(const struct dashboard *d, enum trait a, enum trait b)
{
	for (size_t i = 0; i < d->n_rows; i++)
		if (row_has(&d->rows[i], a) != row_has(&d->rows[i], b))
			return false;
	return true;
}

/* Facts about the same accelerators make one sentence: "A is overdue and is unhealthy". */
static void append_rest(struct buf *out, const struct dashboard *d)
{
	bool is_said[N_SENTENCES] = {false};

	for (enum trait i = 0; i < N_SENTENCES; i++) {
		size_t n = count_rows(d, i), n_same = 0, n_put = 0;

		if (n == 0 || is_said[i])
			continue;
		for (enum trait k = i; k < N_SENTENCES; k++)
			n_same += !is_said[k] && are_of_the_same(d, i, k);
		buf_append_str(out, out->len ? "; " : "");
		append_names(out, d, i);
		for (enum trait k = i; k < N_SENTENCES; k++) {
			if (is_said[k] || !are_of_the_same(d, i, k))
				continue;
			buf_appendf(out, "%s %s",
			    n_put == 0            ? ""
			    : n_put == n_same - 1 ? " and"
						  : ",",
			    n == 1 ? SENTENCES[k].one : SENTENCES[k].many);
			is_said[k] = true;
			n_put++;
		}
	}
	if (out->len)
		buf_append_char(out, '.');
}

/* The first sentence. Returns the state whose symbol and tone it has. */
static enum accelerator_status append_lead(struct buf *out, const struct dashboard *d, const char *branch)
{
	size_t n = d->n_rows, n_red = count_rows(d, IS_RED);

	if (n_red) {
		buf_appendf(out, "%zu of %zu accelerator%s %s red on %s", n_red, n, n == 1 ? "" : "s",
		    n_red == 1 ? "is" : "are", branch);
		return ACCELERATOR_RED;
	}
	if (count_rows(d, IS_PASSING) == 0) {
		if (count_rows(d, IS_UNTESTED) == n)
			buf_appendf(out, "Nothing has been tested on %s yet", branch);
		else
			buf_appendf(out, "No accelerator is known to be green on %s", branch);
		return ACCELERATOR_UNTESTED;
	}
	if (count_rows(d, IS_GREEN) < n)
		buf_appendf(out, "Nothing is known to be red on %s", branch);
	else if (n == 1)
		buf_appendf(out, "The one accelerator is green on %s", branch);
	else
		buf_appendf(out, "All %zu accelerators are green on %s", n, branch);
	return ACCELERATOR_GREEN;
}

static json_t *headline_json(const struct dashboard *d, const char *branch)
{
	struct buf text = BUF_INIT(TEXT_MAX_BYTES), rest = BUF_INIT(TEXT_MAX_BYTES);
	const struct accelerator_words *words = accelerator_words(append_lead(&text, d, branch));

	if (count_rows(d, IS_UNTESTED) < d->n_rows)
		append_rest(&rest, d);
	json_t *obj = json_pack("{s:s, s:s, s:o, s:o}", "symbol", words->symbol, "tone", words->tone, "text",
	    json_foreign_text(buf_str(&text)), "rest", json_foreign_text(buf_str(&rest)));
	buf_release(&text);
	buf_release(&rest);
	return obj;
}

/* ---- the JSON ---- */

static json_t *commit_json(const struct dashboard *d, const struct dashboard_row *r, const char *public_url)
{
	bool is_known = r->at.position >= 0 && d->position >= 0;
	int64_t distance = d->position - r->at.position;

	if (!r->at.sha)
		return json_null();
	if (!is_known && strcmp(r->at.sha, d->sha) == 0) {
		is_known = true;
		distance = 0;
	}
	return json_pack("{s:s, s:o, s:o, s:o}", "sha", r->at.sha, "at", json_time(r->at.commit_ms), "distance",
	    is_known && distance < DISTANCE_UNKNOWN ? json_integer(distance) : json_null(), "url",
	    change_url_json(public_url, CHANGE_PUSH, 0, r->at.sha));
}

/* One jansson value for each day would take longer than the rest. */
static void row_out(struct buf *out, const struct dashboard *d, const struct dashboard_row *r, const char *public_url)
{
	json_t *no_report = json_null(), *facts;

	if (r->at.silent_sha)
		no_report =
		    json_pack("{s:s, s:o, s:o}", "sha", r->at.silent_sha, "since", json_time(r->at.facts.no_report_ms),
			"url", change_url_json(public_url, CHANGE_PUSH, 0, r->at.silent_sha));
	facts = json_pack("{s:s, s:o, s:s, s:o, s:o, s:s?}", "level", level_name(r->at.facts.level), "links",
	    links_json(r->docs_url, r->help_url), "health", r->at.facts.is_unhealthy ? "unhealthy" : "ok", "commit",
	    commit_json(d, r, public_url), "no_report", no_report, "bad_night",
	    day_outcome_name(dashboard_bad_night(r)));
	standing_add_json(facts, &r->at);
	json_out_open(out, NULL, '{');
	record_out(out, &dashboard_row_record, r);
	json_out_members(out, facts);
	json_out_open(out, "suites", '[');
	for (size_t i = 0; i < r->n_suites; i++) {
		json_out_open(out, NULL, '{');
		record_out(out, &suite_view_record, &r->suites[i]);
		record_object_out(out, "tests", &test_counts_record, &r->suites[i].tests);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
	trend_out(out, "trend", r->days, DASHBOARD_DAYS, d->today, TREND_SHORT);
	calendar_out(out, "nightly", r->nightly, DASHBOARD_DAYS, d->today, r->name, public_url);
	json_out_close(out, '}');
}

static int compare_names(const void *x, const void *y)
{
	return suite_order(*(const char *const *)x, *(const char *const *)y);
}

/* The columns: every suite that any row has. */
static json_t *columns_json(const struct dashboard *d)
{
	json_t *list = json_array();
	const char **names = NULL;
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		for (size_t k = 0; k < d->rows[i].n_suites; k++)
			*ARRAY_PUSH(names, n) = d->rows[i].suites[k].suite;
	if (n)
		qsort(names, n, sizeof(*names), compare_names);
	for (size_t i = 0; i < n && json_array_size(list) < SUITES_MAX; i++)
		if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
			json_array_append_new(list, json_foreign_text(names[i]));
	free(names);
	return list;
}

char *dashboard_json(const struct dashboard *d, const char *repository, const char *branch, const char *public_url)
{
	struct buf out = BUF_INIT(SIZE_MAX / 2);
	int64_t n[N_ACCELERATOR_STATUSES] = {0};
	json_t *states = json_array();

	for (size_t i = 0; i < d->n_rows; i++)
		n[d->rows[i].at.state.status]++;
	/* The number of accelerators in each state, the worst state first, without empty states. */
	for (int i = 0; i < N_ACCELERATOR_STATUSES; i++) {
		json_t *state = accelerator_words_json((enum accelerator_status)i);

		json_set_int(state, "accelerators", n[i]);
		if (n[i])
			json_array_append(states, state);
		json_decref(state);
	}
	json_out_open(&out, NULL, '{');
	json_out_members(&out, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:I}", "repository", repository, "branch",
				   branch, "headline", headline_json(d, branch), "states", states, "newest",
				   d->sha ? record_json(&dashboard_record, d) : json_null(), "suites", columns_json(d),
				   "running_total", (json_int_t)d->n_running_total));
	json_out_open(&out, "accelerators", '[');
	for (size_t i = 0; i < d->n_rows; i++)
		row_out(&out, d, &d->rows[i], public_url);
	json_out_close(&out, ']');
	json_out_open(&out, "running", '[');
	for (size_t i = 0; i < d->n_running; i++) {
		const struct running_view *v = &d->running[i];

		json_out_open(&out, NULL, '{');
		record_out(&out, &running_view_record, v);
		json_out_value(&out, "url", change_url_json(public_url, v->kind, v->number, v->head_sha));
		json_out_close(&out, '}');
	}
	json_out_close(&out, ']');
	json_out_close(&out, '}');
	return buf_detach(&out);
}
