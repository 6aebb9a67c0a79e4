/* Machines that fell silent: their leases run out. */
#include "base/alloc.h"
#include "store/db.h"
#include "store/lease_handover.h"
#include "store/leases.h"

enum { EXPIRE_MAX = 500 };

/* The one that is due longest, or false. */
static bool next_due(struct db *d, int64_t now_ms, struct stored_lease *ret)
{
	return stored_lease_take(db_rows(d,
				     "SELECT " LEASE_COLUMNS " FROM lease WHERE state = 'active'"
				     " AND until_ms <= ?1 ORDER BY until_ms, id LIMIT 1",
				     V_INT(now_ms)),
	    ret);
}

static int expire_run(struct store_op *op, struct db *d)
{
	struct expire_leases *o = CONTAINER_OF(op, struct expire_leases, op);
	struct stored_lease l;

	o->n_expired = 0;
	while (o->n_expired < EXPIRE_MAX && next_due(d, o->now_ms, &l)) {
		lease_run_out(d, &l, o->now_ms);
		stored_lease_release(&l);
		o->n_expired++;
	}
	o->next_due_ms = db_int(d, 0, "SELECT MIN(until_ms) FROM lease WHERE state = 'active'");
	return 0;
}

int store_expire_leases(struct store *s, struct expire_leases *op)
{
	op->op.run = expire_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
