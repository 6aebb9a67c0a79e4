/* A job's log while the job runs: what its programs write and what we say between, as text,
 * without secrets, and no longer than it may be.
 *
 * Past its limit the log says so and goes on in memory with only the newest 64 KiB, which are
 * written when the job ends: the end of a log is where the reason is. */
#ifndef STEPS_JOB_LOG_H
#define STEPS_JOB_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "steps/masks.h"

enum { EXCERPT_MAX_BYTES = 4096, EXCERPT_MAX_LINES = 60 };

struct job_log;

/* Appends to FOLDER/log, at most max_bytes. `masks` must outlive it and may grow meanwhile. */
int job_log_open(const char *folder, int64_t max_bytes, const struct masks *masks,
    struct job_log **ret, struct error *e) MUST_CHECK;
/* A program's output, as it comes. */
void job_log_output(struct job_log *l, const char *p, size_t n);
/* A line of our own, "== " before it. Ends the program's last line, if that is open. */
void job_log_say(struct job_log *l, const char *fmt, ...) PRINTF(2, 3);
/* A new step: the excerpt begins here. */
void job_log_begin_excerpt(struct job_log *l);
/* The last lines of output since then, ours not among them. free(). */
char *job_log_excerpt(struct job_log *l);
/* Writes what is held, syncs. The first failure to write, if there was one: the rest of the log
 * is missing then. Frees it. NULL is fine. */
int job_log_close(struct job_log *l, struct error *e) MUST_CHECK;

#endif
