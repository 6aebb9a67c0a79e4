/* The results of a report: the list of its tests, which jobs share, the packed results, and a row of `result` for each that
 * says more. A large report is written in parts, each in a transaction of its own, so that it does not hold the writer: first
 * the tests of a new list, which mean nothing without a report, then the rows. The rows of a job with ordinals from job.n_tests
 * on do not count yet, so readers never see a part of a report.
 *
 * Thread: the writer, inside a transaction. Ownership: the arguments are borrowed; the store's members of packed_tests are
 * written here. */
#pragma once

#include "db/db.h"
#include "model/packed_tests.h"

/* An id that neither a job has nor a report whose job has no row yet. */
#define NEW_JOB_ID                                                                                                     \
	"(SELECT COALESCE(MAX(id), 0) + 1 FROM (SELECT MAX(id) AS id FROM job UNION ALL SELECT MAX(job_id) FROM "      \
	"staged) t)"

/* Call it first in each transaction: n_parts transactions of the operation are committed. NULL is fine. */
void job_results_go_on(struct packed_tests *p, int64_t n_parts);
/* Writes a part, if there is one to write before job_results_put(). job_id 0: the job has no row yet, and gets p->staged_job as its
 * id. first: the job's n_tests. NULL has none. */
bool job_results_put_part(struct txn *d, int64_t job_id, int64_t first, struct packed_tests *p, int64_t now_ms);
/* Writes the results behind the first ones, which the job has already, after job_results_put_part() in the same transaction. The
 * caller adds them to job.n_tests. */
void job_results_put(struct txn *d, int64_t job_id, int64_t first, struct packed_tests *p);
/* The report is not recorded: its rows go later. NULL is fine. */
void job_results_give_up(struct txn *d, struct packed_tests *p);

/* Deletes rows of the job that do not count, and at most *left of them, which it reduces. True: there are no more. */
bool staged_rows_drop(struct txn *d, int64_t job_id, int64_t *left);
/* The same for all reports that were given up, or that began before this time. Returns whether
 * there were any. */
bool staged_reports_drop(struct txn *d, int64_t before_ms, int64_t *left);
/* No report of a node that cannot write any more goes on. */
void staged_reports_give_up(struct txn *d);
