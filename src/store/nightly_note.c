#include "store/nightly_note.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "model/accelerator.h"
#include "store/days.h"
#include "store/history.h"
#include "store/history_cells.h"
#include "store/store.h"
#include "store/stored_dispatch.h"
#include "store/verdicts.h"

enum { JOBS_TEXT_MAX = 1 << 20 };

struct nightly_run {
	int64_t id, day, at_ms;
	bool is_self_report, has_ended;
	char *repository, *upstream_sha, *source_url, *source_sha;
};

/* What its cells come to. */
struct packed {
	struct cell_packer cells;
	struct buf jobs, keys;
	int64_t *job_ids; /* as `jobs` lists them */
	size_t n_jobs;
	int64_t n_cells, n_red, n_green;
};

static bool read_run(
    struct db *d, int64_t change_id, const char *accelerator, struct nightly_run *ret)
{
	struct rows *r = db_rows(d,
	    "SELECT s.id, s.due_ms, s.cause = 'self_report', s.ended_ms IS NOT NULL, c.repository,"
	    " c.head_sha, s.source_url, s.source_sha FROM schedule_run s JOIN change c"
	    " ON c.id = s.change_id WHERE s.change_id = ?1 AND s.accelerator = ?2"
	    " ORDER BY s.id DESC LIMIT 1",
	    V_INT(change_id), V_TEXT(accelerator));
	bool is_there = rows_next(r);

	if (is_there)
		*ret = (struct nightly_run){
		    .id = rows_int(r, 0),
		    .day = day_of(rows_int(r, 1)),
		    .at_ms = rows_int(r, 1),
		    .is_self_report = rows_int(r, 2),
		    .has_ended = rows_int(r, 3),
		    .repository = rows_dup(r, 4),
		    .upstream_sha = rows_dup(r, 5),
		    .source_url = rows_dup(r, 6),
		    .source_sha = rows_dup(r, 7),
		};
	rows_end(r);
	return is_there;
}

static void run_release(struct nightly_run *run)
{
	free(run->repository);
	free(run->upstream_sha);
	free(run->source_url);
	free(run->source_sha);
}

/* ---- the cells ---- */

/* 12 hexadecimal digits that the same job has in every run. */
static void append_key(struct db *d, int64_t job_id, struct buf *out)
{
	char *name =
	    db_text(d, "SELECT workflow || char(10) || name FROM job WHERE id = ?1", V_INT(job_id));
	uint8_t digest[SHA256_BYTES] = {0};

	if (name)
		sha256(name, strlen(name), digest);
	free(name);
	for (int i = 0; i < 6; i++)
		buf_appendf(out, "%02x", digest[i]);
	buf_append_char(out, ' ');
}

/* Tests of one job mostly follow each other. */
static int place_of_job(struct db *d, struct packed *p, int64_t job_id)
{
	if (!job_id)
		return 0;
	for (size_t i = p->n_jobs; i > 0; i--)
		if (p->job_ids[i - 1] == job_id)
			return (int)i;
	p->job_ids = xrealloc(p->job_ids, (p->n_jobs + 1) * sizeof(*p->job_ids));
	p->job_ids[p->n_jobs++] = job_id;
	buf_appendf(&p->jobs, "%lld ", (long long)job_id);
	append_key(d, job_id, &p->keys);
	return (int)p->n_jobs;
}

static void pack(struct db *d, int64_t change_id, const char *accelerator, struct packed *p)
{
	struct rows *r = db_rows(d,
	    "SELECT test_id, status, job_id FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
	    " ORDER BY test_id",
	    V_INT(change_id), V_TEXT(accelerator));

	*p = (struct packed){.jobs = BUF_INIT(JOBS_TEXT_MAX), .keys = BUF_INIT(JOBS_TEXT_MAX)};
	cell_packer_init(&p->cells);
	while (rows_next(r)) {
		struct history_cell c = {
		    .test_id = rows_int(r, 0),
		    .status = test_status_parse(rows_text(r, 1)),
		    .job = place_of_job(d, p, rows_int(r, 2)),
		};

		p->n_cells++;
		p->n_red += c.status == TEST_FAIL || c.status == TEST_ERROR;
		p->n_green += c.status == TEST_PASS || c.status == TEST_DONE;
		cell_packer_add(&p->cells, &c);
	}
}

static void packed_release(struct packed *p)
{
	cell_packer_release(&p->cells);
	buf_release(&p->jobs);
	buf_release(&p->keys);
	free(p->job_ids);
}

/* ---- the end of a run ---- */

struct progress {
	bool is_over, was_never_sent;
};

/* Nobody works on it any more. A vendor's own run is over with each of its reports. */
static struct progress progress_of(
    struct db *d, int64_t change_id, const char *accelerator, const struct nightly_run *run)
{
	struct progress p = {.is_over = run->is_self_report || run->has_ended};
	struct rows *r = db_rows(d,
	    "SELECT COUNT(*), SUM(" DISPATCH_IS_UNFINISHED "),"
	    " SUM(state IN ('failed', 'cancelled', 'superseded')) FROM dispatch"
	    " WHERE change_id = ?1 AND accelerator = ?2 AND is_current = 1",
	    V_INT(change_id), V_TEXT(accelerator));

	if (rows_next(r) && rows_int(r, 0)) {
		p.is_over |= rows_int(r, 1) == 0;
		p.was_never_sent = rows_int(r, 2) == rows_int(r, 0);
	}
	rows_end(r);
	return p;
}

static const char *outcome_of(const struct packed *p, const struct progress *progress)
{
	if (p->n_red)
		return NIGHTLY_RED;
	if (p->n_green)
		return NIGHTLY_GREEN;
	return progress->was_never_sent ? NIGHTLY_FAILED : NIGHTLY_MISSED;
}

static void close_run(struct db *d, int64_t run_id, const char *outcome, int64_t now_ms)
{
	db_exec(d,
	    "UPDATE schedule_run SET state = 'done', outcome = ?2,"
	    " ended_ms = COALESCE(ended_ms, ?3) WHERE id = ?1",
	    V_INT(run_id), V_TEXT(outcome), V_INT(now_ms));
}

/* ---- the day ---- */

/* The last run of a day is the one that counts, but not before it has come to something. */
static bool is_days(struct db *d, const char *accelerator, const struct nightly_run *run,
    bool is_over, bool *ret_was_judged)
{
	struct rows *r = db_rows(d,
	    "SELECT run_id, at_ms, is_judged FROM history_run WHERE accelerator = ?1 AND day = ?2",
	    V_TEXT(accelerator), V_INT(run->day));
	bool is_it = true;

	*ret_was_judged = false;
	if (rows_next(r)) {
		*ret_was_judged = rows_int(r, 2);
		is_it = rows_int(r, 0) == run->id || (is_over && rows_int(r, 1) <= run->at_ms);
	}
	rows_end(r);
	return is_it;
}

static void put_day(struct db *d, int64_t change_id, const char *accelerator,
    const struct nightly_run *run, struct packed *p, bool is_judged)
{
	const struct buf *cells = cell_packer_end(&p->cells);

	db_exec(d,
	    "INSERT INTO history_run (accelerator, day, run_id, change_id, at_ms, repository,"
	    " upstream_sha, source_url, source_sha, is_self_report, is_judged, jobs, job_keys,"
	    " cells) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
	    " ON CONFLICT (accelerator, day) DO UPDATE SET run_id = excluded.run_id,"
	    " change_id = excluded.change_id, at_ms = excluded.at_ms,"
	    " repository = excluded.repository, upstream_sha = excluded.upstream_sha,"
	    " source_url = excluded.source_url, source_sha = excluded.source_sha,"
	    " is_self_report = excluded.is_self_report, is_judged = excluded.is_judged,"
	    " jobs = excluded.jobs, job_keys = excluded.job_keys, cells = excluded.cells",
	    V_TEXT(accelerator), V_INT(run->day), V_INT(run->id), V_INT(change_id),
	    V_INT(run->at_ms), V_TEXT(run->repository), V_TEXT(run->upstream_sha),
	    V_TEXT(run->source_url), V_TEXT(run->source_sha), V_INT(run->is_self_report),
	    V_INT(is_judged), V_TEXT(buf_str(&p->jobs)), V_TEXT(buf_str(&p->keys)),
	    V_BLOB(buf_str(cells), cells->len));
}

static void note(struct db *d, int64_t change_id, const char *accelerator,
    const struct nightly_run *run, int64_t now_ms)
{
	struct progress progress = progress_of(d, change_id, accelerator, run);
	bool is_judged, was_judged;
	struct packed p;

	pack(d, change_id, accelerator, &p);
	is_judged = progress.is_over && (p.n_red || p.n_green);
	if (progress.is_over)
		close_run(d, run->id, outcome_of(&p, &progress), now_ms);
	if (p.n_cells && is_days(d, accelerator, run, progress.is_over, &was_judged)) {
		put_day(d, change_id, accelerator, run, &p, is_judged);
		if (is_judged || was_judged)
			history_judge(d, accelerator, now_ms);
	}
	packed_release(&p);
	db_tell(d, STORE_CHANGES);
}

static bool is_silent(struct db *d, const char *accelerator)
{
	return db_has(d, "SELECT 1 FROM accelerator WHERE name = ?1 AND level = ?2",
	    V_TEXT(accelerator), V_INT(LEVEL_1));
}

/* Nothing was kept that it could be judged by. */
static void end_silently(struct db *d, int64_t change_id, const char *accelerator,
    const struct nightly_run *run, int64_t now_ms)
{
	if (!run->has_ended && progress_of(d, change_id, accelerator, run).is_over)
		close_run(d, run->id, NULL, now_ms);
}

void nightly_note(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct nightly_run run;

	if (!accelerator[0] || !read_run(d, change_id, accelerator, &run))
		return;
	if (is_silent(d, accelerator))
		end_silently(d, change_id, accelerator, &run, now_ms);
	else
		note(d, change_id, accelerator, &run, now_ms);
	run_release(&run);
}

/* ---- what goes ---- */

void nightly_forget_change(struct db *d, int64_t change_id)
{
	db_exec(d, "UPDATE history_run SET change_id = NULL, jobs = NULL WHERE change_id = ?1",
	    V_INT(change_id));
	db_exec(
	    d, "UPDATE schedule_run SET change_id = NULL WHERE change_id = ?1", V_INT(change_id));
}

/* Of an accelerator that has no day left nothing more is said; how many rows went. */
static int64_t drop_states(struct db *d, int limit)
{
	char *name = db_text(d, "SELECT c.accelerator FROM history_count c WHERE NOT EXISTS"
				" (SELECT 1 FROM history_run r WHERE r.accelerator = c.accelerator)"
				" LIMIT 1");
	int64_t n = 0;

	if (name)
		n = db_exec(d,
		    "DELETE FROM history WHERE accelerator = ?1 AND test_id IN"
		    " (SELECT test_id FROM history WHERE accelerator = ?1 LIMIT ?2)",
		    V_TEXT(name), V_INT(limit));
	if (name && n < limit)
		n += db_exec(d, "DELETE FROM history_count WHERE accelerator = ?1", V_TEXT(name));
	free(name);
	return n;
}

bool nightly_drop(struct db *d, int64_t before_ms, int limit)
{
	int64_t n = db_exec(d,
	    "DELETE FROM history_run WHERE id IN (SELECT id FROM history_run WHERE day < ?1"
	    " ORDER BY day LIMIT ?2)",
	    V_INT(day_of(before_ms)), V_INT(limit));

	n += db_exec(d,
	    "DELETE FROM schedule_run WHERE id IN (SELECT id FROM schedule_run"
	    " WHERE ended_ms < ?1 ORDER BY ended_ms LIMIT ?2)",
	    V_INT(before_ms), V_INT(limit));
	n += drop_states(d, limit);
	return n > 0;
}
