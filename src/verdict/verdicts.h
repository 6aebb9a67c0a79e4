/* Verdicts: the current cell of each (change, accelerator, test), a materialised view of the results of the current jobs
 * and of the states of the dispatches. Also the failures that attribution remembers, and the tests that an accelerator does
 * not support.
 *
 * Thread: the writer, inside a transaction. Ownership: all arguments are borrowed. */
#pragma once

#include "db/db.h"
#include "model/packed_tests.h"
#include "model/states.h"

/* A completed job gets a cell of its own name if its tests do not show its outcome. */
struct job_outcome {
	const char *conclusion;
	int64_t n_tests, n_red;
	const char *message; /* why the job was ended; or NULL */
	bool is_given_up;    /* no report came: see job_give_up() */
};
bool job_needs_cell(const struct job_outcome *o);
/* The message of that cell. NULL: none. free(). */
char *job_outcome_text(const struct job_outcome *o);

/* ---- steps of cells_moved(), which alone calls them ---- */

/* Makes all cells of one accelerator again, from its current jobs and dispatches. */
void verdicts_rebuild(struct txn *d, int64_t change_id, const char *accelerator);
/* Adds the cells of a job that has just completed and replaces no other attempt. The result is that of
 * verdicts_rebuild(). */
void verdicts_add_job(struct txn *d, int64_t change_id, const char *accelerator, int64_t job_id);

/* The id of a (suite, name, dtype), made when it is new. dtype NULL: none. */
int64_t test_id_of(struct txn *d, const char *suite, const char *name, const char *dtype);

/* The same for n of them. */
void test_ids_of(struct txn *d, const struct test_result *tests, size_t n, int64_t *ids);

/* ---- tests that the accelerator's file lists in tests.skip: Outpost keeps their results, but their cells are SKIP ---- */

/* accelerator.skip was `before` (a JSON array). Makes the cells again of the newest SKIPS_CHANGES_MAX open changes that
 * have a test which was added or removed; other changes follow with their next report. */
enum { SKIPS_CHANGES_MAX = 100 };
void skips_changed(struct txn *d, const char *accelerator, const char *before, int64_t now_ms);

/* ---- failures: attribution compares a failure with those of other changes and of replaced attempts ----
 *
 * Rows are deleted after FAILURES_KEPT_MS. */

#define FAILURES_KEPT_MS (INT64_C(30) * 24 * 3600 * 1000)

struct failure_place {
	int64_t change_id, job_id, now_ms;
	const char *accelerator;
};
/* Adds the tests that failed if the change is a pull request or a push. */
void failures_put(struct txn *d, const struct failure_place *at, const struct packed_tests *tests);
/* The same for a job without tests, which stands for itself. */
void failure_put_job(struct txn *d, const struct failure_place *at, const char *workflow, const char *name,
    enum test_status status, const char *message);

/* Deletes some that are older. False: there was none. */
bool failures_drop(struct txn *d, int64_t before_ms);
