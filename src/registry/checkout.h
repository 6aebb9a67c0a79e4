/* state_dir/registry: the repository as a cache (repo.git), one folder for each checked-out commit, and `good`,
 * which names the folder in force.
 *
 * Everybody with write access to the repository can make any tree, so the checkout of a commit trusts nothing in
 * it: only plain files called NAME.yml become files here, and a commit is refused that has anything else
 * under such a name, or too much.
 *
 * Thread: pool, and the functions of a folder also before the loop runs; blocking. */
#ifndef REGISTRY_CHECKOUT_H
#define REGISTRY_CHECKOUT_H

#include <git2.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* ---- the checkout of one commit ---- */

struct checkout {
	git_repository *repo;
	git_oid commit;
	const char *path;     /* in the repository; "." is its root */
	const char *root;     /* the folder in which `name` is made */
	const char *name;     /* of the new folder; it appears only when it is complete */
	struct buf *mistakes; /* out: the commit's mistakes, one line each: "file:line: text" */
};

/* Returns 0; ERR_INVALID: the commit is refused, see mistakes; other codes: this machine failed. */
int checkout_write(const struct checkout *c, struct error *e) MUST_CHECK;

/* ---- the folders ---- */

/* The folder's name for `path` at `commit`. free(). */
char *folder_checkout_name(const char *commit, const char *path);
/* The name in `good`, or NULL; *ret_wall_ms: the time at which it was written. free(). */
char *folder_good(const char *root, int64_t *ret_wall_ms);
/* Writes the name to `good`; on disk when it returns. */
int folder_keep(const char *root, const char *name, struct error *e) MUST_CHECK;
/* Removes the folders of other commits; `name` may be NULL. */
void folder_sweep(const char *root, const char *name);
/* Removes a file, or a folder with its content, if it exists. */
void folder_remove(const char *path);

#endif
