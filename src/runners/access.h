/* The caller of a report: the repository of its OIDC token, the accelerators that this repository may report for, and
 * whether the name still belongs to the repository on record.
 *
 * Thread: oidc_ and access_: any; plain data and pure functions, and the owner of a struct releases it. The
 * issuers and the audience come from the snapshot, the time and the keys from the caller, so every refusal can
 * be tested. identity_: loop. */
#pragma once

#include "config/config.h"
#include "runners/runners_internal.h"
#include "store/credentials.h"

/* ---- the token of an OIDC issuer ---- */

enum { OIDC_LEEWAY_S = 60 };

struct oidc_caller {
	const struct oidc_issuer *issuer; /* the snapshot's */
	char *repository;                 /* owner/name; from its claim or the issuer's mapping */
	char *workflow_ref;               /* job_workflow_ref, or NULL */
	struct repository_ids ids;        /* from its claims; 0: not in the token, or mapped */
};
void oidc_caller_release(struct oidc_caller *c);

/* The issuer's key of that name, borrowed, or NULL. */
typedef struct rsa_public_key *oidc_find_key_fn(const char *issuer, const char *kid, void *owner);

/* Verifies a token in the compact form with RS256, and no other algorithm. The issuer must be configured; the audience
 * (a text, or one of a list) must be ours; `exp` must be there and not past; `nbf` and `iat` must not be in the future,
 * each with OIDC_LEEWAY_S; the issuer's key must have signed it. The caller is the repository of the claim
 * `repository`. For an issuer with mappings it is the mapping of organization_id/pipeline_id, whose required claims
 * must hold, and the claim `repository` is ignored. The repository's ids are the claims `repository_id` and
 * `repository_owner_id` (docs.github.com, "OpenID Connect reference"), which an issuer without mappings may leave out.
 * ERR_AUTH: the token is not genuine or not for us. ERR_DENIED: it is genuine, but no repository is mapped to it, or a
 * required claim does not hold. ERR_NOT_FOUND: everything but the signature is good, and the issuer (ret->issuer) has
 * no key of that name as far as is known. The reasons in e are for logs, not for the caller. Release *ret also after a
 * failure. */
int oidc_verify(const struct config *c, const char *token, int64_t now_wall_ms, oidc_find_key_fn *find_key,
    void *find_owner, struct oidc_caller *ret, struct error *e) MUST_CHECK;

/* Answers a request whose token was refused: err is that of oidc_verify() or, if the key is not known, that of
 * issuer_keys_await(). Thread: loop. */
void oidc_refuse(
    struct runners *r, struct http_request *q, const struct oidc_caller *caller, int err, const struct error *e);

/* ---- the accelerators that a caller may report for, by the configuration alone ---- */

/* NULL-terminated lists of accelerators' names. The names belong to the snapshot, which must outlive this. */
struct access {
	const char *repository; /* as the configuration spells it; or NULL */
	const char **allowed;
	size_t n_allowed;
	const char **silent; /* those of `allowed` that are at L1 */
	size_t n_silent;
	const char **refused; /* of the repository, but bound to another workflow */
	size_t n_refused;
	/* the ids that the repository's runners pin, in the file of any accelerator; 0: not pinned */
	struct repository_ids pinned;
};

/* repository: owner/name, compared without case. workflow_ref: the token's job_workflow_ref
 * ("owner/repo/.github/workflows/x.yml@ref") or NULL. If several runners of the repository serve an accelerator,
 * one that allows it is enough. */
void access_of_repository(const struct config *c, const char *repository, const char *workflow_ref, struct access *ret);
/* For a token of ours, which names one accelerator; nothing is allowed if that has left the registry. */
void access_of_accelerator(const struct config *c, const char *accelerator, struct access *ret);
void access_release(struct access *a);

bool access_is_registered(const struct access *a);
/* True if all accelerators that the caller may report for are at L1: nothing is recorded. */
bool access_is_silent(const struct access *a);

/* ---- checks that a verified token comes from the repository on record under its name. The comparison and the record are
 * one operation of the store (store/credentials.h), so of two first tokens with different ids one wins, and a record is on
 * disk before its report is accepted ---- */

struct identity_check {
	struct runners *runners;
	/* Runs once, never inside identity_check_start(). */
	void (*done)(struct identity_check *c);
	/* out: 0; ERR_DENIED: another repository's token, and `why` is for the caller; another code: the store failed */
	int err;
	struct error why;
	struct check_identity op;
};

/* A token needs no check if its issuer maps immutable ids to the repository (n_mappings > 0), because it names no
 * repository. Borrows the texts until `done`. access: the caller's. An error: the store is busy, and done will not run. */
int identity_check_start(struct identity_check *c, const char *issuer, const char *repository,
    struct repository_ids ids, const struct access *access) MUST_CHECK;
