#include "history/days.h"

#include "db/record_rows.h"
#include "db/settings.h"
#include "history/run_note.h"

/* ---- times ---- */

struct times times_new(size_t max) { return (struct times){.max = max}; }

void times_release(struct times *t)
{
	FREE_AND_NULL(t->ms);
	t->n = t->max = 0;
}

void times_add(struct times *t, int64_t ms)
{
	if (ms >= 0 && t->n < t->max)
		*ARRAY_PUSH(t->ms, t->n) = ms;
}

static int by_size(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* Stores the difference of each time from the one before it. Most differences take two bytes. */
void times_pack(struct times *t, struct buf *out)
{
	if (t->n)
		qsort(t->ms, t->n, sizeof(*t->ms), by_size);
	for (size_t i = 0; i < t->n; i++)
		varint_put(out, (uint64_t)(i ? t->ms[i] - t->ms[i - 1] : t->ms[i]));
}

void times_add_packed(struct times *t, const struct record_blob *packed)
{
	const uint8_t *p = packed->p, *end = packed->n ? p + packed->n : p;
	int64_t ms = 0, more;

	while (varint_get(&p, end, &more))
		times_add(t, ms += more);
}

/* Narrows the range of times to a 256th, again and again, instead of sorting them: the cost hardly depends on the times. */
int64_t percentile(const struct times *t, size_t percent)
{
	enum { PARTS = 256 };
	size_t rank = (t->n * percent + 99) / 100;
	int64_t from = INT64_MAX, to = 0;

	if (!t->n)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		from = t->ms[i] < from ? t->ms[i] : from;
		to = t->ms[i] > to ? t->ms[i] : to;
	}
	while (from < to) {
		size_t n_in[PARTS] = {0};
		int shift = 0, part = 0;

		while ((to - from) >> shift >= PARTS)
			shift++;
		for (size_t i = 0; i < t->n; i++)
			if (t->ms[i] >= from && t->ms[i] <= to)
				n_in[(t->ms[i] - from) >> shift]++;
		/* rank: among the times from `from` on */
		while (n_in[part] < rank)
			rank -= n_in[part++];
		from += (int64_t)part << shift;
		if (to - from >= (int64_t)1 << shift)
			to = from + ((int64_t)1 << shift) - 1;
	}
	return to;
}

/* ---- the numbers that tests report ---- */

/* If a test is reported twice, the later number counts. A late report does not replace a newer number. Not by NOT EXISTS, for which
 * PostgreSQL may read the results of all jobs. */
#define PUT_NUMBERS                                                                                                    \
	"INSERT INTO number_day (accelerator, test_id, unit, day, at_ms, value, change_id, head_sha, job_id)"          \
	" SELECT j.accelerator, r.test_id, COALESCE(r.unit, ''), ?2 / 86400000, ?2, r.number, c.id, c.head_sha, j.id"  \
	" FROM job j JOIN change c ON c.id = j.change_id JOIN result r ON r.job_id = j.id WHERE j.id = ?1"             \
	" AND j.is_current = 1 AND c.kind IN ('push', 'nightly') AND r.number IS NOT NULL AND (SELECT l.ordinal"       \
	"  FROM result l INDEXED BY result_of_test WHERE l.job_id = r.job_id AND l.test_id = r.test_id"                \
	"  AND COALESCE(l.unit, '') = COALESCE(r.unit, '') AND l.number IS NOT NULL AND l.ordinal > r.ordinal"         \
	"  LIMIT 1) IS NULL"                                                                                           \
	" ON CONFLICT (accelerator, test_id, unit, day) DO UPDATE SET at_ms = excluded.at_ms, value = excluded.value," \
	" change_id = excluded.change_id, head_sha = excluded.head_sha, job_id = excluded.job_id"                      \
	" WHERE excluded.at_ms >= number_day.at_ms"

void number_days_note(struct txn *d, int64_t job_id, const struct test_result *tests, size_t n, int64_t now_ms)
{
	size_t i = 0;

	while (i < n && !tests[i].has_number)
		i++;
	if (i < n)
		db_exec(d, PUT_NUMBERS, V_INT(job_id), V_INT(now_ms));
}

int64_t number_days_forget_change(struct txn *d, int64_t change_id, int64_t limit)
{
	return db_exec_count(d,
	    "UPDATE number_day SET job_id = NULL WHERE (accelerator, test_id, unit, day) IN (SELECT accelerator, "
	    "test_id,"
	    " unit, day FROM number_day WHERE change_id = ?1 AND job_id IS NOT NULL LIMIT ?2)",
	    V_INT(change_id), V_INT(limit));
}

/* ---- days ---- */

enum {
	RUNS_MAX = 20000, /* of a day: far more than any accelerator has */
	TIMES_MAX_BYTES = 9 * RUNS_MAX,
	FILL_CELLS_MAX = 2000000, /* about two seconds */
	FILL_JOBS_MAX = 2000,
};

int64_t day_of(int64_t wall_ms) { return wall_ms >= 0 ? wall_ms / DAY_MS : (wall_ms - DAY_MS + 1) / DAY_MS; }

static struct value known(int64_t ms) { return ms < 0 ? V_NULL : V_INT(ms); }

#define RUN_TIMES_RECORD(F, S)                                                                                         \
	F(S, COUNT, queue_ms, NULL, "queue_ms", "")                                                                    \
	F(S, COUNT, run_ms, NULL, "run_ms", "")
RECORD_LOCAL(run_times, RUN_TIMES_RECORD)

static void put_day_times(struct txn *d, const char *accelerator, int64_t day)
{
	struct times queue = times_new(RUNS_MAX), run = times_new(RUNS_MAX);
	struct buf queue_times = BUF_INIT(TIMES_MAX_BYTES), run_times = BUF_INIT(TIMES_MAX_BYTES);
	struct rows *r = db_rows(d,
	    RECORD_QUERY(
		RUN_TIMES_RECORD, "FROM run WHERE accelerator = ?1 AND ended_ms >= ?2 AND ended_ms < ?3 LIMIT ?4"),
	    V_TEXT(accelerator), V_INT(day * DAY_MS), V_INT((day + 1) * DAY_MS), V_INT(RUNS_MAX));
	struct run_times of;

	while (rows_next(r)) {
		record_read(r, &run_times_record, &of);
		times_add(&queue, of.queue_ms);
		times_add(&run, of.run_ms);
	}
	times_pack(&queue, &queue_times);
	times_pack(&run, &run_times);
	db_exec(d,
	    "UPDATE day SET queue_p50_ms = ?3, queue_p90_ms = ?4, run_p50_ms = ?5, run_p90_ms = ?6,"
	    " queue_times = ?7, run_times = ?8 WHERE accelerator = ?1 AND day = ?2 AND is_closed = 0",
	    V_TEXT(accelerator), V_INT(day), known(percentile(&queue, 50)), known(percentile(&queue, 90)),
	    known(percentile(&run, 50)), known(percentile(&run, 90)), V_BLOB(buf_str(&queue_times), queue_times.len),
	    V_BLOB(buf_str(&run_times), run_times.len));
	buf_release(&queue_times);
	buf_release(&run_times);
	times_release(&queue);
	times_release(&run);
}

/* Writes the row of a day again, unless retention has deleted runs of that day. */
static void day_put(struct txn *d, const char *accelerator, int64_t day)
{
	db_exec(d, "DELETE FROM day WHERE accelerator = ?1 AND day = ?2 AND is_closed = 0", V_TEXT(accelerator),
	    V_INT(day));
	db_exec(d,
	    "INSERT INTO day (accelerator, day, n_runs, n_green, n_fail, n_error, n_miss, n_pass, n_done, n_skip,"
	    " n_flaky, n_dispatches, n_met) SELECT ?1, ?2,"
	    " COUNT(*) FILTER (WHERE is_push <> 0 AND outcome <> '" RUN_NOTHING "'),"
	    " COUNT(*) FILTER (WHERE is_push <> 0 AND outcome = '" RUN_GREEN
	    "'), SUM(n_fail), SUM(n_error), SUM(n_miss),"
	    " SUM(n_pass), SUM(n_done), SUM(n_skip), SUM(n_flaky), SUM(n_dispatches), SUM(n_met) FROM run"
	    " WHERE accelerator = ?1 AND ended_ms >= ?3 AND ended_ms < ?4 HAVING COUNT(*) > 0 ON CONFLICT DO NOTHING",
	    V_TEXT(accelerator), V_INT(day), V_INT(day * DAY_MS), V_INT((day + 1) * DAY_MS));
	put_day_times(d, accelerator, day);
}

void day_note(struct txn *d, const char *accelerator, int64_t ended_ms) { day_put(d, accelerator, day_of(ended_ms)); }

void days_close(struct txn *d, int64_t change_id)
{
	db_exec(d,
	    "UPDATE day SET is_closed = 1 WHERE (accelerator, day) IN"
	    " (SELECT accelerator, ended_ms / 86400000 FROM run WHERE change_id = ?1)",
	    V_INT(change_id));
}

bool days_drop(struct txn *d, int64_t before_ms, int limit)
{
	int64_t n = db_exec_count(d,
	    "DELETE FROM day WHERE (accelerator, day) IN (SELECT accelerator, day FROM day WHERE day < ?1 LIMIT ?2)",
	    V_INT(day_of(before_ms)), V_INT(limit));

	n += db_exec_count(d,
	    "DELETE FROM number_day WHERE (accelerator, test_id, unit, day) IN"
	    " (SELECT accelerator, test_id, unit, day FROM number_day WHERE day < ?1 LIMIT ?2)",
	    V_INT(day_of(before_ms)), V_INT(limit));
	n += run_jobs_drop_days(d, day_of(before_ms), limit);
	return n > 0;
}

/* ---- what older versions recorded ---- */

#define RUN_OF_RECORD(F, S) F(S, BORROWED, accelerator, NULL, "accelerator", "")
RECORD_LOCAL(run_of, RUN_OF_RECORD)

#define NUMBERED_JOB_RECORD(F, S)                                                                                      \
	F(S, INT, id, NULL, "j.id", "")                                                                                \
	F(S, TIME, reported_ms, NULL, "j.reported_ms", "")                                                             \
	F(S, INT, n_tests, NULL, "j.n_tests", "")
RECORD_LOCAL(numbered_job, NUMBERED_JOB_RECORD)

static const char DAYS_FILLED[] = "days.filled";

static void fill_all_days(struct txn *d)
{
	int64_t n_cells = 0, n_results = 0;
	struct rows *r;
	struct run_of run;
	struct numbered_job job;

	/* only the newest jobs, because the pages that people open first show these */
	db_exec(d,
	    "UPDATE job SET (n_tests_fail, n_tests_error, n_tests_miss, n_tests_pass, n_tests_done, n_tests_skip) ="
	    " (SELECT COALESCE(SUM(status = 'FAIL'), 0), COALESCE(SUM(status = 'ERROR'), 0),"
	    " COALESCE(SUM(status = 'MISS'), 0), COALESCE(SUM(status = 'PASS'), 0), COALESCE(SUM(status = 'DONE'), 0),"
	    " COALESCE(SUM(status = 'SKIP'), 0) FROM result WHERE job_id = job.id)"
	    " WHERE status = 'completed' AND id > (SELECT MAX(id) FROM job) - ?1",
	    V_INT(FILL_JOBS_MAX));
	r = db_rows(
	    d, RECORD_QUERY_BY("change_id", RUN_OF_RECORD, "FROM run WHERE is_push = 1 ORDER BY change_id DESC"));
	while (n_cells < FILL_CELLS_MAX && rows_next(r)) {
		struct cell_counts c;

		record_read(r, &run_of_record, &run);
		c = run_suites_put(d, rows_key_number(r), run.accelerator);
		db_exec(d,
		    "UPDATE run SET n_fail = ?3, n_error = ?4, n_miss = ?5, n_pass = ?6,"
		    " n_done = ?7, n_skip = ?8, n_flaky = ?9 WHERE change_id = ?1 AND accelerator = ?2",
		    V_INT(rows_key_number(r)), V_TEXT(run.accelerator), V_INT(c.by_status[TEST_FAIL]),
		    V_INT(c.by_status[TEST_ERROR]), V_INT(c.by_status[TEST_MISS]), V_INT(c.by_status[TEST_PASS]),
		    V_INT(c.by_status[TEST_DONE]), V_INT(c.by_status[TEST_SKIP]), V_INT(c.n_flaky));
		for (int i = 0; i < N_TEST_STATUSES; i++)
			n_cells += c.by_status[i];
	}
	rows_end(r);
	r = db_rows(d, RECORD_QUERY_BY("ended_ms / 86400000", RUN_OF_RECORD, "FROM run GROUP BY 2, 1 ORDER BY 2, 1"));
	while (rows_next(r)) {
		record_read(r, &run_of_record, &run);
		day_put(d, run.accelerator, rows_key_number(r));
	}
	r = db_rows(
	    d, RECORD_QUERY(NUMBERED_JOB_RECORD, "FROM job j JOIN change c ON c.id = j.change_id WHERE j.is_current = 1"
						 " AND c.kind IN ('push', 'nightly') ORDER BY j.id DESC"));
	while (n_results < FILL_CELLS_MAX && rows_next(r)) {
		record_read(r, &numbered_job_record, &job);
		db_exec(d, PUT_NUMBERS, V_INT(job.id), V_INT(job.reported_ms));
		n_results += job.n_tests + 1;
	}
	rows_end(r);
	setting_put_int(d, DAYS_FILLED, 1);
}

int days_fill(struct db *d, struct error *e)
{
	return setting_int(db_view(d), DAYS_FILLED, 0) ? 0 : db_transaction(d, fill_all_days, e);
}
