/* A lease ended without a report: its dispatch waits for another machine, or has been
 * handed on often enough. */
#ifndef STORE_LEASE_HANDOVER_H
#define STORE_LEASE_HANDOVER_H

#include "store/stored_lease.h"

/* Its machine does not want it; that does not count. */
void lease_hand_back(
    struct db *d, const struct stored_lease *l, const char *reason, int64_t now_ms);
/* Its machine was not heard of. After LEASE_HANDOVERS_MAX the dispatch fails. */
void lease_run_out(struct db *d, const struct stored_lease *l, int64_t now_ms);

#endif
