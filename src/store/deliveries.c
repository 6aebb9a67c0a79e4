#include "store/deliveries.h"

#include "db/bodies.h"
#include "db/key.h"

enum { SCRATCH_KEEP_BYTES = 256 << 10 };

void delivery_count(struct txn *d, enum delivery_state state, int difference)
{
	static const enum counter counters[N_DELIVERY_STATES] = {
	    [DELIVERY_IS_PLANNED] = COUNT_DELIVERIES_PLANNED,
	    [DELIVERY_IS_IGNORED] = COUNT_DELIVERIES_IGNORED,
	    [DELIVERY_IS_FAILED] = COUNT_DELIVERIES_FAILED,
	};

	/* Accepted ones are counted in their index, so that intake does not also write the page of the counters. */
	if (state != DELIVERY_IS_ACCEPTED)
		counter_add(d, counters[state], difference);
}

/* 0: there is no delivery with this GUID. Two statements, because SQLite makes a table of its own for each `IN (?1, ?2)`. */
static int64_t delivery_id(const struct view *d, const char *guid)
{
	static const char find[] = "SELECT id FROM delivery WHERE guid = ?1";
	int64_t id = db_int_values(d, 0, find, VALUES(V_GUID(guid)));

	return id ? id : db_int_values(d, 0, find, VALUES(V_OLD_GUID(guid)));
}

/* Packs the body into the connection's scratch buffer. 0: that GUID is there already. */
static int64_t insert_delivery(
    struct txn *d, const struct put_delivery *p, enum delivery_state state, bool is_synthetic)
{
	struct buf *body = db_scratch(d);
	int64_t id, base_id;

	base_id = body_pack(d, p->event, p->body, p->body_bytes, p->now_ms, body);
	id = db_insert(d,
	    "INSERT INTO delivery (guid, event, action, repository, received_ms, state, n_attempts,"
	    " is_synthetic, planned_ms, body_bytes, body, base_id)"
	    " SELECT ?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?9, ?10, ?11"
	    " WHERE NOT EXISTS (SELECT 1 FROM delivery WHERE guid = ?12) ON CONFLICT (guid) DO NOTHING",
	    V_GUID(p->guid), V_TEXT(p->event), V_TEXT(p->action), V_TEXT(p->repository), V_INT(p->now_ms),
	    V_TEXT(delivery_state_name(state)), V_INT(is_synthetic), V_INT_OR_NULL(is_synthetic ? p->now_ms : 0),
	    V_INT((int64_t)p->body_bytes), V_BLOB(body->data, body->len), V_INT_OR_NULL(base_id), V_OLD_GUID(p->guid));
	if (body->cap > SCRATCH_KEEP_BYTES)
		buf_release(body);
	if (id)
		delivery_count(d, state, 1);
	return id;
}

static int put_delivery_run(struct store_op *op, struct txn *d)
{
	struct put_delivery *p = CONTAINER_OF(op, struct put_delivery, op);

	p->delivery_id = insert_delivery(d, p, DELIVERY_IS_ACCEPTED, false);
	if (p->delivery_id && !p->is_passed_on)
		db_notify(d, STORE_DELIVERIES);
	return 0;
}

/* Intake may use three quarters of the queue. The rest is for operations that finish work, so that they get through when
 * deliveries flood the queue. */
int store_put_delivery(struct store *s, struct put_delivery *op)
{
	struct store_stats stats;
	struct store_limits limits;

	store_stats(s, &stats);
	store_limits(s, &limits);
	if ((size_t)stats.n_queued_ops >= limits.max_queue_ops / 4 * 3 + 1)
		return ERR_BUSY;
	op->op.run = put_delivery_run;
	/* A new base, with a statement of its own, may stay without the delivery. */
	op->op.class = OP_INDEPENDENT;
	op->op.is_intake = true;
	op->op.bytes = op->body_bytes + sizeof(*op);
	return store_submit(s, &op->op);
}

void delivery_put_synthetic(struct txn *d, const char *guid, const char *event, const char *action,
    const char *repository, const char *body, size_t body_bytes, int64_t now_ms)
{
	struct put_delivery p = {.guid = guid,
	    .event = event,
	    .action = action,
	    .repository = repository,
	    .body = body,
	    .body_bytes = body_bytes,
	    .now_ms = now_ms};

	insert_delivery(d, &p, DELIVERY_IS_PLANNED, true);
}

bool delivery_copy(struct txn *d, const char *from_guid, const char *guid, int64_t now_ms)
{
	if (db_exec_count(d,
		"INSERT INTO delivery (guid, event, action, repository, received_ms, state, n_attempts, is_synthetic,"
		" planned_ms, body_bytes, body, base_id) SELECT ?2, event, action, repository, ?3, ?4, 0, 1, ?3,"
		" body_bytes, body, base_id FROM delivery WHERE id = ?1 AND body IS NOT NULL ON CONFLICT (guid) DO "
		"NOTHING",
		V_INT(delivery_id(d->view, from_guid)), V_GUID(guid), V_INT(now_ms),
		V_TEXT(delivery_state_name(DELIVERY_IS_PLANNED))) == 0)
		return false;
	delivery_count(d, DELIVERY_IS_PLANNED, 1);
	return true;
}

RECORD_DEFINE(delivery_place, DELIVERY_PLACE_RECORD);

struct delivery_place delivery_find(const struct view *d, int64_t id)
{
	struct delivery_place at = {.state = N_DELIVERY_STATES};

	RECORD_READ_FIRST(d, delivery_place, DELIVERY_PLACE_RECORD, &at, "FROM delivery WHERE id = ?1", V_INT(id));
	return at;
}

bool delivery_enter(struct txn *d, int64_t id, enum delivery_state to, const char *error, int64_t now_ms)
{
	struct delivery_place at = delivery_find(d->view, id);

	if (at.state == N_DELIVERY_STATES || !delivery_may_enter(at.state, to))
		return false;
	delivery_count(d, at.state, -1);
	delivery_count(d, to, 1);
	db_exec(d,
	    "UPDATE delivery SET state = ?2, error = ?3, n_attempts = n_attempts + 1,"
	    " planned_ms = CASE WHEN ?5 <> 0 THEN COALESCE(planned_ms, ?4) ELSE planned_ms END WHERE id = ?1",
	    V_INT(id), V_TEXT(delivery_state_name(to)), V_TEXT(error), V_INT(now_ms), V_INT(to == DELIVERY_IS_PLANNED));
	return true;
}

static int mark_delivery_run(struct store_op *op, struct txn *d)
{
	struct mark_delivery *m = CONTAINER_OF(op, struct mark_delivery, op);
	enum delivery_state to = delivery_find(d->view, m->delivery_id).state;

	if (to == N_DELIVERY_STATES)
		return ERR_NOT_FOUND;
	if (m->mark == DELIVERY_MARK_IGNORED)
		to = DELIVERY_IS_IGNORED;
	else if (m->mark == DELIVERY_MARK_FAILED)
		to = DELIVERY_IS_FAILED;
	/* A retry publishes no topic, because the planner chooses the time. */
	delivery_enter(d, m->delivery_id, to, m->error, 0);
	return 0;
}
STORE_OPERATION(mark_delivery)

static int replay_delivery_run(struct store_op *op, struct txn *d)
{
	struct replay_delivery *p = CONTAINER_OF(op, struct replay_delivery, op);
	int64_t id = delivery_id(d->view, p->guid);

	if (!id)
		return ERR_NOT_FOUND;
	if (db_has(d, "SELECT 1 FROM delivery WHERE id = ?1 AND body IS NULL", V_INT(id)))
		return ERR_CONFLICT;
	delivery_enter(d, id, DELIVERY_IS_ACCEPTED, NULL, 0);
	db_exec(d, "UPDATE delivery SET n_attempts = 0 WHERE id = ?1", V_INT(id));
	db_notify(d, STORE_DELIVERIES);
	return 0;
}
STORE_OPERATION(replay_delivery)

/* ---- queries ---- */

enum {
	LIST_MAX = 1000,
	BODIES_BYTES = 4 << 20,   /* about so much body at a time */
	BODY_MAX_BYTES = 64 << 20 /* more than any that was let in */
};

RECORD_DEFINE(delivery, DELIVERY_RECORD);

void delivery_release(struct delivery *d)
{
	record_release(&delivery_record, d);
	free(d->body);
	*d = (struct delivery){0};
}

static int bounded_limit(int limit) { return limit > 0 && limit < LIST_MAX ? limit : LIST_MAX; }

#define PACKED_BODY_RECORD(F, S)                                                                                       \
	F(S, INT, base_id, NULL, "base_id", "0: none.")                                                                \
	F(S, BLOB, body, NULL, "body", "")
RECORD_LOCAL(packed_body, PACKED_BODY_RECORD)
#define SELECT_WITH_BODY RECORD_SELECT(DELIVERY_RECORD) RECORD_COLUMNS(PACKED_BODY_RECORD)

/* Reads a row of SELECT_WITH_BODY. Leaves out a body that cannot be unpacked, because one damaged row must not stop planning. */
static void read_delivery_and_body(const struct view *view, struct rows *r, struct delivery *d)
{
	struct buf body = BUF_INIT(BODY_MAX_BYTES);
	struct packed_body packed;

	record_read(r, &delivery_record, d);
	record_read(r, &packed_body_record, &packed);
	if (!packed.body.p || body_unpack(view, packed.base_id, packed.body.p, packed.body.n, &body)) {
		buf_release(&body);
		return;
	}
	d->body_len = body.len;
	d->body = buf_detach(&body);
}

static int next_deliveries_run(struct store_query *q, const struct view *d)
{
	struct next_deliveries *n = CONTAINER_OF(q, struct next_deliveries, q);
	int limit = bounded_limit(n->limit);
	struct rows *r =
	    db_rows(d, SELECT_WITH_BODY " FROM delivery WHERE state = 'accepted' AND id > ?1 ORDER BY id LIMIT ?2",
		V_INT(n->after_id), V_INT(limit));
	size_t bytes = 0;

	n->list = xcalloc((size_t)limit, sizeof(*n->list));
	while (bytes < BODIES_BYTES && rows_next(r)) {
		read_delivery_and_body(d, r, &n->list[n->n]);
		bytes += n->list[n->n].body_len;
		n->n++;
	}
	rows_end(r);
	if (db_status(d))
		next_deliveries_release(n);
	return 0;
}
STORE_QUERY_CLEARED(next_deliveries, list)

void next_deliveries_release(struct next_deliveries *q)
{
	for (size_t i = 0; i < q->n; i++)
		free(q->list[i].body);
	RECORDS_RELEASE(delivery, q->list, q->n);
}

static int get_delivery_run(struct store_query *q, const struct view *d)
{
	struct get_delivery *g = CONTAINER_OF(q, struct get_delivery, q);
	struct rows *r = db_rows(d, SELECT_WITH_BODY " FROM delivery WHERE id = ?1", V_INT(delivery_id(d, g->guid)));

	if (!rows_next(r))
		return ERR_NOT_FOUND;
	read_delivery_and_body(d, r, &g->delivery);
	rows_end(r);
	if (!g->delivery.body)
		delivery_release(&g->delivery);
	return g->delivery.body ? 0 : ERR_NOT_FOUND;
}
STORE_QUERY_CLEARED(get_delivery, delivery)

static int list_deliveries_run(struct store_query *q, const struct view *d)
{
	struct list_deliveries *l = CONTAINER_OF(q, struct list_deliveries, q);
	int limit = bounded_limit(l->limit);
	struct rows *r;

	if (l->only_failed)
		r = db_rows(d,
		    RECORD_QUERY(DELIVERY_RECORD, "FROM delivery WHERE state = 'failed' ORDER BY id DESC LIMIT ?1"),
		    V_INT(limit));
	else
		r = db_rows(d, RECORD_QUERY(DELIVERY_RECORD, "FROM delivery ORDER BY id DESC LIMIT ?1"), V_INT(limit));
	RECORDS_READ(r, delivery, l->list, l->n);
	return 0;
}
STORE_LIST(list_deliveries, delivery)

/* ---- redeliveries ---- */

RECORD_DEFINE(redelivery, REDELIVERY_RECORD);

static int note_deliveries_run(struct store_op *op, struct txn *d)
{
	const struct note_deliveries *o = CONTAINER_OF(op, struct note_deliveries, op);

	for (size_t i = 0; i < o->n_arrived; i++)
		db_exec(d, "DELETE FROM redelivery WHERE guid = ?1", V_GUID(o->arrived[i]));
	for (size_t i = 0; i < o->n_failed; i++) {
		const struct failed_delivery *f = &o->failed[i];

		if (delivery_id(d->view, f->guid) == 0)
			db_exec(d,
			    "INSERT INTO redelivery (guid, n, last_ms, attempt_id, failed_ms) VALUES (?1, 0, ?2, ?3, "
			    "?4)"
			    " ON CONFLICT (guid) DO UPDATE SET attempt_id = excluded.attempt_id, failed_ms = "
			    "excluded.failed_ms WHERE redelivery.failed_ms = 0",
			    V_GUID(f->guid), V_INT(o->now_ms), V_INT(f->id), V_INT(f->failed_ms));
	}
	return 0;
}
STORE_OPERATION(note_deliveries)

static int list_redeliveries_run(struct store_query *q, const struct view *d)
{
	struct list_redeliveries *l = CONTAINER_OF(q, struct list_redeliveries, q);

	RECORDS_READ(
	    db_rows(d,
		RECORD_QUERY(REDELIVERY_RECORD,
		    "FROM redelivery r WHERE failed_ms > ?1 AND last_ms + n * n * ?2 <= ?3"
		    " AND NOT EXISTS (SELECT 1 FROM delivery WHERE guid = r.guid) ORDER BY attempt_id LIMIT ?4"),
		V_INT(l->since_ms), V_INT(l->pause_ms), V_INT(l->now_ms), V_INT(l->limit)),
	    redelivery, l->list, l->n);
	return 0;
}
STORE_LIST(list_redeliveries, redelivery)

static int count_redelivery_run(struct store_op *op, struct txn *d)
{
	struct count_redelivery *c = CONTAINER_OF(op, struct count_redelivery, op);

	if (c->is_over) {
		db_exec(d, "DELETE FROM redelivery WHERE guid = ?1", V_GUID(c->guid));
		return 0;
	}
	c->n_before = (int)db_exec_int(d, 1,
			  "INSERT INTO redelivery (guid, n, last_ms) VALUES (?1, 1, ?2) ON CONFLICT (guid) DO UPDATE"
			  " SET n = redelivery.n + 1, last_ms = excluded.last_ms RETURNING n",
			  V_GUID(c->guid), V_INT(c->now_ms)) -
		      1;
	return 0;
}
STORE_OPERATION(count_redelivery)
