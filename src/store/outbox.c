#include "store/outbox.h"

#include "experiments/experiments.h"
#include "store/dispatches.h"
#include "store/schedules.h"
#include "verdict/cells_moved.h"

RECORD_DEFINE(outbox_row, OUTBOX_ROW_RECORD);
RECORD_DEFINE(outbox_place, OUTBOX_PLACE_RECORD);

static const char *const outbox_kind_names[] = {
#define X(e, name) name,
    OUTBOX_KINDS(X)
#undef X
};
const struct words outbox_kind_words = {outbox_kind_names, N_OUTBOX_KINDS};

const char *outbox_kind_name(enum outbox_kind k) { return outbox_kind_names[k]; }

void outbox_row_release(struct outbox_row *r)
{
	record_release(&outbox_row_record, r);
	strv_free(r->accelerators);
	for (size_t i = 0; i < r->n_sources; i++)
		source_head_release(&r->sources[i]);
	free(r->sources);
	free(r->head_sha);
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
	FREE_AND_NULL(op->past);
	op->n = 0;
}

/* Each number is the length of a part of one index. */
struct outbox_stats outbox_stats_read(const struct view *d, int64_t now_ms)
{
	return (struct outbox_stats){
	    .n_due = db_int(
		d, 0, "SELECT COUNT(*) FROM outbox WHERE state IN ('due', 'waiting') AND next_ms <= ?1", V_INT(now_ms)),
	    .n_waiting = db_int(
		d, 0, "SELECT COUNT(*) FROM outbox WHERE state IN ('due', 'waiting') AND next_ms > ?1", V_INT(now_ms)),
	    .n_sending = db_int(d, 0, "SELECT COUNT(*) FROM outbox WHERE state = 'sending' AND " OUTBOX_IS_COUNTED),
	    .n_dead = db_int(d, 0, "SELECT COUNT(*) FROM outbox WHERE state = 'dead' AND " OUTBOX_IS_COUNTED),
	    .oldest_unsent_ms = db_int(d, 0,
		"SELECT MIN(first_ms) FROM outbox WHERE " OUTBOX_IS_UNSENT("") " AND first_ms <= ?1", V_INT(now_ms)),
	};
}

/* ---- rows ---- */

unsigned outbox_topic(enum outbox_kind kind)
{
	bool is_comment = kind == OUTBOX_COMMENT || kind == OUTBOX_CHECKS || kind == OUTBOX_REACTION ||
			  kind == OUTBOX_REPLY || kind == OUTBOX_RED_ISSUE;

	return is_comment ? STORE_COMMENTS : STORE_OUTBOX;
}

static const char *text_or_empty(const char *text) { return text ? text : ""; }

void outbox_insert(struct txn *d, const struct outbox_request *q, int64_t due_ms)
{
	db_exec(d,
	    "INSERT INTO outbox (kind, key, lane, target, target_key, number, change_id,"
	    " dispatch_id, runner, delivery_guid, event_type, sent_action, original_action, state,"
	    " n_attempts, first_ms, next_ms, generation, is_uncertain, is_dropped, accelerator, text)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?17, 0, ?14, ?14,"
	    " 1, 0, 0, ?15, ?16) ON CONFLICT (key) DO NOTHING",
	    V_TEXT(outbox_kind_name(q->kind)), V_TEXT(q->key), V_TEXT(q->lane), V_TEXT(q->target),
	    V_TEXT(q->target_key), V_INT(q->number), V_INT_OR_NULL(q->change_id), V_TEXT(text_or_empty(q->dispatch_id)),
	    V_TEXT(text_or_empty(q->runner)), V_TEXT(text_or_empty(q->delivery_guid)),
	    V_TEXT(text_or_empty(q->event_type)), V_TEXT(text_or_empty(q->sent_action)),
	    V_TEXT(text_or_empty(q->original_action)), V_INT(due_ms), V_TEXT(q->accelerator), V_TEXT(q->text),
	    V_TEXT(outbox_state_name(OUTBOX_IS_DUE)));
	db_notify(d, outbox_topic(q->kind));
}

struct outbox_place outbox_find(const struct view *d, const char *key)
{
	struct outbox_place at = {0};

	RECORD_READ_FIRST(d, outbox_place, OUTBOX_PLACE_RECORD, &at, "FROM outbox WHERE key = ?1", V_TEXT(key));
	return at;
}

bool outbox_is_unsent(const struct outbox_place *at)
{
	return at->id &&
	       (at->state == OUTBOX_IS_DUE || at->state == OUTBOX_IS_WAITING || at->state == OUTBOX_IS_SENDING);
}

bool outbox_enter(struct txn *d, int64_t id, enum outbox_state to)
{
	enum outbox_state from = (enum outbox_state)rows_first_word(
	    db_rows(d, "SELECT state FROM outbox WHERE id = ?1", V_INT(id)), &outbox_state_words);

	if (from == N_OUTBOX_STATES || !outbox_may_enter(from, to))
		return false;
	if (from != to)
		db_exec(d, "UPDATE outbox SET state = ?2, owner = NULL, lease_until_ms = NULL WHERE id = ?1", V_INT(id),
		    V_TEXT(outbox_state_name(to)));
	return true;
}

#define SENT_ROW_RECORD(F, S)                                                                                          \
	F(S, INT, id, NULL, "id", "")                                                                                  \
	F(S, BOOL, is_dropped, NULL, "is_dropped", "")
RECORD_LOCAL(sent_row, SENT_ROW_RECORD)

void outbox_recover(struct txn *d)
{
	struct sent_row *list = NULL;
	size_t n = 0;
	struct rows *r =
	    db_rows(d, RECORD_QUERY(SENT_ROW_RECORD, "FROM outbox WHERE state = 'sending' AND " OUTBOX_IS_COUNTED));

	RECORDS_READ(r, sent_row, list, n);
	for (size_t i = 0; i < n; i++) {
		/* A request that was dropped while it was being sent is not sent again. */
		outbox_enter(d, list[i].id, list[i].is_dropped ? OUTBOX_IS_CANCELLED : OUTBOX_IS_DUE);
		/* It keeps one attempt, whatever their number was: the end of this process was not a failure of
		 * GitHub's, and must not make the pause after the next real failure longer. */
		if (!list[i].is_dropped)
			db_exec(
			    d, "UPDATE outbox SET is_uncertain = 1, n_attempts = 1 WHERE id = ?1", V_INT(list[i].id));
	}
	free(list);
}

enum { CLAIM_MAX = 1000, LOOK_PAST_MAX = 4000, LEASE_MS = 10 * 60 * 1000 };

/* ---- claim ---- */

/* It is the first of its lane: no row before it is still unsent. */
#define IS_HEAD_OF_LANE                                                                                                \
	" NOT EXISTS (SELECT 1 FROM outbox b WHERE b.lane = o.lane AND b.id < o.id AND " OUTBOX_IS_UNSENT("b.") ")"

#define DUE_ROW_RECORD(F, S)                                                                                           \
	F(S, TIME, next_ms, NULL, "o.next_ms", "")                                                                     \
	F(S, BORROWED, accelerator, NULL, "o.accelerator", "Of a webhook; empty: none.")
RECORD_LOCAL(due_row, DUE_ROW_RECORD)
#define SELECT_CLAIMED RECORD_SELECT(DUE_ROW_RECORD) RECORD_COLUMNS(OUTBOX_ROW_RECORD)

/* Reads one row more than it may claim, so that the same statement shows when the next one is due. limit 0: only that. */
static void claim_rows_of_kind(struct txn *d, struct claim_outbox *c, enum outbox_kind kind, int limit)
{
	static char owner[ID_BYTES]; /* of the leases on rows: this process; writer thread */
	size_t first = c->n;
	struct rows *r;

	if (c->past)
		r = db_rows(d,
		    SELECT_CLAIMED
		    " FROM (SELECT id FROM outbox WHERE kind = ?1 AND state IN ('due', 'waiting')"
		    " ORDER BY next_ms, id LIMIT ?4) AS first_due CROSS JOIN outbox o ON o.id = first_due.id"
		    " WHERE o.target <> ?3 AND" IS_HEAD_OF_LANE " ORDER BY o.next_ms, o.id LIMIT ?2",
		    V_TEXT(outbox_kind_name(kind)), V_INT(limit + 1), V_TEXT(c->past), V_INT(LOOK_PAST_MAX));
	else
		r = db_rows(d,
		    SELECT_CLAIMED
		    " FROM outbox o WHERE o.kind = ?1 AND o.state IN ('due', 'waiting') AND" IS_HEAD_OF_LANE
		    " ORDER BY o.next_ms, o.id LIMIT ?2",
		    V_TEXT(outbox_kind_name(kind)), V_INT(limit + 1));
	if (!owner[0])
		id_new(owner);
	while (rows_next(r)) {
		struct due_row due;
		struct outbox_row *row;

		record_read(r, &due_row_record, &due);
		if (due.next_ms > c->now_ms || (int)(c->n - first) == limit) {
			if (!c->next_due_ms || due.next_ms < c->next_due_ms)
				c->next_due_ms = due.next_ms;
			rows_end(r);
			break;
		}
		row = ARRAY_PUSH(c->rows, c->n);
		*row = (struct outbox_row){.kind = kind};
		row->accelerators = strv_copy((const char *const[]){due.accelerator[0] ? due.accelerator : NULL, NULL});
		record_read(r, &outbox_row_record, row);
	}
	/* Both states that the rows may have may become `sending`. */
	for (size_t i = first; i < c->n; i++)
		db_exec(d,
		    "UPDATE outbox SET state = ?2, owner = ?3, lease_until_ms = ?4, n_attempts = n_attempts + 1"
		    " WHERE id = ?1",
		    V_INT(c->rows[i].id), V_TEXT(outbox_state_name(OUTBOX_IS_SENDING)), V_TEXT(owner),
		    V_INT(c->now_ms + LEASE_MS));
}

#define REQUEST_DISPATCH_RECORD(F, S)                                                                                  \
	F(S, BORROWED, accelerator, NULL, "accelerator", "")                                                           \
	F(S, TIME, finish_by_ms, NULL, "finish_by_ms", "")                                                             \
	F(S, BORROWED, head_sha, NULL, "head_sha", "")                                                                 \
	F(S, INT, change_id, NULL, "change.id", "")
RECORD_LOCAL(request_dispatch, REQUEST_DISPATCH_RECORD)

/* Lists the accelerators as they are now: a dispatch may have been released, dropped or moved since the request was
 * written. */
static void add_request_facts(const struct view *d, struct outbox_row *o)
{
	struct request_dispatch x = {0};
	struct rows *r = db_rows(d,
	    RECORD_QUERY(REQUEST_DISPATCH_RECORD, "FROM dispatch JOIN change ON change.id = dispatch.change_id"
						  " WHERE dispatch.id = ?1 AND dispatch.state <> 'held'"
						  " AND (?2 = 0 OR dispatch.state NOT IN ('superseded', 'cancelled'))"
						  " ORDER BY accelerator, runner"),
	    V_TEXT(o->dispatch_id), V_INT(o->kind == OUTBOX_GITHUB_DISPATCH));

	while (rows_next(r)) {
		record_read(r, &request_dispatch_record, &x);
		if (x.accelerator[0] && !strv_contains((const char *const *)o->accelerators, x.accelerator))
			strv_add(&o->accelerators, x.accelerator);
		o->finish_by_ms = x.finish_by_ms > o->finish_by_ms ? x.finish_by_ms : o->finish_by_ms;
		if (!o->head_sha)
			o->head_sha = xstrdup(x.head_sha);
	}
	if (!o->head_sha)
		o->head_sha = xstrdup("");
	if (str_eq(o->event_type, EXPERIMENT_EVENT)) {
		o->experiment = xcalloc(1, sizeof(*o->experiment));
		if (!experiment_request_read(d, o->dispatch_id, o->experiment))
			FREE_AND_NULL(o->experiment);
		o->number = experiment_pull(d, x.change_id);
	}
	if (str_eq(o->event_type, change_kind_name(CHANGE_NIGHTLY)))
		for (char **name = o->accelerators; *name; name++)
			schedule_run_source(d, x.change_id, *name, &o->sources, &o->n_sources);
}

static int compare_row_ids(const void *a, const void *b)
{
	const struct outbox_row *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int claim_outbox_run(struct store_op *op, struct txn *d)
{
	struct claim_outbox *c = CONTAINER_OF(op, struct claim_outbox, op);
	int limit = c->limit > 0 && c->limit < CLAIM_MAX ? c->limit : CLAIM_MAX;

	for (int k = 0; k < N_OUTBOX_KINDS; k++)
		if (c->kinds & 1u << k)
			claim_rows_of_kind(d, c, (enum outbox_kind)k, limit - (int)c->n);
	for (size_t i = 0; i < c->n; i++)
		add_request_facts(d->view, &c->rows[i]);
	if (c->n)
		qsort(c->rows, c->n, sizeof(*c->rows), compare_row_ids);
	return 0;
}

int store_claim_outbox(struct store *s, struct claim_outbox *op)
{
	CLEAR_FROM(op, rows);
	op->op.run = claim_outbox_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- done ---- */

#define CLAIMED_RECORD(F, S)                                                                                           \
	F(S, OUTBOX_KIND, kind, NULL, "kind", "")                                                                      \
	F(S, TEXT, dispatch_id, NULL, "dispatch_id", "")                                                               \
	F(S, TEXT, lane, NULL, "lane", "")                                                                             \
	F(S, INT, generation, NULL, "generation", "")                                                                  \
	F(S, INT, n_attempts, NULL, "n_attempts", "")                                                                  \
	F(S, TIME, first_ms, NULL, "first_ms", "")                                                                     \
	F(S, BOOL, is_uncertain, NULL, "is_uncertain", "")                                                             \
	F(S, BOOL, is_dropped, NULL, "is_dropped", "")
RECORD_LOCAL(claimed, CLAIMED_RECORD)

/* Writes the row as it is after the attempt: `c` has the columns that change. */
static void end_attempt(
    struct txn *d, const struct outbox_done *o, const struct claimed *c, enum outbox_state to, int64_t next_ms)
{
	assert(outbox_may_enter(OUTBOX_IS_SENDING, to));
	db_exec(d,
	    "UPDATE outbox SET state = ?2, owner = NULL, lease_until_ms = NULL, next_ms = ?3, n_attempts = ?4,"
	    " first_ms = ?5, is_uncertain = ?6, last_error = ?7 WHERE id = ?1",
	    V_INT(o->id), V_TEXT(outbox_state_name(to)), V_INT(next_ms), V_INT(c->n_attempts), V_INT(c->first_ms),
	    V_INT(c->is_uncertain), V_TEXT(o->error));
	/* This row, or the next of its lane, may be due. The rows of a lane have one topic. */
	if (db_has(d, "SELECT 1 FROM outbox WHERE lane = ?1 AND " OUTBOX_IS_UNSENT("") " LIMIT 1", V_TEXT(c->lane)))
		db_notify(d, outbox_topic(c->kind));
}

static void request_arrived(struct txn *d, const struct claimed *c, int64_t now_ms)
{
	struct dispatch_list l = DISPATCHES_WHERE(d, "id = ?1 AND state <> 'held'", V_TEXT(c->dispatch_id));

	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];

		/* the infra repository itself does not report */
		enum dispatch_state to = !s->accelerator[0]          ? DISPATCH_DONE
					 : s->kind == RUNNER_WEBHOOK ? DISPATCH_ACKNOWLEDGED
								     : DISPATCH_SENT;

		if (s->state != DISPATCH_QUEUED) {
			dispatch_note_sent(d, s, now_ms);
			if (!s->accelerator[0])
				dispatch_enter(d, s, to, NULL, now_ms);
			continue;
		}
		dispatch_enter_sent(d, s, to, now_ms);
		if (s->accelerator[0])
			cells_moved(d, s->change_id, s->accelerator, CELLS_SENT, now_ms);
	}
	dispatch_list_release(&l);
}

static void request_failed(struct txn *d, const struct claimed *c, const struct outbox_done *o)
{
	struct dispatch_list l = DISPATCHES_WHERE(d, "id = ?1 AND " DISPATCH_IS_AT_WORK(""), V_TEXT(c->dispatch_id));

	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];

		dispatch_enter(d, s, DISPATCH_FAILED, o->error ? o->error : "it could not be sent", o->now_ms);
		cells_moved(d, s->change_id, s->accelerator, CELLS_NOT_SENT, o->now_ms);
	}
	dispatch_list_release(&l);
}

static void request_done(struct txn *d, struct claimed *c, const struct outbox_done *o)
{
	bool is_dispatch = c->kind == OUTBOX_GITHUB_DISPATCH || c->kind == OUTBOX_WEBHOOK_DISPATCH;
	enum outbox_state again = c->is_dropped ? OUTBOX_IS_CANCELLED : OUTBOX_IS_WAITING;

	/* An attempt that was cut off may have arrived. */
	c->is_uncertain = (c->is_uncertain || o->is_uncertain) && o->result != OUTBOX_OK && o->result != OUTBOX_DEAD;
	c->n_attempts -= o->result == OUTBOX_NOT_YET || o->result == OUTBOX_AGAIN;
	switch (o->result) {
	case OUTBOX_OK:
		end_attempt(d, o, c, OUTBOX_IS_SENT, o->now_ms);
		if (is_dispatch)
			request_arrived(d, c, o->now_ms);
		break;
	case OUTBOX_RETRY:
	case OUTBOX_NOT_YET:
	case OUTBOX_AGAIN:
		end_attempt(d, o, c, again, o->next_ms);
		break;
	case OUTBOX_DEAD:
		end_attempt(d, o, c, OUTBOX_IS_DEAD, o->now_ms);
		if (is_dispatch)
			request_failed(d, c, o);
		break;
	}
}

/* A row that is written again on each request: it is due again if a request came while its text was being written. */
static void update_done(struct txn *d, struct claimed *c, const struct outbox_done *o)
{
	bool is_outdated = c->generation != o->generation;
	enum outbox_state state = OUTBOX_IS_WAITING;
	int64_t next_ms = o->next_ms;

	if (o->result == OUTBOX_OK || o->result == OUTBOX_DEAD) {
		state = o->result == OUTBOX_OK ? OUTBOX_IS_SENT : OUTBOX_IS_DEAD;
		next_ms = o->now_ms;
	}
	if (is_outdated && o->result != OUTBOX_RETRY) {
		state = OUTBOX_IS_DUE;
		next_ms = o->now_ms;
	}
	c->is_uncertain = o->is_uncertain;
	c->n_attempts -= o->result == OUTBOX_NOT_YET;
	if (o->result != OUTBOX_RETRY && o->result != OUTBOX_NOT_YET) {
		c->n_attempts = 0;
		c->first_ms = next_ms;
	}
	end_attempt(d, o, c, state, next_ms);
}

static int outbox_done_run(struct store_op *op, struct txn *d)
{
	struct outbox_done *o = CONTAINER_OF(op, struct outbox_done, op);
	struct claimed c;

	if (!RECORD_READ_FIRST(
		d, claimed, CLAIMED_RECORD, &c, "FROM outbox WHERE id = ?1 AND state = 'sending'", V_INT(o->id))) {
		if (db_has(d, "SELECT 1 FROM outbox WHERE id = ?1", V_INT(o->id)))
			return 0; /* it was ended otherwise */
		return ERR_NOT_FOUND;
	}
	if (c.kind == OUTBOX_COMMENT || c.kind == OUTBOX_CHECKS || c.kind == OUTBOX_RED_ISSUE)
		update_done(d, &c, o);
	else
		request_done(d, &c, o);
	record_release(&claimed_record, &c);
	return 0;
}
STORE_OPERATION(outbox_done)
