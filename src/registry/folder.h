/* state_dir/registry: the repository as a cache, one folder for each checked-out commit, and `good`,
 * which names the one in force. Blocking: not on the loop. */
#ifndef REGISTRY_FOLDER_H
#define REGISTRY_FOLDER_H

#include <stdint.h>

#include "base/err.h"

/* state_dir/registry. free(). */
char *registry_root(const char *state_dir);
/* The name of what `path` holds at `commit`, as it is called below the root. free(). */
char *registry_checkout_name(const char *commit, const char *path);
/* The name that `good` has, or NULL; *ret_wall_ms: since when. free(). */
char *registry_good(const char *root, int64_t *ret_wall_ms);
/* Makes it the good one, so that this survives a crash. */
int registry_keep(const char *root, const char *name, struct error *e) MUST_CHECK;
/* Removes what is left of other commits; `name` may be NULL. */
void registry_sweep(const char *root, const char *name);
/* A file or a folder with all it holds; that there is none is fine. */
void remove_all(const char *path);

#endif
