/* The commits of upstream's branches in their order, from the recorded pushes. "The nearest older tested commit" and "the
 * commits between" refer to this order.
 *
 * Rule: two commits that are not known to be neighbours have a gap between them. A late or repeated push closes gaps and
 * never opens one. A forced push begins behind a gap; the commits that it removed from the branch keep their positions.
 *
 * Thread: functions with a connection run on its thread (db/db.h). */
#pragma once

#include "db/db.h"
#include "db/store.h"
#include "model/record.h"

/* Across a gap, positions are at least this far apart: more than any distance that counts. */
enum { BRANCH_GAP = 1000000 };

/* The branch's name without "refs/heads/", as column `ref` has it. Borrowed. */
const char *branch_name(const char *ref);

struct branch_commit {
	const char *sha, *author, *title; /* the last two may be NULL */
	int64_t at_ms;
	const char *files; /* JSON: the paths that it touches; NULL: not known */
};
/* Records the commits of one push, oldest first, at least one. They follow `before`, which is recorded as well; NULL: the
 * commit before them is not known. Known facts stay as they are. */
void branch_commits_put(struct txn *d, const char *repository, const char *ref, const char *before,
    const struct branch_commit *commits, size_t n);
/* The position of a commit on a branch, or -1. */
int64_t branch_position(const struct view *d, const char *repository_key, const char *ref, const char *sha);

#define LISTED_COMMIT_RECORD(F, S)                                                                                     \
	F(S, TEXT, sha, NULL, "sha", "")                                                                               \
	F(S, TEXT, author, NULL, "author", "May be NULL.")                                                             \
	F(S, TEXT, title, NULL, "title", "May be NULL.")                                                               \
	F(S, TIME, at_ms, NULL, "at_ms", "")                                                                           \
	F(S, INT, position, NULL, "position", "")
RECORD_STRUCT(listed_commit, LISTED_COMMIT_RECORD);
/* The commits after `after` up to `until` for an issue or a page, oldest first; the newest `limit` of them. Thread: loop. */
struct list_commits {
	struct store_query q;
	const char *repository, *ref, *after, *until; /* SHAs; after may be NULL: not known */
	int limit;                                    /* 0: 250, and never more */
	struct listed_commit *list;                   /* out; list_commits_release(). Empty when `until` is not known */
	size_t n;
	bool is_complete; /* out: no gap between, and not more than limit */
};
int store_list_commits(struct store *s, struct list_commits *q) MUST_CHECK;
void list_commits_release(struct list_commits *q);
