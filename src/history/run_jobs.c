#include "history/run_note.h"

#include "db/record_rows.h"
#include "history/days.h"

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
	/* of the current workflow run */
	char *run_id;
	int64_t n_run_jobs, sent_ms, started_ms, completed_ms;
};

/* CRCR measures a workflow run so: the wait for its first job counts for each of its jobs. */
static void end_workflow_run(struct sums *s)
{
	int64_t queue_ms = s->started_ms - s->sent_ms;

	if (s->sent_ms && s->started_ms && queue_ms >= 0) {
		s->queue_ms += queue_ms * s->n_run_jobs;
		s->n_queued += s->n_run_jobs;
		if (s->completed_ms >= s->started_ms)
			times_add(&s->end_to_end, queue_ms + s->completed_ms - s->started_ms);
	}
	FREE_AND_NULL(s->run_id);
	s->n_run_jobs = s->started_ms = s->completed_ms = 0;
}

/* The jobs with a red cell of change ?1 on accelerator ?2. */
#define JOBS_OF_RED_CELLS                                                                                              \
	"SELECT v.job_id FROM verdict v JOIN change c ON c.id = v.change_id"                                           \
	" WHERE v.change_id = ?1 AND v.accelerator = ?2 AND v.attribution IS NOT NULL"                                 \
	" AND v.job_id IS NOT NULL AND v.status IN ('FAIL', 'ERROR')"

/* The cell is broken because of upstream: by the change under test (NEW), or it is explained by an issue in upstream's repository
 * (KNOWN), or is red on the base as well, also on another accelerator (BASE): y are the runs of that commit, on which other
 * accelerators may have run the test again. All other failures count against the vendor. (The cells of the other accelerators are
 * found by their key, because a base has far more cells than there are accelerators.) */
#define IS_OF_UPSTREAM                                                                                                 \
	"(v.attribution = 'NEW'"                                                                                       \
	"  OR (v.attribution = 'KNOWN' AND lower(substr(v.evidence_url, 1,"                                            \
	"   length('https://github.com/' || c.repository_key || '/')))"                                                \
	"   = 'https://github.com/' || c.repository_key || '/')"                                                       \
	"  OR (v.attribution = 'BASE' AND EXISTS (SELECT 1 FROM job b CROSS JOIN change x ON x.id = b.change_id"       \
	"   CROSS JOIN change y ON y.repository_key = x.repository_key AND y.head_sha = x.head_sha"                    \
	"   AND (y.kind IN (x.kind, 'push') OR EXISTS (SELECT 1 FROM experiment e CROSS JOIN experiment_test t"        \
	"     ON t.experiment_id = e.id AND t.test_id = v.test_id WHERE e.id = y.experiment_id"                        \
	"     AND e.state = 'done' AND e.side = 'base')) CROSS JOIN accelerator a ON a.name <> v.accelerator"          \
	"   CROSS JOIN verdict o ON o.change_id = y.id AND o.accelerator = a.name AND o.test_id = v.test_id"           \
	"   WHERE b.id = v.evidence_job AND o.status IN ('FAIL', 'ERROR'))))"

/* The job failed only because of upstream: it has a red cell, and each one is of upstream. CASE makes each list at most once for all
 * jobs, and the second one only if a job is not in the first; most large outages need only that. A condition that is NULL counts
 * against the vendor. */
#define IS_UPSTREAM_JOB                                                                                                \
	"CASE WHEN j.conclusion IS DISTINCT FROM 'failure'"                                                            \
	" OR j.id IN (" JOBS_OF_RED_CELLS " AND " IS_OF_UPSTREAM " IS NOT TRUE) THEN FALSE"                            \
	" ELSE j.id IN (" JOBS_OF_RED_CELLS ") END"

#define RUN_JOB_RECORD(F, S)                                                                                           \
	F(S, BORROWED, runner, NULL, "j.runner", "")                                                                   \
	F(S, BORROWED, run_id, NULL, "j.run_id", "")                                                                   \
	F(S, BORROWED, conclusion, NULL, "j.conclusion", "")                                                           \
	F(S, TIME, started_ms, NULL, "j.started_ms", "")                                                               \
	F(S, TIME, completed_ms, NULL, "j.completed_ms", "")                                                           \
	F(S, TIME, sent_ms, NULL, "CASE x.kind WHEN 'pull' THEN x.created_ms ELSE x.sent_ms END", "")                  \
	F(S, BOOL, is_upstream, NULL, IS_UPSTREAM_JOB, "")
RECORD_LOCAL(run_job, RUN_JOB_RECORD)

static void put_run_job(struct txn *d, int64_t change_id, const char *accelerator, int64_t ended_ms, struct sums *s)
{
	struct buf packed = BUF_INIT(TIMES_MAX_BYTES);

	if (s->runner) {
		end_workflow_run(s);
		times_pack(&s->end_to_end, &packed);
		db_exec(d,
		    "INSERT INTO run_jobs (accelerator, ended_ms, runner, change_id, n_jobs,"
		    " n_passed, n_timed_out, n_overrun, n_upstream, queue_ms, n_queued,"
		    " end_to_end) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
		    V_TEXT(accelerator), V_INT(ended_ms), V_TEXT(s->runner), V_INT(change_id), V_INT(s->n_jobs),
		    V_INT(s->n_passed), V_INT(s->n_timed_out), V_INT(s->n_overrun), V_INT(s->n_upstream),
		    V_INT(s->queue_ms), V_INT(s->n_queued), V_BLOB(buf_str(&packed), packed.len));
	}
	buf_release(&packed);
	times_release(&s->end_to_end);
	free(s->runner);
	*s = (struct sums){.end_to_end = times_new(TIMES_MAX)};
}

/* Jobs that Outpost cancelled do not count. */
static void count_jobs(struct txn *d, int64_t change_id, const char *accelerator, int64_t ended_ms)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(RUN_JOB_RECORD, "FROM job j JOIN dispatch x ON x.id = j.dispatch_id AND x.accelerator = "
					 "j.accelerator"
					 " AND x.runner = j.runner WHERE j.change_id = ?1 AND j.accelerator = ?2"
					 " AND j.is_current = 1 AND j.status = 'completed'"
					 " AND NOT (j.digest IS NULL AND j.conclusion = 'cancelled')"
					 " AND x.state NOT IN ('superseded', 'cancelled')"
					 " ORDER BY j.runner, j.dispatch_id, j.run_id, j.id"),
	    V_INT(change_id), V_TEXT(accelerator));
	struct sums s = {.end_to_end = times_new(TIMES_MAX)};
	struct run_job job;

	while (rows_next(r)) {
		record_read(r, &run_job_record, &job);
		if (!str_eq(s.runner, job.runner)) {
			put_run_job(d, change_id, accelerator, ended_ms, &s);
			s.runner = xstrdup(job.runner);
		}
		if (!str_eq(s.run_id, job.run_id)) {
			end_workflow_run(&s);
			s.run_id = xstrdup(job.run_id);
		}
		s.n_jobs++;
		s.n_run_jobs++;
		s.sent_ms = job.sent_ms;
		s.n_passed += str_eq(job.conclusion, "success");
		s.n_timed_out += str_eq(job.conclusion, "timed_out");
		s.n_overrun += !str_eq(job.conclusion, "timed_out") && job.started_ms &&
			       job.completed_ms - job.started_ms > OVERRUN_MS;
		s.n_upstream += job.is_upstream;
		if (job.started_ms && (!s.started_ms || job.started_ms < s.started_ms))
			s.started_ms = job.started_ms;
		if (job.completed_ms > s.completed_ms)
			s.completed_ms = job.completed_ms;
	}
	put_run_job(d, change_id, accelerator, ended_ms, &s);
	times_release(&s.end_to_end);
}

/* ---- one day ---- */

#define PACKED_TIMES_RECORD(F, S) F(S, BLOB, end_to_end, NULL, "end_to_end", "")
RECORD_LOCAL(packed_times, PACKED_TIMES_RECORD)

/* Retention has deleted runs of a closed day, so its sums stay. */
static void sum_day(struct txn *d, const char *accelerator, int64_t day)
{
	int64_t from_ms = day * DAY_MS, until_ms = from_ms + DAY_MS;
	struct packed_times of;
	struct rows *runners, *r;

	if (db_has(d, "SELECT 1 FROM day_jobs WHERE accelerator = ?1 AND day = ?2 AND is_closed = 1",
		V_TEXT(accelerator), V_INT(day)))
		return;
	db_exec(d, "DELETE FROM day_jobs WHERE accelerator = ?1 AND day = ?2", V_TEXT(accelerator), V_INT(day));
	db_exec(d,
	    "INSERT INTO day_jobs (accelerator, day, runner, n_jobs, n_passed, n_timed_out,"
	    " n_overrun, n_upstream, queue_ms, n_queued) SELECT ?1, ?2, runner, SUM(n_jobs),"
	    " SUM(n_passed), SUM(n_timed_out), SUM(n_overrun), SUM(n_upstream), SUM(queue_ms),"
	    " SUM(n_queued) FROM run_jobs WHERE accelerator = ?1 AND ended_ms >= ?3"
	    " AND ended_ms < ?4 GROUP BY runner",
	    V_TEXT(accelerator), V_INT(day), V_INT(from_ms), V_INT(until_ms));
	runners = db_rows(
	    d, "SELECT runner FROM day_jobs WHERE accelerator = ?1 AND day = ?2", V_TEXT(accelerator), V_INT(day));
	while (rows_next(runners)) {
		struct times all = times_new(TIMES_MAX);
		struct buf packed = BUF_INIT(TIMES_MAX_BYTES);

		r = db_rows(d,
		    RECORD_QUERY(PACKED_TIMES_RECORD, "FROM run_jobs WHERE accelerator = ?1 AND ended_ms >= ?3"
						      " AND ended_ms < ?4 AND runner = ?2"),
		    V_TEXT(accelerator), V_TEXT(rows_key(runners)), V_INT(from_ms), V_INT(until_ms));
		while (rows_next(r)) {
			record_read(r, &packed_times_record, &of);
			times_add_packed(&all, &of.end_to_end);
		}
		times_pack(&all, &packed);
		db_exec(d, "UPDATE day_jobs SET end_to_end = ?4 WHERE accelerator = ?1 AND day = ?3 AND runner = ?2",
		    V_TEXT(accelerator), V_TEXT(rows_key(runners)), V_INT(day), V_BLOB(buf_str(&packed), packed.len));
		buf_release(&packed);
		times_release(&all);
	}
}

/* All rows of the run, for a comparison. free() */
static char *run_text(const struct view *d, int64_t change_id, const char *accelerator)
{
	return rows_fingerprint(db_rows(d,
	    "SELECT runner, ended_ms, n_jobs, n_passed, n_timed_out, n_overrun, n_upstream,"
	    " queue_ms, n_queued, end_to_end FROM run_jobs WHERE change_id = ?1 AND accelerator = ?2 ORDER BY runner",
	    V_INT(change_id), V_TEXT(accelerator)));
}

/* Each report after the end of a run writes the run again. A day may have thousands of runs, so its sums are written again
 * only if the run has changed. */
void run_jobs_note(struct txn *d, int64_t change_id, const char *accelerator, int64_t ended_ms)
{
	char *before = run_text(d->view, change_id, accelerator), *after;
	int64_t before_ms =
	    db_int(d, -1, "SELECT MAX(ended_ms) FROM run_jobs WHERE change_id = ?1 AND accelerator = ?2",
		V_INT(change_id), V_TEXT(accelerator));

	db_exec(
	    d, "DELETE FROM run_jobs WHERE change_id = ?1 AND accelerator = ?2", V_INT(change_id), V_TEXT(accelerator));
	count_jobs(d, change_id, accelerator, ended_ms);
	after = run_text(d->view, change_id, accelerator);
	if (!str_eq(before, after)) {
		if (before_ms > 0 && day_of(before_ms) != day_of(ended_ms))
			sum_day(d, accelerator, day_of(before_ms));
		sum_day(d, accelerator, day_of(ended_ms));
	}
	free(before);
	free(after);
}

int64_t run_jobs_drop_change(struct txn *d, int64_t change_id)
{
	db_exec(d,
	    "UPDATE day_jobs SET is_closed = 1 WHERE (accelerator, day) IN"
	    " (SELECT accelerator, ended_ms / 86400000 FROM run_jobs WHERE change_id = ?1)",
	    V_INT(change_id));
	return db_exec_count(d, "DELETE FROM run_jobs WHERE change_id = ?1", V_INT(change_id));
}

int64_t run_jobs_drop_days(struct txn *d, int64_t before_day, int limit)
{
	return db_exec_count(d,
	    "DELETE FROM day_jobs WHERE (accelerator, day, runner) IN"
	    " (SELECT accelerator, day, runner FROM day_jobs WHERE day < ?1 LIMIT ?2)",
	    V_INT(before_day), V_INT(limit));
}

void run_jobs_move(
    struct txn *d, const char *from_accelerator, const char *from_runner, const char *accelerator, const char *runner)
{
	struct rows *r;

	db_exec(d,
	    "DELETE FROM run_jobs WHERE accelerator = ?3 AND runner = ?4 AND (change_id, ended_ms) IN"
	    " (SELECT change_id, ended_ms FROM run_jobs WHERE accelerator = ?1 AND runner = ?2)",
	    V_TEXT(from_accelerator), V_TEXT(from_runner), V_TEXT(accelerator), V_TEXT(runner));
	db_exec(d, "UPDATE run_jobs SET accelerator = ?3, runner = ?4 WHERE accelerator = ?1 AND runner = ?2",
	    V_TEXT(from_accelerator), V_TEXT(from_runner), V_TEXT(accelerator), V_TEXT(runner));
	/* sums up a day that both names have again, from the runs of both */
	db_exec(d,
	    "UPDATE day_jobs SET accelerator = ?3, runner = ?4 WHERE accelerator = ?1 AND runner = ?2 AND day NOT IN"
	    " (SELECT day FROM day_jobs WHERE accelerator = ?3 AND runner = ?4)",
	    V_TEXT(from_accelerator), V_TEXT(from_runner), V_TEXT(accelerator), V_TEXT(runner));
	r = db_rows(d, "SELECT day FROM day_jobs WHERE accelerator = ?1 AND runner = ?2", V_TEXT(from_accelerator),
	    V_TEXT(from_runner));
	while (rows_next(r))
		sum_day(d, accelerator, rows_key_number(r));
	db_exec(d, "DELETE FROM day_jobs WHERE accelerator = ?1 AND runner = ?2", V_TEXT(from_accelerator),
	    V_TEXT(from_runner));
}

/* ---- reading ---- */

#define JOB_SUMS_RECORD(F, S)                                                                                          \
	F(S, INT, n_jobs, NULL, "n_jobs", "")                                                                          \
	F(S, INT, n_passed, NULL, "n_passed", "")                                                                      \
	F(S, INT, n_timed_out, NULL, "n_timed_out", "")                                                                \
	F(S, INT, n_overrun, NULL, "n_overrun", "")                                                                    \
	F(S, INT, n_upstream, NULL, "n_upstream", "")                                                                  \
	F(S, INT, queue_ms, NULL, "queue_ms", "")                                                                      \
	F(S, INT, n_queued, NULL, "n_queued", "")                                                                      \
	F(S, BLOB, end_to_end, NULL, "end_to_end", "")
RECORD_LOCAL(job_sums, JOB_SUMS_RECORD)

struct reading {
	struct level_window *w;
	struct times end_to_end;
	int64_t queue_ms, n_queued;
};

static void add_rows(struct reading *n, struct rows *r)
{
	struct job_sums sums;

	while (rows_next(r)) {
		record_read(r, &job_sums_record, &sums);
		n->w->n_jobs += sums.n_jobs;
		n->w->n_passed += sums.n_passed;
		n->w->n_timed_out += sums.n_timed_out;
		n->w->n_overrun += sums.n_overrun;
		n->w->n_upstream += sums.n_upstream;
		n->queue_ms += sums.queue_ms;
		n->n_queued += sums.n_queued;
		times_add_packed(&n->end_to_end, &sums.end_to_end);
	}
}

/* Whole days, and the runs of the one day that is only partly within the time. */
static void read_window(
    const struct view *d, const char *accelerator, const char *runner, int64_t after_ms, struct level_window *ret)
{
	int64_t next_day = day_of(after_ms) + 1;
	struct reading n = {.w = ret, .end_to_end = times_new(TIMES_MAX)};

	*ret = (struct level_window){.n_jobs = 0};
	add_rows(&n, db_rows(d,
			 RECORD_QUERY(JOB_SUMS_RECORD, "FROM day_jobs WHERE accelerator = ?1 AND day >= ?2"
						       " AND (?3 IS NULL OR runner = ?3)"),
			 V_TEXT(accelerator), V_INT(next_day), V_TEXT(runner)));
	add_rows(&n, db_rows(d,
			 RECORD_QUERY(JOB_SUMS_RECORD,
			     "FROM run_jobs WHERE accelerator = ?1 AND ended_ms >= ?2 AND ended_ms < ?4"
			     " AND (?3 IS NULL OR runner = ?3)"),
			 V_TEXT(accelerator), V_INT(after_ms), V_TEXT(runner), V_INT(next_day * DAY_MS)));
	ret->end_to_end_ms = percentile(&n.end_to_end, 50);
	ret->queue_ms = n.n_queued ? n.queue_ms / n.n_queued : -1;
	times_release(&n.end_to_end);
}

/* In whole days, so that an answer and its ETag stay the same for a day. */
static int64_t whole_days_since(int64_t then_ms, int64_t now_ms)
{
	if (then_ms < 0)
		return -1;
	return now_ms > then_ms ? (now_ms - then_ms) / DAY_MS * DAY_MS : 0;
}

void level_read(
    const struct view *d, const char *accelerator, const char *runner, int64_t now_ms, struct level_numbers *ret)
{
	int64_t first_day = db_int(d, -1,
	    "SELECT COALESCE(MIN(day), -1) FROM day_jobs WHERE accelerator = ?1 AND (?2 IS NULL OR runner = ?2)",
	    V_TEXT(accelerator), V_TEXT(runner));
	int64_t level_2_ms = db_int(d, -1,
	    "SELECT COALESCE(MIN(level_2_since_ms), -1) FROM runner WHERE accelerator = ?1"
	    " AND (?2 IS NULL OR name = ?2) AND is_gone = 0",
	    V_TEXT(accelerator), V_TEXT(runner));

	*ret = (struct level_numbers){.reaction_ms = -1};
	read_window(d, accelerator, runner, now_ms - PROMOTION_DAYS * DAY_MS, &ret->promotion);
	read_window(d, accelerator, runner, now_ms - DEMOTION_DAYS * DAY_MS, &ret->demotion);
	ret->data_ms = whole_days_since(first_day < 0 ? -1 : first_day * DAY_MS, now_ms);
	ret->tenure_ms = whole_days_since(level_2_ms, now_ms);
}
