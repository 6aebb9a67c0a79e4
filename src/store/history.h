/* What each test's row of days says (model/history.h), kept ready for pages: made of the packed runs
 * (history_run), never of what it was before, so that late and corrected runs need nothing of their
 * own. Inside a writer's transaction. */
#ifndef STORE_HISTORY_H
#define STORE_HISTORY_H

#include "store/db.h"

/* A judged run of the accelerator came, changed or went. */
void history_judge(struct db *d, const char *accelerator, int64_t now_ms);

/* A day's list of jobs and of their keys, as stored: numbers in base 10 or 16 with a space between.
 * free() the list; *ret_n: how many. */
int64_t *history_numbers(const char *text, int base, size_t *ret_n);

#endif
