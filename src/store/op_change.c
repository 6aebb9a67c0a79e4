/* Small truths about changes: released by a member, noted without a test, their files and
 * their merge base. */
#include <jansson.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/strv.h"
#include "store/changes.h"
#include "store/delivery_row.h"
#include "store/key.h"
#include "store/requests.h"
#include "store/starts.h"
#include "store/stored_change.h"

/* ---- ok-to-test ---- */

enum { SHA_MIN_CHARS = 7 };

/* The head that a comment means when it names none: the one that was there before it was
 * written. GitHub's times have whole seconds, so a head of the same second may have come
 * after the comment and does not count, unless the PR never had another. */
static int64_t head_as_of(
    struct db *d, const struct repository_key *key, int64_t number, int64_t comment_ms)
{
	int64_t since = db_int(d, 0,
	    "SELECT MAX(since_ms) FROM pull_head WHERE repository_key = ?1 AND number = ?2"
	    " AND since_ms < ?3",
	    V_TEXT(key->text), V_INT(number), V_INT(comment_ms));
	struct rows *r;
	int64_t id = 0, n = 0;

	if (!since && db_int(d, 0,
			  "SELECT COUNT(*) FROM pull_head WHERE repository_key = ?1"
			  " AND number = ?2",
			  V_TEXT(key->text), V_INT(number)) == 1)
		since = comment_ms;
	r = db_rows(d,
	    "SELECT change_id FROM pull_head WHERE repository_key = ?1 AND number = ?2"
	    " AND since_ms = ?3",
	    V_TEXT(key->text), V_INT(number), V_INT(since));
	for (; rows_next(r); n++)
		id = rows_int(r, 0);
	return n == 1 ? id : 0; /* two in one second: nobody can tell which was meant */
}

/* A head of this PR by its SHA, or by a beginning of it that fits only one. */
static int64_t head_named(
    struct db *d, const struct repository_key *key, int64_t number, const char *sha)
{
	struct rows *r;
	int64_t id = 0;
	bool is_unique = true;

	if (strlen(sha) < SHA_MIN_CHARS)
		return 0;
	r = db_rows(d,
	    "SELECT DISTINCT c.id FROM pull_head h JOIN change c ON c.id = h.change_id"
	    " WHERE h.repository_key = ?1 AND h.number = ?2"
	    " AND substr(c.head_sha, 1, length(?3)) = lower(?3)",
	    V_TEXT(key->text), V_INT(number), V_TEXT(sha));
	while (rows_next(r)) {
		is_unique = id == 0;
		id = rows_int(r, 0);
	}
	return is_unique ? id : 0;
}

/* Those that wait, and those that were declined, as long as anybody still wants that head. */
static struct dispatch_list releasable_dispatches(struct db *d, int64_t change_id)
{
	return dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE change_id = ?1 AND is_current = 1"
	    " AND is_held_for_good = 0 AND (state = 'held' OR (" DISPATCH_IS_DECLINED
	    "  AND EXISTS (SELECT 1 FROM pull WHERE change_id = ?1 AND state = 'open')))"
	    " ORDER BY accelerator, runner",
	    V_INT(change_id)));
}

static int release_run(struct store_op *op, struct db *d)
{
	struct release_held *o = CONTAINER_OF(op, struct release_held, op);
	struct repository_key key = repository_key(o->repository);
	int64_t id = o->head_sha ? head_named(d, &key, o->number, o->head_sha)
				 : head_as_of(d, &key, o->number, o->comment_ms);
	struct dispatch_list held = id ? releasable_dispatches(d, id) : (struct dispatch_list){0};
	struct starts starts = {0};

	o->n_released = (int)held.n;
	for (size_t i = 0; i < held.n; i++) {
		struct stored_dispatch row = stored_dispatch_copy(&held.at[i]);

		row.round += row.state == DISPATCH_CANCELLED;
		row.state = DISPATCH_QUEUED;
		row.finished_ms = 0;
		FREE_AND_NULL(row.last_error);
		starts_add(&starts, row, &held.at[i]);
	}
	starts_run(d, &starts, o->now_ms);
	starts_release(&starts);
	dispatch_list_release(&held);
	if (!o->n_released)
		return ERR_NOT_FOUND;
	db_exec(d, "UPDATE change SET is_released = 1, active_ms = ?2 WHERE id = ?1", V_INT(id),
	    V_INT(o->now_ms));
	if (o->delivery_id && delivery_find(d, o->delivery_id).state[0])
		delivery_enter(d, o->delivery_id, "planned", NULL, o->now_ms);
	comment_wish(d, id, WISH_UPDATE, o->now_ms);
	return 0;
}

int store_release_held(struct store *s, struct release_held *op)
{
	op->op.run = release_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- noted only ---- */

static int note_run(struct store_op *op, struct db *d)
{
	struct note_head *o = CONTAINER_OF(op, struct note_head, op);
	struct change_facts f = {
	    .kind = o->ref ? CHANGE_PUSH : CHANGE_PULL_REQUEST,
	    .repository = o->repository,
	    .head_sha = o->ref ? o->head_sha : o->pull->head_sha,
	    .ref = o->ref,
	};
	struct stored_pull known;
	int64_t id;

	if (o->ref) {
		change_put(d, &f, o->now_ms);
		return 0;
	}
	known = pull_find(d, o->repository, o->pull->number);
	if (known.is_known && o->pull->updated_ms < known.updated_ms)
		return 0;
	f.base_ref = o->pull->base_ref;
	f.base_sha = o->pull->base_sha;
	f.title = o->pull->title;
	f.author = o->pull->author;
	id = change_put(d, &f, o->now_ms);
	pull_put(
	    d, o->repository, o->pull, id, o->pull->updated_ms ? o->pull->updated_ms : o->now_ms);
	if (known.is_known && known.change_id != id)
		change_settle(d, known.change_id, o->now_ms);
	change_settle(d, id, o->now_ms);
	return 0;
}

int store_note_head(struct store *s, struct note_head *op)
{
	op->op.run = note_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- files ---- */

static int put_files_run(struct store_op *op, struct db *d)
{
	struct put_files *o = CONTAINER_OF(op, struct put_files, op);
	json_t *list = json_array();
	char *text;

	for (const char *const *file = o->files; *file; file++)
		json_array_append_new(list, json_string(*file));
	text = json_text(list);
	json_decref(list);
	db_exec(d,
	    "INSERT INTO change_files (repository_key, head_sha, files, created_ms)"
	    " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (repository_key, head_sha) DO UPDATE"
	    " SET files = excluded.files, created_ms = excluded.created_ms",
	    V_TEXT(repository_key(o->repository).text), V_TEXT(o->head_sha), V_TEXT(text),
	    V_INT(o->now_ms));
	free(text);
	return 0;
}

int store_put_files(struct store *s, struct put_files *op)
{
	op->op.run = put_files_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

static int get_files_run(struct store_query *q, struct db *d)
{
	struct get_files *g = CONTAINER_OF(q, struct get_files, q);
	char *text =
	    db_text(d, "SELECT files FROM change_files WHERE repository_key = ?1 AND head_sha = ?2",
		V_TEXT(repository_key(g->repository).text), V_TEXT(g->head_sha));
	json_t *list = NULL, *file;
	size_t i;

	if (!text)
		return 0;
	if (json_parse(text, strlen(text), &list, NULL) == 0) {
		g->files = strv_copy(NULL);
		json_array_foreach(list, i, file) strv_add(&g->files, json_string_value(file));
	}
	json_decref(list);
	free(text);
	return 0;
}

int store_get_files(struct store *s, struct get_files *q)
{
	q->files = NULL;
	q->q.run = get_files_run;
	return store_query(s, &q->q);
}

/* ---- merge base ---- */

static int put_merge_base_run(struct store_op *op, struct db *d)
{
	struct put_merge_base *o = CONTAINER_OF(op, struct put_merge_base, op);

	if (db_exec(d, "UPDATE change SET merge_base_sha = ?2, merge_base_ms = ?3 WHERE id = ?1",
		V_INT(o->change_id), V_TEXT(o->sha), V_INT_OR_NULL(o->commit_ms)) == 0 &&
	    !db_status(d))
		return ERR_NOT_FOUND;
	db_tell(d, STORE_CHANGES);
	return 0;
}

int store_put_merge_base(struct store *s, struct put_merge_base *op)
{
	op->op.run = put_merge_base_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
