/* Tests that an accelerator's file says it does not support (tests.skip): their results are kept as
 * they came, but their cells are SKIP. Inside a writer's transaction. */
#ifndef STORE_SKIPS_H
#define STORE_SKIPS_H

#include "store/db.h"

/* The last step of verdicts_rebuild() and verdicts_add_job(). */
void skips_apply(struct db *d, int64_t change_id, const char *accelerator);

/* accelerator.skip was `before` (a JSON array): the cells of open changes that have a test which
 * came or went are made again, of the newest SKIPS_CHANGES_MAX; the rest with its next report. */
enum { SKIPS_CHANGES_MAX = 100 };
void skips_changed(struct db *d, const char *accelerator, const char *before, int64_t now_ms);

#endif
