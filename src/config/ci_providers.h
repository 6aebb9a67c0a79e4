/* CRCR's ci_providers.yml as that relay reads it (pytorch/test-infra,
 * aws/lambda/cross_repo_ci_relay/config/ci_providers.yml): which pipelines of a CI service whose tokens name no
 * repository speak for which one. As there, the file maps pipelines and nothing else: whom Outpost believes and
 * where the keys are is never its to say. */
#ifndef CONFIG_CI_PROVIDERS_H
#define CONFIG_CI_PROVIDERS_H

#include "config/config.h"
#include "config/fields.h"

/* Fills *ret with the issuer that the file has mappings for, Buildkite; without a mapping it has none and must
 * not be used, because an issuer without mappings is believed by its `repository` claim. Mistakes go to
 * r->problems. oidc_issuer_release() in any case. */
void ci_providers_read(struct reader *r, const struct node *root, struct oidc_issuer *ret);
/* Adds what was read to the issuers that outpost.yml lists, and takes it over. `line`: of the key in outpost.yml
 * (r->file is that file): mistakes that only both together make. */
void ci_providers_add(struct reader *r, int line, struct config *c, struct oidc_issuer *from);

#endif
