/* A reported job as a row, with its results: what op_job.c and op_nightly.c share. */
#ifndef STORE_JOB_ROW_H
#define STORE_JOB_ROW_H

#include "store/db.h"
#include "store/jobs.h"

struct job_place {
	int64_t change_id;
	const char *dispatch_id; /* "" for a self-report */
	const char *accelerator;
	const char *runner; /* or the vendor's repository for a self-report */
	bool is_shown;      /* its dispatch is of the latest round and was not called off */
	bool is_late, is_push;
};

/* How a job ended that is not going to be reported: its machine fell silent, handed it back
 * or is told to stop. Such a job is completed without a digest; what its machine reports
 * after all takes the place of that. A job that was reported stays as it is. job_id 0: none. */
void job_give_up(struct db *d, int64_t job_id, const char *conclusion, const char *message,
    bool is_still_shown, int64_t now_ms);
/* It goes on after all. */
void job_take_up(struct db *d, int64_t job_id);

/* What these (ids in the first column) look like has moved, without a report of their own: another
 * took their place, or whose fault they are is known now. Ends the rows; whether there were any. */
bool jobs_tell(struct db *d, struct rows *ids);

struct job_record {
	enum report_outcome outcome;
	int64_t job_id;
	bool has_replaced; /* another attempt of the same job is no longer current */
	bool is_current;
};

/* Writes the report where it belongs, or says why not (UNCHANGED, CONFLICT). The caller
 * calls cells_job_added() when nothing else moved, otherwise cells_moved(). */
struct job_record job_put(
    struct db *d, const struct job_place *at, const struct job_report *report, int64_t now_ms);
/* Appends results whose places begin at `first`; returns how many of them are red. */
int64_t job_add_results(
    struct db *d, int64_t job_id, int64_t first, const struct test_result *tests, size_t n);
enum test_status worst_status(enum test_status worst, const struct test_result *tests, size_t n);

#endif
