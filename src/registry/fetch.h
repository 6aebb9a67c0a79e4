/* Reading branches of git repositories with libgit2. Thread: pool; blocking. */
#ifndef REGISTRY_FETCH_H
#define REGISTRY_FETCH_H

#include <git2.h>

#include "registry/transport.h"

/* Initialises libgit2 for this process, once: our connections, and no configuration of the user or
 * the system. It is never shut down, because libgit2 would then leak the state of its threads. */
int fetch_setup(struct error *e) MUST_CHECK;

/* Opens the repository at `path`, which is a cache. Makes it when it is absent, and again when it is
 * damaged or has too many packs. git_repository_free(). */
int fetch_open(const char *path, git_repository **ret, struct error *e) MUST_CHECK;
/* Fetches refs/heads/branch from url into the repository; *ret is its commit. Errors: ERR_NETWORK,
 * ERR_NOT_FOUND (no such branch), ERR_CORRUPT (the local repository is to be deleted), and those of
 * the bounds. */
int fetch_branch(git_repository *repo, const char *url, const char *branch, struct bounds *b,
    git_oid *ret, struct error *e) MUST_CHECK;
/* Asks url for the commit of a branch, and fetches nothing. branch NULL: HEAD. Errors as
 * fetch_branch(), and ERR_DENIED for an address that b->allow_address refuses. */
int fetch_head(const char *url, const char *branch, struct bounds *b, char ret_sha[41],
    struct error *e) MUST_CHECK;
/* libgit2's last error in this thread as one line without control characters. */
void fetch_explain(char *out, size_t out_bytes);

#endif
