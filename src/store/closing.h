/* What ends because a PR was closed, turned into a draft or lost a label, and who has to
 * hear of it. */
#ifndef STORE_CLOSING_H
#define STORE_CLOSING_H

#include "model/plan.h"
#include "store/db.h"

struct closing {
	struct db *d;
	const struct plan *plan;
	/* Whose body is sent, where the run was told of the same PR; else, and with NULL, a copy of what
	 * was sent before. */
	const char *guid;
	int64_t now_ms;
};
/* `closed` for every repository that got a request for any head of the PR and has not been
 * told since. Returns how many. */
int closing_tell(struct closing *c);
/* Notes for which accelerators the PR asks as the plan has it: those of plan->wants, and those that another open PR with
 * this head asks for. Only their failures run again. */
void closing_note_wanted(struct closing *c, int64_t change_id);
/* Ends the unfinished dispatches of plan->drops, except those that another open PR with this head
 * wants still. A repository in which nothing is left to
 * run is told when the plan says so. Returns how many were told. */
int closing_drop(struct closing *c, int64_t change_id);

/* Ends what is at work for the change, for the reason given. A repository in which nothing is left
 * to run is told. Returns how many dispatches ended. */
int closing_call_off(struct closing *c, int64_t change_id, const char *why);

#endif
