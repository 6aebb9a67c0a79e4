/* Reports of jobs: a report finds its dispatch and accelerator. One transaction writes the job, its results, the
 * dispatch's state, the cells and the request to update the comment.
 *
 * Thread: loop. Strings and reports are borrowed until done. */
#pragma once

#include "store/jobs.h"

/* Without a `repository` (a callback token was checked), dispatch_id alone finds the dispatch. Otherwise it is
 * dispatch_id if this repository got it, else the newest dispatch of (repository, delivery_id). */
struct report_job {
	struct store_op op;
	const char *repository;  /* verified by the caller, or NULL */
	const char *dispatch_id; /* echoed; may be NULL with a repository */
	const char *delivery_id; /* may be NULL without a repository */
	const char *accelerator; /* from the token or workflow.accelerator; may be NULL */
	/* the accelerators for which this caller may report (NULL-terminated), or NULL: any of the dispatch */
	const char *const *allowed;
	const char *const *silent; /* accelerators at L1: NULL-terminated or NULL */
	/* only the job of a lease that this machine has or had, in any state; NULL: any job */
	const char *machine;
	const struct job_report *report;
	int64_t now_ms;
	enum report_outcome outcome; /* out */
	int64_t job_id;              /* out, for RECORDED and UNCHANGED */
	/* out, for these two: where the job belongs, whatever the report echoed */
	char found_dispatch[ID_BYTES];
	char found_accelerator[64];
};
int store_report_job(struct store *s, struct report_job *op) MUST_CHECK;

/* `nightly`/`periodic` self-reports: a completed job of (nightly, head_sha); without a commit, of the run with this
 * (target, run_id). Same outcomes. */
struct report_nightly {
	struct store_op op;
	const char *repository;             /* upstream's, for the change */
	const char *target;                 /* the vendor's repository */
	const char *accelerator, *head_sha; /* head_sha NULL: not known */
	const struct job_report *report;
	int64_t now_ms;
	enum report_outcome outcome;
	int64_t job_id;
};
int store_report_nightly(struct store *s, struct report_nightly *op) MUST_CHECK;
