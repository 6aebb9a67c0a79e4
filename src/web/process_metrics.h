/* The process itself under the names that Prometheus' own clients use. For web/ only. */
#ifndef WEB_PROCESS_METRICS_H
#define WEB_PROCESS_METRICS_H

#include "base/buf.h"

/* Reads /proc/self, and how full the disk under state_dir is; appends. Thread: the pool. */
void process_metrics_write(struct buf *out, const char *state_dir);

#endif
