/* github.oidc.issuers: whose tokens are believed, and for which repository. */
#ifndef CONFIG_OIDC_H
#define CONFIG_OIDC_H

#include "config/config.h"
#include "config/fields.h"

extern const struct mapping OIDC_ISSUER_MAPPING;
field_read_fn field_issuers; /* target: struct config */

/* GitHub Actions, when no issuer is written. */
void oidc_default_issuers(struct config *c);
void oidc_issuer_release(struct oidc_issuer *i);

#endif
