/* One job's folder under work_dir/jobs, where the agent and the job's process meet. Either may be killed at
 * any moment and started again: only the files on disk count, and each file has one writer.
 *
 *   offer.json   agent   the lease as it was granted; written before anything else
 *   started      agent   exists once the job's process may have been started: it never starts twice
 *   progress     agent   what the server knows of the job; see agent/journal.h
 *   lock         job     flock()ed while the job's process lives, or a process that still has to
 *                        clean up after it; holds the process id
 *   change.json  job     the file that OUTPOST_CHANGE_JSON names
 *   tests        job     the file that OUTPOST_TESTS names; only of an experiment
 *   work/        job     the steps' working folder, fresh; work/results/ is OUTPOST_RESULTS
 *   tmp/         job     the steps' TMPDIR; in the sandbox it is their /tmp
 *   git/         job     git's HOME, with the one settings file that git reads
 *   log          job     the output of the steps: secrets masked, capped, only appended to
 *   excerpt      job     the last lines of the step that failed; may leave the machine under `summary`
 *   report.json  job     the report files as one Outpost report; absent: there is none
 *   result.json  job     how the job ended; written last, atomically: once it exists, the job is over
 *
 * Thread: any. Every call blocks for as long as the disk does. */
#pragma once

struct step_outcome {
	char *name;
	int exit_code; /* -1: it did not exit by itself */
	int signal;    /* 0: none */
	bool is_timeout;
	int64_t duration_ms;
};

struct job_result {
	/* success | failure | timed_out | cancelled | startup_failure (checkout, sandbox) | action_required (a step's
	 * program or file is missing; or the steps passed, but the promised report is missing or wrong) */
	char *conclusion;
	char *message;              /* one line that says why, without secrets; NULL for success */
	struct step_outcome *steps; /* the steps that were started */
	size_t n_steps;
	int64_t started_ms, completed_ms; /* wall clock */
	bool has_report;
};

/* Writes NAME whole or not at all, durable when it returns (temporary file, fsync, rename, fsync of the folder). */
int job_folder_write(const char *folder, const char *name, const void *p, size_t n, struct error *e) MUST_CHECK;
/* Makes a folder for this user alone; one that exists is fine. ERR_FULL, ERR_IO. */
int job_folder_make(const char *path, struct error *e) MUST_CHECK;
/* Reads at most max bytes. ERR_NOT_FOUND: no such file. free() *ret, which is NUL-terminated. */
int job_folder_read(
    const char *folder, const char *name, size_t max, char **ret, size_t *ret_n, struct error *e) MUST_CHECK;
/* Takes the folder for this process: *ret_fd holds the lock until it is closed. It closes at exec, but
 * forked children share it on purpose: the folder is free only when they are gone too. ERR_BUSY: another
 * process has the lock, and still had it after a second. */
int job_lock_acquire(const char *folder, int *ret_fd, struct error *e) MUST_CHECK;
/* True while a process holds the folder, and also if that cannot be found out: a job must not be taken
 * for dead by mistake. */
bool job_folder_is_locked(const char *folder);
/* Asks the job's process to cancel (SIGTERM). ERR_NOT_FOUND: no process holds the folder. */
int job_folder_cancel(const char *folder, struct error *e) MUST_CHECK;

/* Reading: ERR_NOT_FOUND if the job is not over; ERR_CORRUPT. Release the result also after a failure. */
int job_result_write(const char *folder, const struct job_result *r, struct error *e) MUST_CHECK;
int job_result_read(const char *folder, struct job_result *ret, struct error *e) MUST_CHECK;
void job_result_release(struct job_result *r);

/* Removes a folder and everything below it, read-only folders too. Never follows a link. A folder that does
 * not exist is fine. */
int job_folder_remove(const char *folder, struct error *e) MUST_CHECK;
