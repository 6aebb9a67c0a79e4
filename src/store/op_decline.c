/* ok-to-test cancel. In doubt it takes back more than was meant rather than less: what is held can
 * be released again, what has run cannot be taken back. */
#include "base/alloc.h"
#include "store/changes.h"
#include "store/delivery_row.h"
#include "store/key.h"
#include "store/requests.h"
#include "store/stored_change.h"

/* Waiting for a person, or released but certainly not gone: no machine has taken it, no request was
 * tried. */
#define IS_STILL_HERE                                                                              \
	"(state = 'held' OR (state = 'queued' AND held_reason IS NOT NULL"                         \
	"  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.key = 'dispatch:' || dispatch.id"        \
	"   AND (o.n_attempts > 0 OR o.state = 'sending'))))"

/* The heads that the writer may have seen. GitHub's times have whole seconds: those of the comment's
 * own count, and so does an only head that became known later than it was written. */
#define HEADS_SEEN                                                                                 \
	"SELECT h.change_id FROM pull_head h WHERE h.repository_key = ?1 AND h.number = ?2"        \
	" AND (h.since_ms <= ?3 OR (SELECT COUNT(*) FROM pull_head x"                              \
	"  WHERE x.repository_key = ?1 AND x.number = ?2) = 1)"

static int decline(struct db *d, struct dispatch_list *l, const char *by, int64_t now_ms)
{
	char *why = xasprintf("declined by %s", by);
	int n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!dispatch_enter(d, &l->at[i], DISPATCH_CANCELLED, why, now_ms))
			continue;
		request_drop(d, &l->at[i], now_ms);
		comment_wish(d, l->at[i].change_id, WISH_FIRST, now_ms);
		n++;
	}
	free(why);
	return n;
}

static int decline_run(struct store_op *op, struct db *d)
{
	struct decline_held *o = CONTAINER_OF(op, struct decline_held, op);
	struct repository_key key = repository_key(o->repository);
	struct dispatch_list l = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE change_id IN (" HEADS_SEEN ")"
	    " AND is_current = 1 AND is_held_for_good = 0 AND " IS_STILL_HERE
	    " ORDER BY accelerator, runner",
	    V_TEXT(key.text), V_INT(o->number), V_INT(o->comment_ms)));
	int64_t n_taken_back;

	o->n_declined = decline(d, &l, o->by ? o->by : "a member", o->now_ms);
	dispatch_list_release(&l);
	n_taken_back = db_exec(d,
	    "UPDATE change SET is_released = 0, active_ms = ?4 WHERE is_released = 1"
	    " AND id IN (" HEADS_SEEN ")",
	    V_TEXT(key.text), V_INT(o->number), V_INT(o->comment_ms), V_INT(o->now_ms));
	if (!o->n_declined && !n_taken_back)
		return ERR_NOT_FOUND;
	if (o->delivery_id && delivery_find(d, o->delivery_id).state[0])
		delivery_enter(d, o->delivery_id, "planned", NULL, o->now_ms);
	return 0;
}

int store_decline_held(struct store *s, struct decline_held *op)
{
	op->op.run = decline_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
