/* Is the repository that a verified token names still the one that is known by that name? The
 * comparison and the record are one operation of the store (store/identities.h), so of two first
 * tokens with different ids one wins, and a record is on disk before its report is taken. */
#ifndef RUNNERS_IDENTITY_H
#define RUNNERS_IDENTITY_H

#include "runners/access.h"
#include "runners/oidc.h"
#include "runners/runners_internal.h"
#include "store/identities.h"

struct identity_check {
	struct runners *runners;
	/* Runs once, never inside identity_check_start(). */
	void (*done)(struct identity_check *c);
	/* out: 0; ERR_DENIED: another repository's token, `why` is for the caller; else the store
	 * could not say */
	int err;
	struct error why;
	struct check_identity op;
};

/* Whether a token of this caller needs the check. One whose issuer's file maps immutable ids to
 * the repository does not: such a token names no repository. */
bool identity_is_checked(const struct oidc_caller *caller);
/* Fills in what is compared: the texts are borrowed until `done`. access: the caller's. */
void identity_check_init(struct identity_check *c, const struct oidc_issuer *issuer,
    const char *repository, struct repository_ids ids, const struct access *access);
/* Not 0: the store is busy, and done will not run. */
int identity_check_start(struct identity_check *c) MUST_CHECK;

#endif
