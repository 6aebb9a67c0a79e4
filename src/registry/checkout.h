/* The vendors' files of one commit, written into a folder of their own. Whoever may write to the
 * repository decides what a tree looks like, so nothing in it is taken for granted: only plain files
 * called NAME.yml become files here, and a commit that holds anything odd under such a name, or too
 * much, is refused. Blocking: in the pool. */
#ifndef REGISTRY_CHECKOUT_H
#define REGISTRY_CHECKOUT_H

#include <git2.h>

#include "base/buf.h"
#include "base/err.h"

struct checkout {
	git_repository *repo;
	git_oid commit;
	const char *path;     /* in the repository, "." its root */
	const char *root;     /* where `name` comes to be */
	const char *name;     /* of the new folder; complete or not there at all */
	struct buf *mistakes; /* the commit's, a line each, as "file:line: what is wrong" */
};

/* ERR_INVALID: the commit is refused, see mistakes. Other errors are this machine's. */
int checkout_write(const struct checkout *c, struct error *e) MUST_CHECK;

#endif
