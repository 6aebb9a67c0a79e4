/* Red cells get their attribution here, from what is in the database (rules: model/attribution.h).
 *
 * When a job is reported its red cells are attributed in the same transaction with what is known
 * then. Where GitHub knows more (the merge base, the changed files), or where a later base run,
 * known issue or failure elsewhere says more, the change is noted as due; evidence/ gathers what is
 * missing and comes back with store_attribute(). */
#ifndef STORE_ATTRIBUTION_H
#define STORE_ATTRIBUTION_H

#include "store/store.h"

/* ---- inside a writer's transaction ---- */

/* What counts as evidence (attribution.* of the configuration). Kept in the database, where readers
 * find it, too; until the first time 7 days and 20 commits. window_ms 0: as it was. */
void attribution_configure(struct db *d, int64_t window_ms, int distance);
int64_t attribution_distance(struct db *d); /* a reader may ask as well */
int64_t attribution_window_ms(struct db *d);

/* To be called whenever the cells of an accelerator were made anew: attributes them, and notes
 * which changes are to be looked at again: this one, where GitHub knows more; those whose base it
 * is; those that failed alike. */
void attribution_reported(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* The red cells of one accelerator, or of all (NULL; then runs are noted anew, too), as the evidence
 * says now. Returns whether any moved. */
bool attribution_apply(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* The change's merge base or files have become known: those that failed alike are due. */
void attribution_learnt(struct db *d, int64_t change_id, int64_t now_ms);
/* Looked at again soon; once more when it is being looked at now. Tells STORE_ATTRIBUTION. */
void attribution_note_due(struct db *d, int64_t change_id, int64_t now_ms);
/* A run of a base branch reported: the open changes whose merge base may be judged by it, and later
 * pushes, with a red job of that accelerator, are due. All of them: the run may take an excuse
 * away. */
void attribution_base_moved(
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
