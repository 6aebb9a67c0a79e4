/* Periodic runs, as /metrics shows them. */
#ifndef DAEMON_NIGHTLY_METRICS_H
#define DAEMON_NIGHTLY_METRICS_H

#include "base/buf.h"
#include "dispatch/dispatch.h"

void nightly_metrics_write(struct buf *out, const struct dispatch_counters *c);

#endif
