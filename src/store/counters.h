/* Totals that would be slow to count: kept as rows, changed with what they count. Within a
 * batch the differences are gathered in memory and written once, before the commit. */
#ifndef STORE_COUNTERS_H
#define STORE_COUNTERS_H

#include <stdint.h>

#include "model/experiment.h"
#include "model/states.h"
#include "store/db.h"
#include "store/stored_lease.h"

enum counter {
	COUNT_DELIVERIES_ACCEPTED,
	COUNT_DELIVERIES_PLANNED,
	COUNT_DELIVERIES_IGNORED,
	COUNT_DELIVERIES_FAILED,
	COUNT_JOBS,
	COUNT_RESULTS,
	COUNT_OPEN_CHANGES,
	COUNT_DISPATCHES, /* and one behind it for each state; without experiments */
	COUNT_LEASES = COUNT_DISPATCHES + N_DISPATCH_STATES, /* the same */
	COUNT_EXPERIMENTS =
	    COUNT_LEASES + N_LEASE_STATES, /* that came into each state; never fewer */
	N_COUNTERS = COUNT_EXPERIMENTS + N_EXPERIMENT_STATES
};

void counter_add(struct db *d, enum counter which, int64_t difference);
/* One more experiment came into that state ("planned", …). */
void counter_add_experiment(struct db *d, const char *state);
void counters_write(struct db *d); /* and forgets the differences */
void counters_read(struct db *d, int64_t ret[N_COUNTERS]);

#endif
