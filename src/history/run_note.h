/* Runs: one accelerator's test of one change, as it ended. The numbers by which a level is judged, the circuit breaker
 * (model/accelerator.h) and the 72-hour rule read runs and nothing else, so that none of them walks over results.
 *
 * An accelerator at L1 has no runs, because it shows nothing.
 *
 * Thread: all functions run inside a writer's transaction. */
#ifndef HISTORY_RUN_NOTE_H
#define HISTORY_RUN_NOTE_H

#include "db/db.h"

/* How a run ended, as it is stored by name. */
#define RUN_GREEN   "green"   /* something passed, and each failure is explained */
#define RUN_RED     "red"     /* something is red */
#define RUN_OWN     "own"     /* of a pull request: all failures are NEW */
#define RUN_NOTHING "nothing" /* nothing passed and nothing is red: the run is no evidence */

/* Cells or dispatches of the change have changed on this accelerator. Once all its dispatches have ended, the run is
 * written, or written again, and then the circuit breaker and, for a push, the episode. Cancelled dispatches do not count;
 * when all were cancelled there is no run. Only cells_moved() calls it, after the cells have their attribution. */
void run_note(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);

/* The change is about to be deleted: deletes its runs. */
void runs_drop(struct db *d, int64_t change_id);

#endif
