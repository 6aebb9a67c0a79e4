/* The experiments of a change, as its page and the API show them. Private to store/. */
#ifndef STORE_VIEW_EXPERIMENT_H
#define STORE_VIEW_EXPERIMENT_H

#include "model/change_view.h"
#include "store/db.h"

/* Fills in the experiments of each accelerator of v, which are sorted by name. Thread: reader. */
void view_read_experiments(struct db *d, struct change_view *v);

#endif
