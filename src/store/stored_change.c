#include "store/stored_change.h"

#include <jansson.h>

#include "base/alloc.h"
#include "base/json.h"
#include "store/cells_moved.h"
#include "store/counters.h"
#include "store/key.h"
#include "store/store.h"

int64_t change_find(
    struct db *d, enum change_kind kind, const char *repository, const char *head_sha)
{
	return db_int(d, 0,
	    "SELECT id FROM change WHERE repository_key = ?1 AND head_sha = ?2 AND kind = ?3",
	    V_TEXT(repository_key(repository).text), V_TEXT(head_sha),
	    V_TEXT(change_kind_name(kind)));
}

/* Another base branch: the merge base is another one, and so is what the change touches. What was
 * said of its failures is looked at again. */
static void forget_base(struct db *d, int64_t id, const struct change_facts *f, int64_t now_ms)
{
	if (!f->base_ref || !db_has(d,
				"SELECT 1 FROM change WHERE id = ?1 AND base_ref IS NOT NULL"
				" AND base_ref <> ?2",
				V_INT(id), V_TEXT(f->base_ref)))
		return;
	db_exec(d, "UPDATE change SET merge_base_sha = NULL, merge_base_ms = NULL WHERE id = ?1",
	    V_INT(id));
	db_exec(d, "DELETE FROM change_files WHERE repository_key = ?1 AND head_sha = ?2",
	    V_TEXT(repository_key(f->repository).text), V_TEXT(f->head_sha));
	if (db_has(d,
		"SELECT 1 FROM verdict WHERE change_id = ?1 AND attribution IS NOT NULL LIMIT 1",
		V_INT(id)))
		cells_moved(d, id, NULL, CELLS_BASE_CHANGED, now_ms);
}

static void update(struct db *d, int64_t id, const struct change_facts *f, int64_t now_ms)
{
	forget_base(d, id, f, now_ms);
	db_exec(d,
	    "UPDATE change SET ref = COALESCE(?2, ref), base_ref = COALESCE(?3, base_ref),"
	    " base_sha = COALESCE(?4, base_sha), title = COALESCE(?5, title),"
	    " author = COALESCE(?6, author), active_ms = ?7 WHERE id = ?1",
	    V_INT(id), V_TEXT(f->ref), V_TEXT(f->base_ref), V_TEXT(f->base_sha), V_TEXT(f->title),
	    V_TEXT(f->author), V_INT(now_ms));
}

int64_t change_put(struct db *d, const struct change_facts *f, int64_t now_ms)
{
	int64_t id = change_find(d, f->kind, f->repository, f->head_sha);

	if (id && f->kind == CHANGE_PULL_REQUEST)
		change_touch(d, id, now_ms); /* change_settle() says from which PR its facts come */
	else if (id)
		update(d, id, f, now_ms);
	if (id)
		return id;
	if (f->kind == CHANGE_PULL_REQUEST)
		counter_add(d, COUNT_OPEN_CHANGES, 1);
	return db_int(d, 0,
	    "INSERT INTO change (kind, repository, repository_key, head_sha, ref, base_ref,"
	    " base_sha, title, author, state, created_ms, active_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'open', ?10, ?10) RETURNING id",
	    V_TEXT(change_kind_name(f->kind)), V_TEXT(f->repository),
	    V_TEXT(repository_key(f->repository).text), V_TEXT(f->head_sha), V_TEXT(f->ref),
	    V_TEXT(f->base_ref), V_TEXT(f->base_sha), V_TEXT(f->title), V_TEXT(f->author),
	    V_INT(now_ms));
}

void change_touch(struct db *d, int64_t change_id, int64_t now_ms)
{
	db_exec(
	    d, "UPDATE change SET active_ms = ?2 WHERE id = ?1", V_INT(change_id), V_INT(now_ms));
}

struct stored_pull pull_find(struct db *d, const char *repository, int64_t number)
{
	struct stored_pull p = {0};
	struct rows *r = db_rows(d,
	    "SELECT change_id, state, updated_ms FROM pull WHERE repository_key = ?1"
	    " AND number = ?2",
	    V_TEXT(repository_key(repository).text), V_INT(number));

	if (rows_next(r)) {
		p.is_known = true;
		p.change_id = rows_int(r, 0);
		p.is_open = strcmp(rows_text(r, 1), "open") == 0;
		p.updated_ms = rows_int(r, 2);
	}
	rows_end(r);
	return p;
}

static char *labels_text(char *const *labels)
{
	json_t *list = json_array();
	char *text;

	for (; labels && *labels; labels++)
		json_array_append_new(list, json_string(*labels));
	text = json_text(list);
	json_decref(list);
	return text;
}

void pull_put(struct db *d, const char *repository, const struct pull_info *pull, int64_t change_id,
    int64_t since_ms)
{
	struct stored_pull before = pull_find(d, repository, pull->number);
	struct repository_key key = repository_key(repository);
	char *labels = labels_text(pull->labels);

	db_exec(d,
	    "INSERT INTO pull (repository_key, number, repository, change_id, state, title, author,"
	    " association, labels, is_draft, base_ref, base_sha, updated_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
	    " ON CONFLICT (repository_key, number) DO UPDATE SET repository = excluded.repository,"
	    " change_id = excluded.change_id, state = excluded.state,"
	    " title = COALESCE(excluded.title, pull.title),"
	    " author = COALESCE(excluded.author, pull.author),"
	    " association = COALESCE(excluded.association, pull.association),"
	    " labels = excluded.labels, is_draft = excluded.is_draft,"
	    " base_ref = COALESCE(excluded.base_ref, pull.base_ref),"
	    " base_sha = COALESCE(excluded.base_sha, pull.base_sha),"
	    " updated_ms = MAX(excluded.updated_ms, pull.updated_ms)",
	    V_TEXT(key.text), V_INT(pull->number), V_TEXT(repository), V_INT(change_id),
	    V_TEXT(pull->is_open ? "open" : "closed"), V_TEXT(pull->title), V_TEXT(pull->author),
	    V_TEXT(pull->author_association), V_TEXT(labels), V_INT(pull->is_draft),
	    V_TEXT(pull->base_ref), V_TEXT(pull->base_sha), V_INT(pull->updated_ms));
	if (!before.is_known || before.change_id != change_id)
		db_exec(d,
		    "INSERT INTO pull_head (repository_key, number, since_ms, change_id)"
		    " VALUES (?1, ?2, ?3, ?4)"
		    " ON CONFLICT (repository_key, number, since_ms, change_id) DO NOTHING",
		    V_TEXT(key.text), V_INT(pull->number), V_INT(since_ms), V_INT(change_id));
	free(labels);
}

int64_t change_lead(struct db *d, int64_t change_id)
{
	return db_int(d, 0,
	    "SELECT p.number FROM pull p LEFT JOIN pull_head h"
	    " ON h.repository_key = p.repository_key AND h.number = p.number"
	    " AND h.change_id = p.change_id WHERE p.change_id = ?1 AND p.state = 'open'"
	    " GROUP BY p.number ORDER BY COALESCE(p.association, '') IN"
	    " ('OWNER', 'MEMBER', 'COLLABORATOR') DESC, MIN(h.since_ms), p.number LIMIT 1",
	    V_INT(change_id));
}

int64_t change_pull(struct db *d, int64_t change_id)
{
	int64_t lead = change_lead(d, change_id);

	return lead ? lead
		    : db_int(d, 0, "SELECT MIN(number) FROM pull WHERE change_id = ?1",
			  V_INT(change_id));
}

int64_t change_other_pull(struct db *d, int64_t change_id, int64_t number)
{
	return db_int(d, 0,
	    "SELECT MIN(number) FROM pull WHERE change_id = ?1 AND state = 'open'"
	    " AND number <> ?2",
	    V_INT(change_id), V_INT(number));
}

/* Base, title and author of the PR that leads. */
static void follow_lead(struct db *d, int64_t change_id, int64_t now_ms)
{
	struct rows *r = db_rows(d,
	    "SELECT c.repository, c.head_sha, p.base_ref, p.base_sha, p.title, p.author"
	    " FROM change c JOIN pull p ON p.change_id = c.id WHERE c.id = ?1 AND p.number = ?2",
	    V_INT(change_id), V_INT(change_lead(d, change_id)));

	if (rows_next(r)) {
		struct change_facts f = {
		    .repository = rows_text(r, 0),
		    .head_sha = rows_text(r, 1),
		    .base_ref = rows_is_null(r, 2) ? NULL : rows_text(r, 2),
		    .base_sha = rows_is_null(r, 3) ? NULL : rows_text(r, 3),
		    .title = rows_is_null(r, 4) ? NULL : rows_text(r, 4),
		    .author = rows_is_null(r, 5) ? NULL : rows_text(r, 5),
		};

		update(d, change_id, &f, now_ms);
	}
	rows_end(r);
}

static enum change_state state_by_pulls(struct db *d, int64_t change_id)
{
	if (db_has(d, "SELECT 1 FROM pull WHERE change_id = ?1 AND state = 'open' LIMIT 1",
		V_INT(change_id)))
		return CHANGE_OPEN;
	if (db_has(d, "SELECT 1 FROM pull WHERE change_id = ?1 LIMIT 1", V_INT(change_id)))
		return CHANGE_CLOSED;
	return CHANGE_SUPERSEDED;
}

struct dispatch_list change_dispatches(struct db *d, int64_t change_id)
{
	return dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE change_id = ?1"
	    " AND (is_current = 1 OR state = 'held') ORDER BY accelerator, runner, round DESC",
	    V_INT(change_id)));
}

static void end_dispatches(struct db *d, int64_t change_id, enum dispatch_state to, int64_t now_ms)
{
	struct dispatch_list l = change_dispatches(d, change_id);

	for (size_t i = 0; i < l.n; i++)
		if (dispatch_end(d, &l.at[i], to, now_ms))
			cells_moved(d, change_id, l.at[i].accelerator, CELLS_WITHDRAWN, now_ms);
	dispatch_list_release(&l);
}

void change_settle(struct db *d, int64_t change_id, int64_t now_ms)
{
	char *name = db_text(d, "SELECT state FROM change WHERE id = ?1", V_INT(change_id));
	enum change_state before = name ? change_state_parse(name) : N_CHANGE_STATES;
	enum change_state now = state_by_pulls(d, change_id);

	free(name);
	follow_lead(d, change_id, now_ms);
	if (now != CHANGE_OPEN)
		end_dispatches(d, change_id,
		    now == CHANGE_CLOSED ? DISPATCH_CANCELLED : DISPATCH_SUPERSEDED, now_ms);
	if (now == before)
		return;
	db_exec(d, "UPDATE change SET state = ?2, active_ms = ?3 WHERE id = ?1", V_INT(change_id),
	    V_TEXT(change_state_name(now)), V_INT(now_ms));
	counter_add(d, COUNT_OPEN_CHANGES, (now == CHANGE_OPEN) - (before == CHANGE_OPEN));
	cells_moved(d, change_id, NULL, CELLS_CHANGE_SETTLED, now_ms);
	db_tell_change(d, change_id);
}
