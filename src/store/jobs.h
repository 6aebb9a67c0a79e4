/* Jobs and results: what runners report, and the verdicts that follow. */
#ifndef STORE_JOBS_H
#define STORE_JOBS_H

#include "base/id.h"
#include "model/job_detail.h"
#include "model/job_report.h"
#include "store/store.h"

enum report_outcome {
	REPORT_RECORDED,
	REPORT_UNCHANGED,         /* the same again, or in_progress after completed */
	REPORT_IGNORED_CLOSED,    /* answers a forwarded `closed` */
	REPORT_CONFLICT,          /* another completed for the same attempt */
	REPORT_NO_DISPATCH,       /* this repository got no such dispatch */
	REPORT_WHICH_ACCELERATOR, /* several share it and workflow.accelerator does not say */
	REPORT_WRONG_ACCELERATOR, /* not one of this dispatch, or not the caller's */
	REPORT_IGNORED_LEVEL,     /* the accelerator's level shows nothing (L1) */
	REPORT_NOT_ITS_LEASE,     /* not the job of a lease of the machine that reports */
};

/* The dispatch is found by (a) dispatch_id alone when `repository` is NULL (a callback
 * token was checked), else (b) dispatch_id if it is this repository's, else by
 * (repository, delivery_id), the newest. Results, the dispatch's state, verdicts and the
 * wish to update the comment are written together. */
struct report_job {
	struct store_op op;
	const char *repository;  /* verified by the caller, or NULL */
	const char *dispatch_id; /* echoed; may be NULL with a repository */
	const char *delivery_id; /* may be NULL without a repository */
	const char *accelerator; /* from the token or workflow.accelerator; may be NULL */
	/* the accelerators for which this caller may report (NULL-terminated), or NULL: any of
	 * the dispatch */
	const char *const *allowed;
	const char *const *silent; /* accelerators at L1: NULL-terminated or NULL */
	/* only the job of a lease that this machine has or had, whatever became of it; NULL: any */
	const char *machine;
	const struct job_report *report;
	int64_t now_ms;
	enum report_outcome outcome; /* out */
	int64_t job_id;              /* out, for RECORDED and UNCHANGED */
	/* out, for these two: where it belongs, whatever the report echoed */
	char found_dispatch[ID_BYTES];
	char found_accelerator[64];
};
int store_report_job(struct store *s, struct report_job *op) MUST_CHECK;

/* `nightly`/`periodic` self-reports: a completed job of (nightly, head_sha); without a commit, of the
 * run that (target, run_id) names. Same outcomes. */
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

/* Where a job belongs, so that a credential can be checked against it. */
struct find_job {
	struct store_query q;
	int64_t id;
	/* out; ERR_NOT_FOUND in q.err. find_job_release() */
	char *dispatch_id, *accelerator;
	char *repository; /* of a github runner or a self-report's vendor; NULL: neither */
	char *machine;    /* whose lease it is or was the job of; NULL: nobody's */
	enum job_status status;
	bool has_report;
};
int store_find_job(struct store *s, struct find_job *q) MUST_CHECK;
void find_job_release(struct find_job *q);

/* A report document for a job: its results join those that came with the job itself, and are
 * shown from when the job is completed. outcome: RECORDED, UNCHANGED (the same digest), CONFLICT
 * (another), NO_DISPATCH (no such job). */
struct put_report {
	struct store_op op;
	int64_t job_id;
	uint8_t digest[SHA256_BYTES];    /* of the document's bytes */
	const struct test_result *tests; /* borrowed until done */
	size_t n_tests;
	size_t n_cut;            /* tests of it that were left out */
	const char *environment; /* JSON object as text, or NULL */
	int64_t now_ms;
	enum report_outcome outcome; /* out */
};
int store_put_report(struct store *s, struct put_report *op) MUST_CHECK;

/* What the log of a job has come to; bytes is how long it is. */
struct note_log {
	struct store_op op;
	int64_t job_id, bytes;
	bool is_complete;
};
int store_note_log(struct store *s, struct note_log *op) MUST_CHECK;

/* One job with its results. L1's are there too: whether they are shown is the asker's rule. */
struct get_job {
	struct store_query q;
	int64_t id;
	/* which of its results, in their order: the first max_tests (0: all) from the ordinal `from`
	 * on that have one of these statuses (bits by enum test_status; 0: any) */
	int64_t max_tests, from;
	unsigned statuses;
	struct job_detail *job; /* out; job_detail_free(); NULL with ERR_NOT_FOUND */
};
int store_get_job(struct store *s, struct get_job *q) MUST_CHECK;

#endif
