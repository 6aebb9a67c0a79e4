#include "history/run_note.h"

#include "db/record_rows.h"
#include "db/settings.h"
#include "db/store.h"
#include "history/days.h"
#include "history/history.h"
#include "model/accelerator.h"
#include "store/dispatches.h"
#include "store/schedules.h"
#include "verdict/verdicts.h"

enum { JOBS_TEXT_MAX = 1 << 20 };

#define NIGHTLY_RUN_RECORD(F, S)                                                                                       \
	F(S, INT, id, NULL, "s.id", "")                                                                                \
	F(S, TIME, at_ms, NULL, "s.due_ms", "")                                                                        \
	F(S, BOOL, is_self_report, NULL, "s.cause = 'self_report'", "")                                                \
	F(S, BOOL, has_ended, NULL, "s.ended_ms IS NOT NULL", "")                                                      \
	F(S, TEXT, repository, NULL, "c.repository", "")                                                               \
	F(S, TEXT, upstream_sha, NULL, "c.head_sha", "")                                                               \
	F(S, TEXT, source_url, NULL, "s.source_url", "")                                                               \
	F(S, TEXT, source_sha, NULL, "s.source_sha", "")
RECORD_LOCAL(nightly_run, NIGHTLY_RUN_RECORD)

/* The cells of a run, packed and counted. */
struct packed {
	struct cell_packer cells;
	struct buf jobs, keys;
	int64_t *job_ids; /* as `jobs` lists them */
	size_t n_jobs;
	int64_t n_cells, n_red, n_green;
};

/* ---- the cells ---- */

/* Searches from the newest job, because tests of one job mostly follow each other. A job's key is 12 hexadecimal digits,
 * the same in every run. */
static int place_of_job(const struct view *d, struct packed *p, int64_t job_id)
{
	uint8_t digest[SHA256_BYTES] = {0};
	char *name;

	if (!job_id)
		return 0;
	for (size_t i = p->n_jobs; i > 0; i--)
		if (p->job_ids[i - 1] == job_id)
			return (int)i;
	*ARRAY_PUSH(p->job_ids, p->n_jobs) = job_id;
	buf_appendf(&p->jobs, "%lld ", (long long)job_id);
	name = db_text(d, "SELECT workflow || ?2 || name FROM job WHERE id = ?1", V_INT(job_id), V_TEXT("\n"));
	if (name)
		sha256(name, strlen(name), digest);
	free(name);
	for (int i = 0; i < 6; i++)
		buf_appendf(&p->keys, "%02x", digest[i]);
	buf_append_char(&p->keys, ' ');
	return (int)p->n_jobs;
}

#define NIGHTLY_CELL_RECORD(F, S)                                                                                      \
	F(S, INT, test_id, NULL, "test_id", "")                                                                        \
	F(S, TEST_STATUS, status, NULL, "status", "")                                                                  \
	F(S, ID, job_id, NULL, "job_id", "")
RECORD_LOCAL(nightly_cell_row, NIGHTLY_CELL_RECORD)

static void pack_cells(const struct view *d, int64_t change_id, const char *accelerator, struct packed *p)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(NIGHTLY_CELL_RECORD, "FROM cell WHERE change_id = ?1 AND accelerator = ?2 ORDER BY test_id"),
	    V_INT(change_id), V_TEXT(accelerator));
	struct nightly_cell_row of;

	*p = (struct packed){.jobs = BUF_INIT(JOBS_TEXT_MAX), .keys = BUF_INIT(JOBS_TEXT_MAX)};
	cell_packer_init(&p->cells);
	while (rows_next(r)) {
		struct history_cell c;

		record_read(r, &nightly_cell_row_record, &of);
		c = (struct history_cell){of.test_id, of.status, place_of_job(d, p, of.job_id)};
		p->n_cells++;
		p->n_red += c.status == TEST_FAIL || c.status == TEST_ERROR;
		p->n_green += c.status == TEST_PASS || c.status == TEST_DONE;
		cell_packer_add(&p->cells, &c);
	}
}

/* ---- the end of a run ---- */

#define PROGRESS_RECORD(F, S)                                                                                          \
	F(S, BOOL, is_over, NULL, "COUNT(*) > 0 AND SUM(" DISPATCH_IS_UNFINISHED ") = 0", "")                          \
	F(S, BOOL, was_never_sent, NULL,                                                                               \
	    "COUNT(*) > 0 AND SUM(state IN ('failed', 'cancelled', 'superseded')) = COUNT(*)", "")
RECORD_LOCAL(progress, PROGRESS_RECORD)

/* A run is over when all its dispatches have ended. A run that the vendor started is over with each of its reports. */
static struct progress progress_of(
    const struct view *d, int64_t change_id, const char *accelerator, const struct nightly_run *run)
{
	struct progress p = {.is_over = false};

	record_read_first(db_rows(d,
			      RECORD_QUERY(PROGRESS_RECORD,
				  "FROM dispatch WHERE change_id = ?1 AND accelerator = ?2 AND is_current = 1"),
			      V_INT(change_id), V_TEXT(accelerator)),
	    &progress_record, &p);
	p.is_over |= run->is_self_report || run->has_ended;
	return p;
}

static void close_run(struct txn *d, int64_t run_id, const char *outcome, int64_t now_ms)
{
	if (schedule_run_enter(d, run_id, SCHEDULE_RUN_IS_DONE, now_ms))
		db_exec(d, "UPDATE schedule_run SET outcome = ?2 WHERE id = ?1", V_INT(run_id), V_TEXT(outcome));
}

/* ---- the day ---- */

#define RUN_OF_DAY_RECORD(F, S)                                                                                        \
	F(S, INT, run_id, NULL, "run_id", "")                                                                          \
	F(S, TIME, at_ms, NULL, "at_ms", "")                                                                           \
	F(S, BOOL, is_judged, NULL, "is_judged", "")
RECORD_LOCAL(run_of_day, RUN_OF_DAY_RECORD)

static void put_day(struct txn *d, int64_t change_id, const char *accelerator, const struct nightly_run *run,
    struct packed *p, bool is_judged)
{
	const struct buf *cells = cell_packer_end(&p->cells);

	db_exec(d,
	    "INSERT INTO history_run (accelerator, day, run_id, change_id, at_ms, repository, upstream_sha, source_url,"
	    " source_sha, is_self_report, is_judged, jobs, job_keys, cells)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT (accelerator, day)"
	    " DO UPDATE SET run_id = excluded.run_id, change_id = excluded.change_id, at_ms = excluded.at_ms,"
	    " repository = excluded.repository, upstream_sha = excluded.upstream_sha, source_url = excluded.source_url,"
	    " source_sha = excluded.source_sha, is_self_report = excluded.is_self_report,"
	    " is_judged = excluded.is_judged, jobs = excluded.jobs, job_keys = excluded.job_keys,"
	    " cells = excluded.cells",
	    V_TEXT(accelerator), V_INT(day_of(run->at_ms)), V_INT(run->id), V_INT(change_id), V_INT(run->at_ms),
	    V_TEXT(run->repository), V_TEXT(run->upstream_sha), V_TEXT(run->source_url), V_TEXT(run->source_sha),
	    V_INT(run->is_self_report), V_INT(is_judged), V_TEXT(buf_str(&p->jobs)), V_TEXT(buf_str(&p->keys)),
	    V_BLOB(buf_str(cells), cells->len));
}

static void note_nightly(
    struct txn *d, int64_t change_id, const char *accelerator, const struct nightly_run *run, int64_t now_ms)
{
	struct progress progress = progress_of(d->view, change_id, accelerator, run);
	struct run_of_day of = {0};
	bool is_judged, is_taken;
	struct packed p;

	pack_cells(d->view, change_id, accelerator, &p);
	is_judged = progress.is_over && (p.n_red || p.n_green);
	if (progress.is_over)
		close_run(d, run->id,
		    p.n_red                   ? NIGHTLY_RED
		    : p.n_green               ? NIGHTLY_GREEN
		    : progress.was_never_sent ? NIGHTLY_FAILED
					      : NIGHTLY_MISSED,
		    now_ms);
	is_taken = record_read_first(
	    db_rows(d, RECORD_QUERY(RUN_OF_DAY_RECORD, "FROM history_run WHERE accelerator = ?1 AND day = ?2"),
		V_TEXT(accelerator), V_INT(day_of(run->at_ms))),
	    &run_of_day_record, &of);
	/* the last run of a day counts, but not before it has ended */
	if (p.n_cells && (!is_taken || of.run_id == run->id || (progress.is_over && of.at_ms <= run->at_ms))) {
		put_day(d, change_id, accelerator, run, &p, is_judged);
		if (is_judged || of.is_judged)
			history_judge(d, accelerator, now_ms);
	}
	cell_packer_release(&p.cells);
	buf_release(&p.jobs);
	buf_release(&p.keys);
	free(p.job_ids);
	db_notify(d, STORE_CHANGES);
}

void nightly_note(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct nightly_run run;

	if (!accelerator[0] ||
	    !record_read_first(db_rows(d,
				   RECORD_QUERY(NIGHTLY_RUN_RECORD,
				       "FROM schedule_run s JOIN change c ON c.id = s.change_id"
				       " WHERE s.change_id = ?1 AND s.accelerator = ?2 ORDER BY s.id DESC LIMIT 1"),
				   V_INT(change_id), V_TEXT(accelerator)),
		&nightly_run_record, &run))
		return;
	if (!db_has(d, "SELECT 1 FROM accelerator WHERE name = ?1 AND level = ?2", V_TEXT(accelerator), V_INT(LEVEL_1)))
		note_nightly(d, change_id, accelerator, &run, now_ms);
	/* Outpost keeps no results at L1, so the run ends without an outcome. */
	else if (!run.has_ended && progress_of(d->view, change_id, accelerator, &run).is_over)
		close_run(d, run.id, NULL, now_ms);
	record_release(&nightly_run_record, &run);
}

/* ---- retention ---- */

void nightly_forget_change(struct txn *d, int64_t change_id)
{
	db_exec(d, "UPDATE history_run SET change_id = NULL, jobs = NULL WHERE change_id = ?1", V_INT(change_id));
	db_exec(d, "UPDATE schedule_run SET change_id = NULL WHERE change_id = ?1", V_INT(change_id));
}

bool nightly_drop(struct txn *d, int64_t before_ms, int limit)
{
	int64_t n_states = 0;
	int64_t n = db_exec_count(d,
	    "DELETE FROM history_run WHERE id IN (SELECT id FROM history_run WHERE day < ?1 ORDER BY day LIMIT ?2)",
	    V_INT(day_of(before_ms)), V_INT(limit));
	char *name;

	n += db_exec_count(d,
	    "DELETE FROM schedule_run WHERE id IN (SELECT id FROM schedule_run"
	    " WHERE ended_ms < ?1 ORDER BY ended_ms LIMIT ?2)",
	    V_INT(before_ms), V_INT(limit));
	/* the states of the tests of an accelerator without days */
	name = db_text(d, "SELECT c.accelerator FROM history_count c WHERE NOT EXISTS"
			  " (SELECT 1 FROM history_run r WHERE r.accelerator = c.accelerator) LIMIT 1");
	if (name)
		n_states = db_exec_count(d,
		    "DELETE FROM history WHERE accelerator = ?1 AND test_id IN"
		    " (SELECT test_id FROM history WHERE accelerator = ?1 LIMIT ?2)",
		    V_TEXT(name), V_INT(limit));
	if (name && n_states < limit)
		n += db_exec_count(d, "DELETE FROM history_count WHERE accelerator = ?1", V_TEXT(name));
	free(name);
	return n + n_states > 0;
}

/* ---- runs of older versions ----
 *
 * Versions before the fourth recorded only runs that vendors started. A commit that was reported on several days counts for
 * the last of them. */

enum { RUNS_MAX = 2000, TIME_MAX_MS = 2000 };

#define OLD_RUN_RECORD(F, S)                                                                                           \
	F(S, INT, change_id, NULL, "change_id", "")                                                                    \
	F(S, TEXT, accelerator, NULL, "accelerator", "")                                                               \
	F(S, TEXT, head_sha, NULL, "head_sha", "")                                                                     \
	F(S, TIME, at_ms, NULL, "at", "")
RECORD_LOCAL(old_run, OLD_RUN_RECORD)

static const char NIGHTLIES_FILLED[] = "nightly.filled";

/* Writes the runs in the order of their reports, so that each day finds those before it, and then the days from the newest
 * on, because there may not be time for all. */
static void fill_nightlies(struct txn *d)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(OLD_RUN_RECORD,
		"FROM (SELECT j.change_id, j.accelerator, c.head_sha, MAX(j.completed_ms) AS at"
		"  FROM change c CROSS JOIN job j ON j.change_id = c.id"
		"  WHERE c.kind = 'nightly' AND j.dispatch_id = '' AND j.completed_ms IS NOT NULL"
		"  GROUP BY j.change_id, j.accelerator, c.head_sha ORDER BY at DESC LIMIT ?1) newest ORDER BY at"),
	    V_INT(RUNS_MAX));
	struct old_run *list = NULL;
	size_t n = 0, n_days = 0;
	int64_t until_ms = clock_mono_ms() + TIME_MAX_MS;

	RECORDS_READ(r, old_run, list, n);
	for (size_t i = 0; i < n; i++)
		schedule_run_self_reported(d, list[i].change_id, list[i].accelerator, list[i].head_sha, list[i].at_ms);
	for (size_t i = n; i > 0 && clock_mono_ms() < until_ms; i--, n_days++)
		nightly_note(d, list[i - 1].change_id, list[i - 1].accelerator, list[i - 1].at_ms);
	if (n)
		log_event(LOG_INFO, "nightlies_filled", LOG_I("runs", (int64_t)n), LOG_I("days", (int64_t)n_days));
	RECORDS_RELEASE(old_run, list, n);
	setting_put_int(d, NIGHTLIES_FILLED, 1);
}

int nightly_fill(struct db *d, struct error *e)
{
	return setting_int(db_view(d), NIGHTLIES_FILLED, 0) ? 0 : db_transaction(d, fill_nightlies, e);
}
