/* Derived state. Jobs, dispatches and leases are the facts; what is derived from them is
 *
 *   the cells (verdict) of one accelerator in one change, and whose each failure is
 *   the changes that are attributed again soon (attribution_due)
 *   the run with its suites and days, or a periodic run's history; the red episode; the accelerator's
 *   health; what a platform was tested with
 *   the experiments that would help to decide the red cells (store/experiments.h)
 *   the comment and the check runs of the pull requests (outbox), and the pages that readers look at
 *
 * A change of kind `experiment` has cells, and nothing else follows from it: the experiment ends with its dispatch,
 * and then the change that it explains is attributed again.
 *
 * Each operation that moves a fact calls cells_moved() with the cause. The table in cells_moved.c says
 * which steps follow from which cause. No other file takes these steps itself: tests/lint/callers.sh
 * checks it. */
#ifndef STORE_CELLS_MOVED_H
#define STORE_CELLS_MOVED_H

#include "store/db.h"

enum cells_cause {
	/* Jobs. A job is in progress that was not known, and no other attempt was shown. */
	CELLS_JOB_STARTED,
	/* A job ended: see cells_job_added(). */
	CELLS_JOB_COMPLETED,
	/* Another attempt is shown, or a report came where silence had counted. */
	CELLS_JOB_REPLACED,
	/* A report document came for a job that had ended. */
	CELLS_REPORT_ADDED,
	/* A periodic run that the vendor started by itself. */
	CELLS_SELF_REPORTED,
	/* A report that is not kept at this level, but its dispatch moved on. */
	CELLS_REPORTED_AT_L1,

	/* Dispatches and leases. Dispatches were made, released or asked for once more. */
	CELLS_STARTED,
	/* Dispatches were made, and some wait for a person. */
	CELLS_HELD,
	/* The request arrived at the vendor's. */
	CELLS_SENT,
	/* A machine took the dispatch. */
	CELLS_LEASE_GRANTED,
	/* A machine that was late with its heartbeat goes on. */
	CELLS_LEASE_RESUMED,
	/* A machine handed the dispatch back or fell silent, and another may have it. */
	CELLS_LEASE_ENDED,
	/* That happened too often: the dispatch failed. */
	CELLS_LEASES_EXHAUSTED,
	/* The dispatch expired. */
	CELLS_DEADLINE_PASSED,
	/* The request could not be delivered: the dispatch failed. */
	CELLS_NOT_SENT,
	/* A person called the dispatch off, or declined it. */
	CELLS_CANCELLED,
	/* The change was closed or superseded, or lost the reason for its test. */
	CELLS_WITHDRAWN,
	/* A newer round takes the dispatch's place. CELLS_STARTED or CELLS_HELD follows. */
	CELLS_RETIRED,

	/* Other knowledge. The accelerator's list of tests that it does not support changed. */
	CELLS_SKIPS_CHANGED,
	/* A known issue that may concern the change was added, was removed or ran out. */
	CELLS_KNOWN_CHANGED,
	/* The change has another base branch. */
	CELLS_BASE_CHANGED,
	/* GitHub has named the change's merge base. */
	CELLS_BASE_FOUND,
	/* The change was due: it is attributed by what is known now. */
	CELLS_LOOKED_AGAIN,
	/* The same, and GitHub has said something new of the change. */
	CELLS_EVIDENCE_CAME,
	/* The change was closed, superseded or opened again; members took its release back; its pull request
	 * asks for the accelerator no longer, or again. */
	CELLS_CHANGE_SETTLED,
	/* An experiment that explains the change ended, or may have to. */
	CELLS_EXPERIMENT_MOVED,
	/* An experiment of another change, on the same merge base, ended. */
	CELLS_BASE_TESTED,
	/* Other runners of the accelerator take experiments than before. */
	CELLS_RERUNS_CHANGED,
	/* The accelerator became unhealthy, or healthy again. */
	CELLS_HEALTH_CHANGED,
	N_CELLS_CAUSES,
};

/* Takes the steps that follow. accelerator NULL: for each one that has a dispatch or a job of the
 * change; "", the infra repository itself: nothing. Call it when the facts are written, within the
 * same transaction; once for each accelerator that they concern. Returns whether the attribution of
 * any cell moved. Inside a writer's transaction. */
bool cells_moved(struct db *d, int64_t change_id, const char *accelerator, enum cells_cause cause,
    int64_t now_ms);

/* The same for CELLS_JOB_COMPLETED and CELLS_SELF_REPORTED of a job that takes no other attempt's place:
 * its cells are added to those that are there. The result is that of making all of them again, in a
 * time that does not grow with each job of the change. */
bool cells_job_added(struct db *d, int64_t change_id, const char *accelerator,
    enum cells_cause cause, int64_t job_id, int64_t now_ms);

#endif
