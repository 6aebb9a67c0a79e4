/* POST /api/v1/runner/leases/{lease}/return. */
#ifndef RUNNERS_LEASE_RETURN_H
#define RUNNERS_LEASE_RETURN_H

#include "runners/runners_internal.h"

void lease_return_add_route(struct runners *r, struct http_server *h);

#endif
