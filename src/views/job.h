/* One job: in full as its page and /api/v1/jobs/{id} show it, or only where it belongs. The queries run on a reader. */
#pragma once

#include "db/store.h"
#include "model/change_view.h"

/* L1's jobs are there too: the caller decides whether to show them. */
struct get_job {
	struct store_query q;
	int64_t id;
	/* which of its results, in their order: the first max_tests (0: all) from the ordinal `from` on that have one of
	 * these statuses (bits by enum test_status; 0: any) */
	int64_t max_tests, from;
	unsigned statuses;
	struct job_detail *job; /* out; job_detail_free(); NULL with ERR_NOT_FOUND */
};
int store_get_job(struct store *s, struct get_job *q) MUST_CHECK;

/* Where a job belongs, to check a credential: `job` as j, its dispatch as x. `repository`: of a github runner or of a
 * self-report's vendor; NULL: neither. `machine`: the one with the lease of this job. */
#define FIND_JOB_RECORD(F, S)                                                                                          \
	F(S, TEXT, dispatch_id, NULL, "j.dispatch_id", "")                                                             \
	F(S, TEXT, accelerator, NULL, "j.accelerator", "")                                                             \
	F(S, TEXT, repository, NULL,                                                                                   \
	    "CASE WHEN j.dispatch_id = '' THEN j.runner"                                                               \
	    " WHEN x.kind IN ('github', 'infra') THEN x.target END",                                                   \
	    "")                                                                                                        \
	F(S, TEXT, machine, NULL,                                                                                      \
	    "(SELECT l.machine FROM lease l"                                                                           \
	    " WHERE l.dispatch_id = j.dispatch_id AND l.job_id = j.id)",                                               \
	    "")                                                                                                        \
	F(S, JOB_STATUS, status, NULL, "j.status", "")                                                                 \
	F(S, BOOL, has_report, NULL, "j.report_digest IS NOT NULL", "")
struct find_job {
	struct store_query q;
	int64_t id;
	RECORD_MEMBERS(FIND_JOB_RECORD) /* out; find_job_release(). ERR_NOT_FOUND in q.err */
};
int store_find_job(struct store *s, struct find_job *q) MUST_CHECK;
void find_job_release(struct find_job *q);

RECORD_DECLARE(test_result); /* a result as the page of its job shows it */

/* New objects; thread: any. public_url: without a trailing slash. */
void job_view_out(struct buf *out, const struct job_view *j); /* the members of a line of a change (base/json_out.h) */
/* The same fields, then those of its change, and every result. */
char *job_detail_json(const struct job_detail *d, const char *public_url);
