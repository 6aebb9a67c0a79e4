/* Totals that would be slow to count. They are rows, and change in the transaction of the rows that they count: the
 * differences of a batch are summed in memory and written once, before the commit.
 *
 * The nodes of a database share the rows. No node ever waits for another one there, because only operations that decide change a total
 * (the writer asserts it), and over all nodes one transaction of these runs at a time (db/nodes.h). Rows for each node would save nothing.
 *
 * Thread: the connection's; the writer's for everything that changes a total. */
#pragma once

#include "db/db.h"
#include "model/experiment.h"
#include "model/record_states.h"
#include "model/states.h"

enum counter {
	COUNT_DELIVERIES_PLANNED,
	COUNT_DELIVERIES_IGNORED,
	COUNT_DELIVERIES_FAILED,
	COUNT_JOBS,
	COUNT_RESULTS,
	COUNT_OPEN_CHANGES,
	COUNT_DISPATCHES,                                    /* one for each state from here on; without experiments */
	COUNT_LEASES = COUNT_DISPATCHES + N_DISPATCH_STATES, /* the same */
	COUNT_EXPERIMENTS = COUNT_LEASES + N_LEASE_STATES,   /* how often one entered each state */
	N_COUNTERS = COUNT_EXPERIMENTS + N_EXPERIMENT_STATES
};

void counter_add(struct txn *d, enum counter which, int64_t difference);
/* An experiment entered that state ("planned", …). */
void counter_add_experiment(struct txn *d, const char *state);
void counters_write(struct txn *d); /* writes the differences and sets them to 0 */
void counters_read(const struct view *d, int64_t ret[N_COUNTERS]);
