/* Leases whose machines could not reach a server that was away. */
#ifndef STORE_LEASE_RECOVER_H
#define STORE_LEASE_RECOVER_H

#include "store/db.h"

/* Before any thread runs: every active lease has its full time once more. */
int lease_recover(struct db *d, int64_t now_ms, struct error *e) MUST_CHECK;

#endif
