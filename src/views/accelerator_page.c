#include "views/accelerator_page.h"

#include "db/record_rows.h"
#include "experiments/experiments.h"
#include "history/days.h"
#include "history/red_episodes.h"
#include "views/accelerator.h"
#include "views/days.h"
#include "views/record_json.h"

enum {
	MACHINES_MAX = 1000,
	LINES_LOOKED_AT_MAX = 1000, /* by one page of numbers, with or without a point in its time */
};

/* ---- jobs ---- */

RECORD_DEFINE(page_job, PAGE_JOB_RECORD)
#define JOB_TESTS(F, S) TEST_COUNTS_RECORD(F, S, "j.n_tests_")

/* before_id 0: from the newest. `id > 0` is the condition of the index (db/schema_4.sql). */
static void page_jobs_read(
    const struct view *d, const char *accelerator, int64_t before_id, int limit, struct page_jobs *ret)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BOTH(PAGE_JOB_RECORD, JOB_TESTS,
		"FROM job j JOIN change c ON c.id = j.change_id LEFT JOIN dispatch x ON x.id = "
		"j.dispatch_id AND x.accelerator = j.accelerator AND x.runner = j.runner WHERE "
		"j.accelerator = ?1 AND j.id > 0 AND j.id < ?2 AND c.kind <> 'experiment' ORDER BY "
		"j.id DESC LIMIT ?3"),
	    V_TEXT(accelerator), V_INT(before_id ? before_id : INT64_MAX), V_INT(limit + 1));

	*ret = (struct page_jobs){.n = 0};
	while (!ret->has_more && rows_next(r)) {
		ret->has_more = ret->n == (size_t)limit;
		if (ret->has_more)
			break;
		struct page_job *j = ARRAY_PUSH(ret->at, ret->n);
		record_read(r, &page_job_record, j);
		record_read(r, &test_counts_record, &j->tests);
	}
	rows_end(r);
}

void page_jobs_release(struct page_jobs *l) { RECORDS_RELEASE(page_job, l->at, l->n); }

static int list_accelerator_jobs_run(struct store_query *sq, const struct view *d)
{
	struct list_accelerator_jobs *q = CONTAINER_OF(sq, struct list_accelerator_jobs, q);

	page_jobs_read(d, q->accelerator, q->before_id, q->limit, &q->jobs);
	if (db_status(d))
		page_jobs_release(&q->jobs);
	return 0;
}

STORE_QUERY(list_accelerator_jobs)

void page_jobs_out(struct buf *out, const struct page_jobs *l, const char *public_url)
{
	json_out_open(out, "jobs", '[');
	for (size_t i = 0; i < l->n; i++) {
		const struct page_job *j = &l->at[i];

		json_out_open(out, NULL, '{');
		record_out(out, &page_job_record, j);
		if (j->has_counts)
			record_object_out(out, "tests", &test_counts_record, &j->tests);
		else
			json_out_raw(out, "tests", "null");
		job_url_out(out, "url", public_url, j->id);
		json_out_value(out, "change_url", change_url_json(public_url, j->kind, j->number, j->head_sha));
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

json_t *page_jobs_next(const struct page_jobs *l)
{
	char text[32];

	if (!l->has_more || !l->n)
		return json_null();
	snprintf(text, sizeof(text), "%lld", (long long)l->at[l->n - 1].id);
	return cursor_json(text, strlen(text));
}

/* ---- the query of the page ---- */

RECORD_DEFINE(page_machine, PAGE_MACHINE_RECORD)
RECORD_DEFINE(page_commit, PAGE_COMMIT_MEMBERS)
RECORD_DEFINE(page_red, PAGE_RED_RECORD)
RECORD_DEFINE(page_experiments, PAGE_EXPERIMENTS_RECORD)

#define COMMIT_TIME(sha, otherwise)                                                                                    \
	"COALESCE((SELECT COALESCE(b.at_ms, 0) FROM branch_commit b"                                                   \
	" WHERE b.repository_key = e.repository_key AND b.sha = " sha " AND b.ref = e.ref), " otherwise ")"
#define FIRST_BAD(F, S) PAGE_COMMIT_RECORD(F, S, "c.head_sha", COMMIT_TIME("c.head_sha", "c.created_ms"))
#define LAST_GOOD(F, S) PAGE_COMMIT_RECORD(F, S, "e.last_good_sha", COMMIT_TIME("e.last_good_sha", "0"))

static void read_red(const struct view *d, const char *accelerator, struct page_red *ret)
{
	struct rows *r = db_rows(d,
	    RECORD_SELECT(PAGE_RED_RECORD) RECORD_COLUMNS(FIRST_BAD)
		RECORD_COLUMNS(LAST_GOOD) " FROM red_episode e LEFT JOIN change c ON c.id = e.first_bad_change"
					  " WHERE e.accelerator = ?1 AND e.ended_ms IS NULL"
					  " ORDER BY e.first_bad_ms, e.id LIMIT 1",
	    V_TEXT(accelerator));

	if (rows_next(r)) {
		record_read(r, &page_red_record, ret);
		record_read(r, &page_commit_record, &ret->first_bad);
		record_read(r, &page_commit_record, &ret->last_good);
		ret->tests = red_tests(d, ret->first_bad_change, accelerator);
	}
	rows_end(r);
}

static int compare_machine(const void *name, const void *m)
{
	return strcmp(name, ((const struct page_machine *)m)->name);
}

#define LEASE_RUNNER_RECORD(F, S) F(S, TEXT, runner, NULL, "runner", "")
RECORD_LOCAL(lease_runner, LEASE_RUNNER_RECORD)

static void read_machines(const struct view *d, struct get_accelerator_page *p)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(PAGE_MACHINE_RECORD, "FROM token WHERE accelerator = ?1 AND kind = 'runner' AND "
					      "revoked_ms IS NULL GROUP BY name ORDER BY name LIMIT ?2"),
	    V_TEXT(p->name), V_INT(MACHINES_MAX));

	RECORDS_READ(r, page_machine, p->machines, p->n_machines);
	r = db_rows(d,
	    RECORD_QUERY_BY("machine", LEASE_RUNNER_RECORD,
		"FROM lease WHERE accelerator = ?1 AND state = 'active' ORDER BY runner"),
	    V_TEXT(p->name));
	while (rows_next(r)) {
		struct page_machine *m = p->n_machines ? bsearch(rows_key(r), p->machines, p->n_machines,
							     sizeof(*p->machines), compare_machine)
						       : NULL;
		struct lease_runner lease;

		record_read(r, &lease_runner_record, &lease);
		if (m)
			strv_add(&m->busy_with, lease.runner);
		record_release(&lease_runner_record, &lease);
	}
}

static int get_accelerator_page_run(struct store_query *sq, const struct view *d)
{
	struct get_accelerator_page *p = CONTAINER_OF(sq, struct get_accelerator_page, q);
	struct upstream_branch u = upstream_branch_read(d);
	struct experiment_ends ends = experiment_ends_read(d, p->name, p->now_ms);

	p->today = day_of(p->now_ms);
	p->figures.name = xstrdup(p->name);
	accelerator_figures_read(d, &p->figures, &u, p->now_ms);
	days_read(d, p->name, p->today, p->trend, PAGE_TREND_DAYS);
	nightly_days_read(d, p->name, p->today, p->calendar, PAGE_CALENDAR_DAYS);
	record_read_first(db_rows(d,
			      RECORD_QUERY(SCHEDULE_VIEW_RECORD,
				  "FROM schedule s WHERE s.accelerator = ?1 AND s.next_ms IS NOT NULL"),
			      V_TEXT(p->name)),
	    &schedule_view_record, &p->schedule);
	/* a run that ended without an outcome was at L1 */
	record_read_first(db_rows(d,
			      RECORD_QUERY(SCHEDULE_RUN_RECORD,
				  "FROM schedule_run x WHERE x.accelerator = ?1 AND (x.outcome IS NOT NULL OR "
				  "x.ended_ms IS NULL) ORDER BY x.due_ms DESC, x.id DESC LIMIT 1"),
			      V_TEXT(p->name)),
	    &schedule_run_view_record, &p->last_run);
	read_red(d, p->name, &p->red);
	page_jobs_read(d, p->name, 0, PAGE_JOBS, &p->jobs);
	read_machines(d, p);
	p->experiments = (struct page_experiments){
	    .n_done = ends.n_done, .n_void = ends.n_void, .n_expired = ends.n_expired, .newest_loss = ends.newest_loss};
	p->experiments.n_pending =
	    db_int(d, 0, "SELECT COUNT(*) FROM experiment WHERE accelerator = ?1 AND state IN ('planned', 'started')",
		V_TEXT(p->name));
	experiments_budget(d, p->name, p->now_ms, &p->experiments.spent_ms, &p->experiments.allowed_ms);
	if (db_status(d))
		get_accelerator_page_release(p);
	return 0;
}

STORE_QUERY(get_accelerator_page)

void get_accelerator_page_release(struct get_accelerator_page *q)
{
	accelerator_figures_release(&q->figures);
	record_release(&schedule_view_record, &q->schedule);
	record_release(&schedule_run_view_record, &q->last_run);
	record_release(&page_red_record, &q->red);
	record_release(&page_commit_record, &q->red.first_bad);
	record_release(&page_commit_record, &q->red.last_good);
	strv_free(q->red.tests);
	q->red.tests = NULL;
	page_jobs_release(&q->jobs);
	for (size_t i = 0; i < q->n_machines; i++)
		strv_free(q->machines[i].busy_with);
	RECORDS_RELEASE(page_machine, q->machines, q->n_machines);
	record_release(&page_experiments_record, &q->experiments);
}

/* ---- the JSON of the page ---- */

/* Only the labels of a machine's claim decide which of several pull runners it serves, so each of them lists it. */
static json_t *machines_json(const struct runner *r, const struct get_accelerator_page *p)
{
	json_t *list = json_array();

	for (size_t i = 0; r->kind == RUNNER_PULL && i < p->n_machines; i++) {
		const struct page_machine *m = &p->machines[i];
		json_t *obj = record_json(&page_machine_record, m);

		json_object_set_new(obj, "busy",
		    json_boolean(m->busy_with && strv_contains((const char *const *)m->busy_with, r->name)));
		json_array_append_new(list, obj);
	}
	return list;
}

/* Null: no runner accepts experiments. */
static json_t *experiments_json(const struct accelerator *a, const struct page_experiments *e)
{
	struct page_experiments shown = *e;
	bool has_any = false;

	for (size_t i = 0; i < a->n_runners; i++)
		has_any |= a->runners[i].reruns != RERUNS_NONE;
	if (!has_any)
		return json_null();
	if (!a->experiments.share_permille)
		shown.allowed_ms = 0;
	json_t *obj = record_json(&page_experiments_record, &shown);
	json_object_set_new(obj, "share", json_real(a->experiments.share_permille / 1000.0));
	return obj;
}

static json_t *commit_json(const struct page_commit *c, const char *public_url)
{
	if (!c->sha)
		return json_null();
	json_t *obj = record_json(&page_commit_record, c);
	json_object_set_new(obj, "url", change_url_json(public_url, CHANGE_PUSH, 0, c->sha));
	return obj;
}

static void schedule_out(
    struct buf *out, const struct accelerator *a, const struct get_accelerator_page *p, const char *public_url)
{
	if (!p->schedule.is_there) {
		json_out_raw(out, "schedule", "null");
		return;
	}
	json_out_open(out, "schedule", '{');
	record_out(out, &schedule_view_record, &p->schedule);
	schedule_run_out(out, "last", &p->last_run, a->name, public_url);
	json_out_close(out, '}');
}

char *accelerator_page_json(const struct config *c, const struct accelerator *a, const struct get_accelerator_page *p)
{
	struct buf out = BUF_INIT(SIZE_MAX / 2);
	struct get_accelerator_page *silent = NULL;
	json_t *v = accelerator_json(c, a, &p->figures), *runners = json_object_get(v, "runners");
	json_t *red = json_null();

	if (a->level == LEVEL_1) {
		silent = xcalloc(1, sizeof(*silent));
		silent->today = p->today;
		for (int i = 0; i < PAGE_TREND_DAYS; i++)
			silent->trend[i] = empty_day;
		p = silent;
	}
	for (size_t i = 0; i < a->n_runners; i++)
		json_object_set_new(json_array_get(runners, i), "machines", machines_json(&a->runners[i], p));
	if (p->red.since_ms) {
		red = record_json(&page_red_record, &p->red);
		json_object_update_new(
		    red, json_pack("{s:o, s:o, s:o, s:o}", "first_bad", commit_json(&p->red.first_bad, c->public_url),
			     "last_good", commit_json(&p->red.last_good, c->public_url), "overdue_at",
			     json_time(p->red.since_ms + RED_OVERDUE_MS), "tests", json_foreign_texts(p->red.tests)));
	}
	json_object_update_new(v, json_pack("{s:o, s:o, s:o}", "experiments", experiments_json(a, &p->experiments),
				      "red", red, "jobs_next", page_jobs_next(&p->jobs)));
	json_out_open(&out, NULL, '{');
	json_out_members(&out, v);
	trend_out(&out, "trend", p->trend, PAGE_TREND_DAYS, p->today, TREND_FULL);
	calendar_out(&out, "calendar", p->calendar, PAGE_CALENDAR_DAYS, p->today, a->name, c->public_url);
	schedule_out(&out, a, p, c->public_url);
	page_jobs_out(&out, &p->jobs, c->public_url);
	json_out_close(&out, '}');
	free(silent);
	return buf_detach(&out);
}

/* ---- numbers ---- */

RECORD_DEFINE(number_point, NUMBER_POINT_RECORD)
RECORD_DEFINE(number_series, NUMBER_SERIES_RECORD)

#define LINE_RECORD(F, S)                                                                                              \
	F(S, INT, test_id, NULL, "test_id", "")                                                                        \
	F(S, TEXT, unit, NULL, "unit", "")
RECORD_LOCAL(line, LINE_RECORD)

/* Goes to the next line. This is one step in the index, however many points a line has. */
static bool next_number_line(const struct view *d, const char *accelerator, struct line *at)
{
	struct line next;
	struct rows *r = db_rows(d,
	    RECORD_QUERY(LINE_RECORD, "FROM number_day WHERE accelerator = ?1 AND (test_id, unit) "
				      "> (?2, ?3) ORDER BY test_id, unit LIMIT 1"),
	    V_TEXT(accelerator), V_INT(at->test_id), V_TEXT(at->unit));

	if (!record_read_first(r, &line_record, &next))
		return false;
	record_release(&line_record, at);
	*at = next;
	return true;
}

static int list_numbers_run(struct store_query *sq, const struct view *d)
{
	struct list_numbers *q = CONTAINER_OF(sq, struct list_numbers, q);
	struct line at = {.test_id = q->after_test, .unit = xstrdup(q->after_unit ? q->after_unit : "")};
	size_t n_points = 0;

	q->has_more = false;
	for (int n = 0; !q->has_more && next_number_line(d, q->accelerator, &at); n++) {
		struct number_series s = {.n = 0};
		struct rows *r = db_rows(d,
		    RECORD_QUERY(NUMBER_POINT_RECORD,
			"FROM number_day WHERE accelerator = ?1 AND test_id = ?2 AND unit = ?3 "
			"AND day >= ?4 ORDER BY day"),
		    V_TEXT(q->accelerator), V_INT(at.test_id), V_TEXT(at.unit), V_INT(day_of(q->since_ms)));

		RECORDS_READ(r, number_point, s.points, s.n);
		if (s.n) {
			record_read_first(db_rows(d, RECORD_QUERY(NUMBER_SERIES_RECORD, "FROM test t WHERE t.id = ?1"),
					      V_INT(at.test_id), V_TEXT(at.unit)),
			    &number_series_record, &s);
			*ARRAY_PUSH(q->list, q->n) = s;
			n_points += s.n;
		}
		q->has_more = q->n >= (size_t)q->limit || n_points >= NUMBER_POINTS_MAX || n >= LINES_LOOKED_AT_MAX;
	}
	if (q->has_more) {
		q->next_test = at.test_id;
		snprintf(q->next_unit, sizeof(q->next_unit), "%s", at.unit);
		q->has_more = next_number_line(d, q->accelerator, &at);
	}
	record_release(&line_record, &at);
	if (db_status(d))
		list_numbers_release(q);
	return 0;
}

STORE_QUERY(list_numbers)

void list_numbers_release(struct list_numbers *q)
{
	for (size_t i = 0; i < q->n; i++)
		RECORDS_RELEASE(number_point, q->list[i].points, q->list[i].n);
	RECORDS_RELEASE(number_series, q->list, q->n);
}

char *numbers_json(const struct list_numbers *l, int64_t days)
{
	struct buf out = BUF_INIT(SIZE_MAX / 2);
	json_t *next = json_null();

	if (l->has_more) {
		char *text = xasprintf("%lld %s", (long long)l->next_test, l->next_unit);

		next = cursor_json(text, strlen(text));
		free(text);
	}
	json_out_open(&out, NULL, '{');
	json_out_members(&out, json_pack("{s:I, s:o}", "days", (json_int_t)days, "next", next));
	json_out_open(&out, "series", '[');
	for (size_t i = 0; i < l->n; i++) {
		const struct number_series *s = &l->list[i];

		json_out_open(&out, NULL, '{');
		record_out(&out, &number_series_record, s);
		record_list_out(&out, "points", &number_point_record, s->points, s->n, sizeof(*s->points));
		json_out_close(&out, '}');
	}
	json_out_close(&out, ']');
	json_out_close(&out, '}');
	return buf_detach(&out);
}
