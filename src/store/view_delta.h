/* How an accelerator's cells of a change differ from those of its base. On a reader, within the view
 * of one change (store_get_change()). */
#ifndef STORE_VIEW_DELTA_H
#define STORE_VIEW_DELTA_H

#include "model/change_view.h"
#include "store/db.h"

/* Fills accelerators[].delta; the rest of the view has been read. */
void view_read_deltas(struct db *d, struct change_view *v);

#endif
