/* Jobs: one row for each CI job that a runner reports, with its results, its report document and its log's length.
 *
 * Thread: functions with a struct txn run inside a writer's transaction; store_*() functions run on the loop. */
#pragma once

#include "model/job_report.h"
#include "store/dispatches.h"

enum report_outcome {
	REPORT_RECORDED,
	REPORT_UNCHANGED,         /* the same again, or in_progress after completed */
	REPORT_IGNORED_CLOSED,    /* answers a forwarded `closed` */
	REPORT_CONFLICT,          /* another completed for the same attempt */
	REPORT_NO_DISPATCH,       /* this repository got no such dispatch */
	REPORT_WHICH_ACCELERATOR, /* several share it and workflow.accelerator does not say */
	REPORT_WRONG_ACCELERATOR, /* not one of this dispatch, or not the caller's */
	REPORT_IGNORED_LEVEL,     /* the accelerator's level shows nothing (L1) */
	REPORT_IN_PARTS,          /* not yet: a part of it was written */
	REPORT_NOT_ITS_LEASE,     /* not the job of a lease of the machine that reports */
	REPORT_TOO_MANY_JOBS,     /* the dispatch has so many jobs already */
	REPORT_TOO_MANY_RESULTS,  /* its jobs would have more results */
};

/* Of one accelerator in a dispatch (or in a change, for self-reports), with all attempts: more than any CI has, and a bound for
 * vendors that invent names. docs/report.md lists them. */
enum { JOBS_PER_DISPATCH_MAX = 1000, RESULTS_PER_DISPATCH_MAX = 1000000 };
#define TOO_MANY_JOBS_TEXT "the dispatch has 1,000 jobs of this accelerator already: the limit, with all attempts"
#define TOO_MANY_RESULTS_TEXT                                                                                          \
	"the dispatch would have more than 1,000,000 results of this accelerator: the limit of all its jobs"

struct job_place {
	int64_t change_id;
	const char *dispatch_id; /* "" for a self-report */
	const char *accelerator;
	const char *runner; /* or the vendor's repository for a self-report */
	bool is_shown;      /* its dispatch is of the latest round and was not called off */
	bool is_late, is_push;
};

/* The place of a dispatch's job that is shown. */
struct job_place job_place_of(const struct view *d, const struct stored_dispatch *s);

struct job_record {
	enum report_outcome outcome;
	int64_t job_id;
	bool has_replaced; /* another attempt of the same job is no longer current */
	bool is_current;
};

/* Writes the report, or returns why not (UNCHANGED, CONFLICT, TOO_MANY_…). The caller calls cells_job_added() when nothing else
 * moved, otherwise cells_moved(). */
/* IN_PARTS: nothing else was written; call it again in another transaction, with report->packed->n_named as it is after these
 * commits (job_results_go_on()). */
struct job_record job_put(struct txn *d, const struct job_place *at, const struct job_report *report, int64_t now_ms);
/* The only way from one status to the other: to `completed` when it is reported or given up, and back only when it was
 * given up. False when it has the status already or was reported: nothing changes then. */
bool job_enter(struct txn *d, int64_t job_id, enum job_status to);
/* Completes a job that its machine did not report: the machine was silent, returned the lease or was stopped. Such a
 * job has no digest, and a later report of its machine replaces it. A reported job stays as it is. job_id 0: none. */
void job_give_up(
    struct txn *d, int64_t job_id, const char *conclusion, const char *message, bool is_still_shown, int64_t now_ms);
/* It is completed, and a test in it failed. A reader may call it, too. */
bool job_is_red(const struct view *d, int64_t job_id);
/* A job that was given up continues. */
void job_resume(struct txn *d, int64_t job_id);
/* Notifies watchers of the pages of these jobs (ids in the first column). Ends the rows; false: there were none. */
bool jobs_notify(struct txn *d, struct rows *ids);

/* A report document for a job: its results join the results of the job's own report, and are shown once the job is
 * completed. outcome: RECORDED, UNCHANGED (the same digest), CONFLICT (another one), NO_DISPATCH (no such job), TOO_MANY_RESULTS. */
struct put_report {
	struct store_op op;
	int64_t job_id;
	uint8_t digest[SHA256_BYTES];    /* of the document's bytes */
	const struct test_result *tests; /* borrowed until done */
	size_t n_tests;
	struct packed_tests *packed; /* the same, packed, borrowed; NULL: the store packs them */
	size_t n_cut;                /* tests of it that were left out */
	const char *environment;     /* JSON object as text, or NULL */
	int64_t now_ms;
	enum report_outcome outcome; /* out */
};
int store_put_report(struct store *s, struct put_report *op) MUST_CHECK;

/* The length of a job's log, in bytes. Nothing happens when a later note was written first, as by another daemon: the log is longer, or
 * complete. ERR_NOT_FOUND: there is no such job. */
struct note_log {
	struct store_op op;
	int64_t job_id, bytes;
	bool is_complete;
};
int store_note_log(struct store *s, struct note_log *op) MUST_CHECK;
