/* Small durable facts and the count of redelivery requests. */
#include "base/alloc.h"
#include "store/db.h"
#include "store/deliveries.h"
#include "store/key.h"

static int put_setting_run(struct store_op *op, struct db *d)
{
	struct put_setting *p = CONTAINER_OF(op, struct put_setting, op);

	if (p->value)
		db_exec(d,
		    "INSERT INTO setting (key, value) VALUES (?1, ?2)"
		    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
		    V_TEXT(p->key), V_TEXT(p->value));
	else
		db_exec(d, "DELETE FROM setting WHERE key = ?1", V_TEXT(p->key));
	return 0;
}

int store_put_setting(struct store *s, struct put_setting *op)
{
	op->op.run = put_setting_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

static int get_setting_run(struct store_query *q, struct db *d)
{
	struct get_setting *g = CONTAINER_OF(q, struct get_setting, q);

	g->value = db_text(d, "SELECT value FROM setting WHERE key = ?1", V_TEXT(g->key));
	return 0;
}

int store_get_setting(struct store *s, struct get_setting *q)
{
	q->value = NULL;
	q->q.run = get_setting_run;
	return store_query(s, &q->q);
}

static int count_redelivery_run(struct store_op *op, struct db *d)
{
	struct count_redelivery *c = CONTAINER_OF(op, struct count_redelivery, op);
	struct guid_key guid = guid_key(c->guid);

	if (c->is_taken_back) {
		db_exec(d, "UPDATE redelivery SET n = n - 1 WHERE guid = ?1 AND n > 0",
		    guid_value(&guid));
		return 0;
	}
	c->n_before = (int)db_int(d, 1,
			  "INSERT INTO redelivery (guid, n, last_ms) VALUES (?1, 1, ?2)"
			  " ON CONFLICT (guid) DO UPDATE SET n = redelivery.n + 1,"
			  " last_ms = excluded.last_ms RETURNING n",
			  guid_value(&guid), V_INT(c->now_ms)) -
		      1;
	return 0;
}

int store_count_redelivery(struct store *s, struct count_redelivery *op)
{
	op->op.run = count_redelivery_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
