/* One job's folder under work_dir/jobs: where the part of outpost-runner that talks to the server
 * and the process that runs the steps meet. Either may be killed at any moment and started again;
 * what counts is what is on disk, and each file has one writer.
 *
 *   offer.json   agent   the lease as it was granted; written before anything else
 *   started      agent   there once the job's process may have been started: it never starts twice
 *   progress     agent   what the server has of it; see agent/journal.h
 *   lock         job     flock()ed as long as the job's process lives, or anything that has still
 *                        to clean up after it; holds its process id
 *   change.json  job     what OUTPOST_CHANGE_JSON names
 *   tests        job     what OUTPOST_TESTS names; only of an experiment
 *   work/        job     the steps' working folder, fresh; work/results/ is OUTPOST_RESULTS
 *   tmp/         job     the steps' TMPDIR; in the sandbox it is their /tmp
 *   git/         job     git's HOME, with the one file of settings that git reads
 *   log          job     what the steps wrote: secrets masked, capped; only ever appended to
 *   excerpt      job     the last lines of the step that failed; what may leave under `summary`
 *   report.json  job     the report files as one Outpost report; absent: there is none
 *   result.json  job     how it ended; written last, atomically: it is over once this is there */
#ifndef STEPS_JOB_FOLDER_H
#define STEPS_JOB_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct step_outcome {
	char *name;
	int exit_code; /* -1: it did not exit by itself */
	int signal;    /* 0: none */
	bool is_timeout;
	int64_t duration_ms;
};

struct job_result {
	/* success | failure | timed_out | cancelled | startup_failure (checkout, sandbox) |
	 * action_required (a step's program or file is not there to be run; or the steps passed,
	 * but the report that was promised is missing or wrong) */
	char *conclusion;
	char *message;              /* one line: why, without secrets; NULL for success */
	struct step_outcome *steps; /* those that were begun */
	size_t n_steps;
	int64_t started_ms, completed_ms; /* wall clock */
	bool has_report;
};

/* PATH/NAME; free(). */
char *job_folder_file(const char *folder, const char *name);
/* Writes NAME whole or not at all, durable when it returns (temporary file, fsync, rename, fsync
 * of the folder). */
int job_folder_write(
    const char *folder, const char *name, const void *p, size_t n, struct error *e) MUST_CHECK;
/* ERR_NOT_FOUND: not there. At most max bytes; free() *ret, which is NUL-terminated. */
int job_folder_read(const char *folder, const char *name, size_t max, char **ret, size_t *ret_n,
    struct error *e) MUST_CHECK;
/* True while a job's process holds the folder, and where that cannot be told. */
bool job_folder_is_locked(const char *folder);
/* Asks the job's process to cancel (SIGTERM). ERR_NOT_FOUND: nobody holds the folder. */
int job_folder_cancel(const char *folder, struct error *e) MUST_CHECK;

/* job_result_read: ERR_NOT_FOUND: it is not over; ERR_CORRUPT. Release also after a failure. */
int job_result_write(const char *folder, const struct job_result *r, struct error *e) MUST_CHECK;
int job_result_read(const char *folder, struct job_result *ret, struct error *e) MUST_CHECK;
void job_result_release(struct job_result *r);

/* Removes a folder and all below it, never following a link, also what steps made read-only. */
int job_folder_remove(const char *folder, struct error *e) MUST_CHECK;

#endif
