/* Runs: one accelerator's test of one change, as it had ended. The numbers by which a level is
 * judged, the circuit breaker and the 72-hour rule all look at runs and at nothing else, so that
 * none of them has to walk over results.
 *
 * An accelerator at L1 has none: it shows nothing. */
#ifndef STORE_RUN_NOTE_H
#define STORE_RUN_NOTE_H

#include "store/db.h"

/* How a run ended, as it is stored by name. */
#define RUN_GREEN   "green"   /* something passed, and what is red is explained */
#define RUN_RED     "red"     /* something is red */
#define RUN_OWN     "own"     /* a pull request's: all that is red is NEW */
#define RUN_NOTHING "nothing" /* nothing passed and nothing is red: it says nothing */

/* Cells or dispatches of it have changed. Once all its dispatches have ended the run is written
 * down, or written anew, with what follows: the breaker and, for a push, the episode. Dispatches that
 * were called off do not count; where all were, there is no run. A step of cells_moved(), which alone
 * calls it, when the cells have their attribution. Inside a writer's transaction. */
void run_note(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);

/* The change goes. Inside a writer's transaction. */
void runs_drop(struct db *d, int64_t change_id);

#endif
