/* The jobs of pull requests by which levels are judged (model/accelerator.h): what is kept of each run, and the
 * sums of a day.
 *
 * Thread: all functions run inside a writer's transaction, level_read() also on a reader. */
#ifndef HISTORY_RUN_JOBS_H
#define HISTORY_RUN_JOBS_H

#include "db/db.h"
#include "model/accelerator.h"

/* A run of a pull request has ended, or its cells have changed: counts its jobs again. */
void run_jobs_note(struct db *d, int64_t change_id, const char *accelerator, int64_t ended_ms);
/* Retention is about to delete the change: the sums of its days stay as they are from now on. */
void run_jobs_drop_change(struct db *d, int64_t change_id);
int64_t run_jobs_drop_days(struct db *d, int64_t before_day, int limit);
/* Moves the figures of a runner to its new name. (CRCR's allowlist has the repository under its device at L3 and under its
 * own name below.) */
void run_jobs_move(struct db *d, const char *from_accelerator, const char *from_runner,
    const char *accelerator, const char *runner);

/* runner NULL: all of the accelerator's. Fills the numbers that come from jobs and from the registry. */
void level_read(struct db *d, const char *accelerator, const char *runner, int64_t now_ms,
    struct level_numbers *ret);

#endif
