/* Periodic runs as history: the results of a run go into the accelerator's row of days, and the state of each test is kept
 * ready for pages (history/history.h). For each UTC day the last run counts; its day is that of its due time, or of the
 * report for a run that the vendor started. L1 has no history.
 *
 * Thread: all functions run inside a writer's transaction; nightly_fill() has its own. */
#ifndef HISTORY_NIGHTLY_NOTE_H
#define HISTORY_NIGHTLY_NOTE_H

#include "db/db.h"

/* How a run ended, as schedule_run keeps it. */
#define NIGHTLY_GREEN  "green"  /* something passed, nothing is red */
#define NIGHTLY_RED    "red"    /* something is FAIL or ERROR */
#define NIGHTLY_MISSED "missed" /* no report says anything about the code */
#define NIGHTLY_FAILED "failed" /* it could not be sent, or was cancelled */

/* Cells or dispatches of a nightly change have changed on this accelerator. Writes its day and, once its dispatches have
 * ended, its outcome and the states of the tests. Does nothing without a row of the run in schedule_run, which a run that
 * the vendor started has as well. Call it again at each correction. At L1 it only ends the run. */
void nightly_note(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);

/* The change is about to be deleted: its days stay, without links. */
void nightly_forget_change(struct db *d, int64_t change_id);
/* Deletes days before before_ms, at most `limit` rows of each table, and with an accelerator's last day the states of its
 * tests. True: there may be more. */
bool nightly_drop(struct db *d, int64_t before_ms, int limit);

/* Makes, once, days of what versions before the fourth recorded: of the newest runs that vendors started, as many as take a
 * second or two. Call it at the start. */
int nightly_fill(struct db *d, struct error *e) MUST_CHECK;

#endif
