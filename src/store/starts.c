#include "store/starts.h"

#include "base/alloc.h"
#include "store/cells_moved.h"
#include "store/requests.h"

void starts_add(struct starts *s, struct stored_dispatch row, const struct stored_dispatch *last)
{
	s->at = xrealloc(s->at, (s->n + 1) * sizeof(*s->at));
	s->at[s->n] = (struct start){.row = row, .has_last = last != NULL};
	if (last)
		s->at[s->n].last = stored_dispatch_copy(last);
	s->n++;
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

static bool is_shared(enum runner_kind kind)
{
	return kind == RUNNER_GITHUB || kind == RUNNER_INFRA;
}

static bool is_held(const struct start *s)
{
	return s->row.state == DISPATCH_HELD;
}

/* What it replaces goes: the row that was held until now, and the current one. A held round takes
 * the place only of what never ran; beside anything else it waits. */
static void remove_last(struct db *d, struct start *s, int64_t now_ms)
{
	struct dispatch_list current;

	if (!s->has_last)
		return;
	if (s->last.state == DISPATCH_HELD)
		dispatch_delete_held(d, &s->last);
	current = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE change_id = ?1 AND accelerator = ?2"
	    " AND runner = ?3 AND is_current = 1",
	    V_INT(s->row.change_id), V_TEXT(s->row.accelerator), V_TEXT(s->row.runner)));
	for (size_t i = 0; i < current.n; i++)
		if (!is_held(s) || !dispatch_has_run(d, &current.at[i]))
			dispatch_retire(d, &current.at[i], now_ms);
	dispatch_list_release(&current);
}

/* Held ones of one repository wait under one id of their own. */
static void choose_held_id(struct db *d, struct start *s)
{
	char *id = NULL;

	if (is_shared(s->row.kind))
		id = db_text(d,
		    "SELECT id FROM dispatch INDEXED BY dispatch_of_change WHERE change_id = ?1"
		    " AND target_key = ?2 AND kind IN ('github', 'infra') AND state = 'held'"
		    " LIMIT 1",
		    V_INT(s->row.change_id), V_TEXT(s->row.target_key));
	if (id)
		snprintf(s->row.id, sizeof(s->row.id), "%s", id);
	else
		id_new(s->row.id);
	free(id);
}

static bool belongs_with(const struct start *a, const struct start *b)
{
	return is_shared(a->row.kind) && is_shared(b->row.kind) && !is_held(a) && !is_held(b) &&
	       a->row.not_before_ms == b->row.not_before_ms &&
	       strcmp(a->row.target_key, b->row.target_key) == 0;
}

/* A released one keeps its id, unless others stay held under it. */
static void choose_id(struct db *d, const struct start *s, char out[ID_BYTES])
{
	id_new(out);
	if (s->has_last && s->last.state == DISPATCH_HELD &&
	    !db_has(d, "SELECT 1 FROM dispatch WHERE id = ?1 LIMIT 1", V_TEXT(s->last.id)))
		snprintf(out, ID_BYTES, "%s", s->last.id);
}

/* What runs in that repository already moves to the new id, with its round; not what goes at a
 * time of its own, and not what would be held today because its release was taken back. */
static void move_others(struct db *d, const struct stored_dispatch *to, int64_t now_ms)
{
	struct dispatch_list l = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE change_id = ?1 AND target_key = ?2"
	    " AND kind IN ('github', 'infra') AND is_current = 1 AND " DISPATCH_IS_AT_WORK
	    " AND id <> ?3 AND COALESCE(not_before_ms, 0) <= ?4"
	    " AND (held_reason IS NULL OR EXISTS"
	    "  (SELECT 1 FROM change WHERE id = ?1 AND is_released = 1))",
	    V_INT(to->change_id), V_TEXT(to->target_key), V_TEXT(to->id), V_INT(now_ms)));

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

/* The first of a group writes all of it. */
static void run_group(struct db *d, struct starts *all, size_t first, bool *is_done, int64_t now_ms)
{
	struct start *s = &all->at[first];
	char id[ID_BYTES];

	for (size_t i = first; i < all->n; i++)
		if (i == first || (!is_done[i] && belongs_with(s, &all->at[i])))
			remove_last(d, &all->at[i], now_ms);
	choose_id(d, s, id);
	for (size_t i = first; i < all->n; i++) {
		if (i != first && (is_done[i] || !belongs_with(s, &all->at[i])))
			continue;
		snprintf(all->at[i].row.id, ID_BYTES, "%s", id);
		dispatch_insert(d, &all->at[i].row, now_ms);
		is_done[i] = true;
	}
	if (is_shared(s->row.kind) && s->row.not_before_ms <= now_ms)
		move_others(d, &s->row, now_ms);
	request_put(d, &s->row, now_ms);
}

void starts_run(struct db *d, struct starts *s, int64_t now_ms)
{
	bool *is_done = xcalloc(s->n + 1, sizeof(*is_done));
	bool is_any_held = false;

	/* Those that are held first: what they replace must not move along with a group. */
	for (size_t i = 0; i < s->n; i++) {
		if (!is_held(&s->at[i]))
			continue;
		remove_last(d, &s->at[i], now_ms);
		choose_held_id(d, &s->at[i]);
		dispatch_insert(d, &s->at[i].row, now_ms);
		is_done[i] = true;
	}
	for (size_t i = 0; i < s->n; i++) {
		is_any_held |= is_held(&s->at[i]) && s->at[i].row.accelerator[0];
		if (!is_done[i])
			run_group(d, s, i, is_done, now_ms);
	}
	if (s->n > 0)
		cells_moved(d, s->at[0].row.change_id, NULL,
		    is_any_held ? CELLS_HELD : CELLS_STARTED, now_ms);
	free(is_done);
}
