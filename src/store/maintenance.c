#include "store/maintenance.h"

#include "db/counters.h"
#include "db/key.h"
#include "db/record_rows.h"
#include "db/seats.h"
#include "db/settings.h"
#include "experiments/experiments.h"
#include "history/commits_between.h"
#include "history/days.h"
#include "history/red_episodes.h"
#include "history/run_note.h"
#include "store/commands.h"
#include "store/deliveries.h"
#include "store/job_results.h"
#include "store/outbox.h"
#include "verdict/cells_moved.h"
#include "verdict/verdicts.h"

/* ---- the start ---- */

static void take_over(struct txn *d)
{
	outbox_recover(d);
	staged_reports_give_up(d);
}

void store_after_silence(struct txn *d, int64_t now_ms)
{
	db_exec(d, "UPDATE lease SET until_ms = ?1 + lease_ms WHERE state = 'active'", V_INT(now_ms));
	db_notify(d, STORE_LEASES);
}

int store_recover(struct db *d, struct error *e)
{
	int rc = db_transaction(d, take_over, e);

	if (!rc)
		rc = days_fill(d, e);
	if (!rc)
		rc = nightly_fill(d, e);
	return rc;
}

/* ---- nodes that died ---- */

static int watch_nodes_run(struct store_op *op, struct txn *d)
{
	struct watch_nodes *o = CONTAINER_OF(op, struct watch_nodes, op);
	struct buf names = BUF_INIT(NODE_NAMES_BYTES);

	o->n_gone = nodes_give_up(d, o->now_ms, &names);
	snprintf(o->names, sizeof(o->names), "%s", buf_str(&names));
	buf_release(&names);
	o->n_taken_over = 0;
	if (o->n_gone < 0) { /* nor does the jump prove that a request has ended */
		o->n_gone = 0;
		return 0;
	}
	staged_reports_give_up(d);
	o->n_taken_over = outbox_recover(d);
	return 0;
}
STORE_OPERATION(watch_nodes)

/* ---- a clock that jumps ---- */

static bool may_shift(struct shift_clock *o, struct txn *d)
{
	int64_t now = setting_int(d->view, CLOCK_GENERATION, 1);

	o->next_generation = o->generation;
	if (!o->generation)
		return true;
	if (now != o->generation) {
		o->next_generation += now > o->generation;
		return false;
	}
	if (db_epoch(d) != o->epoch || seat_is_anothers(d->view, SEAT_DEADLINES, o->epoch, db_now_ms(d)))
		return false;
	setting_put_int(d, CLOCK_GENERATION, ++o->next_generation);
	return true;
}

static int shift_clock_run(struct store_op *op, struct txn *d)
{
	struct shift_clock *o = CONTAINER_OF(op, struct shift_clock, op);

	if (!may_shift(o, d))
		return 0;
	db_exec(d,
	    "UPDATE dispatch SET next_due_ms = next_due_ms + ?1, ack_by_ms = ack_by_ms + ?1,"
	    " start_by_ms = start_by_ms + ?1, finish_by_ms = finish_by_ms + ?1, not_before_ms = not_before_ms + ?1"
	    " WHERE next_due_ms IS NOT NULL",
	    V_INT(o->delta_ms));
	db_exec(d, "UPDATE outbox SET next_ms = next_ms + ?1, first_ms = first_ms + ?1 WHERE " OUTBOX_IS_UNSENT(""),
	    V_INT(o->delta_ms));
	db_exec(d, "UPDATE attribution_due SET next_ms = next_ms + ?1, since_ms = since_ms + ?1", V_INT(o->delta_ms));
	db_exec(d, "UPDATE commits_between SET next_ms = next_ms + ?1 WHERE next_ms IS NOT NULL", V_INT(o->delta_ms));
	db_exec(
	    d, "UPDATE red_episode SET first_bad_ms = first_bad_ms + ?1 WHERE ended_ms IS NULL", V_INT(o->delta_ms));
	db_exec(d,
	    "UPDATE experiment SET expires_ms = expires_ms + ?1,"
	    " not_before_ms = CASE WHEN not_before_ms > 0 THEN not_before_ms + ?1 ELSE 0 END"
	    " WHERE " EXPERIMENT_IS_OPEN,
	    V_INT(o->delta_ms));
	db_exec(d, "UPDATE lease SET until_ms = ?1 + lease_ms WHERE state = 'active'", V_INT(o->now_ms));
	/* Of those that a late heartbeat may still resume, if the clock was put back. */
	db_exec(d,
	    "UPDATE lease SET until_ms = until_ms + ?1 WHERE state = 'expired' AND until_ms > ?2 AND dispatch_id IN"
	    " (SELECT id FROM dispatch WHERE kind = 'pull' AND state = 'queued')",
	    V_INT(o->delta_ms), V_INT(o->now_ms));
	db_exec(d, "UPDATE content_write SET at_ms = at_ms + ?1", V_INT(o->delta_ms));
	db_exec(d, "UPDATE github_limit SET until_ms = until_ms + ?1", V_INT(o->delta_ms));
	db_exec(d,
	    "UPDATE redelivery SET last_ms = last_ms + ?1,"
	    " failed_ms = CASE WHEN failed_ms > 0 THEN failed_ms + ?1 ELSE 0 END",
	    V_INT(o->delta_ms));
	db_exec(d,
	    "UPDATE log SET moving_until_ms = moving_until_ms + ?1"
	    " WHERE is_complete = 1 AND has_pieces = 1 AND moving_until_ms > 0",
	    V_INT(o->delta_ms));
	nodes_follow_clock(d, o->delta_ms);
	db_notify(d, STORE_OUTBOX | STORE_COMMENTS | STORE_DISPATCHES | STORE_LEASES | STORE_QUEUE | STORE_ATTRIBUTION);
	return 0;
}
STORE_OPERATION(shift_clock)

/* ---- retention ---- */

enum {
	PIECE_DELIVERIES = 200,
	PIECE_CACHED = 200,
	PIECE_DAYS = 200,
	/* of changes and jobs, in rows that are as dear as a row of `result`: some hundred pages of the file, which is mostly what a commit costs */
	PIECE_ROWS = 1000,
	ROWS_OF_CHANGE = 60, /* as dear as so many */
	ROWS_OF_JOB = 30,
	ROWS_OF_DISPATCH = 20,
	ROWS_OF_RUN = 10,
	ROWS_OF_NUMBER = 15,
	BYTES_OF_ROW = 4096, /* of packed results */
};
static const int64_t LOOK_AGAIN_MS = 86400 * 1000;

/* The last delivery whose body was examined. */
static const char BODIES_CURSOR[] = "retention.bodies";

#define OLD_DELIVERY_RECORD(F, S)                                                                                      \
	F(S, INT, id, NULL, "id", "")                                                                                  \
	F(S, TIME, received_ms, NULL, "received_ms", "")                                                               \
	F(S, DELIVERY_STATE, state, NULL, "state", "")                                                                 \
	F(S, GUID, guid, NULL, "guid", "")
RECORD_LOCAL(old_delivery, OLD_DELIVERY_RECORD)

static bool drop_bodies(struct txn *d, int64_t before_ms)
{
	int64_t start = setting_int(d->view, BODIES_CURSOR, 0), at = start;
	struct old_delivery *list = NULL;
	size_t n = 0;

	RECORDS_READ(db_rows(d, RECORD_QUERY(OLD_DELIVERY_RECORD, "FROM delivery WHERE id > ?1 ORDER BY id LIMIT ?2"),
			 V_INT(start), V_INT(PIECE_DELIVERIES)),
	    old_delivery, list, n);
	for (size_t i = 0; i < n && list[i].received_ms < before_ms; i++) {
		at = list[i].id;
		/* A body that is still to be sent stays. */
		if (list[i].state != DELIVERY_IS_ACCEPTED &&
		    !db_has(d, "SELECT 1 FROM outbox WHERE delivery_guid = ?1 AND " OUTBOX_IS_UNSENT("") " LIMIT 1",
			V_TEXT(list[i].guid)) &&
		    !db_has(d, "SELECT 1 FROM dispatch WHERE delivery_guid = ?1 AND state = 'held' LIMIT 1",
			V_TEXT(list[i].guid)))
			db_exec(d, "UPDATE delivery SET body = NULL WHERE id = ?1", V_INT(at));
	}
	RECORDS_RELEASE(old_delivery, list, n);
	if (at == start)
		return false;
	setting_put_int(d, BODIES_CURSOR, at);
	return true;
}

static bool drop_deliveries(struct txn *d, int64_t before_ms)
{
	struct old_delivery *list = NULL;
	size_t n = 0;
	bool has_dropped = false;

	RECORDS_READ(db_rows(d, RECORD_QUERY(OLD_DELIVERY_RECORD, "FROM delivery ORDER BY id LIMIT ?1"),
			 V_INT(PIECE_DELIVERIES)),
	    old_delivery, list, n);
	for (size_t i = 0; i < n && list[i].received_ms < before_ms; i++) {
		if (list[i].state == DELIVERY_IS_ACCEPTED)
			continue;
		delivery_count(d, list[i].state, -1);
		db_exec(d, "DELETE FROM delivery WHERE id = ?1", V_INT(list[i].id));
		has_dropped = true;
	}
	RECORDS_RELEASE(old_delivery, list, n);
	return has_dropped;
}

static bool drop_cached(struct txn *d, int64_t before_ms, int64_t commits_before_ms)
{
	int64_t n = db_exec_count(d,
	    "DELETE FROM change_files WHERE (repository_key, head_sha) IN"
	    " (SELECT repository_key, head_sha FROM change_files WHERE created_ms < ?1 LIMIT ?2)",
	    V_INT(before_ms), V_INT(PIECE_CACHED));

	n += db_exec_count(d,
	    "DELETE FROM redelivery WHERE guid IN (SELECT guid FROM redelivery WHERE last_ms < ?1 LIMIT ?2)",
	    V_INT(before_ms), V_INT(PIECE_CACHED));
	n += db_exec_count(d,
	    "DELETE FROM branch_commit WHERE (repository_key, ref, position) IN"
	    " (SELECT repository_key, ref, position FROM branch_commit WHERE at_ms < ?1  ORDER BY at_ms LIMIT ?2)",
	    V_INT(commits_before_ms), V_INT(PIECE_CACHED));
	return n > 0;
}

/* ---- changes and all that belongs to them ---- */

#define PACKED_SUMS_RECORD(F, S)                                                                                       \
	F(S, INT, n_results, NULL, "SUM(n - n_rows)", "Without those that have a row.")                                \
	F(S, INT, n_bytes, NULL, "SUM(length(cells))", "")
RECORD_LOCAL(packed_sums, PACKED_SUMS_RECORD)

/* Deletes the packed results of a job, and the lists that no other job needs. Returns the number of results. */
static int64_t drop_packed(struct txn *d, int64_t job_id, int64_t *left)
{
	size_t n;
	int64_t *lists = rows_key_numbers(
	    db_rows(d, "SELECT DISTINCT list_id FROM packed_job WHERE job_id = ?1", V_INT(job_id)), &n);
	struct packed_sums sums = {0};

	RECORD_READ_FIRST(
	    d, packed_sums, PACKED_SUMS_RECORD, &sums, "FROM packed_job WHERE job_id = ?1", V_INT(job_id));
	*left -= sums.n_bytes / BYTES_OF_ROW;
	db_exec(d, "DELETE FROM packed_job WHERE job_id = ?1", V_INT(job_id));
	for (size_t i = 0; i < n; i++) {
		int64_t base = db_int(d, 0, "SELECT base_id FROM test_list WHERE id = ?1", V_INT(lists[i]));

		for (int64_t id = lists[i]; id; id = id == lists[i] ? base : 0)
			db_exec(d,
			    "DELETE FROM test_list WHERE id = ?1"
			    " AND NOT EXISTS (SELECT 1 FROM packed_job WHERE list_id = ?1)"
			    " AND NOT EXISTS (SELECT 1 FROM test_list WHERE base_id = ?1)",
			    V_INT(id));
	}
	free(lists);
	return sums.n_results;
}

/* Deletes jobs with their results until the piece is full. True: none is left. */
static bool drop_jobs(struct txn *d, int64_t change_id, int64_t *left)
{
	while (*left > 0 && !db_status(d)) {
		int64_t id = db_int(d, 0, "SELECT id FROM job WHERE change_id = ?1 LIMIT 1", V_INT(change_id)), n;

		if (!id)
			return true;
		if (!staged_rows_drop(d, id, left))
			break;
		n = db_exec_count(d,
		    "DELETE FROM result WHERE (job_id, ordinal) IN"
		    " (SELECT job_id, ordinal FROM result WHERE job_id = ?1 LIMIT ?2)",
		    V_INT(id), V_INT(*left));
		counter_add(d, COUNT_RESULTS, -n);
		*left -= n;
		if (*left <= 0)
			break; /* the job may have more rows */
		*left -= ROWS_OF_JOB;
		counter_add(d, COUNT_RESULTS, -drop_packed(d, id, left));
		db_exec(d, "DELETE FROM job WHERE id = ?1", V_INT(id));
		counter_add(d, COUNT_JOBS, -1);
	}
	return false;
}

/* The same for the red cells. */
static bool drop_cells(struct txn *d, int64_t change_id, int64_t *left)
{
	int64_t n = *left <= 0 ? 0
			       : db_exec_count(d,
				     "DELETE FROM verdict WHERE (change_id, accelerator, test_id) IN (SELECT change_id,"
				     " accelerator, test_id FROM verdict WHERE change_id = ?1 LIMIT ?2)",
				     V_INT(change_id), V_INT(*left));

	*left -= n;
	return *left > 0;
}

#define STATE_COUNT_RECORD(F, S)                                                                                       \
	F(S, DISPATCH_STATE, state, NULL, "state", "")                                                                 \
	F(S, INT, n, NULL, "COUNT(*)", "")
RECORD_LOCAL(state_count, STATE_COUNT_RECORD)

static bool drop_dispatches(struct txn *d, int64_t change_id, int64_t *left)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(
		STATE_COUNT_RECORD, "FROM dispatch WHERE change_id = ?1 AND NOT (" IS_EXPERIMENT ") GROUP BY state"),
	    V_INT(change_id));
	struct state_count of;

	while (rows_next(r)) {
		record_read(r, &state_count_record, &of);
		counter_add(d, (enum counter)((int)COUNT_DISPATCHES + (int)of.state), -of.n);
	}
	for (int s = 0; s < N_LEASE_STATES; s++)
		counter_add(d, (enum counter)((int)COUNT_LEASES + s),
		    -db_exec_count(d,
			"DELETE FROM lease WHERE state = ?2 AND dispatch_id IN"
			" (SELECT id FROM dispatch WHERE change_id = ?1)",
			V_INT(change_id), V_TEXT(lease_state_name((enum lease_state)s))));
	db_exec(d, "DELETE FROM outbox WHERE change_id = ?1", V_INT(change_id));
	*left -= ROWS_OF_DISPATCH * db_exec_count(d, "DELETE FROM dispatch WHERE change_id = ?1", V_INT(change_id));
	return *left > 0;
}

static bool drop_numbers(struct txn *d, int64_t change_id, int64_t *left)
{
	*left -= ROWS_OF_NUMBER * number_days_forget_change(d, change_id, *left / ROWS_OF_NUMBER + 1);
	return *left > 0;
}

static bool drop_runs(struct txn *d, int64_t change_id, int64_t *left)
{
	*left -= ROWS_OF_RUN * runs_drop(d, change_id);
	return *left > 0;
}

static void drop_change(struct txn *d, int64_t change_id, int64_t *left)
{
	int64_t run = experiments_next_run(d->view, change_id);

	/* The runs of its experiments go first, one at a time. */
	if (run)
		change_id = run;
	*left -= ROWS_OF_CHANGE;
	if (!drop_jobs(d, change_id, left) || !drop_cells(d, change_id, left) || !drop_numbers(d, change_id, left) ||
	    !drop_runs(d, change_id, left) || !drop_dispatches(d, change_id, left))
		return; /* the piece is full; the next one goes on here */
	experiments_drop(d, change_id);
	nightly_forget_change(d, change_id);
	platform_tests_forget(d, change_id);
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
	    " (SELECT repository_key, head_sha FROM change WHERE id = ?1  AND kind = 'pull_request')",
	    V_INT(change_id));
	db_exec(d, "DELETE FROM pull WHERE change_id = ?1", V_INT(change_id));
	db_exec(d, "DELETE FROM pull_head WHERE change_id = ?1", V_INT(change_id));
	if (db_has(
		d, "SELECT 1 FROM change WHERE id = ?1 AND state = 'open' AND kind = 'pull_request'", V_INT(change_id)))
		counter_add(d, COUNT_OPEN_CHANGES, -1);
	db_exec(d, "DELETE FROM change WHERE id = ?1", V_INT(change_id));
}

/* An open PR keeps its head however old it is, a change keeps what is unfinished, and the run of an experiment goes
 * with the change that it explains. */
static bool drop_oldest_change(struct txn *d, int64_t before_ms, int64_t *left)
{
	int64_t id =
	    db_int(d, 0, "SELECT id FROM change WHERE active_ms < ?1 ORDER BY active_ms LIMIT 1", V_INT(before_ms));

	if (!id)
		return false;
	if (db_has(d,
		"SELECT 1 FROM change c CROSS JOIN experiment e ON e.id = c.experiment_id"
		" CROSS JOIN change o ON o.id = e.change_id WHERE c.id = ?1",
		V_INT(id)) ||
	    db_has(d, "SELECT 1 FROM pull WHERE change_id = ?1 AND state = 'open' LIMIT 1", V_INT(id)) ||
	    db_has(d, "SELECT 1 FROM outbox WHERE change_id = ?1 AND " OUTBOX_IS_UNSENT("") " LIMIT 1", V_INT(id))) {
		*left -= 1;
		db_exec(
		    d, "UPDATE change SET active_ms = ?2 WHERE id = ?1", V_INT(id), V_INT(before_ms + LOOK_AGAIN_MS));
	} else {
		drop_change(d, id, left);
	}
	return true;
}

bool retention_piece(struct txn *d, const struct apply_retention *o)
{
	int64_t left = PIECE_ROWS;
	bool has_more = drop_bodies(d, o->deliveries_before_ms);

	has_more |= drop_cached(d, o->deliveries_before_ms, o->results_before_ms);
	has_more |= drop_deliveries(d, o->results_before_ms);
	has_more |= failures_drop(d, o->failures_before_ms);
	has_more |= commands_drop(d, o->results_before_ms, PIECE_CACHED);
	has_more |= red_episodes_drop(d, o->results_before_ms, PIECE_CACHED);
	has_more |= days_drop(d, o->days_before_ms, PIECE_DAYS);
	has_more |= nightly_drop(d, o->days_before_ms, PIECE_DAYS);
	has_more |= commits_between_drop(d, o->days_before_ms, PIECE_DAYS);
	has_more |= staged_reports_drop(d, o->staged_before_ms, &left);
	while (left > 0 && !db_status(d) && drop_oldest_change(d, o->results_before_ms, &left))
		has_more = true;
	return has_more || db_shrink(d);
}

static int apply_retention_run(struct store_op *op, struct txn *d)
{
	struct apply_retention *o = CONTAINER_OF(op, struct apply_retention, op);

	o->has_more = retention_piece(d, o);
	return 0;
}
STORE_OPERATION(apply_retention)
