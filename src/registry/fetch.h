/* The newest commit of one branch, brought into the local repository. Blocking: in the pool. */
#ifndef REGISTRY_FETCH_H
#define REGISTRY_FETCH_H

#include <git2.h>

#include "registry/bounds.h"

/* Readies libgit2 for this process, once: our sockets, and no configuration of the user's or the
 * system's. It stays ready to the end, because libgit2 forgets what its threads hold when it is shut
 * down. */
int fetch_setup(struct error *e) MUST_CHECK;

/* The repository at `path`, made (or made anew, when it is damaged or full of crumbs): it is a
 * cache. git_repository_free(). */
int fetch_open(const char *path, git_repository **ret, struct error *e) MUST_CHECK;
/* *ret: the commit of refs/heads/branch at url, whose objects are here now. Errors: ERR_NETWORK,
 * ERR_NOT_FOUND (no such branch), ERR_CORRUPT (the local repository is better made anew), and those
 * of the bounds. */
int fetch_branch(git_repository *repo, const char *url, const char *branch, struct bounds *b,
    git_oid *ret, struct error *e) MUST_CHECK;
/* What libgit2 says about its last failure in this thread, as one clean line. */
void fetch_explain(char *out, size_t out_bytes);

#endif
