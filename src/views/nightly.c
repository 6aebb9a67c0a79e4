/* The accelerators with periodic runs, their runs, and the days and marks of the tests that a page shows; and the JSON of the
 * page. */
#include "views/nightly.h"

#include "db/key.h"
#include "db/record_rows.h"
#include "history/commits_between.h"
#include "history/days.h"
#include "history/history.h"
#include "views/days.h"
#include "views/record_json.h"

/* ---- accelerators ---- */

static void read_accelerators(const struct view *d, const struct get_nightly *q, struct nightly_view *v)
{
	int64_t from_ms = v->first_day * DAY_MS;
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BOTH(NIGHTLY_ACCELERATOR_RECORD, SCHEDULE_VIEW_RECORD,
		"FROM accelerator a LEFT JOIN schedule s ON s.accelerator = a.name AND s.next_ms "
		"IS NOT NULL AND a.is_gone = 0 WHERE a.level > ?1 AND (?2 IS NULL OR a.name = ?2) "
		"AND (s.cron IS NOT NULL OR EXISTS (SELECT 1 FROM schedule_run x WHERE "
		"x.accelerator = a.name AND x.due_ms >= ?3 AND x.due_ms < ?4)) ORDER BY a.name"),
	    V_INT(LEVEL_1), V_TEXT(q->accelerator), V_INT(from_ms), V_INT(from_ms + (int64_t)v->n_days * DAY_MS));

	while (rows_next(r)) {
		struct nightly_accelerator *a = ARRAY_PUSH(v->accelerators, v->n_accelerators);

		record_read(r, &nightly_accelerator_record, a);
		record_read(r, &schedule_view_record, &a->schedule);
		a->runs = xcalloc(v->n_days, sizeof(*a->runs));
	}
}

/* Newest first: of several runs on one day the page shows the last one. A run that ended without an outcome was at L1. */
static void read_runs(const struct view *d, const struct nightly_view *v, struct nightly_accelerator *a)
{
	int64_t first = v->first_day;
	struct rows *r = db_rows(d,
	    RECORD_QUERY(SCHEDULE_RUN_RECORD,
		"FROM schedule_run x WHERE x.accelerator = ?1 AND x.due_ms >= ?2 AND x.due_ms < ?3 "
		"AND (x.outcome IS NOT NULL OR x.ended_ms IS NULL) ORDER BY x.due_ms DESC"),
	    V_TEXT(a->name), V_INT(first * DAY_MS), V_INT((first + (int64_t)v->n_days) * DAY_MS));

	while (rows_next(r)) {
		struct schedule_run_view run, *of_day;

		record_read(r, &schedule_run_view_record, &run);
		of_day = &a->runs[day_of(run.due_ms) - first];
		if (of_day->id)
			record_release(&schedule_run_view_record, &run);
		else
			*of_day = run;
	}
}

#define STATE_COUNT_RECORD(F, S)                                                                                       \
	F(S, HISTORY_STATE, state, NULL, "state", "")                                                                  \
	F(S, INT, n, NULL, "n", "")
RECORD_LOCAL(state_count, STATE_COUNT_RECORD)

/* ---- the days of the tests ---- */

/* One cell of the view, by accelerator and test. */
struct cell_of_test {
	int64_t test_id;
	struct nightly_cell *cell;
};

static int by_test(const void *x, const void *y)
{
	const struct cell_of_test *a = x, *b = y;

	return (a->test_id > b->test_id) - (a->test_id < b->test_id);
}

#define RUN_CELLS_RECORD(F, S)                                                                                         \
	F(S, TEXT, jobs, NULL, "COALESCE(jobs, '')", "")                                                               \
	F(S, BLOB, cells, NULL, "cells", "")
RECORD_LOCAL(run_cells, RUN_CELLS_RECORD)

static void read_day(struct rows *r, size_t day, const struct cell_of_test *list, size_t n)
{
	struct cell_reader cells;
	struct history_cell c;
	struct run_cells run;
	int64_t *jobs;
	size_t n_jobs;

	record_read(r, &run_cells_record, &run);
	cells = cell_reader_of(run.cells.p, run.cells.n);
	jobs = history_numbers(run.jobs, 10, &n_jobs);
	for (size_t i = 0; i < n; i++)
		if (cell_reader_find(&cells, list[i].test_id, &c))
			list[i].cell->days[day] = (struct nightly_day){
			    .status = (int)c.status, .job = c.job > 0 && (size_t)c.job <= n_jobs ? jobs[c.job - 1] : 0};
	free(jobs);
	record_release(&run_cells_record, &run);
}

static void read_days(const struct view *d, struct nightly_view *v)
{
	struct cell_of_test *list = xcalloc(v->n_tests + 1, sizeof(*list));

	for (size_t i = 0; i < v->n_tests; i++)
		for (size_t k = 0; k < v->tests[i].n_cells; k++) {
			struct nightly_day *days = xcalloc(v->n_days, sizeof(*days));

			for (size_t x = 0; x < v->n_days; x++)
				days[x].status = -1;
			v->tests[i].cells[k].days = days;
		}
	for (size_t i = 0; i < v->n_accelerators; i++) {
		size_t n_cells = 0;

		for (size_t t = 0; t < v->n_tests; t++)
			for (size_t k = 0; k < v->tests[t].n_cells; k++)
				if (v->tests[t].cells[k].accelerator == i)
					list[n_cells++] = (struct cell_of_test){v->tests[t].id, &v->tests[t].cells[k]};
		if (!n_cells)
			continue;
		qsort(list, n_cells, sizeof(*list), by_test);
		struct rows *r = db_rows(d,
		    RECORD_QUERY_BY(
			"day", RUN_CELLS_RECORD, "FROM history_run WHERE accelerator = ?1 AND day >= ?2 AND day < ?3"),
		    V_TEXT(v->accelerators[i].name), V_INT(v->first_day), V_INT(v->first_day + (int64_t)v->n_days));
		while (rows_next(r))
			read_day(r, (size_t)(rows_key_number(r) - v->first_day), list, n_cells);
	}
	free(list);
}

/* ---- marks ---- */

/* Finds the list of commits between the runs of two marks, or adds it; its index. */
static int commits_of_marks(
    const struct view *d, struct nightly_view *v, const struct nightly_mark *good, const char *bad)
{
	struct repository_key key = repository_key(good->repository);
	struct known_commits known = {.n = 0};

	for (size_t i = v->n_commits; i > 0; i--)
		if (strcmp(v->commits[i - 1].bad_sha, bad) == 0 &&
		    strcmp(v->commits[i - 1].good_sha, good->upstream_sha) == 0)
			return (int)i - 1;
	struct nightly_commits *c = ARRAY_PUSH(v->commits, v->n_commits);
	if (strcmp(good->upstream_sha, bad) != 0)
		commits_between_read(d, key.text, good->upstream_sha, bad, &known);
	*c = (struct nightly_commits){
	    .repository = xstrdup(good->repository),
	    .good_sha = xstrdup(good->upstream_sha),
	    .bad_sha = xstrdup(bad),
	    .n = known.n,
	};
	for (size_t i = 0; i < known.n_listed; i++)
		*ARRAY_PUSH(c->list, c->n_listed) =
		    (struct nightly_commit){known.list[i].sha, known.list[i].title, known.list[i].author};
	return (int)v->n_commits - 1;
}

/* Most tests that broke, broke together, so the mark that was read before is often the same. */
static void read_mark(
    const struct view *d, const char *accelerator, struct nightly_mark *m, const struct nightly_mark **last)
{
	const struct nightly_mark *before = *last;
	int64_t job = m->job;

	if (m->day < 0)
		return;
	if (before && before->day == m->day && before->job == job) {
		*m = *before;
		record_copy_texts(&nightly_mark_record, m);
		return;
	}
	if (!record_read_first(
		db_rows(d,
		    RECORD_QUERY(NIGHTLY_MARK_RECORD, "FROM history_run h WHERE h.accelerator = ?1 AND h.day = ?2"),
		    V_TEXT(accelerator), V_INT(m->day), V_INT(job)),
		&nightly_mark_record, m))
		m->job = job && db_has(d, "SELECT 1 FROM job WHERE id = ?1", V_INT(job)) ? job : 0;
	*last = m;
}

static void read_marks(const struct view *d, struct nightly_view *v)
{
	const struct nightly_mark **lasts = xcalloc(2 * v->n_accelerators + 1, sizeof(*lasts));

	for (size_t i = 0; i < v->n_tests; i++)
		for (size_t k = 0; k < v->tests[i].n_cells; k++) {
			struct nightly_cell *c = &v->tests[i].cells[k];
			const struct nightly_mark *good = &c->last_good, *bad = &c->first_bad;
			const char *name = v->accelerators[c->accelerator].name;

			read_mark(d, name, &c->first_bad, &lasts[2 * c->accelerator]);
			read_mark(d, name, &c->last_good, &lasts[2 * c->accelerator + 1]);
			if (good->upstream_sha && bad->upstream_sha)
				c->commits = commits_of_marks(d, v, good, bad->upstream_sha);
		}
	free(lasts);
}

/* ---- the query ---- */

static int get_nightly_run(struct store_query *sq, const struct view *d)
{
	struct get_nightly *q = CONTAINER_OF(sq, struct get_nightly, q);
	struct nightly_view *v;

	/* also for an accelerator that left the registry: its runs are kept, and shown */
	if (q->accelerator && !db_has(d, "SELECT 1 FROM accelerator WHERE name = ?1", V_TEXT(q->accelerator)) &&
	    !db_status(d))
		return ERR_NOT_FOUND;
	v = xcalloc(1, sizeof(*v));
	v->n_days = (size_t)q->n_days;
	v->first_day = q->last_day - q->n_days + 1;
	read_accelerators(d, q, v);
	for (size_t i = 0; i < v->n_accelerators; i++) {
		struct state_count c;

		read_runs(d, v, &v->accelerators[i]);
		struct rows *r = db_rows(d,
		    RECORD_QUERY(STATE_COUNT_RECORD, "FROM history_count WHERE accelerator = ?1 AND suite = ?2"),
		    V_TEXT(v->accelerators[i].name), V_TEXT(q->suite ? q->suite : ""));
		while (rows_next(r)) {
			record_read(r, &state_count_record, &c);
			if (c.state < N_HISTORY_STATES)
				v->counts[c.state] += c.n;
		}
	}
	nightly_tests_read(d, q, v);
	read_days(d, v);
	read_marks(d, v);
	if (db_status(d))
		nightly_view_free(v);
	else
		q->view = v;
	return 0;
}

STORE_QUERY(get_nightly)

/* ---- the JSON ---- */

enum { DAY_JSON_BYTES = 64 };

static json_t *day_json(int64_t day)
{
	char text[DAY_TEXT_BYTES];

	return day < 0 ? json_null() : json_string(day_text(day, text));
}

/* ---- accelerators ---- */

static json_t *accelerators_json(const struct nightly_view *v, const char *public_url)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_accelerators; i++) {
		const struct nightly_accelerator *a = &v->accelerators[i];
		json_t *obj = record_json(&nightly_accelerator_record, a), *runs = json_array();

		json_object_set_new(obj, "schedule",
		    a->schedule.is_there ? record_json(&schedule_view_record, &a->schedule) : json_null());
		for (size_t k = 0; k < v->n_days; k++)
			json_array_append_new(runs, schedule_run_json(&a->runs[k], a->name, public_url));
		json_object_set_new(obj, "runs", runs);
		json_array_append_new(list, obj);
	}
	return list;
}

/* ---- the commits between two runs ---- */

/* "https://github.com/o/r.git" as "o/r"; NULL: it is not on GitHub. free(). */
static char *github_repository(const char *git_url)
{
	static const char GITHUB[] = "https://github.com/";

	if (!git_url || !str_has_prefix(git_url, GITHUB))
		return NULL;
	char *name = xstrdup(git_url + strlen(GITHUB));
	if (str_has_suffix(name, ".git"))
		name[strlen(name) - strlen(".git")] = '\0';
	if (!is_repository_name(name))
		FREE_AND_NULL(name);
	return name;
}

static json_t *compare_url_json(const char *repository, const char *from, const char *to)
{
	return repository && from && to && strcmp(from, to) != 0
		   ? json_sprintf("https://github.com/%s/compare/%s...%s", repository, from, to)
		   : json_null();
}

static json_t *commits_json(const struct nightly_view *v, const struct nightly_cell *cell, json_t *const *known)
{
	const struct nightly_mark *good = &cell->last_good, *bad = &cell->first_bad;
	char *source = NULL;

	if (cell->commits < 0)
		return json_null();
	const struct nightly_commits *c = &v->commits[cell->commits];
	if (bad->source_url && str_eq(bad->source_url, good->source_url))
		source = github_repository(bad->source_url);
	json_t *obj = json_pack("{s:o, s:o, s:O, s:o}", "url", compare_url_json(c->repository, c->good_sha, c->bad_sha),
	    "count", c->n < 0 ? json_null() : json_integer(c->n), "known", known[cell->commits], "source_url",
	    compare_url_json(source, good->source_sha, bad->source_sha));
	free(source);
	return obj;
}

/* ---- tests ---- */

static json_t *mark_json(const struct nightly_mark *m, const char *public_url)
{
	if (m->day < 0)
		return json_null();
	json_t *obj = record_json(&nightly_mark_record, m);
	json_object_set_new(obj, "day", day_json(m->day));
	json_object_set_new(obj, "url", job_url_json(public_url, m->job));
	return obj;
}

/* The tests of a run have few different outcomes and jobs, so the text is mostly that of the test before. */
struct day_text {
	struct nightly_day day;
	size_t n; /* 0: not written yet */
	char text[DAY_JSON_BYTES];
};

struct writing {
	const struct nightly_view *v;
	const char *public_url;
	json_t **known;         /* of each of the view's commits */
	struct day_text *texts; /* of each accelerator's days */
	struct buf out;
};

static void append_day(struct writing *w, const struct nightly_cell *c, size_t i)
{
	struct day_text *t = &w->texts[c->accelerator * w->v->n_days + i];
	const struct nightly_day *d = &c->days[i];
	char job[24] = "null";

	if (d->status < 0) {
		buf_append_str(&w->out, "null");
		return;
	}
	if (!t->n || t->day.status != d->status || t->day.job != d->job) {
		if (d->job)
			snprintf(job, sizeof(job), "%lld", (long long)d->job);
		t->n = (size_t)snprintf(t->text, sizeof(t->text), "{\"status\":\"%s\",\"job\":%s}",
		    test_status_name((enum test_status)d->status), job);
		t->day = *d;
	}
	buf_append(&w->out, t->text, t->n);
}

static void append_json(struct buf *out, json_t *v)
{
	char *text = json_text(v);

	buf_append_str(out, text);
	free(text);
	json_decref(v);
}

/* Its days as text: a page has tens of thousands of them, and one jansson value for each would take longer than the rest
 * of the answer. */
static void append_cell(struct writing *w, const struct nightly_cell *c)
{
	json_t *obj = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "accelerator",
	    w->v->accelerators[c->accelerator].name, "state", history_state_name(c->state), "since",
	    day_json(c->since_day), "first_bad", mark_json(&c->first_bad, w->public_url), "last_good",
	    mark_json(&c->last_good, w->public_url), "commits", commits_json(w->v, c, w->known));
	char *rest = json_text(obj);

	json_decref(obj);
	buf_append_str(&w->out, "{\"days\":[");
	for (size_t i = 0; i < w->v->n_days; i++) {
		if (i)
			buf_append_char(&w->out, ',');
		append_day(w, c, i);
	}
	buf_append_str(&w->out, "],");
	buf_append_str(&w->out, rest + 1);
	free(rest);
}

static void append_tests(struct writing *w)
{
	const struct nightly_view *v = w->v;

	w->known = xcalloc(v->n_commits + 1, sizeof(*w->known));
	w->texts = xcalloc(v->n_accelerators * v->n_days + 1, sizeof(*w->texts));
	/* One list for all cells that share it; the source differs by accelerator. */
	for (size_t i = 0; i < v->n_commits; i++) {
		const struct nightly_commits *c = &v->commits[i];

		w->known[i] = json_array();
		for (size_t k = 0; k < c->n_listed; k++) {
			if (!c->list[k].sha)
				continue;
			json_t *obj = record_json(&nightly_commit_record, &c->list[k]);
			json_object_set_new(
			    obj, "url", json_sprintf("https://github.com/%s/commit/%s", c->repository, c->list[k].sha));
			json_array_append_new(w->known[i], obj);
		}
	}
	for (size_t i = 0; i < v->n_tests; i++) {
		const struct nightly_test *t = &v->tests[i];

		if (i)
			buf_append_char(&w->out, ',');
		append_json(&w->out, record_json(&nightly_test_record, t));
		w->out.len--; /* without its brace */
		buf_append_str(&w->out, ",\"cells\":[");
		for (size_t k = 0; k < t->n_cells; k++) {
			if (k)
				buf_append_char(&w->out, ',');
			append_cell(w, &t->cells[k]);
		}
		buf_append_str(&w->out, "]}");
	}
	for (size_t i = 0; i < v->n_commits; i++)
		json_decref(w->known[i]);
	FREE_ALL(w->known, w->texts);
}

char *nightly_json(const struct nightly_view *v, const char *public_url)
{
	struct writing w = {.v = v, .public_url = public_url, .out = BUF_INIT(SIZE_MAX / 2)};
	json_t *days = json_array(), *counts = json_object(), *next = json_null();
	char *place;

	for (size_t i = 0; i < v->n_days; i++)
		json_array_append_new(days, day_json(v->first_day + (int64_t)i));
	for (int s = 0; s < N_HISTORY_STATES; s++)
		json_set_int(counts, history_state_name((enum history_state)s), v->counts[s]);
	if (v->next.suite) {
		place = xasprintf("%d %lld %s", (int)v->next.state, (long long)v->next.test_id, v->next.suite);
		next = cursor_json(place, strlen(place));
		free(place);
	}
	append_json(&w.out, json_pack("{s:o, s:o, s:o, s:o}", "days", days, "accelerators",
				accelerators_json(v, public_url), "counts", counts, "next", next));
	w.out.len--; /* without its brace */
	buf_append_str(&w.out, ",\"tests\":[");
	append_tests(&w);
	buf_append_str(&w.out, "]}");
	return buf_detach(&w.out);
}
