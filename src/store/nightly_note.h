/* Periodic runs as history: what a run said of each test goes into the accelerator's row of days,
 * and what the row says of each test is kept ready for pages. One run a UTC day counts, the last one;
 * the day is that of its due time (a self-report's: of the report). L1 has no history. */
#ifndef STORE_NIGHTLY_NOTE_H
#define STORE_NIGHTLY_NOTE_H

#include "store/db.h"

/* How a run ended, as schedule_run keeps it. */
#define NIGHTLY_GREEN  "green"  /* something passed, nothing is red */
#define NIGHTLY_RED    "red"    /* something is FAIL or ERROR */
#define NIGHTLY_MISSED "missed" /* nothing was heard that says anything of the code */
#define NIGHTLY_FAILED "failed" /* it could not be handed over, or was called off */

/* Cells or dispatches of a nightly change have changed, as an accelerator has them: writes its day
 * and, once its dispatches have ended, its outcome and the states of the tests. Finds the run by its
 * schedule_run row, which must be there (a self-report's, too): without one it does nothing. Called
 * again at each correction. At L1 it says only that the run has ended. Inside a writer's transaction. */
void nightly_note(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);

/* The change goes: its days stay, without links. Inside a writer's transaction. */
void nightly_forget_change(struct db *d, int64_t change_id);
/* Days before before_ms go, a piece of `limit` rows at a time, and with an accelerator's last day what
 * they said of its tests. True: there may be more. Inside a writer's transaction. */
bool nightly_drop(struct db *d, int64_t before_ms, int limit);

/* Once, of what versions before the fourth recorded: the newest self-reports become days, as many as
 * a second or two allows. At the start, in a transaction of its own. */
int nightly_fill(struct db *d, struct error *e) MUST_CHECK;

#endif
