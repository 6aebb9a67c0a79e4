/* Known issues over the control socket; their handlers' owner is the struct control.
 *
 *   GET  /control/known         → as /api/v1/known
 *   POST /control/known         {"test", "accelerator", "url", "until"} → {"id", "until"}
 *   POST /control/known/remove  {"id"} → {"id"} */
#ifndef DAEMON_CONTROL_KNOWN_H
#define DAEMON_CONTROL_KNOWN_H

#include "daemon/control_internal.h"

void control_on_known(struct http_request *r, void *owner);
void control_on_known_add(struct http_request *r, void *owner);
void control_on_known_remove(struct http_request *r, void *owner);

#endif
