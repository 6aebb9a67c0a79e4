/* For which accelerators may a caller report? Answered from the configuration alone, for a
 * repository that a verified token named. */
#ifndef RUNNERS_ACCESS_H
#define RUNNERS_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "store/identities.h"

/* NULL-terminated lists of accelerators' names; the names are the snapshot's, which must
 * outlive this. */
struct access {
	const char *repository; /* as configured, however the caller spells it; or NULL */
	const char **allowed;
	size_t n_allowed;
	const char **silent; /* those of `allowed` that are at L1 */
	size_t n_silent;
	const char **refused; /* the repository's, but bound to another workflow */
	size_t n_refused;
	/* what the repository's runners pin, whichever accelerator's file does; 0: not pinned */
	struct repository_ids pinned;
};

/* repository: owner/name, compared without case. workflow_ref: the token's
 * job_workflow_ref ("owner/repo/.github/workflows/x.yml@ref") or NULL. An accelerator that
 * several runners of the repository serve is allowed when one of them allows it. */
void access_of_repository(
    const struct config *c, const char *repository, const char *workflow_ref, struct access *ret);
/* For a callback token, which names one accelerator; nothing is allowed when it has left
 * the registry. */
void access_of_accelerator(const struct config *c, const char *accelerator, struct access *ret);
void access_release(struct access *a);

bool access_is_registered(const struct access *a);
/* Everything that the caller may report for is at L1: nothing of it is recorded. */
bool access_is_silent(const struct access *a);
bool access_refuses(const struct access *a, const char *accelerator);

#endif
