/* Which versions of PyTorch were tested on which systems, and whether the must-pass tests were green: the platforms page
 * shows it beside the vendor's own statements.
 *
 * Thread: all functions run inside a writer's transaction. */
#ifndef HISTORY_PLATFORM_TESTS_H
#define HISTORY_PLATFORM_TESTS_H

#include "db/db.h"

/* Jobs or cells of the change have changed on this accelerator. Judges each (version, system) that its current jobs report,
 * by the jobs that report it and those that name no version or system. A failure counts at once; a missing or green test
 * counts when no job is at work any more. An older change overwrites nothing. The same change again corrects its rows, and
 * a row that it no longer supports goes back to the change before it. Pull requests and L1 write nothing. */
void platform_tests_note(struct db *d, int64_t change_id, const char *accelerator);
/* The accelerator has other must-pass tests: judges the rows on record again, as far as their changes still exist. */
void platform_tests_changed(struct db *d, const char *accelerator);
/* Judges, once, the changes that earlier versions of this program recorded. Call it when the registry is mirrored. */
void platform_tests_fill(struct db *d);
/* The change is about to be deleted: its rows stay, without links. */
void platform_tests_forget(struct db *d, int64_t change_id);

#endif
