#include "db/nodes.h"

#include "db/schema.h"
#include "loop/bell.h"

static const int64_t KEPT_MS = INT64_C(7) * 86400 * 1000;

struct node_horizon node_horizon(struct txn *d)
{
	bool is_shared = db_is_shared(d);

	return (struct node_horizon){
	    .first_epoch = is_shared ? 0 : db_epoch(d),
	    .seen_by_ms = is_shared ? db_now_ms(d) - NODE_DEAD_MS : INT64_MAX,
	};
}

/* ---- registration ---- */

/* Also above rows of a node that could not be written, because the disk was full. The time makes it differ from the epochs of nodes whose
 * rows an asynchronous standby did not have when it took over. */
static int64_t next_epoch(struct txn *d, int64_t now_ms)
{
	int64_t last = db_int(d, 0,
	    "SELECT MAX(epoch) FROM (SELECT MAX(epoch) AS epoch FROM node"
	    " UNION ALL SELECT MAX(epoch) FROM outbox WHERE state = 'sending' AND (state = 'due' OR"
	    " state = 'waiting' OR state = 'sending' OR state = 'dead')) known");

	return last < now_ms ? now_ms : last + 1;
}

static bool others_are_alive(struct node *n, struct txn *d, int64_t now_ms)
{
	return db_has(d, "SELECT 1 FROM node WHERE gone_ms IS NULL AND name <> ?1 AND seen_ms > ?2 LIMIT 1",
	    V_TEXT(n->name), V_INT(now_ms - NODE_DEAD_MS));
}

/* An earlier registration happened, and its answer was lost. 0: none did. */
static int64_t find_registration(struct node *n, struct txn *d, int64_t now_ms)
{
	const struct node_batch *b = &n->registration;

	return b->epoch && db_exec_count(d,
			       "UPDATE node SET seen_ms = ?3 WHERE epoch = ?1 AND batch = ?2 AND gone_ms IS NULL",
			       V_INT(b->epoch), V_INT(b->number), V_INT(now_ms))
		   ? b->epoch
		   : 0;
}

/* A node of the same name is this daemon before its restart. If it lives, it notices that a younger one has its name, and stops. */
static int64_t insert_node(struct node *n, struct txn *d, int64_t now_ms)
{
	int64_t old = atomic_load(&n->epoch), epoch = next_epoch(d, now_ms);
	uint32_t number;

	if (old &&
	    db_has(d, "SELECT 1 FROM node WHERE name = ?1 AND epoch > ?2 AND gone_ms IS NULL AND seen_ms > ?3 LIMIT 1",
		V_TEXT(n->name), V_INT(old), V_INT(now_ms - NODE_DEAD_MS))) {
		db_fail(d, ERR_EXISTS,
		    "another outpostd has `node: %s`, too, and started later: set another `node` in outpost.yml",
		    n->name);
		return 0;
	}
	if ((!n->is_shared || !others_are_alive(n, d, now_ms)) && n->after_silence)
		n->after_silence(d, now_ms);
	random_bytes(&number, sizeof(number));
	n->registration = (struct node_batch){.epoch = epoch, .number = number};
	db_exec(d,
	    "INSERT INTO node (epoch, name, version, schema_version, started_ms, seen_ms, batch)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)",
	    V_INT(epoch), V_TEXT(n->name), V_TEXT(OUTPOST_VERSION), V_INT(SCHEMA_VERSION), V_INT(now_ms),
	    V_INT(number));
	db_exec(d, "INSERT INTO node_independent (epoch) VALUES (?1)", V_INT(epoch));
	if (n->is_shared) {
		db_exec(d, "UPDATE node SET gone_ms = ?3 WHERE name = ?1 AND epoch < ?2 AND gone_ms IS NULL",
		    V_TEXT(n->name), V_INT(epoch), V_INT(now_ms));
		/* Its requests ended with its process, so the other nodes take its work and its seats over at once. */
		db_exec(d, "UPDATE node SET gone_ms = ?3, seen_ms = 0 WHERE name = ?1 AND epoch = ?2", V_TEXT(n->name),
		    V_INT(n->ended_epoch), V_INT(now_ms));
		db_exec(d, "UPDATE seat SET until_ms = 0 WHERE epoch = ?1 AND until_ms > 0", V_INT(n->ended_epoch));
	} else {
		db_exec(d, "DELETE FROM node WHERE epoch < ?1", V_INT(epoch));
		db_exec(d, "DELETE FROM node_independent WHERE epoch < ?1", V_INT(epoch));
	}
	return epoch;
}

int node_register(struct node *n, struct db *d, struct error *e)
{
	int64_t mono_ms = clock_mono_ms(), epoch = 0;
	int rc = db_begin(d, DB_WRITER);

	if (!rc) {
		int64_t now_ms = db_turn(d);

		rc = db_check_version(d, e);
		if (!rc)
			epoch = find_registration(n, db_txn(d), now_ms);
		if (!rc && !epoch)
			epoch = insert_node(n, db_txn(d), now_ms);
	}
	if (!rc)
		rc = db_status(d) ? db_status(d) : db_commit(d);
	if (rc) {
		if (!e->code)
			error_set(e, rc, "%s", db_why(d)->text);
		db_rollback(d);
	}
	db_forget_failure(d);
	/* A daemon on a file starts without its row when the disk is full, and refuses work until there is room. */
	if (rc == ERR_FULL && !n->is_shared) {
		epoch = next_epoch(db_txn(d), clock_wall_ms());
		rc = db_status(d);
	}
	if (rc)
		return rc;
	db_set_epoch(d, epoch);
	atomic_store(&n->seen_mono_ms, mono_ms);
	atomic_store(&n->epoch, epoch);
	return 0;
}

static void leave(struct txn *d)
{
	db_exec(
	    d, "UPDATE node SET gone_ms = ?2, seen_ms = 0 WHERE epoch = ?1", V_INT(db_epoch(d)), V_INT(db_now_ms(d)));
}

void node_leave(struct node *n, struct db *d)
{
	struct error ignored = {0};

	/* Without it, the others wait until they miss it. */
	if (n->is_shared && db_transaction(d, leave, &ignored))
		log_event(LOG_WARN, "node_not_left", LOG_S("error", ignored.text));
}

/* ---- transactions ---- */

/* After such a silence of all nodes, the machines' heartbeats may have had no answer. */
static void note_silence(struct node *n, struct txn *d, int64_t now_ms, int64_t mono_ms)
{
	if (mono_ms - atomic_load(&n->seen_mono_ms) < NODE_DEAD_MS || !n->after_silence ||
	    db_has(
		d, "SELECT 1 FROM node WHERE gone_ms IS NULL AND seen_ms > ?1 LIMIT 1", V_INT(now_ms - NODE_DEAD_MS)))
		return;
	n->after_silence(d, now_ms);
}

bool node_begin(struct node *n, struct db *d, struct node_batch *b)
{
	struct txn *t = db_txn(d);
	int64_t now_ms;

	b->epoch = atomic_load(&n->epoch);
	b->mono_ms = clock_mono_ms();
	db_set_epoch(d, b->epoch);
	if (!n->is_shared)
		return false;
	if (b->is_independent) {
		b->number = db_exec_int(t, 0,
		    "UPDATE node_independent SET batch = batch + 1 WHERE epoch = ?1 RETURNING batch", V_INT(b->epoch));
		return !b->number && !db_status(d);
	}
	now_ms = db_turn(d);
	note_silence(n, t, now_ms, b->mono_ms);
	b->number = db_exec_int(t, 0,
	    "UPDATE node SET batch = batch + 1, seen_ms = ?2 WHERE epoch = ?1 AND gone_ms IS NULL RETURNING batch",
	    V_INT(b->epoch), V_INT(now_ms));
	return !b->number && !db_status(d);
}

void node_seen(struct node *n, int64_t mono_ms)
{
	int64_t before = atomic_load(&n->seen_mono_ms);

	while (before < mono_ms && !atomic_compare_exchange_weak(&n->seen_mono_ms, &before, mono_ms))
		continue;
}

void node_committed(struct node *n, const struct node_batch *b)
{
	if (n->is_shared && !b->is_independent)
		node_seen(n, b->mono_ms);
}

bool node_has_committed(struct db *d, const struct node_batch *b)
{
	struct txn *t = db_txn(d);

	/* A change of nothing, which waits for the old transaction's lock on the row. */
	if (b->is_independent)
		return db_exec_int(t, 0, "UPDATE node_independent SET batch = batch WHERE epoch = ?1 RETURNING batch",
			   V_INT(b->epoch)) == b->number;
	return db_exec_int(t, 0, "UPDATE node SET batch = batch WHERE epoch = ?1 RETURNING batch", V_INT(b->epoch)) ==
	       b->number;
}

/* ---- beats ---- */

bool node_beat(struct node *n, struct txn *d)
{
	int64_t now_ms = db_now_ms(d);

	note_silence(n, d, now_ms, clock_mono_ms());
	return db_exec_count(d, "UPDATE node SET seen_ms = ?2 WHERE epoch = ?1 AND gone_ms IS NULL", V_INT(db_epoch(d)),
		   V_INT(now_ms)) > 0 ||
	       db_status(d);
}

/* A transaction of a node locks its two rows in this order, too, so there is no deadlock. */
void nodes_give_up_older(struct txn *d, int64_t schema_version)
{
	db_exec(d, "DELETE FROM node_independent WHERE epoch IN (SELECT epoch FROM node WHERE schema_version < ?1)",
	    V_INT(schema_version));
	db_exec(d, "UPDATE node SET gone_ms = ?2 WHERE gone_ms IS NULL AND schema_version < ?1", V_INT(schema_version),
	    V_INT(db_now_ms(d)));
}

int64_t nodes_give_up(struct txn *d, int64_t asked_ms, struct buf *names)
{
	int64_t now_ms = db_now_ms(d), n = 0;
	struct rows *r;

	if (now_ms - asked_ms > CLOCK_JUMP_MS || asked_ms - now_ms > CLOCK_JUMP_MS)
		return -1;
	db_exec(d, "DELETE FROM node_independent WHERE epoch IN (SELECT epoch FROM node WHERE gone_ms < ?1)",
	    V_INT(now_ms - KEPT_MS));
	db_exec(d, "DELETE FROM node WHERE gone_ms < ?1", V_INT(now_ms - KEPT_MS));
	r = db_exec_rows(d,
	    "UPDATE node SET gone_ms = ?2 WHERE gone_ms IS NULL AND epoch <> ?1 AND seen_ms <= ?3 RETURNING name",
	    V_INT(db_epoch(d)), V_INT(now_ms), V_INT(now_ms - NODE_DEAD_MS));
	for (; rows_next(r); n++)
		buf_appendf(names, "%s%s", n ? ", " : "", rows_text(r, 0));
	return n;
}

void nodes_follow_clock(struct txn *d, int64_t by_ms)
{
	int64_t now_ms = db_now_ms(d);

	if (!db_is_shared(d))
		return;
	/* Those that live, and those that are gone but may still work, by either clock. */
	db_exec(d, "UPDATE node SET seen_ms = ?1 WHERE gone_ms IS NULL OR seen_ms > ?2", V_INT(now_ms),
	    V_INT(now_ms - NODE_DEAD_MS - (by_ms > 0 ? by_ms : 0)));
}
