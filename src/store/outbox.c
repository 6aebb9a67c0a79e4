#include "store/outbox.h"

#include "base/alloc.h"
#include "base/strv.h"
#include "store/db.h"
#include "store/outbox_recover.h"

const char *outbox_kind_name(enum outbox_kind k)
{
	static const char *const names[] = {
#define X(e, name) name,
	    OUTBOX_KINDS(X)
#undef X
	};

	return names[k];
}

void outbox_row_release(struct outbox_row *r)
{
	free(r->target);
	free(r->dispatch_id);
	free(r->delivery_guid);
	free(r->event_type);
	free(r->sent_action);
	free(r->original_action);
	strv_free(r->accelerators);
	for (size_t i = 0; i < r->n_sources; i++)
		source_head_release(&r->sources[i]);
	free(r->sources);
	free(r->runner);
	free(r->head_sha);
	free(r->text);
	if (r->experiment)
		experiment_request_release(r->experiment);
	free(r->experiment);
	*r = (struct outbox_row){0};
}

void claim_outbox_release(struct claim_outbox *op)
{
	for (size_t i = 0; i < op->n; i++)
		outbox_row_release(&op->rows[i]);
	FREE_AND_NULL(op->rows);
	op->n = 0;
}

static int stats_run(struct store_query *q, struct db *d)
{
	struct outbox_stats *o = CONTAINER_OF(q, struct outbox_stats, q);
	/* COUNT, not a walk: each is a part of one index. */
	int64_t n_ready = db_int(d, 0,
	    "SELECT COUNT(*) FROM outbox WHERE state IN ('due', 'waiting') AND next_ms <= ?1",
	    V_INT(o->now_ms));

	o->n_due = n_ready;
	o->n_waiting = db_int(d, 0,
	    "SELECT COUNT(*) FROM outbox WHERE state IN ('due', 'waiting') AND next_ms > ?1",
	    V_INT(o->now_ms));
	o->n_sending = db_int(
	    d, 0, "SELECT COUNT(*) FROM outbox WHERE state = 'sending' AND " OUTBOX_IS_COUNTED);
	o->n_dead =
	    db_int(d, 0, "SELECT COUNT(*) FROM outbox WHERE state = 'dead' AND " OUTBOX_IS_COUNTED);
	o->oldest_unsent_ms = db_int(d, 0,
	    "SELECT MIN(first_ms) FROM outbox WHERE state IN ('due', 'waiting', 'sending')"
	    " AND first_ms <= ?1",
	    V_INT(o->now_ms));
	return 0;
}

int store_outbox_stats(struct store *s, struct outbox_stats *q)
{
	q->q.run = stats_run;
	return store_query(s, &q->q);
}
