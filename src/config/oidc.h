/* github.oidc: the trusted issuers of tokens, and the repository that each pipeline reports for.
 * Thread: any; it does not open other files. Owns: the struct config, or the caller with oidc_issuer_release(). */
#ifndef CONFIG_OIDC_H
#define CONFIG_OIDC_H

#include "config/config.h"
#include "config/fields.h"

extern const struct mapping OIDC_ISSUER_MAPPING;
field_read_fn field_issuers; /* target: struct config */

/* Adds GitHub Actions, for a configuration without issuers. */
void oidc_default_issuers(struct config *c);
void oidc_issuer_release(struct oidc_issuer *i);

/* Reads CRCR's ci_providers.yml like that relay does (pytorch/test-infra,
 * aws/lambda/cross_repo_ci_relay/config/ci_providers.yml): the repositories of the pipelines of a CI
 * service whose tokens name none. The file only maps pipelines; it cannot add an issuer or its keys.
 *
 * Fills *ret with the issuer that has mappings in the file, Buildkite. Without a mapping it must not
 * be used, because Outpost trusts the `repository` claim of an issuer without mappings. Mistakes go to
 * r->problems. oidc_issuer_release() it in any case. */
void ci_providers_read(struct reader *r, const struct node *root, struct oidc_issuer *ret);
/* Adds it to the issuers of outpost.yml, and takes over its content. Mistakes that only both files
 * together make are reported in outpost.yml (r->file), at the key's `line`. */
void ci_providers_add(struct reader *r, int line, struct config *c, struct oidc_issuer *from);

#endif
