/* The cells of a change: its red tests first, the reruns that would help to decide them, and the difference to the base. */
#ifndef VIEWS_CHANGE_CELLS_H
#define VIEWS_CHANGE_CELLS_H

#include <jansson.h>

#include "db/db.h"
#include "model/change_view.h"

/* Both fill in a view that has its accelerators, by name; v owns what they add. Thread: reader. */
/* At most max cells (0: all), red ones first, so that a cut view has all bad news; a cut view has the counts, too. */
void change_cells_read(struct db *d, struct change_view *v, size_t max);
/* accelerators[].delta; the jobs and dispatches have been read. */
void change_deltas_read(struct db *d, struct change_view *v);

/* Which cells an answer lists. */
struct verdict_choice {
	size_t limit;          /* 0: all */
	unsigned statuses;     /* bits by enum test_status; 0: all */
	unsigned attributions; /* bits by enum attribution; 0: all, also those without one */
	/* where to go on: the bytes of the cursor, borrowed; 0 bytes: from the beginning */
	const char *after;
	size_t after_bytes;
};

/* Sets in obj: `verdicts`, `verdicts_total` (how many cells fit the choice, listed or not) and `next` (the cursor of the
 * rest as base64url, or null). The order is suite, test, dtype and accelerator, so that a cursor stays valid while cells
 * come and go. Accelerators at L1 are left out. Thread: any. */
void change_cells_add_json(json_t *obj, const struct change_view *v,
    const struct verdict_choice *choice, const char *public_url);

#endif
