/* Nothing waits for ever: what the deadlines say, and a wall clock that jumps. */
#include "base/alloc.h"
#include "store/cells_moved.h"
#include "store/changes.h"
#include "store/experiments.h"
#include "store/stored_dispatch.h"

enum { EXPIRE_MAX = 500 };

static void duration_text(int64_t ms, char *out, size_t out_bytes)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
	size_t i = 0;

	while (ms % units[i].ms)
		i++;
	snprintf(out, out_bytes, "%lld%s", (long long)(ms / units[i].ms), units[i].unit);
}

/* Which deadline passed, as people read it. */
static const char *reason(
    const struct stored_dispatch *s, int64_t now_ms, char *out, size_t out_bytes)
{
	const char *what = "finish";
	int64_t within_ms = s->finish_ms;
	char within[32];

	if (s->state != DISPATCH_RUNNING && s->start_by_ms && s->start_by_ms <= now_ms) {
		what = "start";
		within_ms = s->start_ms;
	}
	if ((s->state == DISPATCH_QUEUED || s->state == DISPATCH_SENT) && s->ack_by_ms &&
	    s->ack_by_ms <= now_ms) {
		what = NULL;
		within_ms = s->acknowledge_ms;
	}
	duration_text(within_ms, within, sizeof(within));
	if (what)
		snprintf(out, out_bytes, "did not %s within %s", what, within);
	else
		snprintf(out, out_bytes, "not acknowledged within %s", within);
	return out;
}

static int expire_run(struct store_op *op, struct db *d)
{
	struct expire_dispatches *o = CONTAINER_OF(op, struct expire_dispatches, op);
	struct dispatch_list l = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE next_due_ms IS NOT NULL"
	    " AND next_due_ms <= ?1 ORDER BY next_due_ms LIMIT ?2",
	    V_INT(o->now_ms), V_INT(EXPIRE_MAX)));
	int64_t look_ms;

	o->n_expired = 0;
	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];
		char why[96];

		if (!dispatch_enter(
			d, s, DISPATCH_EXPIRED, reason(s, o->now_ms, why, sizeof(why)), o->now_ms))
			continue;
		o->n_expired++;
		if (s->is_current)
			cells_moved(
			    d, s->change_id, s->accelerator, CELLS_DEADLINE_PASSED, o->now_ms);
	}
	dispatch_list_release(&l);
	look_ms = experiments_look(d, o->now_ms);
	o->next_due_ms =
	    db_int(d, 0, "SELECT MIN(next_due_ms) FROM dispatch WHERE next_due_ms IS NOT NULL");
	if (look_ms && (!o->next_due_ms || look_ms < o->next_due_ms))
		o->next_due_ms = look_ms;
	return 0;
}

int store_expire_dispatches(struct store *s, struct expire_dispatches *op)
{
	op->op.run = expire_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

static int shift_run(struct store_op *op, struct db *d)
{
	struct shift_clock *o = CONTAINER_OF(op, struct shift_clock, op);

	db_exec(d,
	    "UPDATE dispatch SET next_due_ms = next_due_ms + ?1, ack_by_ms = ack_by_ms + ?1,"
	    " start_by_ms = start_by_ms + ?1, finish_by_ms = finish_by_ms + ?1,"
	    " not_before_ms = not_before_ms + ?1"
	    " WHERE next_due_ms IS NOT NULL",
	    V_INT(o->delta_ms));
	db_exec(d,
	    "UPDATE outbox SET next_ms = next_ms + ?1, first_ms = first_ms + ?1,"
	    " lease_until_ms = lease_until_ms + ?1"
	    " WHERE state IN ('due', 'waiting', 'sending')",
	    V_INT(o->delta_ms));
	db_exec(d, "UPDATE attribution_due SET next_ms = next_ms + ?1, since_ms = since_ms + ?1",
	    V_INT(o->delta_ms));
	db_exec(d, "UPDATE commits_between SET next_ms = next_ms + ?1 WHERE next_ms IS NOT NULL",
	    V_INT(o->delta_ms));
	db_exec(d, "UPDATE red_episode SET first_bad_ms = first_bad_ms + ?1 WHERE ended_ms IS NULL",
	    V_INT(o->delta_ms));
	db_exec(d, "UPDATE experiment SET expires_ms = expires_ms + ?1 WHERE " EXPERIMENT_IS_OPEN,
	    V_INT(o->delta_ms));
	db_exec(d, "UPDATE lease SET until_ms = ?1 + lease_ms WHERE state = 'active'",
	    V_INT(o->now_ms));
	db_tell(
	    d, STORE_OUTBOX | STORE_DISPATCHES | STORE_LEASES | STORE_QUEUE | STORE_ATTRIBUTION);
	return 0;
}

int store_shift_clock(struct store *s, struct shift_clock *op)
{
	op->op.run = shift_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
