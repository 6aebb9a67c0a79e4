/* Red cells get their attribution here, from what is in the database (rules: model/attribution.h).
 *
 * When a job is reported its red cells are attributed in the same transaction with what is known
 * then (store/cells_moved.h). Where GitHub knows more (the merge base, the changed files), or where a
 * later base run, known issue or failure elsewhere says more, the change is noted as due; evidence/
 * gathers what is missing and comes back with store_attribute(). */
#ifndef STORE_ATTRIBUTION_H
#define STORE_ATTRIBUTION_H

#include "store/store.h"

/* ---- inside a writer's transaction ---- */

/* What counts as evidence (attribution.* of the configuration). Kept in the database, where readers
 * find it, too; until the first time 7 days and 20 commits. window_ms 0: as it was. */
void attribution_configure(struct db *d, int64_t window_ms, int distance);
int64_t attribution_distance(struct db *d); /* a reader may ask as well */
int64_t attribution_window_ms(struct db *d);

/* ---- steps of cells_moved(), which alone calls them ---- */

/* Attributes the red cells of one accelerator, as the evidence in the database says now. Returns
 * whether any moved. */
bool attribution_apply(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* The change is looked at again soon; once more when it is being looked at now. Tells
 * STORE_ATTRIBUTION. */
void attribution_note_due(struct db *d, int64_t change_id, int64_t now_ms);
/* The changes that failed alike are due: this one may explain them, or excuse them no longer. */
void attribution_alike_due(
    struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* Cells of the accelerator were made again and attributed: the changes that failed alike are due,
 * those whose base this is, and this one where GitHub knows more. */
void attribution_others_due(
    struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);

/* What only GitHub can add: the merge base of a PR's head; its files, where it has a failure that
 * can be compared. */
struct attribution_lack {
	bool merge_base, files;
};
struct attribution_lack attribution_lacks(struct db *d, int64_t change_id);

/* ---- for evidence/ ---- */
struct due_change {
	int64_t change_id, generation;
	int64_t since_ms; /* the first of the causes that are not settled yet */
	int n_tries;
	char *repository, *head_sha, *base_ref, *base_sha;
	int64_t number; /* a PR of it; 0: none (a push, whose base is its parent) */
	bool needs_merge_base, needs_files;
};
struct claim_due_changes { /* the oldest due ones; they stay due until attributed */
	struct store_query q;
	int64_t now_ms;
	int limit;
	struct due_change *list; /* out; claim_due_changes_release() */
	size_t n;
	int64_t next_ms; /* out: when the next one is due, 0: none */
};
int store_claim_due_changes(struct store *s, struct claim_due_changes *q) MUST_CHECK;
void claim_due_changes_release(struct claim_due_changes *q);

/* Attributes, wishes for the comment and the checks where a cell moved, and ends the due row, or
 * puts it off to again_ms when GitHub did not answer (what is known counts meanwhile). A
 * generation that moved on since the claim leaves it due. */
struct attribute_change {
	struct store_op op;
	int64_t change_id, generation, again_ms, now_ms;
	/* GitHub said something new of the change: what failed alike elsewhere is looked at again,
	 * because it may be explained by this change now. */
	bool has_learnt;
	bool has_moved; /* out */
};
int store_attribute(struct store *s, struct attribute_change *op) MUST_CHECK;

#endif
