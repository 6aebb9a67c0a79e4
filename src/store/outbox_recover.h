/* What a process that died left behind in the outbox. */
#ifndef STORE_OUTBOX_RECOVER_H
#define STORE_OUTBOX_RECOVER_H

#include "store/db.h"

/* The condition of the index by state, word for word: without it SQLite does not see that
 * the index covers a single state. */
#define OUTBOX_IS_COUNTED "state IN ('due', 'waiting', 'sending', 'dead')"

/* Before any thread runs: rows that were being sent are due again, marked uncertain. */
int outbox_recover(struct db *d, struct error *e) MUST_CHECK;

#endif
