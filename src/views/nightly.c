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

static void day_out(struct buf *out, const char *key, int64_t day)
{
	char text[DAY_TEXT_BYTES];

	json_out_text(out, key, day < 0 ? NULL : day_text(day, text));
}

/* ---- accelerators ---- */

static void accelerators_out(struct buf *out, const struct nightly_view *v, const char *public_url)
{
	json_out_open(out, "accelerators", '[');
	for (size_t i = 0; i < v->n_accelerators; i++) {
		const struct nightly_accelerator *a = &v->accelerators[i];

		json_out_open(out, NULL, '{');
		record_out(out, &nightly_accelerator_record, a);
		if (a->schedule.is_there)
			record_object_out(out, "schedule", &schedule_view_record, &a->schedule);
		else
			json_out_raw(out, "schedule", "null");
		json_out_open(out, "runs", '[');
		for (size_t k = 0; k < v->n_days; k++)
			schedule_run_out(out, NULL, &a->runs[k], a->name, public_url);
		json_out_close(out, ']');
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
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

static void compare_url_out(struct buf *out, const char *key, const char *repository, const char *from, const char *to)
{
	if (repository && from && to && strcmp(from, to) != 0)
		json_out_texts(out, key, "https://github.com/", repository, "/compare/", from, "...", to, NULL);
	else
		json_out_raw(out, key, "null");
}

/* known: the text of each of the view's lists, because most cells share one. */
static void commits_out(
    struct buf *out, const struct nightly_view *v, const struct nightly_cell *cell, const struct buf *known)
{
	const struct nightly_mark *good = &cell->last_good, *bad = &cell->first_bad;
	char *source = NULL;

	if (cell->commits < 0) {
		json_out_raw(out, "commits", "null");
		return;
	}
	const struct nightly_commits *c = &v->commits[cell->commits];
	if (bad->source_url && str_eq(bad->source_url, good->source_url))
		source = github_repository(bad->source_url);
	json_out_open(out, "commits", '{');
	compare_url_out(out, "url", c->repository, c->good_sha, c->bad_sha);
	if (c->n < 0)
		json_out_raw(out, "count", "null");
	else
		json_out_int(out, "count", c->n);
	json_out_raw(out, "known", buf_str(&known[cell->commits]));
	compare_url_out(out, "source_url", source, good->source_sha, bad->source_sha);
	json_out_close(out, '}');
	free(source);
}

/* ---- tests ---- */

static void mark_out(struct buf *out, const char *key, const struct nightly_mark *m, const char *public_url)
{
	if (m->day < 0) {
		json_out_raw(out, key, "null");
		return;
	}
	json_out_open(out, key, '{');
	record_out(out, &nightly_mark_record, m);
	day_out(out, "day", m->day);
	job_url_out(out, "url", public_url, m->job);
	json_out_close(out, '}');
}

/* The tests of a run have few different outcomes and jobs, so the text is mostly that of the test before. */
struct day_text {
	struct nightly_day day;
	size_t at, n; /* where it is in the answer; n 0: not written yet */
};

struct writing {
	const struct nightly_view *v;
	const char *public_url;
	struct buf *known;      /* of each of the view's commits */
	struct day_text *texts; /* of each accelerator's days */
	struct buf out;
};

static void cell_day_out(struct writing *w, const struct nightly_cell *c, size_t i)
{
	struct day_text *t = &w->texts[c->accelerator * w->v->n_days + i];
	const struct nightly_day *d = &c->days[i];
	struct buf *out = &w->out;

	if (d->status < 0) {
		json_out_raw(out, NULL, "null");
		return;
	}
	if (t->n && t->day.status == d->status && t->day.job == d->job && buf_reserve(out, t->n + 1) == 0) {
		if (i)
			buf_append_char(out, ',');
		buf_append(out, out->data + t->at, t->n);
		return;
	}
	json_out_open(out, NULL, '{');
	t->at = out->len - 1;
	json_out_text(out, "status", test_status_name((enum test_status)d->status));
	json_out_id(out, "job", d->job);
	json_out_close(out, '}');
	t->n = out->len - t->at;
	t->day = *d;
}

static void cell_out(struct writing *w, const struct nightly_cell *c)
{
	struct buf *out = &w->out;

	json_out_open(out, NULL, '{');
	json_out_text(out, "accelerator", w->v->accelerators[c->accelerator].name);
	json_out_text(out, "state", history_state_name(c->state));
	day_out(out, "since", c->since_day);
	mark_out(out, "first_bad", &c->first_bad, w->public_url);
	mark_out(out, "last_good", &c->last_good, w->public_url);
	commits_out(out, w->v, c, w->known);
	json_out_open(out, "days", '[');
	for (size_t i = 0; i < w->v->n_days; i++)
		cell_day_out(w, c, i);
	json_out_close(out, ']');
	json_out_close(out, '}');
}

/* The source of commits differs by accelerator, but not the list. */
static void known_out(struct buf *out, const struct nightly_commits *c)
{
	json_out_open(out, NULL, '[');
	for (size_t k = 0; k < c->n_listed; k++) {
		if (!c->list[k].sha)
			continue;
		json_out_open(out, NULL, '{');
		record_out(out, &nightly_commit_record, &c->list[k]);
		json_out_texts(out, "url", "https://github.com/", c->repository, "/commit/", c->list[k].sha, NULL);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

static void tests_out(struct writing *w)
{
	const struct nightly_view *v = w->v;
	struct buf *out = &w->out;

	w->known = xcalloc(v->n_commits + 1, sizeof(*w->known));
	w->texts = xcalloc(v->n_accelerators * v->n_days + 1, sizeof(*w->texts));
	for (size_t i = 0; i < v->n_commits; i++) {
		buf_init(&w->known[i], SIZE_MAX / 2);
		known_out(&w->known[i], &v->commits[i]);
	}
	json_out_open(out, "tests", '[');
	for (size_t i = 0; i < v->n_tests; i++) {
		const struct nightly_test *t = &v->tests[i];

		json_out_open(out, NULL, '{');
		record_out(out, &nightly_test_record, t);
		json_out_open(out, "cells", '[');
		for (size_t k = 0; k < t->n_cells; k++)
			cell_out(w, &t->cells[k]);
		json_out_close(out, ']');
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
	for (size_t i = 0; i < v->n_commits; i++)
		buf_release(&w->known[i]);
	FREE_ALL(w->known, w->texts);
}

char *nightly_json(const struct nightly_view *v, const char *public_url)
{
	struct writing w = {.v = v, .public_url = public_url, .out = BUF_INIT(SIZE_MAX / 2)};
	json_t *counts = json_object(), *next = json_null();
	char *place;

	for (int s = 0; s < N_HISTORY_STATES; s++)
		json_set_int(counts, history_state_name((enum history_state)s), v->counts[s]);
	if (v->next.suite) {
		place = xasprintf("%d %lld %s", (int)v->next.state, (long long)v->next.test_id, v->next.suite);
		next = cursor_json(place, strlen(place));
		free(place);
	}
	json_out_open(&w.out, NULL, '{');
	json_out_members(&w.out, json_pack("{s:o, s:o}", "counts", counts, "next", next));
	json_out_open(&w.out, "days", '[');
	for (size_t i = 0; i < v->n_days; i++)
		day_out(&w.out, NULL, v->first_day + (int64_t)i);
	json_out_close(&w.out, ']');
	accelerators_out(&w.out, v, public_url);
	tests_out(&w);
	json_out_close(&w.out, '}');
	return buf_detach(&w.out);
}
