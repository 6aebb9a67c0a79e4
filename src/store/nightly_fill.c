/* What versions before the fourth recorded of periodic runs, made into days once. They knew
 * self-reports only; a commit that was reported on several days shows on the last of them. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/nightly_note.h"
#include "store/schedule_runs.h"

enum { RUNS_MAX = 2000, TIME_MAX_MS = 2000 };

static const char FILLED[] = "nightly.filled";

struct old_run {
	int64_t change_id, at_ms;
	char *accelerator, *head_sha;
};

/* Oldest first, so that each day finds those before it. */
static size_t read_runs(struct db *d, struct old_run *list)
{
	struct rows *r = db_rows(d,
	    "SELECT * FROM (SELECT j.change_id, j.accelerator, c.head_sha, MAX(j.completed_ms) AS "
	    "at"
	    "  FROM change c CROSS JOIN job j ON j.change_id = c.id WHERE c.kind = 'nightly'"
	    "  AND j.dispatch_id = '' AND j.completed_ms IS NOT NULL"
	    "  GROUP BY j.change_id, j.accelerator ORDER BY at DESC LIMIT ?1) ORDER BY at",
	    V_INT(RUNS_MAX));
	size_t n = 0;

	while (n < RUNS_MAX && rows_next(r))
		list[n++] = (struct old_run){
		    .change_id = rows_int(r, 0),
		    .accelerator = rows_dup(r, 1),
		    .head_sha = rows_dup(r, 2),
		    .at_ms = rows_int(r, 3),
		};
	rows_end(r);
	return n;
}

/* The runs in their order, as they were reported; then the days from the newest on, because there may
 * be no time for all. */
static void fill(struct db *d)
{
	struct old_run *list = xcalloc(RUNS_MAX, sizeof(*list));
	size_t n = read_runs(d, list), n_days = 0;
	int64_t until_ms = clock_mono_ms() + TIME_MAX_MS;

	for (size_t i = 0; i < n; i++)
		schedule_run_self_reported(
		    d, list[i].change_id, list[i].accelerator, list[i].head_sha, list[i].at_ms);
	for (size_t i = n; i > 0 && clock_mono_ms() < until_ms; i--, n_days++)
		nightly_note(d, list[i - 1].change_id, list[i - 1].accelerator, list[i - 1].at_ms);
	for (size_t i = 0; i < n; i++) {
		free(list[i].accelerator);
		free(list[i].head_sha);
	}
	free(list);
	if (n)
		log_event(LOG_INFO, "nightlies_filled", LOG_I("runs", (int64_t)n),
		    LOG_I("days", (int64_t)n_days));
}

int nightly_fill(struct db *d, struct error *e)
{
	int rc;

	if (db_has(d, "SELECT 1 FROM setting WHERE key = ?1", V_TEXT(FILLED)))
		return 0;
	rc = db_begin(d, DB_WRITER);
	if (!rc) {
		fill(d);
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
