#include "store/schedule_runs.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "store/stored_dispatch.h"

#define HOUR_MS INT64_C(3600000)

enum { SELF_REPORT_HOURS = 12 };

static const char *const cause_names[] = {
#define X(e, name) [CAUSE_##e] = (name),
    SCHEDULE_CAUSES(X)
#undef X
};

int64_t schedule_run_begin(struct db *d, const char *accelerator, int64_t due_ms,
    enum schedule_cause cause, int64_t now_ms)
{
	return db_int(d, 0,
	    "INSERT INTO schedule_run (accelerator, due_ms, cause, state, started_ms)"
	    " VALUES (?1, ?2, ?3, 'reading', ?4) RETURNING id",
	    V_TEXT(accelerator), V_INT(due_ms), V_TEXT(cause_names[cause]), V_INT(now_ms));
}

void schedule_run_end(
    struct db *d, int64_t run_id, const char *state, const char *reason, int64_t now_ms)
{
	db_exec(d,
	    "UPDATE schedule_run SET state = ?2, outcome = ?2, reason = ?3, ended_ms = ?4"
	    " WHERE id = ?1",
	    V_INT(run_id), V_TEXT(state), V_TEXT(reason), V_INT(now_ms));
}

/* Nothing of it is at work, or it has gone with its results: it is over, also where nobody judged it (at L1, or when its runners
 * have left the registry). */
static bool is_over(struct db *d, int64_t change_id, const char *accelerator)
{
	return !db_has(d,
	    "SELECT 1 FROM dispatch WHERE change_id = ?1 AND accelerator = ?2 AND is_current = 1"
	    " AND " DISPATCH_IS_UNFINISHED " LIMIT 1",
	    V_INT(change_id), V_TEXT(accelerator));
}

int64_t schedule_run_going(
    struct db *d, const char *accelerator, int64_t now_ms, int64_t *ret_due_ms)
{
	struct rows *r = db_rows(d,
	    "SELECT id, due_ms, change_id, state = 'reading' FROM schedule_run"
	    " WHERE accelerator = ?1"
	    " AND ended_ms IS NULL ORDER BY id DESC LIMIT 1",
	    V_TEXT(accelerator));
	int64_t id = 0, change_id = 0;
	bool is_reading = false;

	if (rows_next(r)) {
		id = rows_int(r, 0);
		*ret_due_ms = rows_int(r, 1);
		change_id = rows_int(r, 2);
		is_reading = rows_int(r, 3);
	}
	rows_end(r);
	if (!id || is_reading || !is_over(d, change_id, accelerator))
		return id;
	db_exec(d, "UPDATE schedule_run SET state = 'done', ended_ms = ?2 WHERE id = ?1", V_INT(id),
	    V_INT(now_ms));
	return 0;
}

void schedule_going_text(int64_t due_ms, char out[SCHEDULE_REASON_BYTES])
{
	char time[RFC3339_BYTES];

	snprintf(out, SCHEDULE_REASON_BYTES, "the run of %s is still going",
	    rfc3339_format(due_ms, time));
}

void schedule_run_self_reported(
    struct db *d, int64_t change_id, const char *accelerator, const char *head_sha, int64_t now_ms)
{
	int64_t due_ms;

	if (db_has(d,
		"SELECT 1 FROM schedule_run WHERE change_id = ?1 AND accelerator = ?2"
		" AND (ended_ms IS NULL OR (started_ms > ?3 AND started_ms <= ?4))",
		V_INT(change_id), V_TEXT(accelerator), V_INT(now_ms - SELF_REPORT_HOURS * HOUR_MS),
		V_INT(now_ms)))
		return;
	/* Two in one millisecond, or after the clock was put back. */
	due_ms = db_int(d, now_ms,
	    "SELECT MAX(due_ms) + 1 FROM schedule_run WHERE accelerator = ?1"
	    " AND cause = 'self_report' HAVING MAX(due_ms) >= ?2",
	    V_TEXT(accelerator), V_INT(now_ms));
	db_exec(d,
	    "INSERT INTO schedule_run (accelerator, due_ms, cause, state, upstream_sha, change_id,"
	    " started_ms, ended_ms) VALUES (?1, ?2, 'self_report', 'done', ?3, ?4, ?5, ?5)",
	    V_TEXT(accelerator), V_INT(due_ms), V_TEXT(head_sha), V_INT(change_id), V_INT(now_ms));
}

void schedule_run_source(
    struct db *d, int64_t change_id, const char *accelerator, struct source_head **list, size_t *n)
{
	struct rows *r = db_rows(d,
	    "SELECT source_url, source_branch, source_sha FROM schedule_run WHERE change_id = ?1"
	    " AND accelerator = ?2 AND cause <> 'self_report' ORDER BY id DESC LIMIT 1",
	    V_INT(change_id), V_TEXT(accelerator));

	if (rows_next(r) && !rows_is_null(r, 2)) {
		*list = xrealloc(*list, (*n + 1) * sizeof(**list));
		(*list)[(*n)++] = (struct source_head){
		    .accelerator = xstrdup(accelerator),
		    .git_url = rows_dup(r, 0),
		    .branch = rows_dup(r, 1),
		    .sha = rows_dup(r, 2),
		};
	}
	rows_end(r);
}
