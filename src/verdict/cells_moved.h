/* Derived state. Jobs, dispatches and leases are the facts. Outpost derives from them:
 *
 *   the cells (verdict) of one accelerator in one change, and the cause of each failure
 *   the changes that are attributed again soon (attribution_due)
 *   the run with its suites and days, or a periodic run's history; the red episode; the accelerator's
 *   health; the tests of a platform
 *   the experiments that would help to decide the red cells (experiments/experiments.h)
 *   the comment and the check runs of the pull requests (outbox), and the pages to refresh
 *
 * For a change of kind `experiment` it derives only the cells. The experiment ends with its dispatch, and then the change
 * that it explains is attributed again.
 *
 * Each operation that changes a fact calls cells_moved() with the cause. The table in cells_moved.c lists the steps for each
 * cause. tests/lint/callers.sh checks that no other file takes these steps.
 *
 * Thread: the writer, inside a transaction. Ownership: all arguments are borrowed. */
#pragma once

#include "db/db.h"

enum cells_cause {
	/* Jobs. A new job is in progress, and no other attempt of it is current. */
	CELLS_JOB_STARTED,
	/* A job ended: see cells_job_added(). */
	CELLS_JOB_COMPLETED,
	/* Another attempt is current, or a report came for a job that Outpost had given up. */
	CELLS_JOB_REPLACED,
	/* A report document came for a job that had ended. */
	CELLS_REPORT_ADDED,
	/* The vendor started a periodic run by itself. */
	CELLS_SELF_REPORTED,
	/* Outpost keeps no results at this level, but the dispatch changed its state. */
	CELLS_REPORTED_AT_L1,

	/* Dispatches and leases. Dispatches were created, released or requested again. */
	CELLS_STARTED,
	/* Dispatches were created, and some are held. */
	CELLS_HELD,
	/* The vendor has the request. */
	CELLS_SENT,
	/* A machine got the dispatch. */
	CELLS_LEASE_GRANTED,
	/* A late heartbeat made the lease active again. */
	CELLS_LEASE_RESUMED,
	/* A machine returned the dispatch, or its lease expired; the dispatch is queued again. */
	CELLS_LEASE_ENDED,
	/* That happened too often: the dispatch failed. */
	CELLS_LEASES_EXHAUSTED,
	/* The dispatch expired. */
	CELLS_DEADLINE_PASSED,
	/* The request could not be delivered: the dispatch failed. */
	CELLS_NOT_SENT,
	/* A person cancelled or declined the dispatch. */
	CELLS_CANCELLED,
	/* The change was closed or superseded, or needs no test any more. */
	CELLS_WITHDRAWN,
	/* A newer round replaces the dispatch. CELLS_STARTED or CELLS_HELD follows. */
	CELLS_RETIRED,

	/* Other knowledge. The accelerator's list of tests that it does not support changed. */
	CELLS_SKIPS_CHANGED,
	/* A known issue that may match the change was added, was removed or expired. */
	CELLS_KNOWN_CHANGED,
	/* The change has another base branch. */
	CELLS_BASE_CHANGED,
	/* GitHub has named the change's merge base. */
	CELLS_BASE_FOUND,
	/* The change was due, and is attributed with the facts in the database. */
	CELLS_LOOKED_AGAIN,
	/* The same, and GitHub has named new facts of the change. */
	CELLS_EVIDENCE_CAME,
	/* The change was closed, superseded or opened again; members revoked its release; its pull request
	 * stopped or started to select the accelerator. */
	CELLS_CHANGE_SETTLED,
	/* An experiment that explains the change ended, or may have to. */
	CELLS_EXPERIMENT_MOVED,
	/* An experiment of another change, on the same merge base, ended: the change may have waited for it. */
	CELLS_BASE_TESTED,
	/* The set of the accelerator's runners that accept experiments changed. */
	CELLS_RERUNS_CHANGED,
	/* The accelerator became unhealthy, or healthy again. */
	CELLS_HEALTH_CHANGED,
	N_CELLS_CAUSES,
};

/* Takes the steps for this cause. accelerator NULL: for each one that has a dispatch or a job of the
 * change; "", the infra repository itself: nothing. Call it after the facts are written, in the
 * same transaction, once for each accelerator that they concern. Returns whether the attribution of
 * any cell changed. */
bool cells_moved(struct txn *d, int64_t change_id, const char *accelerator, enum cells_cause cause, int64_t now_ms);

/* The same for CELLS_JOB_COMPLETED and CELLS_SELF_REPORTED of a job that replaces no other attempt: it adds the job's cells to
 * the others. The result is the same as that of a rebuild, in a time that does not grow with the jobs of the change. */
bool cells_job_added(
    struct txn *d, int64_t change_id, const char *accelerator, enum cells_cause cause, int64_t job_id, int64_t now_ms);
