#include "store/starts.h"

#include "store/branch_commits.h"
#include "store/requests.h"
#include "verdict/cells_moved.h"

void starts_add(struct starts *s, struct stored_dispatch row, const struct stored_dispatch *last)
{
	struct start *start = ARRAY_PUSH(s->at, s->n);

	*start = (struct start){.row = row, .has_last = last != NULL};
	if (last)
		start->last = stored_dispatch_copy(last);
}

void starts_release(struct starts *s)
{
	for (size_t i = 0; i < s->n; i++) {
		stored_dispatch_release(&s->at[i].row);
		stored_dispatch_release(&s->at[i].last);
	}
	FREE_AND_NULL(s->at);
	s->n = 0;
}

static bool kind_is_shared(enum runner_kind kind) { return kind == RUNNER_GITHUB || kind == RUNNER_INFRA; }

static bool start_is_held(const struct start *s) { return s->row.state == DISPATCH_HELD; }

/* Removes the rows that it replaces: the held one, and the current one. A held round replaces only a round that never ran, and
 * waits beside any other. */
static void retire_last_round(struct txn *d, struct start *s, int64_t now_ms)
{
	struct dispatch_list current;

	if (!s->has_last)
		return;
	if (s->last.state == DISPATCH_HELD)
		dispatch_delete_held(d, &s->last);
	current = DISPATCHES_WHERE(d, "change_id = ?1 AND accelerator = ?2 AND runner = ?3 AND is_current = 1",
	    V_INT(s->row.change_id), V_TEXT(s->row.accelerator), V_TEXT(s->row.runner));
	for (size_t i = 0; i < current.n; i++)
		if (!start_is_held(s) || !dispatch_has_run(d->view, &current.at[i]))
			dispatch_retire(d, &current.at[i], now_ms);
	dispatch_list_release(&current);
}

static bool starts_share_request(const struct start *a, const struct start *b)
{
	return kind_is_shared(a->row.kind) && kind_is_shared(b->row.kind) && !start_is_held(a) && !start_is_held(b) &&
	       a->row.not_before_ms == b->row.not_before_ms && strcmp(a->row.target_key, b->row.target_key) == 0;
}

/* Dispatches that run in that repository already move to the new id, with their round. Those with a slot of their own do not,
 * nor those that would be held now because their release was revoked. */
static void move_shared_dispatches(struct txn *d, const struct stored_dispatch *to, int64_t now_ms)
{
	struct dispatch_list l = DISPATCHES_WHERE(d,
	    "change_id = ?1 AND target_key = ?2 AND kind IN ('github', 'infra') AND is_current = 1"
	    " AND " DISPATCH_IS_AT_WORK(
		"") " AND id <> ?3 AND COALESCE(not_before_ms, 0) <= ?4"
		    " AND (held_reason IS NULL OR EXISTS (SELECT 1 FROM change WHERE id = ?1 AND is_released = 1))"
		    " ORDER BY accelerator, runner",
	    V_INT(to->change_id), V_TEXT(to->target_key), V_TEXT(to->id), V_INT(now_ms));

	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *old = &l.at[i], row = stored_dispatch_copy(old);

		dispatch_retire(d, old, now_ms);
		snprintf(row.id, sizeof(row.id), "%s", to->id);
		row.state = DISPATCH_QUEUED;
		row.sent_ms = row.finished_ms = row.not_before_ms = 0;
		row.is_late = false;
		FREE_AND_NULL(row.last_error);
		free(row.delivery_guid);
		row.delivery_guid = xstrdup(to->delivery_guid);
		dispatch_insert(d, &row, now_ms);
		stored_dispatch_release(&row);
	}
	dispatch_list_release(&l);
}

/* Whether the change has dispatches that may have to move. Those of one start do not: they share a request, or wait for a slot. */
static bool has_shared_dispatches(const struct view *d, int64_t change_id)
{
	return db_has(d,
	    "SELECT 1 FROM dispatch WHERE change_id = ?1 AND is_current = 1 AND kind IN ('github', 'infra')"
	    " AND " DISPATCH_IS_AT_WORK("") " LIMIT 1",
	    V_INT(change_id));
}

/* The first of a group writes all of it. */
static void start_group(struct txn *d, struct starts *all, size_t first, bool *is_done, bool has_shared, int64_t now_ms)
{
	struct start *s = &all->at[first];
	char id[ID_BYTES];

	for (size_t i = first; i < all->n; i++)
		if (i == first || (!is_done[i] && starts_share_request(s, &all->at[i])))
			retire_last_round(d, &all->at[i], now_ms);
	/* A released dispatch keeps its id, unless others with that id stay held. */
	id_new(id);
	if (s->has_last && s->last.state == DISPATCH_HELD &&
	    !db_has(d, "SELECT 1 FROM dispatch WHERE id = ?1 LIMIT 1", V_TEXT(s->last.id)))
		snprintf(id, ID_BYTES, "%s", s->last.id);
	for (size_t i = first; i < all->n; i++) {
		if (i != first && (is_done[i] || !starts_share_request(s, &all->at[i])))
			continue;
		snprintf(all->at[i].row.id, ID_BYTES, "%s", id);
		dispatch_insert(d, &all->at[i].row, now_ms);
		is_done[i] = true;
	}
	if (has_shared && kind_is_shared(s->row.kind) && s->row.not_before_ms <= now_ms)
		move_shared_dispatches(d, &s->row, now_ms);
	request_put(d, &s->row, all->offer, now_ms);
}

void starts_run(struct txn *d, struct starts *s, int64_t now_ms)
{
	bool *is_done = xcalloc(s->n + 1, sizeof(*is_done));
	bool is_any_held = false, has_shared = s->n > 0 && has_shared_dispatches(d->view, s->at[0].row.change_id);
	char *shared;

	/* Held dispatches come first, so that the rows that they replace do not move with a group. */
	for (size_t i = 0; i < s->n; i++) {
		struct stored_dispatch *row = &s->at[i].row;

		if (!start_is_held(&s->at[i]))
			continue;
		retire_last_round(d, &s->at[i], now_ms);
		id_new(row->id);
		/* The held dispatches of one repository have one id of their own. */
		shared = NULL;
		if (kind_is_shared(row->kind))
			shared = db_text(d,
			    "SELECT id FROM dispatch INDEXED BY dispatch_of_change WHERE change_id = ?1"
			    " AND target_key = ?2 AND kind IN ('github', 'infra') AND state = 'held'"
			    " ORDER BY accelerator, created_ms LIMIT 1",
			    V_INT(row->change_id), V_TEXT(row->target_key));
		if (shared)
			snprintf(row->id, sizeof(row->id), "%s", shared);
		free(shared);
		dispatch_insert(d, row, now_ms);
		is_done[i] = true;
	}
	for (size_t i = 0; i < s->n; i++) {
		is_any_held |= start_is_held(&s->at[i]) && s->at[i].row.accelerator[0];
		if (!is_done[i])
			start_group(d, s, i, is_done, has_shared, now_ms);
	}
	if (s->n > 0)
		cells_moved(d, s->at[0].row.change_id, NULL, is_any_held ? CELLS_HELD : CELLS_STARTED, now_ms);
	free(is_done);
}

/* ---- the newest push in each interval ---- */

bool starts_occupy_push_slot(struct txn *d, struct stored_dispatch *row, const struct push_slot *slot)
{
	/* The runner's last dispatch of a push of the branch, within one interval: an older one does not delay the next. */
	struct rows *r = db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE accelerator = ?1 AND runner = ?2"
	    " AND created_ms >= ?3 AND state <> 'superseded' AND change_id <> ?4 AND EXISTS (SELECT 1 FROM change"
	    " WHERE change.id = dispatch.change_id AND change.kind = 'push' AND change.repository_key = ?5"
	    " AND change.ref = ?6) ORDER BY created_ms DESC, COALESCE(not_before_ms, 0) DESC, change_id DESC LIMIT 1",
	    V_TEXT(row->accelerator), V_TEXT(row->runner), V_INT(slot->now_ms - slot->every_ms), V_INT(row->change_id),
	    V_TEXT(slot->repository_key), V_TEXT(slot->ref));
	struct stored_dispatch last;
	int64_t began_ms, theirs;
	bool is_newest;
	char *sha;

	row->not_before_ms = 0;
	if (!stored_dispatch_read(r, &last))
		return true;
	sha = db_text(d, "SELECT head_sha FROM change WHERE id = ?1", V_INT(last.change_id));
	theirs = branch_position(d->view, slot->repository_key, slot->ref, sha ? sha : "");
	is_newest = theirs <= branch_position(d->view, slot->repository_key, slot->ref, slot->head_sha);
	free(sha);
	if (is_newest && last.state == DISPATCH_QUEUED && last.not_before_ms > slot->now_ms) {
		row->not_before_ms = last.not_before_ms;
		if (dispatch_end(d, &last, DISPATCH_SUPERSEDED, slot->now_ms))
			cells_moved(d, last.change_id, last.accelerator, CELLS_WITHDRAWN, slot->now_ms);
	} else if (is_newest) {
		began_ms = last.not_before_ms ? last.not_before_ms : last.created_ms;
		if (began_ms > slot->now_ms) /* the clock was put back meanwhile */
			began_ms = slot->now_ms;
		if (began_ms + slot->every_ms > slot->now_ms)
			row->not_before_ms = began_ms + slot->every_ms;
	}
	stored_dispatch_release(&last);
	return is_newest;
}
