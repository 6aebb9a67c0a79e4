/* Derived state. Jobs, dispatches and leases are the facts. Outpost derives from them:
 *
 *   the cells (verdict) of one accelerator in one change, and the cause of each failure
 *   the changes that are attributed again soon (attribution_due)
 *   the run with its suites and days, or a periodic run's history; the red episode; the accelerator's health; the tests of
 *   a platform
 *   the experiments that would help to decide the red cells (experiments/experiments.h)
 *   the comment and the check runs of the pull requests (outbox), and the pages to refresh
 *
 * For a change of kind `experiment` it derives only the cells. The experiment ends with its dispatch, and then the change
 * that it explains is attributed again.
 *
 * Each operation that changes a fact calls cells_moved() with the cause. The table in cells_moved.c lists the steps for
 * each cause. tests/lint/callers.sh checks that no other file takes these steps.
 *
 * Thread: the writer, inside a transaction. Ownership: all arguments are borrowed. */
#pragma once

#include "db/db.h"

enum cells_cause {
	/* Jobs. */
	CELLS_JOB_STARTED,    /* a new job is in progress, and no other attempt of it is current */
	CELLS_JOB_COMPLETED,  /* a job ended: see cells_job_added() */
	CELLS_JOB_REPLACED,   /* another attempt is current, or a report came for a job that Outpost had given up */
	CELLS_REPORT_ADDED,   /* a report document came for a job that had ended */
	CELLS_SELF_REPORTED,  /* the vendor started a periodic run by itself */
	CELLS_REPORTED_AT_L1, /* Outpost keeps no results at this level, but the dispatch changed its state */

	/* Dispatches and leases. */
	CELLS_STARTED,       /* dispatches were created, released or requested again */
	CELLS_HELD,          /* dispatches were created, and some are held */
	CELLS_SENT,          /* the vendor has the request */
	CELLS_LEASE_GRANTED, /* a machine got the dispatch */
	CELLS_LEASE_RESUMED, /* a late heartbeat made the lease active again */
	CELLS_LEASE_ENDED,   /* a machine returned the dispatch, or its lease expired; the dispatch is queued again */
	CELLS_LEASES_EXHAUSTED, /* that happened too often: the dispatch failed */
	CELLS_DEADLINE_PASSED,  /* the dispatch expired */
	CELLS_NOT_SENT,         /* the request could not be delivered: the dispatch failed */
	CELLS_CANCELLED,        /* a person cancelled or declined the dispatch */
	CELLS_WITHDRAWN,        /* the change was closed or superseded, or needs no test any more */
	CELLS_RETIRED,          /* a newer round replaces the dispatch; CELLS_STARTED or CELLS_HELD follows */

	/* Other knowledge. */
	CELLS_SKIPS_CHANGED, /* the accelerator's list of tests that it does not support changed */
	CELLS_KNOWN_CHANGED, /* a known issue that may match the change was added, was removed or expired */
	CELLS_BASE_CHANGED,  /* the change has another base branch */
	CELLS_BASE_FOUND,    /* GitHub has named the change's merge base */
	CELLS_LOOKED_AGAIN,  /* the change was due, and is attributed with the facts in the database */
	CELLS_EVIDENCE_CAME, /* the same, and GitHub has named new facts of the change */
	/* The change was closed, superseded or opened again; members revoked its release; its pull request stopped or
	 * started to select the accelerator. */
	CELLS_CHANGE_SETTLED,
	CELLS_EXPERIMENT_MOVED, /* an experiment that explains the change ended, or may have to */
	CELLS_BASE_TESTED,    /* an experiment of another change on its merge base ended: it may have waited for this */
	CELLS_RERUNS_CHANGED, /* the set of the accelerator's runners that accept experiments changed */
	CELLS_HEALTH_CHANGED, /* the accelerator became unhealthy, or healthy again */
	N_CELLS_CAUSES,
};

/* Takes the steps for this cause. accelerator NULL: for each one that has a dispatch or a job of the change; "", the infra
 * repository itself: nothing. Call it after the facts are written, in the same transaction, once for each accelerator that
 * they concern. Returns whether the attribution of any cell changed. */
bool cells_moved(struct txn *d, int64_t change_id, const char *accelerator, enum cells_cause cause, int64_t now_ms);

/* The same for CELLS_LOOKED_AGAIN and CELLS_EVIDENCE_CAME of all accelerators of the change, in several transactions if it takes longer
 * than a writer may be held: each calls cells_look() once, until it is true. Then *ret_has_moved is also true if any cell moved. */
struct cells_look;
struct cells_look *cells_look_new(const struct view *d, int64_t change_id, enum cells_cause cause, int64_t now_ms);
bool cells_look(struct cells_look *l, struct txn *d, bool *ret_has_moved);
void cells_look_free(struct cells_look *l); /* any thread; NULL is fine */

/* The same for each change whose id is the key of a row. It reads all rows first. */
void cells_moved_each(
    struct txn *d, struct rows *changes, const char *accelerator, enum cells_cause cause, int64_t now_ms);

/* The same for CELLS_JOB_COMPLETED and CELLS_SELF_REPORTED of a job that replaces no other attempt: it adds the job's cells
 * to the others. The result is the same as that of a rebuild, in a time that does not grow with the jobs of the change. */
bool cells_job_added(
    struct txn *d, int64_t change_id, const char *accelerator, enum cells_cause cause, int64_t job_id, int64_t now_ms);
