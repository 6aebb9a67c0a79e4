/* What a process that died left behind in the outbox. */
#ifndef STORE_OUTBOX_RECOVER_H
#define STORE_OUTBOX_RECOVER_H

#include "store/db.h"

/* Before any thread runs: rows that were being sent are due again, marked uncertain. */
int outbox_recover(struct db *d, struct error *e) MUST_CHECK;

#endif
