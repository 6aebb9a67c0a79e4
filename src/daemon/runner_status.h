/* What the machines that take work are doing, as outpostctl status and /metrics show it. */
#ifndef DAEMON_RUNNER_STATUS_H
#define DAEMON_RUNNER_STATUS_H

#include "base/buf.h"
#include "base/json.h"

struct daemon;

/* Adds "machines" to the control socket's status. */
void runner_status_add(json_t *status, const struct daemon *d);
void runner_status_write_metrics(struct buf *out, const struct daemon *d);

#endif
