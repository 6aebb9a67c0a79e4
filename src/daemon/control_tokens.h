/* Vendors' credentials over the control socket; their handlers' owner is the struct control.
 *
 *   GET  /control/tokens?kind=runner|api&accelerator=A
 *   POST /control/tokens         {"kind", "accelerator", "name"} → {"id", "token", …}
 *   POST /control/tokens/revoke  {"kind", "accelerator", "name", "id"} → {"revoked": N} */
#ifndef DAEMON_CONTROL_TOKENS_H
#define DAEMON_CONTROL_TOKENS_H

#include "daemon/control_internal.h"
#include "runners/credentials.h"

void control_on_tokens(struct http_request *r, void *owner);
void control_on_token_add(struct http_request *r, void *owner);
void control_on_token_revoke(struct http_request *r, void *owner);

bool control_token_is_of(
    const struct token_row *row, enum token_kind kind, const char *accelerator, const char *name);

#endif
