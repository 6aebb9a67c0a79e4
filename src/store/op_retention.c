/* What is too old goes, a bounded piece at a time, so that the writer is never away for
 * long: bodies first, the rows they were in together with the results they led to. */
#include "base/alloc.h"
#include "store/answers.h"
#include "store/commits_between.h"
#include "store/counters.h"
#include "store/days.h"
#include "store/db.h"
#include "store/deliveries.h"
#include "store/experiments.h"
#include "store/failures.h"
#include "store/key.h"
#include "store/nightly_note.h"
#include "store/platform_tests.h"
#include "store/red_episodes.h"
#include "store/run_note.h"

enum { PIECE_DELIVERIES = 200, PIECE_RESULTS = 5000, PIECE_CACHED = 200, PIECE_DAYS = 200 };
static const int64_t LOOK_AGAIN_MS = 86400 * 1000;

/* The last delivery whose body was looked at. */
static const char BODIES_CURSOR[] = "retention.bodies";

static int64_t setting_int(struct db *d, const char *key)
{
	return db_int(
	    d, 0, "SELECT CAST(value AS INTEGER) FROM setting WHERE key = ?1", V_TEXT(key));
}

static void setting_put_int(struct db *d, const char *key, int64_t value)
{
	db_exec(d,
	    "INSERT INTO setting (key, value) VALUES (?1, CAST(?2 AS TEXT))"
	    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
	    V_TEXT(key), V_INT(value));
}

/* A body that is still to be sent stays. */
static bool is_in_use(struct db *d, const char *guid)
{
	return db_has(d,
		   "SELECT 1 FROM outbox WHERE delivery_guid = ?1"
		   " AND state IN ('due', 'waiting', 'sending') LIMIT 1",
		   V_TEXT(guid)) ||
	       db_has(d,
		   "SELECT 1 FROM dispatch WHERE delivery_guid = ?1 AND state = 'held' LIMIT 1",
		   V_TEXT(guid));
}

static bool drop_bodies(struct db *d, int64_t before_ms)
{
	int64_t at = setting_int(d, BODIES_CURSOR), start = at;
	struct rows *r = db_rows(d,
	    "SELECT id, received_ms, state, guid FROM delivery WHERE id > ?1 ORDER BY id LIMIT ?2",
	    V_INT(start), V_INT(PIECE_DELIVERIES));

	while (rows_next(r) && rows_int(r, 1) < before_ms) {
		char *guid = guid_dup(r, 3);

		at = rows_int(r, 0);
		if (strcmp(rows_text(r, 2), "accepted") != 0 && !is_in_use(d, guid))
			db_exec(d, "UPDATE delivery SET body = NULL WHERE id = ?1", V_INT(at));
		free(guid);
	}
	rows_end(r);
	if (at == start)
		return false;
	setting_put_int(d, BODIES_CURSOR, at);
	return true;
}

static void count_gone(struct db *d, const char *state)
{
	switch (state[0]) {
	case 'p':
		counter_add(d, COUNT_DELIVERIES_PLANNED, -1);
		break;
	case 'i':
		counter_add(d, COUNT_DELIVERIES_IGNORED, -1);
		break;
	default:
		counter_add(d, COUNT_DELIVERIES_FAILED, -1);
		break;
	}
}

static bool drop_deliveries(struct db *d, int64_t before_ms)
{
	struct rows *r =
	    db_rows(d, "SELECT id, received_ms, state FROM delivery ORDER BY id LIMIT ?1",
		V_INT(PIECE_DELIVERIES));
	bool has_dropped = false;

	while (rows_next(r) && rows_int(r, 1) < before_ms) {
		if (strcmp(rows_text(r, 2), "accepted") == 0)
			continue;
		count_gone(d, rows_text(r, 2));
		db_exec(d, "DELETE FROM delivery WHERE id = ?1", V_INT(rows_int(r, 0)));
		has_dropped = true;
	}
	rows_end(r);
	return has_dropped;
}

static bool drop_cached(struct db *d, int64_t before_ms)
{
	int64_t n = db_exec(d,
	    "DELETE FROM change_files WHERE (repository_key, head_sha) IN"
	    " (SELECT repository_key, head_sha FROM change_files WHERE created_ms < ?1 LIMIT ?2)",
	    V_INT(before_ms), V_INT(PIECE_CACHED));

	n += db_exec(d,
	    "DELETE FROM redelivery WHERE guid IN"
	    " (SELECT guid FROM redelivery WHERE last_ms < ?1 LIMIT ?2)",
	    V_INT(before_ms), V_INT(PIECE_CACHED));
	return n > 0;
}

static bool drop_commits(struct db *d, int64_t before_ms)
{
	return db_exec(d,
		   "DELETE FROM branch_commit WHERE (repository_key, ref, position) IN"
		   " (SELECT repository_key, ref, position FROM branch_commit WHERE at_ms < ?1"
		   "  ORDER BY at_ms LIMIT ?2)",
		   V_INT(before_ms), V_INT(PIECE_CACHED)) > 0;
}

/* ---- changes with all that hangs on them ---- */

/* Whole jobs until the piece is full. True when none is left. */
static bool drop_jobs(struct db *d, int64_t change_id)
{
	int64_t n_results = 0;

	while (n_results < PIECE_RESULTS && !db_status(d)) {
		int64_t id = db_int(
		    d, 0, "SELECT id FROM job WHERE change_id = ?1 LIMIT 1", V_INT(change_id));
		int64_t n;

		if (!id)
			return true;
		n = db_exec(d, "DELETE FROM result WHERE job_id = ?1", V_INT(id));
		db_exec(d, "DELETE FROM job WHERE id = ?1", V_INT(id));
		counter_add(d, COUNT_RESULTS, -n);
		counter_add(d, COUNT_JOBS, -1);
		n_results += n + 1;
	}
	return false;
}

static void drop_leases(struct db *d, int64_t change_id)
{
	for (int s = 0; s < N_LEASE_STATES; s++)
		counter_add(d, (enum counter)((int)COUNT_LEASES + s),
		    -db_exec(d,
			"DELETE FROM lease WHERE state = ?2 AND dispatch_id IN"
			" (SELECT id FROM dispatch WHERE change_id = ?1)",
			V_INT(change_id), V_TEXT(lease_state_name((enum lease_state)s))));
}

static void drop_dispatches(struct db *d, int64_t change_id)
{
	struct rows *r = db_rows(d,
	    "SELECT state, COUNT(*) FROM dispatch WHERE change_id = ?1 AND NOT (" IS_EXPERIMENT
	    ") GROUP BY state",
	    V_INT(change_id));

	while (rows_next(r))
		counter_add(d,
		    (enum counter)(
			(int)COUNT_DISPATCHES + (int)dispatch_state_parse(rows_text(r, 0))),
		    -rows_int(r, 1));
	drop_leases(d, change_id);
	db_exec(d, "DELETE FROM dispatch WHERE change_id = ?1", V_INT(change_id));
	db_exec(d, "DELETE FROM outbox WHERE change_id = ?1", V_INT(change_id));
}

static void drop_change(struct db *d, int64_t change_id)
{
	int64_t run = experiments_next_run(d, change_id);

	/* The runs of its experiments go first, one at a time. */
	if (run)
		change_id = run;
	if (!drop_jobs(d, change_id))
		return;
	experiments_drop(d, change_id);
	drop_dispatches(d, change_id);
	runs_drop(d, change_id);
	nightly_forget_change(d, change_id);
	platform_tests_forget(d, change_id);
	db_exec(d, "DELETE FROM verdict WHERE change_id = ?1", V_INT(change_id));
	db_exec(d, "DELETE FROM failure WHERE change_id = ?1", V_INT(change_id));
	db_exec(d, "DELETE FROM attribution_due WHERE change_id = ?1", V_INT(change_id));
	db_exec(d, "DELETE FROM known_match WHERE change_id = ?1", V_INT(change_id));
	db_exec(d,
	    "DELETE FROM outbox WHERE key IN (SELECT 'comment:' || repository_key || '#' || number"
	    " FROM pull WHERE change_id = ?1 UNION ALL"
	    " SELECT 'checks:' || repository_key || '#' || number FROM pull WHERE change_id = ?1)",
	    V_INT(change_id));
	db_exec(d,
	    "DELETE FROM check_run WHERE (repository_key, head_sha) IN"
	    " (SELECT repository_key, head_sha FROM change WHERE id = ?1"
	    "  AND kind = 'pull_request')",
	    V_INT(change_id));
	db_exec(d, "DELETE FROM pull WHERE change_id = ?1", V_INT(change_id));
	db_exec(d, "DELETE FROM pull_head WHERE change_id = ?1", V_INT(change_id));
	if (db_has(d,
		"SELECT 1 FROM change WHERE id = ?1 AND state = 'open' AND kind = 'pull_request'",
		V_INT(change_id)))
		counter_add(d, COUNT_OPEN_CHANGES, -1);
	db_exec(d, "DELETE FROM change WHERE id = ?1", V_INT(change_id));
}

/* An open PR keeps its head however old it is, a change keeps what is unfinished, and the run of an experiment goes
 * with the change that it explains. */
static bool must_stay(struct db *d, int64_t change_id)
{
	return db_has(d,
		   "SELECT 1 FROM change c CROSS JOIN experiment e ON e.id = c.experiment_id"
		   " CROSS JOIN change o ON o.id = e.change_id WHERE c.id = ?1",
		   V_INT(change_id)) ||
	       db_has(d, "SELECT 1 FROM pull WHERE change_id = ?1 AND state = 'open' LIMIT 1",
		   V_INT(change_id)) ||
	       db_has(d,
		   "SELECT 1 FROM outbox WHERE change_id = ?1"
		   " AND state IN ('due', 'waiting', 'sending') LIMIT 1",
		   V_INT(change_id));
}

static bool drop_oldest_change(struct db *d, int64_t before_ms)
{
	int64_t id =
	    db_int(d, 0, "SELECT id FROM change WHERE active_ms < ?1 ORDER BY active_ms LIMIT 1",
		V_INT(before_ms));

	if (!id)
		return false;
	if (must_stay(d, id))
		db_exec(d, "UPDATE change SET active_ms = ?2 WHERE id = ?1", V_INT(id),
		    V_INT(before_ms + LOOK_AGAIN_MS));
	else
		drop_change(d, id);
	return true;
}

static int retention_run(struct store_op *op, struct db *d)
{
	struct apply_retention *o = CONTAINER_OF(op, struct apply_retention, op);

	o->has_more = drop_bodies(d, o->deliveries_before_ms);
	o->has_more |= drop_cached(d, o->deliveries_before_ms);
	o->has_more |= drop_deliveries(d, o->results_before_ms);
	o->has_more |= failures_drop(d, o->failures_before_ms);
	o->has_more |= drop_commits(d, o->results_before_ms);
	o->has_more |= commands_drop(d, o->results_before_ms, PIECE_CACHED);
	o->has_more |= red_episodes_drop(d, o->results_before_ms, PIECE_CACHED);
	o->has_more |= days_drop(d, o->days_before_ms, PIECE_DAYS);
	o->has_more |= nightly_drop(d, o->days_before_ms, PIECE_DAYS);
	o->has_more |= commits_between_drop(d, o->days_before_ms, PIECE_DAYS);
	o->has_more |= drop_oldest_change(d, o->results_before_ms);
	return 0;
}

int store_apply_retention(struct store *s, struct apply_retention *op)
{
	op->op.run = retention_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
