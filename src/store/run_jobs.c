#include "store/run_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/days.h"
#include "store/percentile.h"

enum {
	TIMES_MAX = 100000,
	TIMES_MAX_BYTES = 9 * TIMES_MAX,
};

/* ---- one run ---- */

/* The jobs of one runner; its workflow runs one after the other. */
struct sums {
	char *runner;
	int64_t n_jobs, n_passed, n_timed_out, n_overrun, n_upstream;
	int64_t queue_ms, n_queued;
	struct times end_to_end;
	/* of the workflow run at hand */
	char *run_id;
	int64_t n_run_jobs, sent_ms, started_ms, completed_ms;
};

/* CRCR's measure of a workflow run: the wait for its first job counts for each of its jobs. */
static void end_workflow_run(struct sums *s)
{
	int64_t queue_ms = s->started_ms - s->sent_ms;

	if (s->sent_ms && s->started_ms && queue_ms >= 0) {
		s->queue_ms += queue_ms * s->n_run_jobs;
		s->n_queued += s->n_run_jobs;
		if (s->completed_ms >= s->started_ms)
			times_add_ms(&s->end_to_end, queue_ms + s->completed_ms - s->started_ms);
	}
	FREE_AND_NULL(s->run_id);
	s->n_run_jobs = s->started_ms = s->completed_ms = 0;
}

/* The jobs of a run that nothing but upstream failed, by id. */
struct upstream_jobs {
	int64_t *ids; /* free() */
	size_t n;
};

/* Every red cell of the job is upstream's: the change under test broke it (NEW), an issue of upstream's explains
 * it (KNOWN), or it is red on the base too, on another accelerator as well (BASE). What is only this
 * accelerator's, flaky or not explained is the vendor's. (Each other accelerator's cell is looked up by its key:
 * a base has far more cells than there are accelerators.) */
static struct upstream_jobs upstream_jobs_read(
    struct db *d, int64_t change_id, const char *accelerator)
{
	struct upstream_jobs l = {0};
	struct rows *r = db_rows(d,
	    "SELECT v.job_id FROM verdict v INDEXED BY verdict_red JOIN change c"
	    " ON c.id = v.change_id"
	    " WHERE v.change_id = ?1 AND v.accelerator = ?2 AND v.attribution IS NOT NULL"
	    " AND v.job_id IS NOT NULL AND v.status IN ('FAIL', 'ERROR') GROUP BY v.job_id"
	    " HAVING COUNT(*) = SUM(v.attribution = 'NEW'"
	    "  OR (v.attribution = 'KNOWN' AND lower(substr(v.evidence_url, 1,"
	    "   length('https://github.com/' || c.repository_key || '/')))"
	    "   = 'https://github.com/' || c.repository_key || '/')"
	    "  OR (v.attribution = 'BASE' AND EXISTS (SELECT 1 FROM job b"
	    "   CROSS JOIN change x ON x.id = b.change_id"
	    /* runs of that commit; other accelerators may have run the test again there */
	    "   CROSS JOIN change y ON y.repository_key = x.repository_key"
	    "   AND y.head_sha = x.head_sha AND (y.kind IN (x.kind, 'push') OR EXISTS"
	    "    (SELECT 1 FROM experiment e CROSS JOIN experiment_test t"
	    "     ON t.experiment_id = e.id AND t.test_id = v.test_id WHERE e.id = y.experiment_id"
	    "     AND e.state = 'done' AND e.side = 'base'))"
	    "   CROSS JOIN accelerator a"
	    "   CROSS JOIN verdict o ON o.change_id = y.id AND o.accelerator = a.name"
	    "   AND o.test_id = v.test_id WHERE b.id = v.evidence_job"
	    "   AND a.name <> v.accelerator AND o.status IN ('FAIL', 'ERROR'))))"
	    " ORDER BY v.job_id",
	    V_INT(change_id), V_TEXT(accelerator));

	while (rows_next(r)) {
		if ((l.n & (l.n - 1)) == 0)
			l.ids = xrealloc(l.ids, (l.n ? 2 * l.n : 1) * sizeof(*l.ids));
		l.ids[l.n++] = rows_int(r, 0);
	}
	return l;
}

static int by_id(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

static bool has_job(const struct upstream_jobs *l, int64_t id)
{
	return l->n && bsearch(&id, l->ids, l->n, sizeof(id), by_id);
}

static void add_job(struct sums *s, const struct rows *r, const struct upstream_jobs *upstream)
{
	const char *conclusion = rows_text(r, 3);
	int64_t started_ms = rows_int(r, 4), completed_ms = rows_int(r, 5);
	bool is_timed_out = str_eq(conclusion, "timed_out");

	s->n_jobs++;
	s->n_run_jobs++;
	s->sent_ms = rows_int(r, 6);
	s->n_passed += str_eq(conclusion, "success");
	s->n_timed_out += is_timed_out;
	s->n_overrun += !is_timed_out && started_ms && completed_ms - started_ms > OVERRUN_MS;
	s->n_upstream += str_eq(conclusion, "failure") && has_job(upstream, rows_int(r, 0));
	if (started_ms && (!s->started_ms || started_ms < s->started_ms))
		s->started_ms = started_ms;
	if (completed_ms > s->completed_ms)
		s->completed_ms = completed_ms;
}

static void put(
    struct db *d, int64_t change_id, const char *accelerator, int64_t ended_ms, struct sums *s)
{
	struct buf packed = BUF_INIT(TIMES_MAX_BYTES);

	if (s->runner) {
		end_workflow_run(s);
		times_pack(&s->end_to_end, &packed);
		db_exec(d,
		    "INSERT INTO run_jobs (accelerator, ended_ms, runner, change_id, n_jobs,"
		    " n_passed, n_timed_out, n_overrun, n_upstream, queue_ms, n_queued,"
		    " end_to_end) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
		    V_TEXT(accelerator), V_INT(ended_ms), V_TEXT(s->runner), V_INT(change_id),
		    V_INT(s->n_jobs), V_INT(s->n_passed), V_INT(s->n_timed_out),
		    V_INT(s->n_overrun), V_INT(s->n_upstream), V_INT(s->queue_ms),
		    V_INT(s->n_queued), V_BLOB(buf_str(&packed), packed.len));
	}
	buf_release(&packed);
	times_release(&s->end_to_end);
	free(s->runner);
	*s = (struct sums){.end_to_end = times_new(TIMES_MAX)};
}

/* What Outpost called off itself is no job of the vendor's that ended. */
static void count_jobs(struct db *d, int64_t change_id, const char *accelerator, int64_t ended_ms)
{
	struct rows *r = db_rows(d,
	    "SELECT j.id, j.runner, j.run_id, j.conclusion, j.started_ms, j.completed_ms,"
	    " CASE x.kind WHEN 'pull' THEN x.created_ms ELSE x.sent_ms END"
	    " FROM job j JOIN dispatch x ON x.id = j.dispatch_id AND x.accelerator = j.accelerator"
	    " AND x.runner = j.runner WHERE j.change_id = ?1 AND j.accelerator = ?2"
	    " AND j.is_current = 1 AND j.status = 'completed'"
	    " AND NOT (j.digest IS NULL AND j.conclusion = 'cancelled')"
	    " AND x.state NOT IN ('superseded', 'cancelled')"
	    " ORDER BY j.runner, j.dispatch_id, j.run_id, j.id",
	    V_INT(change_id), V_TEXT(accelerator));
	struct upstream_jobs upstream = upstream_jobs_read(d, change_id, accelerator);
	struct sums s = {.end_to_end = times_new(TIMES_MAX)};

	while (rows_next(r)) {
		if (!str_eq(s.runner, rows_text(r, 1))) {
			put(d, change_id, accelerator, ended_ms, &s);
			s.runner = rows_dup(r, 1);
		}
		if (!str_eq(s.run_id, rows_text(r, 2))) {
			end_workflow_run(&s);
			s.run_id = rows_dup(r, 2);
		}
		add_job(&s, r, &upstream);
	}
	put(d, change_id, accelerator, ended_ms, &s);
	times_release(&s.end_to_end);
	free(upstream.ids);
	rows_end(r);
}

/* ---- one day ---- */

static void put_times(struct db *d, const char *accelerator, const char *runner, int64_t day)
{
	struct times all = times_new(TIMES_MAX);
	struct buf packed = BUF_INIT(TIMES_MAX_BYTES);
	struct rows *r = db_rows(d,
	    "SELECT end_to_end FROM run_jobs WHERE accelerator = ?1 AND ended_ms >= ?3"
	    " AND ended_ms < ?4 AND runner = ?2",
	    V_TEXT(accelerator), V_TEXT(runner), V_INT(day * DAY_MS), V_INT((day + 1) * DAY_MS));

	while (rows_next(r))
		times_add_packed(&all, r, 0);
	rows_end(r);
	times_pack(&all, &packed);
	db_exec(d,
	    "UPDATE day_jobs SET end_to_end = ?4 WHERE accelerator = ?1 AND day = ?3 AND runner = "
	    "?2",
	    V_TEXT(accelerator), V_TEXT(runner), V_INT(day), V_BLOB(buf_str(&packed), packed.len));
	buf_release(&packed);
	times_release(&all);
}

/* A day of which runs have gone by retention keeps what it has. */
static void sum_day(struct db *d, const char *accelerator, int64_t day)
{
	struct rows *r;

	if (db_has(d,
		"SELECT 1 FROM day_jobs WHERE accelerator = ?1 AND day = ?2 AND is_closed = 1",
		V_TEXT(accelerator), V_INT(day)))
		return;
	db_exec(d, "DELETE FROM day_jobs WHERE accelerator = ?1 AND day = ?2", V_TEXT(accelerator),
	    V_INT(day));
	db_exec(d,
	    "INSERT INTO day_jobs (accelerator, day, runner, n_jobs, n_passed, n_timed_out,"
	    " n_overrun, n_upstream, queue_ms, n_queued) SELECT ?1, ?2, runner, SUM(n_jobs),"
	    " SUM(n_passed), SUM(n_timed_out), SUM(n_overrun), SUM(n_upstream), SUM(queue_ms),"
	    " SUM(n_queued) FROM run_jobs WHERE accelerator = ?1 AND ended_ms >= ?3"
	    " AND ended_ms < ?4 GROUP BY runner",
	    V_TEXT(accelerator), V_INT(day), V_INT(day * DAY_MS), V_INT((day + 1) * DAY_MS));
	r = db_rows(d, "SELECT runner FROM day_jobs WHERE accelerator = ?1 AND day = ?2",
	    V_TEXT(accelerator), V_INT(day));
	while (rows_next(r))
		put_times(d, accelerator, rows_text(r, 0), day);
	rows_end(r);
}

/* All that is on record of the run, to be compared. free(); NULL: nothing. */
static char *run_text(struct db *d, int64_t change_id, const char *accelerator)
{
	return db_text(d,
	    "SELECT group_concat(json_array(runner, ended_ms, n_jobs, n_passed, n_timed_out,"
	    " n_overrun, n_upstream, queue_ms, n_queued, hex(end_to_end))) FROM"
	    " (SELECT * FROM run_jobs WHERE change_id = ?1 AND accelerator = ?2 ORDER BY runner)",
	    V_INT(change_id), V_TEXT(accelerator));
}

/* A run is written again with each report that comes after its end. Where nothing of it has moved, its
 * day, which may hold thousands of runs, is not summed again. */
void run_jobs_note(struct db *d, int64_t change_id, const char *accelerator, int64_t ended_ms)
{
	char *before = run_text(d, change_id, accelerator), *after;
	int64_t before_ms = db_int(d, -1,
	    "SELECT MAX(ended_ms) FROM run_jobs WHERE change_id = ?1 AND accelerator = ?2",
	    V_INT(change_id), V_TEXT(accelerator));

	db_exec(d, "DELETE FROM run_jobs WHERE change_id = ?1 AND accelerator = ?2",
	    V_INT(change_id), V_TEXT(accelerator));
	count_jobs(d, change_id, accelerator, ended_ms);
	after = run_text(d, change_id, accelerator);
	if (!str_eq(before, after)) {
		if (before_ms > 0 && day_of(before_ms) != day_of(ended_ms))
			sum_day(d, accelerator, day_of(before_ms));
		sum_day(d, accelerator, day_of(ended_ms));
	}
	free(before);
	free(after);
}

void run_jobs_drop_change(struct db *d, int64_t change_id)
{
	db_exec(d,
	    "UPDATE day_jobs SET is_closed = 1 WHERE (accelerator, day) IN"
	    " (SELECT accelerator, ended_ms / 86400000 FROM run_jobs WHERE change_id = ?1)",
	    V_INT(change_id));
	db_exec(d, "DELETE FROM run_jobs WHERE change_id = ?1", V_INT(change_id));
}

int64_t run_jobs_drop_days(struct db *d, int64_t before_day, int limit)
{
	return db_exec(d,
	    "DELETE FROM day_jobs WHERE (accelerator, day, runner) IN"
	    " (SELECT accelerator, day, runner FROM day_jobs WHERE day < ?1 LIMIT ?2)",
	    V_INT(before_day), V_INT(limit));
}

void run_jobs_move(struct db *d, const char *from_accelerator, const char *from_runner,
    const char *accelerator, const char *runner)
{
	struct rows *r;

	db_exec(d,
	    "UPDATE OR REPLACE run_jobs SET accelerator = ?3, runner = ?4"
	    " WHERE accelerator = ?1 AND runner = ?2",
	    V_TEXT(from_accelerator), V_TEXT(from_runner), V_TEXT(accelerator), V_TEXT(runner));
	/* A day that both names have is summed again, from the runs of both. */
	db_exec(d,
	    "UPDATE OR IGNORE day_jobs SET accelerator = ?3, runner = ?4"
	    " WHERE accelerator = ?1 AND runner = ?2",
	    V_TEXT(from_accelerator), V_TEXT(from_runner), V_TEXT(accelerator), V_TEXT(runner));
	r = db_rows(d, "SELECT day FROM day_jobs WHERE accelerator = ?1 AND runner = ?2",
	    V_TEXT(from_accelerator), V_TEXT(from_runner));
	while (rows_next(r))
		sum_day(d, accelerator, rows_int(r, 0));
	rows_end(r);
	db_exec(d, "DELETE FROM day_jobs WHERE accelerator = ?1 AND runner = ?2",
	    V_TEXT(from_accelerator), V_TEXT(from_runner));
}

/* ---- reading ---- */

#define SUMS "n_jobs, n_passed, n_timed_out, n_overrun, n_upstream, queue_ms, n_queued, end_to_end"

struct reading {
	struct level_window *w;
	struct times end_to_end;
	int64_t queue_ms, n_queued;
};

static void add_rows(struct reading *n, struct rows *r)
{
	while (rows_next(r)) {
		n->w->n_jobs += rows_int(r, 0);
		n->w->n_passed += rows_int(r, 1);
		n->w->n_timed_out += rows_int(r, 2);
		n->w->n_overrun += rows_int(r, 3);
		n->w->n_upstream += rows_int(r, 4);
		n->queue_ms += rows_int(r, 5);
		n->n_queued += rows_int(r, 6);
		times_add_packed(&n->end_to_end, r, 7);
	}
	rows_end(r);
}

/* Whole days, and the runs of the one that is only in part within the time. */
static void read_window(struct db *d, const char *accelerator, const char *runner, int64_t after_ms,
    struct level_window *ret)
{
	int64_t next_day = day_of(after_ms) + 1;
	struct reading n = {.w = ret, .end_to_end = times_new(TIMES_MAX)};

	*ret = (struct level_window){.n_jobs = 0};
	add_rows(&n, db_rows(d,
			 "SELECT " SUMS " FROM day_jobs WHERE accelerator = ?1 AND day >= ?2"
			 " AND (?3 IS NULL OR runner = ?3)",
			 V_TEXT(accelerator), V_INT(next_day), V_TEXT(runner)));
	add_rows(&n,
	    db_rows(d,
		"SELECT " SUMS " FROM run_jobs WHERE accelerator = ?1 AND ended_ms >= ?2"
		" AND ended_ms < ?4 AND (?3 IS NULL OR runner = ?3)",
		V_TEXT(accelerator), V_INT(after_ms), V_TEXT(runner), V_INT(next_day * DAY_MS)));
	ret->end_to_end_ms = percentile(&n.end_to_end, 50);
	ret->queue_ms = n.n_queued ? n.queue_ms / n.n_queued : -1;
	times_release(&n.end_to_end);
}

/* In whole days, so that an answer stays the same for a day and its ETag with it. */
static int64_t since(int64_t then_ms, int64_t now_ms)
{
	if (then_ms < 0)
		return -1;
	return now_ms > then_ms ? (now_ms - then_ms) / DAY_MS * DAY_MS : 0;
}

void level_read(struct db *d, const char *accelerator, const char *runner, int64_t now_ms,
    struct level_numbers *ret)
{
	int64_t first_day, level_2_ms;

	*ret = (struct level_numbers){.reaction_ms = -1};
	read_window(d, accelerator, runner, now_ms - PROMOTION_DAYS * DAY_MS, &ret->promotion);
	read_window(d, accelerator, runner, now_ms - DEMOTION_DAYS * DAY_MS, &ret->demotion);
	first_day = db_int(d, -1,
	    "SELECT COALESCE(MIN(day), -1) FROM day_jobs WHERE accelerator = ?1"
	    " AND (?2 IS NULL OR runner = ?2)",
	    V_TEXT(accelerator), V_TEXT(runner));
	level_2_ms = db_int(d, -1,
	    "SELECT COALESCE(MIN(level_2_since_ms), -1) FROM runner WHERE accelerator = ?1"
	    " AND (?2 IS NULL OR name = ?2) AND is_gone = 0",
	    V_TEXT(accelerator), V_TEXT(runner));
	ret->data_ms = since(first_day < 0 ? -1 : first_day * DAY_MS, now_ms);
	ret->tenure_ms = since(level_2_ms, now_ms);
}
