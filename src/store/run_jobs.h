/* The jobs of pull requests by which levels are judged (model/promotion.h): what is kept of each run, and the
 * sums of a day.
 *
 * Thread: whose transaction it is; level_read() also a reader. */
#ifndef STORE_RUN_JOBS_H
#define STORE_RUN_JOBS_H

#include "model/promotion.h"
#include "store/db.h"

/* A run of a pull request has ended, or its cells moved: its jobs are counted anew. */
void run_jobs_note(struct db *d, int64_t change_id, const char *accelerator, int64_t ended_ms);
/* The change goes by retention: the sums of its days stay as they are. */
void run_jobs_drop_change(struct db *d, int64_t change_id);
int64_t run_jobs_drop_days(struct db *d, int64_t before_day, int limit);
/* What is known of a runner's repository follows it to its new name: CRCR's allowlist calls it by its device at
 * L3 and by its own name below. */
void run_jobs_move(struct db *d, const char *from_accelerator, const char *from_runner,
    const char *accelerator, const char *runner);

/* runner NULL: all of the accelerator's. Fills what comes from jobs and from the registry. */
void level_read(struct db *d, const char *accelerator, const char *runner, int64_t now_ms,
    struct level_numbers *ret);

#endif
