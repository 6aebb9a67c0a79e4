/* Deliveries come in, get planned, ignored or failed, and may be planned again. */
#include "base/alloc.h"
#include "store/counters.h"
#include "store/delivery_row.h"
#include "store/key.h"

enum { SCRATCH_KEEP_BYTES = 256 << 10 };

/* The compressed body in the connection's scratch buffer. */
static const struct buf *squeeze(struct db *d, const char *body, size_t n)
{
	struct buf *out = db_scratch(d);

	if (compress(db_compressor(d), body, n, out))
		db_fail(d, ERR_TOO_BIG, "a body of %zu bytes cannot be stored", n);
	return out;
}

/* One large body must not keep its memory for ever. */
static void relax(struct db *d)
{
	if (db_scratch(d)->cap > SCRATCH_KEEP_BYTES)
		buf_release(db_scratch(d));
}

static enum counter counter_of(const char *state)
{
	switch (state[0]) {
	case 'a':
		return COUNT_DELIVERIES_ACCEPTED;
	case 'p':
		return COUNT_DELIVERIES_PLANNED;
	case 'i':
		return COUNT_DELIVERIES_IGNORED;
	default:
		return COUNT_DELIVERIES_FAILED;
	}
}

/* False when that GUID is there already. */
static bool insert(struct db *d, const struct put_delivery *p, const char *state, bool is_synthetic)
{
	struct guid_key guid = guid_key(p->guid);
	const struct buf *body = squeeze(d, p->body, p->body_bytes);
	int64_t n = db_exec(d,
	    "INSERT INTO delivery (guid, event, action, repository, received_ms, state, n_attempts,"
	    " is_synthetic, planned_ms, body_bytes, body)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?9, ?10) ON CONFLICT (guid) DO NOTHING",
	    guid_value(&guid), V_TEXT(p->event), V_TEXT(p->action), V_TEXT(p->repository),
	    V_INT(p->now_ms), V_TEXT(state), V_INT(is_synthetic),
	    V_INT_OR_NULL(is_synthetic ? p->now_ms : 0), V_INT((int64_t)p->body_bytes),
	    V_BLOB(body->data, body->len));

	relax(d);
	if (n == 0)
		return false;
	counter_add(d, counter_of(state), 1);
	return true;
}

static int put_run(struct store_op *op, struct db *d)
{
	struct put_delivery *p = CONTAINER_OF(op, struct put_delivery, op);

	p->is_duplicate = !insert(d, p, "accepted", false);
	if (!p->is_duplicate)
		db_tell(d, STORE_DELIVERIES);
	return 0;
}

/* What finishes work in hand must get through when intake floods the queue: the last
 * quarter is not for intake. */
static bool is_queue_for_intake_full(struct store *s)
{
	struct store_stats stats;
	struct store_limits limits;

	store_stats(s, &stats);
	store_limits(s, &limits);
	return (size_t)stats.n_queued_ops >= limits.max_queue_ops / 4 * 3 + 1;
}

int store_put_delivery(struct store *s, struct put_delivery *op)
{
	if (is_queue_for_intake_full(s))
		return ERR_BUSY;
	op->op.run = put_run;
	op->op.is_one_statement = true;
	op->op.bytes = op->body_bytes + sizeof(*op);
	return store_submit(s, &op->op);
}

void delivery_put_synthetic(struct db *d, const char *guid, const char *event, const char *action,
    const char *repository, const char *body, size_t body_bytes, int64_t now_ms)
{
	struct put_delivery p = {.guid = guid,
	    .event = event,
	    .action = action,
	    .repository = repository,
	    .body = body,
	    .body_bytes = body_bytes,
	    .now_ms = now_ms};

	insert(d, &p, "planned", true);
}

bool delivery_copy(struct db *d, const char *from_guid, const char *guid, int64_t now_ms)
{
	struct guid_key from = guid_key(from_guid), to = guid_key(guid);

	if (db_exec(d,
		"INSERT INTO delivery (guid, event, action, repository, received_ms, state,"
		" n_attempts, is_synthetic, planned_ms, body_bytes, body)"
		" SELECT ?2, event, action, repository, ?3, 'planned', 0, 1, ?3, body_bytes, body"
		" FROM delivery WHERE guid = ?1 AND body IS NOT NULL ON CONFLICT (guid) DO NOTHING",
		guid_value(&from), guid_value(&to), V_INT(now_ms)) == 0)
		return false;
	counter_add(d, COUNT_DELIVERIES_PLANNED, 1);
	return true;
}

struct delivery_place delivery_find(struct db *d, int64_t id)
{
	struct delivery_place at = {.state = ""};
	struct rows *r =
	    db_rows(d, "SELECT state, planned_ms FROM delivery WHERE id = ?1", V_INT(id));

	if (rows_next(r)) {
		snprintf(at.state, sizeof(at.state), "%s", rows_text(r, 0));
		at.was_planned = !rows_is_null(r, 1);
	}
	rows_end(r);
	return at;
}

void delivery_enter(struct db *d, int64_t id, const char *state, const char *error, int64_t now_ms)
{
	struct delivery_place at = delivery_find(d, id);

	counter_add(d, counter_of(at.state), -1);
	counter_add(d, counter_of(state), 1);
	db_exec(d,
	    "UPDATE delivery SET state = ?2, error = ?3, n_attempts = n_attempts + 1,"
	    " planned_ms = CASE ?2 WHEN 'planned' THEN COALESCE(planned_ms, ?4)"
	    " ELSE planned_ms END WHERE id = ?1",
	    V_INT(id), V_TEXT(state), V_TEXT(error), V_INT(now_ms));
}

static int mark_run(struct store_op *op, struct db *d)
{
	struct mark_delivery *m = CONTAINER_OF(op, struct mark_delivery, op);
	struct delivery_place at = delivery_find(d, m->delivery_id);

	if (!at.state[0])
		return ERR_NOT_FOUND;
	switch (m->mark) {
	case DELIVERY_MARK_IGNORED:
		delivery_enter(d, m->delivery_id, "ignored", m->error, 0);
		break;
	case DELIVERY_MARK_FAILED:
		delivery_enter(d, m->delivery_id, "failed", m->error, 0);
		break;
	case DELIVERY_MARK_RETRY: /* when, is the planner's affair: no topic */
		delivery_enter(d, m->delivery_id, at.state, m->error, 0);
		break;
	}
	return 0;
}

int store_mark_delivery(struct store *s, struct mark_delivery *op)
{
	op->op.run = mark_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

static int replay_run(struct store_op *op, struct db *d)
{
	struct replay_delivery *p = CONTAINER_OF(op, struct replay_delivery, op);
	struct guid_key guid = guid_key(p->guid);
	int64_t id = db_int(d, 0, "SELECT id FROM delivery WHERE guid = ?1", guid_value(&guid));

	if (!id)
		return ERR_NOT_FOUND;
	if (db_has(d, "SELECT 1 FROM delivery WHERE id = ?1 AND body IS NULL", V_INT(id)))
		return ERR_CONFLICT;
	delivery_enter(d, id, "accepted", NULL, 0);
	db_exec(d, "UPDATE delivery SET n_attempts = 0 WHERE id = ?1", V_INT(id));
	db_tell(d, STORE_DELIVERIES);
	return 0;
}

int store_replay_delivery(struct store *s, struct replay_delivery *op)
{
	op->op.run = replay_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
