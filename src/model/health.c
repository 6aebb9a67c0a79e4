#include "model/health.h"

enum {
	NEWEST = 10,        /* of those that count */
	TRIPS_AT = 8,       /* of NEWEST */
	RECOVERS_AFTER = 3, /* green in a row */
};

bool health_is_unhealthy(const struct health_sample *samples, size_t n, bool was_unhealthy)
{
	int n_counted = 0, n_red = 0, n_green_in_a_row = 0;

	for (size_t i = 0; i < n && n_counted < NEWEST; i++) {
		if (samples[i].is_red && samples[i].is_attributed)
			continue;
		n_counted++;
		n_red += samples[i].is_red;
		if (!n_red)
			n_green_in_a_row++;
	}
	if (!was_unhealthy)
		return n_red >= TRIPS_AT;
	if (n_green_in_a_row >= RECOVERS_AFTER)
		return false;
	return n_counted < NEWEST || 2 * n_red >= NEWEST;
}
