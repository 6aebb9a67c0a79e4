/* A badge: an accelerator's state in an image that stands in others' READMEs, in the geometry of
 * shields.io's flat ones, which it stands beside. Pure. */
#ifndef REPORT_BADGE_H
#define REPORT_BADGE_H

#include <stdint.h>

#include "base/buf.h"
#include "model/accelerator_state.h"

struct badge {
	const char *title; /* the accelerator's; vendors' text */
	struct accelerator_state state;
	/* Runs of pushes in 30 days that said something, and those of them that were green. */
	int64_t n_runs, n_green;
	int64_t now_ms;
};

/* Appends the SVG: the state, and of one that is green the share of green runs, whose colour follows
 * the figure. "unknown" where nothing was tested on the branch. */
void badge_write(struct buf *out, const struct badge *b);
/* The one for whoever is not known here: it tells nothing of why. */
void badge_write_unknown(struct buf *out);

#endif
