/* What accelerators.git is at, for operators, for everybody, and for Prometheus. Thread: loop. */
#ifndef DAEMON_REGISTRY_STATUS_H
#define DAEMON_REGISTRY_STATUS_H

#include "base/buf.h"
#include "base/json.h"

struct daemon;

/* Adds "registry" (null without accelerators.git): all that is known. */
void registry_status_add(json_t *status, const struct daemon *d);
/* The same without what names the operator's own files. owner: the struct daemon. */
void registry_status_add_public(json_t *status, void *owner);
void registry_status_write_metrics(struct buf *out, const struct daemon *d);

#endif
