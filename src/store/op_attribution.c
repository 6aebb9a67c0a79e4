/* Attribution as others ask for it: what is due, and what came of it. */
#include "base/alloc.h"
#include "store/attribution.h"
#include "store/cells_moved.h"
#include "store/db.h"
#include "store/stored_change.h"

static void read_due(struct claim_due_changes *q, struct rows *r)
{
	while (rows_next(r)) {
		struct due_change *c;

		q->list = xrealloc(q->list, (q->n + 1) * sizeof(*q->list));
		c = &q->list[q->n++];
		*c = (struct due_change){
		    .change_id = rows_int(r, 0),
		    .generation = rows_int(r, 1),
		    .n_tries = (int)rows_int(r, 2),
		    .repository = rows_dup(r, 3),
		    .head_sha = rows_dup(r, 4),
		    .base_ref = rows_dup(r, 5),
		    .base_sha = rows_dup(r, 6),
		    .since_ms = rows_int(r, 7),
		};
	}
}

static int claim_run(struct store_query *sq, struct db *d)
{
	struct claim_due_changes *q = CONTAINER_OF(sq, struct claim_due_changes, q);

	read_due(
	    q, db_rows(d,
		   "SELECT c.id, u.generation, u.n_tries, c.repository, c.head_sha, c.base_ref,"
		   " c.base_sha, u.since_ms"
		   " FROM attribution_due u CROSS JOIN change c ON c.id = u.change_id"
		   " WHERE u.next_ms <= ?1 ORDER BY u.next_ms LIMIT ?2",
		   V_INT(q->now_ms), V_INT(q->limit)));
	for (size_t i = 0; i < q->n; i++) {
		struct attribution_lack lack = attribution_lacks(d, q->list[i].change_id);

		q->list[i].needs_merge_base = lack.merge_base;
		q->list[i].needs_files = lack.files;
		q->list[i].number = change_pull(d, q->list[i].change_id);
	}
	q->next_ms = db_int(d, 0,
	    "SELECT next_ms FROM attribution_due WHERE next_ms > ?1 ORDER BY next_ms LIMIT 1",
	    V_INT(q->now_ms));
	return 0;
}

int store_claim_due_changes(struct store *s, struct claim_due_changes *q)
{
	q->list = NULL;
	q->n = 0;
	q->next_ms = 0;
	q->q.run = claim_run;
	return store_query(s, &q->q);
}

void claim_due_changes_release(struct claim_due_changes *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->list[i].repository);
		free(q->list[i].head_sha);
		free(q->list[i].base_ref);
		free(q->list[i].base_sha);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}

/* ---- what came of it ---- */

static void end_due(struct db *d, const struct attribute_change *o)
{
	if (o->again_ms)
		db_exec(d,
		    "UPDATE attribution_due SET next_ms = ?3, n_tries = n_tries + 1"
		    " WHERE change_id = ?1 AND generation = ?2",
		    V_INT(o->change_id), V_INT(o->generation), V_INT(o->again_ms));
	else
		db_exec(d, "DELETE FROM attribution_due WHERE change_id = ?1 AND generation = ?2",
		    V_INT(o->change_id), V_INT(o->generation));
}

static int attribute_run(struct store_op *op, struct db *d)
{
	struct attribute_change *o = CONTAINER_OF(op, struct attribute_change, op);

	o->has_moved = cells_moved(d, o->change_id, NULL,
	    o->has_learnt ? CELLS_EVIDENCE_CAME : CELLS_LOOKED_AGAIN, o->now_ms);
	end_due(d, o);
	return 0;
}

int store_attribute(struct store *s, struct attribute_change *op)
{
	op->op.run = attribute_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
