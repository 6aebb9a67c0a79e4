/* The cells of a change, as they are shown. Private to store/. */
#ifndef STORE_VIEW_VERDICTS_H
#define STORE_VIEW_VERDICTS_H

#include "model/change_view.h"
#include "store/db.h"

/* Fills in the verdicts, at most max of them (0: all), red ones first, so that what is cut is never bad
 * news; and where some are cut, the counts. v has its accelerators, by name. Thread: reader. */
void view_read_verdicts(struct db *d, struct change_view *v, size_t max);

#endif
