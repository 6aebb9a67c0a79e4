/* Whom an OIDC token speaks for. Pure: the issuers and the audience come from the snapshot,
 * the time and the keys from the caller, so every refusal can be tested. */
#ifndef RUNNERS_OIDC_H
#define RUNNERS_OIDC_H

#include <stdint.h>

#include "base/err.h"
#include "base/rsa.h"
#include "config/config.h"
#include "store/identities.h"

enum { OIDC_LEEWAY_S = 60 };

struct oidc_caller {
	const struct oidc_issuer *issuer; /* the snapshot's */
	char *repository;                 /* owner/name; by its claim or the issuer's mapping */
	char *workflow_ref;               /* job_workflow_ref, or NULL */
	struct repository_ids ids;        /* of its claims; 0: not in the token, or mapped */
};
void oidc_caller_release(struct oidc_caller *c);

/* The issuer's key of that name, borrowed, or NULL. */
typedef struct rsa_public_key *oidc_find_key_fn(const char *issuer, const char *kid, void *owner);

/* Verifies a token (compact, RS256 and nothing else): issuer configured, audience ours (a
 * text or one of a list), `exp` there and not past, `nbf` and `iat` not in the future, each
 * with OIDC_LEEWAY_S, signed by the issuer's key. Who calls is the `repository` claim; for
 * an issuer with mappings it is the mapping of organization_id/pipeline_id, whose required
 * claims must hold, and a `repository` claim counts for nothing.
 * The repository's ids are the claims `repository_id` and `repository_owner_id`
 * (docs.github.com, "OpenID Connect reference"), which an issuer without mappings may leave out.
 * ERR_AUTH: not to be believed. ERR_DENIED: genuine, but mapped to nobody, or a required
 * claim does not hold. ERR_NOT_FOUND: all but the signature is good, and the issuer
 * (ret->issuer) has no key of that name as far as is known. The reasons in e are for logs,
 * not for the caller. Release *ret also after a failure. */
int oidc_verify(const struct config *c, const char *token, int64_t now_wall_ms,
    oidc_find_key_fn *find_key, void *find_owner, struct oidc_caller *ret,
    struct error *e) MUST_CHECK;

#endif
