/* Which comment is a PR's, and what was last written into it. */
#include "base/alloc.h"
#include "store/comments.h"
#include "store/db.h"
#include "store/key.h"

static int put_run(struct store_op *op, struct db *d)
{
	struct put_comment *o = CONTAINER_OF(op, struct put_comment, op);

	db_exec(d,
	    "INSERT INTO comment (repository_key, number, comment_id, body_hash, written_ms,"
	    " has_red_written, change_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
	    " ON CONFLICT (repository_key, number) DO UPDATE SET comment_id = excluded.comment_id,"
	    " body_hash = excluded.body_hash, written_ms = excluded.written_ms,"
	    " has_red_written = excluded.has_red_written, change_id = excluded.change_id",
	    V_TEXT(repository_key(o->repository).text), V_INT(o->number), V_INT(o->comment_id),
	    V_BLOB(o->body_hash, sizeof(o->body_hash)), V_INT(o->written_ms),
	    V_INT(o->has_red_written), V_INT_OR_NULL(o->change_id));
	return 0;
}

int store_put_comment(struct store *s, struct put_comment *op)
{
	op->op.run = put_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

static int get_run(struct store_query *q, struct db *d)
{
	struct get_comment *g = CONTAINER_OF(q, struct get_comment, q);
	struct rows *r = db_rows(d,
	    "SELECT comment_id, body_hash, written_ms, has_red_written, change_id FROM comment"
	    " WHERE repository_key = ?1 AND number = ?2",
	    V_TEXT(repository_key(g->repository).text), V_INT(g->number));

	g->is_known = rows_next(r);
	if (g->is_known) {
		size_t n;
		const void *hash = rows_blob(r, 1, &n);

		g->comment_id = rows_int(r, 0);
		if (n == sizeof(g->body_hash))
			memcpy(g->body_hash, hash, n);
		g->written_ms = rows_int(r, 2);
		g->has_red_written = rows_int(r, 3);
		g->change_id = rows_int(r, 4);
	}
	rows_end(r);
	return 0;
}

int store_get_comment(struct store *s, struct get_comment *q)
{
	q->is_known = q->has_red_written = false;
	q->comment_id = q->written_ms = q->change_id = 0;
	memset(q->body_hash, 0, sizeof(q->body_hash));
	q->q.run = get_run;
	return store_query(s, &q->q);
}
