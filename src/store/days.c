#include "store/days.h"

#include "base/alloc.h"
#include "store/number_days.h"
#include "store/percentile.h"
#include "store/run_jobs.h"
#include "store/run_note.h"
#include "store/run_suites.h"

enum {
	RUNS_MAX = 20000, /* of a day: far above any real one */
	TIMES_MAX_BYTES = 9 * RUNS_MAX,
	FILL_CELLS_MAX = 2000000, /* some two seconds */
	FILL_JOBS_MAX = 2000,
};
static const char FILLED[] = "days.filled";

int64_t day_of(int64_t wall_ms)
{
	return wall_ms >= 0 ? wall_ms / DAY_MS : (wall_ms - DAY_MS + 1) / DAY_MS;
}

static void put_sums(struct db *d, const char *accelerator, int64_t day)
{
	db_exec(d,
	    "INSERT INTO day (accelerator, day, n_runs, n_green, n_fail, n_error, n_miss, n_pass,"
	    " n_done, n_skip, n_flaky, n_dispatches, n_met) SELECT ?1, ?2,"
	    " SUM(is_push AND outcome <> '" RUN_NOTHING "'),"
	    " SUM(is_push AND outcome = '" RUN_GREEN "'), SUM(n_fail), SUM(n_error), SUM(n_miss),"
	    " SUM(n_pass), SUM(n_done), SUM(n_skip), SUM(n_flaky), SUM(n_dispatches), SUM(n_met)"
	    " FROM run"
	    " WHERE accelerator = ?1 AND ended_ms >= ?3 AND ended_ms < ?4 HAVING COUNT(*) > 0",
	    V_TEXT(accelerator), V_INT(day), V_INT(day * DAY_MS), V_INT((day + 1) * DAY_MS));
}

static struct value known(int64_t ms)
{
	return ms < 0 ? V_NULL : V_INT(ms);
}

static void put_times(struct db *d, const char *accelerator, int64_t day)
{
	struct times queue = times_new(RUNS_MAX), run = times_new(RUNS_MAX);
	struct buf queue_times = BUF_INIT(TIMES_MAX_BYTES), run_times = BUF_INIT(TIMES_MAX_BYTES);
	struct rows *r = db_rows(d,
	    "SELECT queue_ms, run_ms FROM run WHERE accelerator = ?1 AND ended_ms >= ?2"
	    " AND ended_ms < ?3 LIMIT ?4",
	    V_TEXT(accelerator), V_INT(day * DAY_MS), V_INT((day + 1) * DAY_MS), V_INT(RUNS_MAX));

	while (rows_next(r)) {
		times_add(&queue, r, 0);
		times_add(&run, r, 1);
	}
	times_pack(&queue, &queue_times);
	times_pack(&run, &run_times);
	db_exec(d,
	    "UPDATE day SET queue_p50_ms = ?3, queue_p90_ms = ?4, run_p50_ms = ?5, run_p90_ms = ?6,"
	    " queue_times = ?7, run_times = ?8 WHERE accelerator = ?1 AND day = ?2",
	    V_TEXT(accelerator), V_INT(day), known(percentile(&queue, 50)),
	    known(percentile(&queue, 90)), known(percentile(&run, 50)), known(percentile(&run, 90)),
	    V_BLOB(buf_str(&queue_times), queue_times.len),
	    V_BLOB(buf_str(&run_times), run_times.len));
	buf_release(&queue_times);
	buf_release(&run_times);
	times_release(&queue);
	times_release(&run);
}

static void day_put(struct db *d, const char *accelerator, int64_t day)
{
	if (db_has(d, "SELECT 1 FROM day WHERE accelerator = ?1 AND day = ?2 AND is_closed = 1",
		V_TEXT(accelerator), V_INT(day)))
		return;
	db_exec(d, "DELETE FROM day WHERE accelerator = ?1 AND day = ?2", V_TEXT(accelerator),
	    V_INT(day));
	put_sums(d, accelerator, day);
	put_times(d, accelerator, day);
}

void day_note(struct db *d, const char *accelerator, int64_t ended_ms)
{
	day_put(d, accelerator, day_of(ended_ms));
}

void days_close(struct db *d, int64_t change_id)
{
	db_exec(d,
	    "UPDATE day SET is_closed = 1 WHERE (accelerator, day) IN"
	    " (SELECT accelerator, ended_ms / 86400000 FROM run WHERE change_id = ?1)",
	    V_INT(change_id));
}

bool days_drop(struct db *d, int64_t before_ms, int limit)
{
	int64_t n = db_exec(d,
	    "DELETE FROM day WHERE (accelerator, day) IN"
	    " (SELECT accelerator, day FROM day WHERE day < ?1 LIMIT ?2)",
	    V_INT(day_of(before_ms)), V_INT(limit));

	n += number_days_drop(d, day_of(before_ms), limit);
	n += run_jobs_drop_days(d, day_of(before_ms), limit);
	return n > 0;
}

/* ---- what older versions recorded ---- */

static void put_counts(
    struct db *d, int64_t change_id, const char *accelerator, const struct cell_counts *c)
{
	db_exec(d,
	    "UPDATE run SET n_fail = ?3, n_error = ?4, n_miss = ?5, n_pass = ?6, n_done = ?7,"
	    " n_skip = ?8, n_flaky = ?9 WHERE change_id = ?1 AND accelerator = ?2",
	    V_INT(change_id), V_TEXT(accelerator), V_INT(c->by_status[TEST_FAIL]),
	    V_INT(c->by_status[TEST_ERROR]), V_INT(c->by_status[TEST_MISS]),
	    V_INT(c->by_status[TEST_PASS]), V_INT(c->by_status[TEST_DONE]),
	    V_INT(c->by_status[TEST_SKIP]), V_INT(c->n_flaky));
}

static void fill_runs(struct db *d)
{
	int64_t n_cells = 0;
	struct rows *r = db_rows(
	    d, "SELECT change_id, accelerator FROM run WHERE is_push = 1 ORDER BY change_id DESC");

	while (n_cells < FILL_CELLS_MAX && rows_next(r)) {
		struct cell_counts c = run_suites_put(d, rows_int(r, 0), rows_text(r, 1));

		put_counts(d, rows_int(r, 0), rows_text(r, 1), &c);
		for (int i = 0; i < N_TEST_STATUSES; i++)
			n_cells += c.by_status[i];
	}
	rows_end(r);
}

/* The pages that people open first show the newest jobs. */
static void fill_jobs(struct db *d)
{
	db_exec(d,
	    "UPDATE job SET (n_tests_fail, n_tests_error, n_tests_miss, n_tests_pass,"
	    " n_tests_done, n_tests_skip) = (SELECT COALESCE(SUM(status = 'FAIL'), 0),"
	    " COALESCE(SUM(status = 'ERROR'), 0), COALESCE(SUM(status = 'MISS'), 0),"
	    " COALESCE(SUM(status = 'PASS'), 0), COALESCE(SUM(status = 'DONE'), 0),"
	    " COALESCE(SUM(status = 'SKIP'), 0) FROM result WHERE job_id = job.id)"
	    " WHERE status = 'completed' AND id > (SELECT MAX(id) FROM job) - ?1",
	    V_INT(FILL_JOBS_MAX));
}

static void fill_days(struct db *d)
{
	struct rows *r =
	    db_rows(d, "SELECT DISTINCT accelerator, ended_ms / 86400000 FROM run ORDER BY 1, 2");

	while (rows_next(r))
		day_put(d, rows_text(r, 0), rows_int(r, 1));
}

int days_fill(struct db *d, struct error *e)
{
	int rc;

	if (db_has(d, "SELECT 1 FROM setting WHERE key = ?1", V_TEXT(FILLED)))
		return 0;
	rc = db_begin(d, DB_WRITER);
	if (!rc) {
		fill_jobs(d);
		fill_runs(d);
		fill_days(d);
		number_days_fill(d, FILL_CELLS_MAX);
		db_exec(d, "INSERT INTO setting (key, value) VALUES (?1, '1')", V_TEXT(FILLED));
		rc = db_status(d) ? db_status(d) : db_commit(d);
	}
	if (rc) {
		rc = error_set(e, rc, "%s", db_why(d)->text);
		db_rollback(d);
		db_forget_failure(d);
	}
	return rc;
}
