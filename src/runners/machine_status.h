/* GET /api/v1/runner/status: a machine asks what the server knows of it, before it takes work. The
 * answer is model/runner_protocol.h's struct runner_status.
 *
 * Thread: loop. */
#ifndef RUNNERS_MACHINE_STATUS_H
#define RUNNERS_MACHINE_STATUS_H

#include "http/server.h"
#include "runners/runners_internal.h"

void machine_status_add_route(struct runners *r, struct http_server *h);

#endif
