/* A badge: an accelerator's state in an image that stands in others' READMEs, in the geometry of
 * shields.io's flat ones, which it stands beside. Pure. */
#ifndef REPORT_BADGE_H
#define REPORT_BADGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct badge {
	const char *title; /* the accelerator's; vendors' text */
	/* Of 30 days: what passed of what said something. 0 of 0: nothing did. */
	int64_t n_passed, n_counted;
	int64_t red_since_ms;   /* on upstream's branch; 0: it is not red */
	bool is_red_in_silence; /* by nothing but deadlines that passed without a report */
	bool is_silent;         /* nothing was heard of it for long */
	int64_t now_ms;
};

/* Appends the SVG: what is red says so, or that there is no report, else what is silent, else how much passes. */
void badge_write(struct buf *out, const struct badge *b);
/* The one for whoever is not known here: it tells nothing of why. */
void badge_write_unknown(struct buf *out);

#endif
