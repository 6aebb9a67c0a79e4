/* Repositories' recorded ids over the control socket; their handlers' owner is the struct control.
 *
 *   GET  /control/identities         → {"identities": […]}
 *   POST /control/identities/forget  {"repository"} → {"repository"} */
#ifndef DAEMON_CONTROL_IDENTITIES_H
#define DAEMON_CONTROL_IDENTITIES_H

#include "daemon/control_internal.h"
#include "store/identities.h"

json_t *identities_json(const struct list_identities *l);
void control_on_identities(struct http_request *r, void *owner);
void control_on_identity_forget(struct http_request *r, void *owner);

#endif
