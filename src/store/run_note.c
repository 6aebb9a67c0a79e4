#include "store/run_note.h"

#include <string.h>

#include "model/accelerator.h"
#include "store/days.h"
#include "store/health_note.h"
#include "store/nightly_note.h"
#include "store/number_days.h"
#include "store/platform_tests.h"
#include "store/red_episodes.h"
#include "store/run_jobs.h"
#include "store/run_suites.h"

struct run {
	bool is_push;
	const char *outcome;
	int64_t ended_ms, n_dispatches, n_met;
	int64_t queue_ms, run_ms; /* -1: not known */
	int64_t sent_ms;
	struct cell_counts cells; /* of a push */
};

static bool is_silent(struct db *d, const char *accelerator)
{
	return db_has(d, "SELECT 1 FROM accelerator WHERE name = ?1 AND level = ?2",
	    V_TEXT(accelerator), V_INT(LEVEL_1));
}

enum run_stage { RUN_IS_NONE, RUN_GOES_ON, RUN_HAS_ENDED };

/* A pull dispatch is sent when a machine takes it: it has waited since it was made. */
static enum run_stage read_dispatches(
    struct db *d, int64_t change_id, const char *accelerator, struct run *ret)
{
	struct rows *r = db_rows(d,
	    "SELECT COUNT(*), SUM(state NOT IN ('done', 'failed', 'expired')), MAX(finished_ms),"
	    " SUM(state = 'done' AND is_late = 0),"
	    " MIN(CASE kind WHEN 'pull' THEN created_ms ELSE sent_ms END)"
	    " FROM dispatch WHERE change_id = ?1 AND accelerator = ?2 AND is_current = 1"
	    " AND state NOT IN ('superseded', 'cancelled')",
	    V_INT(change_id), V_TEXT(accelerator));
	enum run_stage stage = RUN_IS_NONE;

	if (rows_next(r) && rows_int(r, 0)) {
		stage = rows_int(r, 1) ? RUN_GOES_ON : RUN_HAS_ENDED;
		ret->n_dispatches = rows_int(r, 0);
		ret->ended_ms = rows_int(r, 2);
		ret->n_met = rows_int(r, 3);
		ret->sent_ms = rows_int(r, 4);
	}
	rows_end(r);
	return stage;
}

static void read_times(struct db *d, int64_t change_id, const char *accelerator, struct run *ret)
{
	struct rows *r = db_rows(d,
	    "SELECT MIN(started_ms), MAX(completed_ms) FROM job WHERE change_id = ?1"
	    " AND accelerator = ?2 AND is_current = 1",
	    V_INT(change_id), V_TEXT(accelerator));
	int64_t started = 0, completed = 0;

	if (rows_next(r)) {
		started = rows_int(r, 0);
		completed = rows_int(r, 1);
	}
	rows_end(r);
	ret->queue_ms = started && ret->sent_ms ? started - ret->sent_ms : -1;
	ret->run_ms = started && completed ? completed - started : -1;
	if (ret->queue_ms < 0) /* the clock was put back, or a job was before its dispatch */
		ret->queue_ms = -1;
	if (ret->run_ms < 0)
		ret->run_ms = -1;
}

static bool has_red(struct db *d, int64_t change_id, const char *accelerator, const char *kind)
{
	return db_has(d,
	    "SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2 AND attribution = ?3"
	    " LIMIT 1",
	    V_INT(change_id), V_TEXT(accelerator), V_TEXT(kind));
}

static bool has_passed(struct db *d, int64_t change_id, const char *accelerator)
{
	return db_has(d,
	    "SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2 AND status = 'PASS'"
	    " LIMIT 1",
	    V_INT(change_id), V_TEXT(accelerator));
}

/* On a branch flaky red is nobody's breakage; in a pull request it says that this accelerator
 * fails without a reason in the change, which is what the breaker looks for. */
static const char *outcome_of(
    struct db *d, int64_t change_id, const char *accelerator, bool is_push)
{
	bool is_new = has_red(d, change_id, accelerator, "NEW");

	if (has_red(d, change_id, accelerator, "UNCLASSIFIED") ||
	    has_red(d, change_id, accelerator, "BASE"))
		return RUN_RED;
	if (is_push && is_new)
		return RUN_RED;
	if (!is_push && has_red(d, change_id, accelerator, "FLAKY"))
		return RUN_RED;
	if (is_new)
		return RUN_OWN;
	return has_passed(d, change_id, accelerator) ? RUN_GREEN : RUN_NOTHING;
}

static bool is_written(
    struct db *d, int64_t change_id, const char *accelerator, const struct run *r)
{
	const int64_t *n = r->cells.by_status;

	return db_has(d,
	    "SELECT 1 FROM run WHERE change_id = ?1 AND accelerator = ?2 AND ended_ms = ?3"
	    " AND outcome = ?4 AND n_dispatches = ?5 AND n_met = ?6 AND n_fail = ?7 AND n_error = "
	    "?8"
	    " AND n_miss = ?9 AND n_pass = ?10 AND n_done = ?11 AND n_skip = ?12 AND n_flaky = ?13",
	    V_INT(change_id), V_TEXT(accelerator), V_INT(r->ended_ms), V_TEXT(r->outcome),
	    V_INT(r->n_dispatches), V_INT(r->n_met), V_INT(n[TEST_FAIL]), V_INT(n[TEST_ERROR]),
	    V_INT(n[TEST_MISS]), V_INT(n[TEST_PASS]), V_INT(n[TEST_DONE]), V_INT(n[TEST_SKIP]),
	    V_INT(r->cells.n_flaky));
}

static void insert(struct db *d, int64_t change_id, const char *accelerator, const struct run *r)
{
	const int64_t *n = r->cells.by_status;

	db_exec(d,
	    "INSERT INTO run (accelerator, ended_ms, change_id, is_push, outcome, n_dispatches,"
	    " n_met, queue_ms, run_ms, n_fail, n_error, n_miss, n_pass, n_done, n_skip, n_flaky)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
	    V_TEXT(accelerator), V_INT(r->ended_ms), V_INT(change_id), V_INT(r->is_push),
	    V_TEXT(r->outcome), V_INT(r->n_dispatches), V_INT(r->n_met),
	    r->queue_ms < 0 ? V_NULL : V_INT(r->queue_ms),
	    r->run_ms < 0 ? V_NULL : V_INT(r->run_ms), V_INT(n[TEST_FAIL]), V_INT(n[TEST_ERROR]),
	    V_INT(n[TEST_MISS]), V_INT(n[TEST_PASS]), V_INT(n[TEST_DONE]), V_INT(n[TEST_SKIP]),
	    V_INT(r->cells.n_flaky));
}

/* The day on which it had ended before loses it. Returns whether anything is new. */
static bool put(struct db *d, int64_t change_id, const char *accelerator, const struct run *r)
{
	int64_t before_ms;

	if (is_written(d, change_id, accelerator, r))
		return false;
	before_ms =
	    db_int(d, -1, "SELECT ended_ms FROM run WHERE change_id = ?1 AND accelerator = ?2",
		V_INT(change_id), V_TEXT(accelerator));
	db_exec(d, "DELETE FROM run WHERE change_id = ?1 AND accelerator = ?2", V_INT(change_id),
	    V_TEXT(accelerator));
	insert(d, change_id, accelerator, r);
	if (before_ms >= 0 && day_of(before_ms) != day_of(r->ended_ms))
		day_note(d, accelerator, before_ms);
	day_note(d, accelerator, r->ended_ms);
	return true;
}

void run_note(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct run r = {0};
	char *kind;
	bool is_nightly;

	platform_tests_note(d, change_id, accelerator);
	if (!accelerator[0])
		return;
	kind = db_text(d, "SELECT kind FROM change WHERE id = ?1", V_INT(change_id));
	r.is_push = kind && strcmp(kind, "push") == 0;
	is_nightly = kind && strcmp(kind, "nightly") == 0;
	free(kind);
	if (is_nightly) {
		nightly_note(d, change_id, accelerator, now_ms);
		return;
	}
	if (is_silent(d, accelerator))
		return;
	if (read_dispatches(d, change_id, accelerator, &r) != RUN_HAS_ENDED)
		return;
	read_times(d, change_id, accelerator, &r);
	r.outcome = outcome_of(d, change_id, accelerator, r.is_push);
	if (r.is_push)
		r.cells = run_suites_put(d, change_id, accelerator);
	else
		run_jobs_note(d, change_id, accelerator, r.ended_ms);
	if (!put(d, change_id, accelerator, &r))
		return;
	if (r.is_push)
		red_episode_note(d, change_id, accelerator, now_ms);
	health_note(d, accelerator, now_ms);
}

void runs_drop(struct db *d, int64_t change_id)
{
	days_close(d, change_id);
	number_days_forget_change(d, change_id);
	run_suites_drop(d, change_id);
	run_jobs_drop_change(d, change_id);
	db_exec(d, "DELETE FROM run WHERE change_id = ?1", V_INT(change_id));
}
