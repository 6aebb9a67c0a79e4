/* A badge: an accelerator's state as an image for READMEs, with the geometry of shields.io's flat badges,
 * because they often stand next to each other. Pure. Thread: any. */
#pragma once

#include "model/accelerator_state.h"

struct badge {
	const char *title; /* the accelerator's; vendors' text */
	struct accelerator_state state;
	/* runs of pushes in 30 days that had a result, and how many of them were green */
	int64_t n_runs, n_green;
	int64_t now_ms;
};

/* Appends the SVG: the state, and for a green one the share of green runs, which decides its colour.
 * "unknown" if nothing was tested on the branch. */
void badge_write(struct buf *out, const struct badge *b);
/* The badge of an unknown accelerator; it does not show why it is unknown. */
void badge_write_unknown(struct buf *out);
