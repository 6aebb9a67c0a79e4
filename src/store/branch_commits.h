/* The commits of upstream's branches in their order, from the pushes on record: what "the nearest
 * older tested commit" and "the commits between" mean.
 *
 * Rule guarded here: what is not known to follow at once lies behind a gap. Pushes that come late or
 * twice mend gaps and never make one where there was none. A forced push begins behind a gap; the
 * commits that left the branch with it keep their place, as what was there once. */
#ifndef STORE_BRANCH_COMMITS_H
#define STORE_BRANCH_COMMITS_H

#include "store/db.h"
#include "store/store.h"

/* Between two commits of which nobody knows how many lie between there is at least so much: farther
 * than any distance. */
enum { BRANCH_GAP = 1000000 };

/* A branch is named with or without "refs/heads/"; column `ref` has the name without. */
const char *branch_name(const char *ref); /* borrowed */

struct branch_commit {
	const char *sha, *author, *title; /* the last two may be NULL */
	int64_t at_ms;
};
/* Commits of one push, oldest first, at least one. They follow `before`, which is noted as well;
 * NULL: nobody knows what they follow. What is known already stays as it is. Inside a writer's
 * transaction. */
void branch_commits_put(struct db *d, const char *repository, const char *ref, const char *before,
    const struct branch_commit *commits, size_t n);
/* The position of a commit on a branch, or -1. */
int64_t branch_position(struct db *d, const char *repository_key, const char *ref, const char *sha);

/* Those after `after` up to `until` for an issue or a page, oldest first; the newest `limit` of
 * them. */
struct list_commits {
	struct store_query q;
	const char *repository, *ref, *after, *until; /* SHAs; after may be NULL: not known */
	int limit;                                    /* 0: 250, and never more */
	struct listed_commit {
		char *sha, *author, *title; /* the last two may be NULL */
		int64_t at_ms;
	} * list; /* out; list_commits_release(). Empty where `until` is not known */
	size_t n;
	bool is_complete; /* out: no gap between, and not more than limit */
};
int store_list_commits(struct store *s, struct list_commits *q) MUST_CHECK;
void list_commits_release(struct list_commits *q);

#endif
