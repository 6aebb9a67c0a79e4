/* Experiments make way for first runs that wait, and run later. */
#include "experiments/experiment_rows.h"
#include "history/days.h"
#include "store/jobs.h"
#include "store/leases.h"
#include "verdict/cells_moved.h"

enum {
	/* A first run waits this long before an experiment makes way. A CI may need some time to report that a job
	 * began. */
	WAIT_FOR_MACHINE_MS = 1000,
	WAIT_FOR_CI_MS = 60000,
	MAKE_WAY_AGAIN_MS = 30000, /* time for the machine to stop and to ask for work */
	/* If a first run has no job this long after its request, and the runner has no other work, it does not wait for a
	 * machine: the vendor lost it. */
	WAIT_FOR_JOB_MS = 120000,
	MAKE_WAY_MAX = 5, /* if first runs come more often than an experiment takes, the experiment would never end */
};
static const char MAKES_WAY[] = "it makes way for a first run";
static const char MADE_WAY_TOO_OFTEN[] = "it made way for first runs five times";

/* ---- a vendor's CI ---- */

/* A first run x waits for its first job, and so for a machine of the vendor's CI: its request leaves now or left just now,
 * or other first runs of the runner have machines. If a later one has a job already, the vendor skipped x, and x does not
 * wait any more. */
#define WAITS_FOR_MACHINE                                                                                              \
	DISPATCH_IS_AT_WORK("x.")                                                                                      \
	" AND x.state <> 'running' AND x." IS_FIRST_RUN " AND x.is_current = 1 AND COALESCE(x.not_before_ms, 0) <= ?3" \
	" AND ((COALESCE(x.sent_ms, ?3) > ?3 - ?4 AND COALESCE(x.sent_ms, ?3) <= ?3)"                                  \
	"  OR EXISTS (SELECT 1 FROM dispatch y WHERE y.accelerator = x.accelerator"                                    \
	"   AND y.runner = x.runner AND y.is_current = 1 AND " DISPATCH_IS_AT_WORK(                                    \
	    "y.") "   AND y.state = 'running' AND y." IS_FIRST_RUN "))"                                                \
		  " AND NOT EXISTS (SELECT 1 FROM dispatch y WHERE y.accelerator = x.accelerator"                      \
		  "  AND y.runner = x.runner AND y.created_ms > x.created_ms"                                          \
		  "  AND y.state IN ('running', 'done') AND y." IS_FIRST_RUN ")"

int64_t experiments_first_run_waits_ms(
    const struct view *d, const char *accelerator, const char *runner, int64_t now_ms)
{
	/* accelerators that name one repository share its machines */
	return db_int(d, 0,
	    "SELECT MIN(COALESCE(x.sent_ms, ?3)) FROM runner own CROSS JOIN runner r"
	    " ON (r.accelerator = ?1 AND r.name = ?2)"
	    "  OR (r.kind = 'github' AND own.kind = 'github' AND lower(r.target) = lower(own.target))"
	    " CROSS JOIN dispatch x ON x.accelerator = r.accelerator AND x.runner = r.name"
	    " WHERE own.accelerator = ?1 AND own.name = ?2 AND " WAITS_FOR_MACHINE,
	    V_TEXT(accelerator), V_TEXT(runner), V_INT(now_ms), V_INT(WAIT_FOR_JOB_MS));
}

/* A vendor's CI cannot pass a machine on: Outpost cancels the request, and sends another one later. */
static void make_way_in_ci(struct txn *d, struct experiment *e, int64_t now_ms)
{
	struct dispatch_list l;

	/* an earlier one in the list may already have ended this one */
	if (!experiment_enter(d, e, EXPERIMENT_IS_PLANNED, NULL, now_ms))
		return;
	l = experiment_dispatches(d->view, e);
	for (size_t i = 0; i < l.n; i++)
		dispatch_retire(d, &l.at[i], now_ms);
	dispatch_list_release(&l);
	log_event(LOG_INFO, "experiment_made_way", LOG_I("experiment", e->id), LOG_S("accelerator", e->accelerator),
	    LOG_S("runner", e->runner));
	if (db_int(d, 0, "SELECT COUNT(*) FROM dispatch WHERE change_id = ?1 AND is_current = 0",
		V_INT(e->run_change_id)) >= MAKE_WAY_MAX)
		experiment_expire(d, e, MADE_WAY_TOO_OFTEN, now_ms);
	db_notify_change(d, e->change_id);
}

/* Returns when to call it again; 0: nothing waits. */
static int64_t make_ways_in_ci(struct txn *d, int64_t now_ms)
{
	/* +: only the open ones are walked */
	struct experiment_list l =
	    experiments_read(db_rows(d, "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE " EXPERIMENT_IS_OPEN
					" AND state = " EXPERIMENT_SQL_STARTED " AND EXISTS (SELECT 1 FROM dispatch x"
					"  WHERE x.change_id = experiment.run_change_id AND x.is_current = 1"
					"  AND x.kind <> 'pull' AND " DISPATCH_IS_AT_WORK("x.") ") ORDER BY +id"));
	int64_t next_ms = 0;

	for (size_t i = 0; i < l.n; i++) {
		int64_t sent_ms = experiments_first_run_waits_ms(d->view, l.at[i].accelerator, l.at[i].runner, now_ms);

		if (!sent_ms)
			continue;
		if (sent_ms > now_ms || sent_ms + WAIT_FOR_CI_MS <= now_ms)
			make_way_in_ci(d, &l.at[i], now_ms);
		else
			next_ms = earlier_ms(next_ms, sent_ms + WAIT_FOR_CI_MS);
	}
	experiment_list_release(&l);
	return next_ms;
}

/* ---- machines ---- */

/* A machine fits each runner q of which it had a lease. That lease has the runner's limit. Experiments do not count,
 * because first runs take their room. */
#define FITS_AND_HAS_ROOM                                                                                              \
	"(SELECT COUNT(*) FROM lease f WHERE f.accelerator = ?1 AND f.runner = q.runner"                               \
	" AND f.state = 'active' AND NOT EXISTS (SELECT 1 FROM dispatch"                                               \
	"  WHERE id = f.dispatch_id AND " IS_EXPERIMENT "))"                                                           \
	" < (SELECT m.max_parallel FROM lease m WHERE m.accelerator = ?1 AND m.machine = ?2"                           \
	"  AND m.runner = q.runner ORDER BY m.granted_ms DESC LIMIT 1)"

#define WAITING_RUNS_RECORD(F, S)                                                                                      \
	F(S, INT, n, NULL, "SUM(n)", "")                                                                               \
	F(S, TIME, since_ms, NULL, "MIN(since_ms)", "")
RECORD_LOCAL(waiting_runs, WAITING_RUNS_RECORD)

/* Outpost does not know how many machines a runner has. A first run that no machine takes within a second replaces an
 * experiment, which is queued again. A time in the future is from before the clock was set back. */
static int64_t first_runs_waiting(const struct view *d, const struct stored_lease *l, int64_t now_ms, int64_t *due_ms)
{
	struct waiting_runs w = {0};

	record_read_first(
	    db_rows(d,
		RECORD_QUERY(WAITING_RUNS_RECORD, "FROM (SELECT x.runner, COUNT(*) AS n,"
						  "  MIN(MAX(x.created_ms, COALESCE(x.not_before_ms, 0))) AS since_ms"
						  "  FROM dispatch x WHERE x.accelerator = ?1 AND x.kind = 'pull'"
						  "  AND x.state = 'queued' AND x.is_current = 1 AND x." IS_FIRST_RUN
						  "  AND COALESCE(x.not_before_ms, 0) <= ?3 GROUP BY x.runner) q"
						  " WHERE " FITS_AND_HAS_ROOM),
		V_TEXT(l->accelerator), V_TEXT(l->machine), V_INT(now_ms)),
	    &waiting_runs_record, &w);
	if (w.n && w.since_ms <= now_ms && w.since_ms + WAIT_FOR_MACHINE_MS > now_ms) {
		*due_ms = w.since_ms + WAIT_FOR_MACHINE_MS;
		return 0;
	}
	return w.n;
}

static void make_way_on_machine(struct txn *d, const struct stored_lease *l, int64_t now_ms)
{
	struct stored_dispatch s = {0};

	lease_enter(d, l, LEASE_IS_CANCELLED, MAKES_WAY, now_ms);
	job_give_up(d, l->job_id, "cancelled", MAKES_WAY, false, now_ms);
	if (lease_dispatch(d->view, l, &s)) {
		dispatch_requeue(d, &s, now_ms);
		if (db_int(d, 0,
			"SELECT COUNT(*) FROM lease WHERE dispatch_id = ?1 AND state = 'cancelled' AND reason = ?2",
			V_TEXT(s.id), V_TEXT(MAKES_WAY)) >= MAKE_WAY_MAX) {
			/* it counts as not begun, because no machine had time for it */
			db_exec(
			    d, "UPDATE experiment SET started_ms = NULL WHERE run_change_id = ?1", V_INT(s.change_id));
			dispatch_enter(d, &s, DISPATCH_EXPIRED, MADE_WAY_TOO_OFTEN, now_ms);
			cells_moved(d, s.change_id, s.accelerator, CELLS_DEADLINE_PASSED, now_ms);
		} else {
			cells_moved(d, s.change_id, s.accelerator, CELLS_LEASE_ENDED, now_ms);
		}
	}
	stored_dispatch_release(&s);
}

void experiments_make_room(struct txn *d, const struct stored_lease *first, int64_t now_ms)
{
	struct stored_lease l;

	if (lease_count_active(d->view, first->accelerator, first->runner) < first->max_parallel)
		return;
	if (stored_lease_read(db_rows(d,
				  "SELECT " LEASE_COLUMNS " FROM lease WHERE accelerator = ?1 AND runner = ?2"
				  " AND state = 'active' AND EXISTS (SELECT 1 FROM dispatch x"
				  "  WHERE x.id = lease.dispatch_id AND x." IS_EXPERIMENT ")"
				  " ORDER BY granted_ms DESC, (SELECT MAX(x.change_id) FROM dispatch x"
				  "  WHERE x.id = lease.dispatch_id) DESC LIMIT 1",
				  V_TEXT(first->accelerator), V_TEXT(first->runner)),
		&l))
		make_way_on_machine(d, &l, now_ms);
	stored_lease_release(&l);
}

/* Returns when to call it again; 0: nothing waits. */
static int64_t make_ways_on_machines(struct txn *d, int64_t now_ms)
{
	char **ids =
	    rows_keys(db_rows(d, "SELECT l.id FROM experiment e CROSS JOIN dispatch x ON x.change_id = e.run_change_id"
				 " AND x.kind = 'pull' AND x.state = 'running'"
				 " CROSS JOIN lease l ON l.dispatch_id = x.id AND l.state = 'active'"
				 " WHERE e." EXPERIMENT_IS_OPEN " AND +e.run_change_id IS NOT NULL"
				 " ORDER BY l.granted_ms DESC, e.id DESC")); /* +: only the open ones are walked */
	int64_t next_ms = 0;

	for (char **id = ids; *id; id++) {
		struct stored_lease l;
		int64_t n, due_ms = 0;

		if (!stored_lease_read(
			db_rows(d, "SELECT " LEASE_COLUMNS " FROM lease WHERE id = ?1", V_TEXT(*id)), &l))
			continue;
		n = first_runs_waiting(d->view, &l, now_ms, &due_ms);
		if (n) {
			/* minus the experiments that made way lately, for any of the machine's runners */
			n -= db_int(d, 0,
			    "SELECT COUNT(*) FROM lease WHERE accelerator = ?1"
			    " AND granted_ms > ?3 - ?4 AND state = 'cancelled' AND reason = ?2"
			    " AND ended_ms > ?3 - ?5 AND ended_ms <= ?3"
			    " AND EXISTS (SELECT 1 FROM lease m WHERE m.accelerator = ?1"
			    "  AND m.machine = ?6 AND m.runner = lease.runner)",
			    V_TEXT(l.accelerator), V_TEXT(MAKES_WAY), V_INT(now_ms), V_INT(DAY_MS),
			    V_INT(MAKE_WAY_AGAIN_MS), V_TEXT(l.machine));
			if (n > 0)
				make_way_on_machine(d, &l, now_ms);
			due_ms = now_ms + MAKE_WAY_AGAIN_MS;
		}
		next_ms = earlier_ms(next_ms, due_ms);
		stored_lease_release(&l);
	}
	strv_free(ids);
	return next_ms;
}

int64_t experiments_make_way(struct txn *d, int64_t now_ms)
{
	int64_t next_ms = make_ways_in_ci(d, now_ms);

	return earlier_ms(next_ms, make_ways_on_machines(d, now_ms));
}
