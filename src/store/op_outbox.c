/* The sender's side of the outbox: rows are claimed, and how each ended is recorded with
 * what it means for its dispatches. */
#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include "base/strv.h"
#include "store/cells_moved.h"
#include "store/db.h"
#include "store/experiments.h"
#include "store/outbox.h"
#include "store/requests.h"
#include "store/schedule_runs.h"
#include "store/stored_dispatch.h"

enum { CLAIM_MAX = 1000, LEASE_MS = 10 * 60 * 1000 };

/* Whose leases the rows bear: of this process, as long as it lives. */
static const char *owner_name(void)
{
	static char name[ID_BYTES]; /* writer thread */

	if (!name[0])
		id_new(name);
	return name;
}

/* ---- claim ---- */

/* The first of its lane: nothing before it is still to be sent. */
#define IS_HEAD_OF_LANE                                                                            \
	" NOT EXISTS (SELECT 1 FROM outbox b WHERE b.lane = o.lane AND b.id < o.id"                \
	" AND b.state IN ('due', 'waiting', 'sending'))"

static struct outbox_row read_row(struct rows *r, enum outbox_kind kind)
{
	const char *accelerator[] = {rows_is_null(r, 14) ? NULL : rows_text(r, 14), NULL};

	return (struct outbox_row){
	    .id = rows_int(r, 0),
	    .kind = kind,
	    .target = rows_dup(r, 1),
	    .number = rows_int(r, 2),
	    .dispatch_id = rows_dup(r, 3),
	    .runner = rows_dup(r, 4),
	    .delivery_guid = rows_dup(r, 5),
	    .event_type = rows_dup(r, 6),
	    .sent_action = rows_dup(r, 7),
	    .original_action = rows_dup(r, 8),
	    .n_attempts = (int)rows_int(r, 9) - 1,
	    .first_ms = rows_int(r, 10),
	    .generation = rows_int(r, 11),
	    .is_uncertain = rows_int(r, 12),
	    .text = rows_dup(r, 13),
	    .accelerators = strv_copy(accelerator),
	};
}

static void claim_kind(struct db *d, struct claim_outbox *c, enum outbox_kind kind, int limit)
{
	struct rows *r = db_rows(d,
	    "UPDATE outbox SET state = 'sending', owner = ?1, lease_until_ms = ?2,"
	    " n_attempts = n_attempts + 1 WHERE id IN"
	    " (SELECT o.id FROM outbox o WHERE o.kind = ?3 AND o.state IN ('due', 'waiting')"
	    "  AND o.next_ms <= ?4 AND" IS_HEAD_OF_LANE " ORDER BY o.next_ms, o.id LIMIT ?5)"
	    " RETURNING id, target, number, dispatch_id, runner, delivery_guid, event_type,"
	    " sent_action, original_action, n_attempts, first_ms, generation, is_uncertain, text,"
	    " accelerator",
	    V_TEXT(owner_name()), V_INT(c->now_ms + LEASE_MS), V_TEXT(outbox_kind_name(kind)),
	    V_INT(c->now_ms), V_INT(limit));

	while (rows_next(r)) {
		c->rows = xrealloc(c->rows, (c->n + 1) * sizeof(*c->rows));
		c->rows[c->n++] = read_row(r, kind);
	}
}

/* Which accelerators the request names: as things are now, so that what was released,
 * dropped or moved since it was written is told rightly. */
static void add_accelerators(struct db *d, struct outbox_row *o)
{
	int64_t change_id = 0;
	struct rows *r = db_rows(d,
	    "SELECT accelerator, finish_by_ms, head_sha, change.id FROM dispatch JOIN change"
	    " ON change.id = dispatch.change_id WHERE dispatch.id = ?1 AND dispatch.state <> 'held'"
	    " AND (?2 = 0 OR dispatch.state NOT IN ('superseded', 'cancelled'))"
	    " ORDER BY accelerator, runner",
	    V_TEXT(o->dispatch_id), V_INT(o->kind == OUTBOX_GITHUB_DISPATCH));

	while (rows_next(r)) {
		const char *name = rows_text(r, 0);

		if (name[0] && !strv_contains((const char *const *)o->accelerators, name))
			strv_add(&o->accelerators, name);
		o->finish_by_ms =
		    rows_int(r, 1) > o->finish_by_ms ? rows_int(r, 1) : o->finish_by_ms;
		if (!o->head_sha)
			o->head_sha = rows_dup(r, 2);
		change_id = rows_int(r, 3);
	}
	if (!o->head_sha)
		o->head_sha = xstrdup("");
	if (str_eq(o->event_type, EXPERIMENT_EVENT)) {
		o->experiment = xcalloc(1, sizeof(*o->experiment));
		if (!experiment_request_read(d, o->dispatch_id, o->experiment))
			FREE_AND_NULL(o->experiment);
		o->number = experiment_pull(d, change_id);
	}
	if (str_eq(o->event_type, change_kind_name(CHANGE_NIGHTLY)))
		for (char **name = o->accelerators; *name; name++)
			schedule_run_source(d, change_id, *name, &o->sources, &o->n_sources);
}

static int64_t next_due(struct db *d, enum outbox_kind kind)
{
	return db_int(d, 0,
	    "SELECT o.next_ms FROM outbox o WHERE o.kind = ?1 AND o.state IN ('due', 'waiting')"
	    " AND" IS_HEAD_OF_LANE " ORDER BY o.next_ms, o.id LIMIT 1",
	    V_TEXT(outbox_kind_name(kind)));
}

static int by_id(const void *a, const void *b)
{
	const struct outbox_row *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int claim_run(struct store_op *op, struct db *d)
{
	struct claim_outbox *c = CONTAINER_OF(op, struct claim_outbox, op);
	int limit = c->limit > 0 && c->limit < CLAIM_MAX ? c->limit : CLAIM_MAX;

	for (int k = 0; k < N_OUTBOX_KINDS; k++)
		if (c->kinds & 1u << k && (int)c->n < limit)
			claim_kind(d, c, (enum outbox_kind)k, limit - (int)c->n);
	for (int k = 0; k < N_OUTBOX_KINDS; k++) {
		int64_t due = c->kinds & 1u << k ? next_due(d, (enum outbox_kind)k) : 0;

		if (due && (!c->next_due_ms || due < c->next_due_ms))
			c->next_due_ms = due;
	}
	for (size_t i = 0; i < c->n; i++)
		add_accelerators(d, &c->rows[i]);
	if (c->n)
		qsort(c->rows, c->n, sizeof(*c->rows), by_id);
	return 0;
}

int store_claim_outbox(struct store *s, struct claim_outbox *op)
{
	op->rows = NULL;
	op->n = 0;
	op->next_due_ms = 0;
	op->op.run = claim_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- done ---- */

struct claimed {
	char *kind, *dispatch_id;
	int64_t generation;
	bool is_dropped;
};

static bool find_claimed(struct db *d, int64_t id, struct claimed *ret)
{
	struct rows *r = db_rows(d,
	    "SELECT kind, dispatch_id, generation, is_dropped FROM outbox"
	    " WHERE id = ?1 AND state = 'sending'",
	    V_INT(id));
	bool is_found = rows_next(r);

	if (is_found)
		*ret = (struct claimed){
		    rows_dup(r, 0), rows_dup(r, 1), rows_int(r, 2), rows_int(r, 3)};
	rows_end(r);
	return is_found;
}

static void enter(struct db *d, const struct outbox_done *o, const char *state, int64_t next_ms,
    int attempts_back)
{
	bool is_final = strcmp(state, "sent") == 0 || strcmp(state, "dead") == 0;

	db_exec(d,
	    "UPDATE outbox SET state = ?2, next_ms = ?3, n_attempts = n_attempts - ?4,"
	    " last_error = ?5, owner = NULL, lease_until_ms = NULL,"
	    " is_uncertain = CASE WHEN ?6 THEN 0 ELSE is_uncertain END WHERE id = ?1",
	    V_INT(o->id), V_TEXT(state), V_INT(next_ms), V_INT(attempts_back), V_TEXT(o->error),
	    V_INT(is_final));
	db_tell(d, STORE_OUTBOX); /* the next of its lane may go */
}

static void request_arrived(struct db *d, const struct claimed *c, int64_t now_ms)
{
	struct dispatch_list l = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE id = ?1 AND state <> 'held'",
	    V_TEXT(c->dispatch_id)));

	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];

		dispatch_note_sent(d, s, now_ms);
		if (!s->accelerator[0]) { /* nobody reports for the infra repository itself */
			dispatch_enter(d, s, DISPATCH_DONE, NULL, now_ms);
			continue;
		}
		if (s->state != DISPATCH_QUEUED)
			continue;
		dispatch_enter(d, s,
		    s->kind == RUNNER_WEBHOOK ? DISPATCH_ACKNOWLEDGED : DISPATCH_SENT, NULL,
		    now_ms);
		cells_moved(d, s->change_id, s->accelerator, CELLS_SENT, now_ms);
	}
	dispatch_list_release(&l);
}

static void request_failed(struct db *d, const struct claimed *c, const struct outbox_done *o)
{
	struct dispatch_list l = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE id = ?1 AND " DISPATCH_IS_AT_WORK,
	    V_TEXT(c->dispatch_id)));

	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];

		dispatch_enter(
		    d, s, DISPATCH_FAILED, o->error ? o->error : "it could not be sent", o->now_ms);
		cells_moved(d, s->change_id, s->accelerator, CELLS_NOT_SENT, o->now_ms);
	}
	dispatch_list_release(&l);
}

static void request_done(struct db *d, const struct claimed *c, const struct outbox_done *o)
{
	bool is_dispatch = strcmp(c->kind, outbox_kind_name(OUTBOX_GITHUB_DISPATCH)) == 0 ||
			   strcmp(c->kind, outbox_kind_name(OUTBOX_WEBHOOK_DISPATCH)) == 0;

	/* One that was cut off on its way leaves no attempt behind to tell of it. */
	if (o->is_uncertain)
		db_exec(d, "UPDATE outbox SET is_uncertain = 1 WHERE id = ?1", V_INT(o->id));
	switch (o->result) {
	case OUTBOX_OK:
		enter(d, o, "sent", o->now_ms, 0);
		if (is_dispatch)
			request_arrived(d, c, o->now_ms);
		break;
	case OUTBOX_RETRY:
		enter(d, o, c->is_dropped ? "cancelled" : "waiting", o->next_ms, 0);
		break;
	case OUTBOX_NOT_YET:
	case OUTBOX_AGAIN:
		enter(d, o, c->is_dropped ? "cancelled" : "waiting", o->next_ms, 1);
		break;
	case OUTBOX_DEAD:
		enter(d, o, "dead", o->now_ms, 0);
		if (is_dispatch)
			request_failed(d, c, o);
		break;
	}
}

/* A wish that came while the comment or the check runs were being written is not lost. */
static void wished_done(struct db *d, const struct claimed *c, const struct outbox_done *o)
{
	bool is_outdated = c->generation != o->generation;
	const char *state = "waiting";
	int64_t next_ms = o->next_ms;

	if (o->result == OUTBOX_OK || o->result == OUTBOX_DEAD) {
		state = o->result == OUTBOX_OK ? "sent" : "dead";
		next_ms = o->now_ms;
	}
	if (is_outdated && o->result != OUTBOX_RETRY) {
		state = "due";
		next_ms = o->now_ms;
	}
	enter(d, o, state, next_ms, o->result == OUTBOX_NOT_YET);
	db_exec(d, "UPDATE outbox SET is_uncertain = ?2 WHERE id = ?1", V_INT(o->id),
	    V_INT(o->is_uncertain));
	if (o->result != OUTBOX_RETRY && o->result != OUTBOX_NOT_YET)
		db_exec(d, "UPDATE outbox SET n_attempts = 0, first_ms = ?2 WHERE id = ?1",
		    V_INT(o->id), V_INT(next_ms));
}

static int done_run(struct store_op *op, struct db *d)
{
	struct outbox_done *o = CONTAINER_OF(op, struct outbox_done, op);
	struct claimed c;

	if (!find_claimed(d, o->id, &c)) {
		if (db_has(d, "SELECT 1 FROM outbox WHERE id = ?1", V_INT(o->id)))
			return 0; /* it was ended otherwise */
		return ERR_NOT_FOUND;
	}
	if (strcmp(c.kind, outbox_kind_name(OUTBOX_COMMENT)) == 0 ||
	    strcmp(c.kind, outbox_kind_name(OUTBOX_CHECKS)) == 0 ||
	    strcmp(c.kind, outbox_kind_name(OUTBOX_RED_ISSUE)) == 0)
		wished_done(d, &c, o);
	else
		request_done(d, &c, o);
	free(c.kind);
	free(c.dispatch_id);
	return 0;
}

int store_outbox_done(struct store *s, struct outbox_done *op)
{
	op->op.run = done_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
