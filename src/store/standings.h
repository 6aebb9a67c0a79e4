/* How each accelerator stands on upstream's branch (model/accelerator_state.h), read from its runs and
 * episodes: never from results, so a page reads it in a few rows. */
#ifndef STORE_STANDINGS_H
#define STORE_STANDINGS_H

#include "model/accelerator_state.h"
#include "store/db.h"
#include "store/key.h"

/* The branch of upstream that states refer to: the first of `upstream.branches`. */
struct upstream_branch {
	struct repository_key repository;
	char name[256];
};

/* Keeps it in the database, where readers find it. repository NULL: as it was; branch NULL: there is
 * none. Inside a writer's transaction. */
void upstream_branch_put(struct db *d, const char *repository, const char *branch);
struct upstream_branch upstream_branch_read(struct db *d);

/* Of an accelerator that is not in the registry's mirror all is empty, and its state is OFF.
 * standing_release(). Thread: reader or writer. */
void standing_read(struct db *d, const char *accelerator, const struct upstream_branch *u,
    int64_t now_ms, struct standing *ret);

#endif
