/* Attributes red cells from the facts in the database (rules: model/attribution.h).
 *
 * A report's red cells are attributed in the transaction of the report (verdict/cells_moved.h). If GitHub knows more (the
 * merge base, the changed files), or if a later run of the branch, a known issue or another failure shows more, the change
 * becomes due. evidence/ gets the missing facts from GitHub and then calls store_attribute_change().
 *
 * Thread: the writer, inside a transaction; store_…() and the release function: the loop. Ownership: each struct owns its
 * outputs until its release function. */
#pragma once

#include "db/store.h"
#include "model/record.h"

/* ---- inside a writer's transaction ---- */

/* Sets the window and the distance of evidence (attribution.* of the configuration) in the database, for readers. Before
 * the first call they are 7 days and 20 commits. window_ms 0: changes nothing. */
void attribution_configure(struct txn *d, int64_t window_ms, int distance);
int64_t attribution_distance(const struct view *d); /* a reader may call it, too */

/* ---- steps of cells_moved(), which alone calls them ---- */

/* Attributes the red cells of one accelerator from the evidence in the database. Returns whether a visible part of a cell
 * changed. */
bool attribution_apply(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* A report with more red cells does not attribute them in its own transaction. */
enum { RED_CELLS_AT_ONCE = 500 };
/* The same as attribution_apply() in several transactions, each of which calls attribution_look() once. Its memory has the facts and
 * the place between them, so it ends without a result if attribution_restart() was called since the first one. */
struct attribution_look;
struct attribution_look *attribution_look_new(
    const struct view *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* False: it is to be called again. True: all cells are attributed, and *ret_has_moved becomes true if one changed. */
bool attribution_look(struct attribution_look *l, struct txn *d, bool *ret_has_moved);
/* After the last one: it attributed cells that had no cause since they were made again. */
bool attribution_look_is_first(const struct attribution_look *l);
/* The same: one of so many cells changed that the report did not wait for their attribution. */
bool attribution_look_has_changed_many(const struct attribution_look *l);
void attribution_look_free(struct attribution_look *l); /* any thread; NULL is fine */
/* Ends the looks that are in progress: cells were made or attributed again. A due change stays due, as attribution_note_due() leaves
 * it. */
void attribution_restart(struct txn *d, int64_t change_id);
/* The change is attributed again soon, or once more if that is in progress now. Notifies STORE_ATTRIBUTION. */
void attribution_note_due(struct txn *d, int64_t change_id, int64_t now_ms);
/* The changes that failed in the same way are due: this one may explain them, or excuse them no longer. */
void attribution_alike_due(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* The change is due if GitHub knows facts that may change the cause of one of these cells. */
void attribution_facts_due(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* The changes whose base is near this commit of a branch are due. */
void attribution_base_due(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* When the next change is due after now_ms, 0: none. */
int64_t attribution_next_ms(const struct view *d, int64_t now_ms);

/* ---- for evidence/ ---- */

/* Of a change c, the facts that only GitHub has: the merge base of a PR's head; its files, if it has a failure that can be
 * compared. */
#define CHANGE_NEEDS_MERGE_BASE "(c.kind = 'pull_request' AND c.merge_base_sha IS NULL)"
#define CHANGE_NEEDS_FILES                                                                                             \
	"(c.kind = 'pull_request' AND NOT EXISTS (SELECT 1 FROM change_files g"                                        \
	" WHERE g.repository_key = c.repository_key AND g.head_sha = c.head_sha)"                                      \
	" AND EXISTS (SELECT 1 FROM failure f WHERE f.change_id = c.id))"
#define DUE_CHANGE_RECORD(F, S)                                                                                        \
	F(S, ID, change_id, NULL, "c.id", "")                                                                          \
	F(S, INT, generation, NULL, "u.generation", "")                                                                \
	F(S, INT, n_tries, NULL, "u.n_tries", "")                                                                      \
	F(S, TEXT, repository, NULL, "c.repository", "")                                                               \
	F(S, TEXT, head_sha, NULL, "c.head_sha", "")                                                                   \
	F(S, TEXT, base_ref, NULL, "c.base_ref", "")                                                                   \
	F(S, TEXT, base_sha, NULL, "c.base_sha", "")                                                                   \
	F(S, TIME, since_ms, NULL, "u.since_ms", "When it became due.")                                                \
	F(S, BOOL, needs_merge_base, NULL, CHANGE_NEEDS_MERGE_BASE, "")                                                \
	F(S, BOOL, needs_files, NULL, CHANGE_NEEDS_FILES, "")
struct due_change {
	RECORD_MEMBERS(DUE_CHANGE_RECORD)
	int64_t number; /* a PR of it; 0: none (a push, whose base is its parent) */
};
RECORD_DECLARE(due_change);
struct claim_due_changes { /* the oldest due changes; they stay due until they are attributed */
	struct store_query q;
	int64_t now_ms;
	int limit;
	struct due_change *list; /* out; claim_due_changes_release() */
	size_t n;
	int64_t next_ms; /* out: when the next one is due, 0: none */
};
int store_claim_due_changes(struct store *s, struct claim_due_changes *q) MUST_CHECK;
void claim_due_changes_release(struct claim_due_changes *q);

/* Attributes the change, requests the comment and the checks if a cell moved, and deletes the due row. It takes several transactions if
 * one would hold the writer for too long, and begins again if the generation changes between two. If GitHub did not answer, the
 * change stays due at again_ms. It also stays due if its generation changed since the claim. */
struct attribute_change {
	struct store_op op;
	int64_t change_id, generation, again_ms, now_ms;
	/* GitHub has named new facts of the change. Changes that failed in the same way become due: this one may explain
	 * them. */
	bool has_learnt;
	bool has_moved; /* out */
	/* The store's. */
	int64_t looked_at;       /* the generation of the look */
	struct cells_look *look; /* NULL after the last one, except after an error: attribute_change_release() */
};
int store_attribute_change(struct store *s, struct attribute_change *op) MUST_CHECK;
void attribute_change_release(struct attribute_change *o);
