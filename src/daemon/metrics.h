/* The figures and the state of all parts: as Prometheus text for /metrics, and as JSON for `outpostctl status` (with
 * the store's figures, which web/ collects) and for the public status. Thread: loop. Owns: nothing. */
#ifndef DAEMON_METRICS_H
#define DAEMON_METRICS_H

#include "base/buf.h"
#include "base/json.h"

/* Appends the counters of all parts to out. owner: the struct daemon. */
void metrics_write(struct buf *out, void *owner);
/* Adds "registry", the state of accelerators.git, to the public status: null without accelerators.git, and
 * without texts that name the operator's own files. owner: the struct daemon. */
void status_add_public(json_t *status, void *owner);

#endif
