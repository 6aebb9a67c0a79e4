/* What the parts count, as Prometheus text: they do not know each other, /metrics shows all. */
#ifndef DAEMON_METRICS_H
#define DAEMON_METRICS_H

#include "base/buf.h"

/* owner: the struct daemon. Appends. Thread: loop. */
void metrics_write(struct buf *out, void *owner);

#endif
