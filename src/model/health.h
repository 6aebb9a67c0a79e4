/* The circuit breaker: an accelerator that is red on most recent unrelated changes says more about
 * itself than about them, and is shown as "unhealthy, not counted" until it recovers. Pure. */
#ifndef MODEL_HEALTH_H
#define MODEL_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

enum { HEALTH_LOOKS_AT = 20 }; /* newest completed changes, one an author's PR or push */

struct health_sample {
	bool is_red; /* FAIL, ERROR or MISS in it that no known issue explains */
	/* All its red is NEW, and nobody else's change is red so: its own fault. It tells nothing of
	 * the accelerator, neither good nor bad, and is passed over. */
	bool is_attributed;
};

/* samples: newest first, of changes that have nothing to do with each other. Hysteresis: trips at
 * 8 red ones of the newest 10 that count, recovers at 3 greens in a row or with less than half of 10
 * red. Fewer than 8 samples never trip it. */
bool health_is_unhealthy(const struct health_sample *samples, size_t n, bool was_unhealthy);

#endif
