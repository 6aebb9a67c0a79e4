/* Small truths about changes: noted without a test, their files and their merge base. */
#include <jansson.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/strv.h"
#include "store/branch_commits.h"
#include "store/cells_moved.h"
#include "store/changes.h"
#include "store/key.h"
#include "store/stored_change.h"

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
		branch_commits_put(d, o->repository, o->ref, NULL,
		    &(struct branch_commit){.sha = o->head_sha, .at_ms = o->now_ms}, 1);
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
	int64_t lead =
	    change_lead(d, change_find(d, CHANGE_PULL_REQUEST, o->repository, o->head_sha));
	json_t *list;
	char *text;

	if (o->number && lead && lead != o->number)
		return 0;
	list = json_array();
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

	if (db_exec(d,
		"UPDATE change SET merge_base_sha = ?2, merge_base_ms = ?3 WHERE id = ?1"
		" AND (?4 IS NULL OR COALESCE(base_ref, base_sha) = ?4)",
		V_INT(o->change_id), V_TEXT(o->sha), V_INT_OR_NULL(o->commit_ms),
		V_TEXT(o->base)) == 0 &&
	    !db_status(d))
		return db_has(d, "SELECT 1 FROM change WHERE id = ?1", V_INT(o->change_id))
			   ? ERR_CONFLICT
			   : ERR_NOT_FOUND;
	cells_moved(d, o->change_id, NULL, CELLS_BASE_FOUND, o->now_ms);
	return 0;
}

int store_put_merge_base(struct store *s, struct put_merge_base *op)
{
	op->op.run = put_merge_base_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
