#include "store/thinning.h"

#include "base/alloc.h"
#include "store/branch_commits.h"
#include "store/cells_moved.h"

/* What this runner got of the branch last, as far as it may still matter: a slot is no farther away
 * than one interval, so neither is what it counts from. */
static struct dispatch_list last_of(
    struct db *d, const struct stored_dispatch *row, const struct push_slot *slot)
{
	return dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE accelerator = ?1 AND runner = ?2"
	    " AND created_ms >= ?3 AND state <> 'superseded' AND change_id <> ?4"
	    " AND EXISTS (SELECT 1 FROM change WHERE change.id = dispatch.change_id"
	    "  AND change.kind = 'push' AND change.repository_key = ?5 AND change.ref = ?6)"
	    " ORDER BY created_ms DESC, COALESCE(not_before_ms, 0) DESC LIMIT 1",
	    V_TEXT(row->accelerator), V_TEXT(row->runner), V_INT(slot->now_ms - slot->every_ms),
	    V_INT(row->change_id), V_TEXT(slot->repository_key), V_TEXT(slot->ref)));
}

static bool is_newer(struct db *d, const struct stored_dispatch *last, const struct push_slot *slot)
{
	char *sha = db_text(d, "SELECT head_sha FROM change WHERE id = ?1", V_INT(last->change_id));
	int64_t theirs = branch_position(d, slot->repository_key, slot->ref, sha ? sha : "");
	int64_t ours = branch_position(d, slot->repository_key, slot->ref, slot->head_sha);

	free(sha);
	return theirs > ours;
}

static void follow(struct db *d, struct stored_dispatch *last, struct stored_dispatch *row,
    const struct push_slot *slot)
{
	int64_t began_ms = last->not_before_ms ? last->not_before_ms : last->created_ms;

	if (last->state == DISPATCH_QUEUED && last->not_before_ms > slot->now_ms) {
		row->not_before_ms = last->not_before_ms;
		if (dispatch_end(d, last, DISPATCH_SUPERSEDED, slot->now_ms))
			cells_moved(
			    d, last->change_id, last->accelerator, CELLS_WITHDRAWN, slot->now_ms);
		return;
	}
	if (began_ms > slot->now_ms) /* the clock was put back meanwhile */
		began_ms = slot->now_ms;
	if (began_ms + slot->every_ms > slot->now_ms)
		row->not_before_ms = began_ms + slot->every_ms;
}

bool thinning_take_slot(struct db *d, struct stored_dispatch *row, const struct push_slot *slot)
{
	struct dispatch_list l = last_of(d, row, slot);
	bool is_wanted = l.n == 0 || !is_newer(d, &l.at[0], slot);

	row->not_before_ms = 0;
	if (l.n > 0 && is_wanted)
		follow(d, &l.at[0], row, slot);
	dispatch_list_release(&l);
	return is_wanted;
}
