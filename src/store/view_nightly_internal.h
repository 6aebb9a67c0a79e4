/* What the files that make the view of periodic runs share; nobody else includes it. */
#ifndef STORE_VIEW_NIGHTLY_INTERNAL_H
#define STORE_VIEW_NIGHTLY_INTERNAL_H

#include "store/db.h"
#include "store/nightly.h"

struct nightly_reading {
	struct db *d;
	const struct get_nightly *q;
	struct nightly_view *v;
};

/* ---- view_nightly_list.c: which tests, with the state of each of their cells ---- */
void nightly_list_tests(struct nightly_reading *n);

/* ---- view_nightly_cells.c: of the tests that are listed ---- */
void nightly_read_days(struct nightly_reading *n);
void nightly_read_marks(struct nightly_reading *n);

#endif
