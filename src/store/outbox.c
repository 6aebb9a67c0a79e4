#include "store/outbox.h"

#include "experiments/experiments.h"
#include "store/dispatches.h"
#include "store/schedules.h"
#include "verdict/cells_moved.h"

enum { CLAIM_MAX = 1000, LOOK_PAST_MAX = 4000 };

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

static void release_claimed_rows(struct claim_outbox *op)
{
	for (size_t i = 0; i < op->n; i++)
		outbox_row_release(&op->rows[i]);
	FREE_AND_NULL(op->rows);
	op->n = 0;
}

void claim_outbox_release(struct claim_outbox *op)
{
	release_claimed_rows(op);
	FREE_AND_NULL(op->past);
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

/* The row of this request as a claim would read it. */
static struct outbox_row claimed_row(struct txn *d, const struct outbox_request *q, int64_t id, int64_t due_ms)
{
	return (struct outbox_row){
	    .id = id,
	    .kind = q->kind,
	    .target = xstrdup(q->target),
	    .number = q->number,
	    .dispatch_id = xstrdup(text_or_empty(q->dispatch_id)),
	    .delivery_guid = xstrdup(text_or_empty(q->delivery_guid)),
	    .event_type = xstrdup(text_or_empty(q->event_type)),
	    .sent_action = xstrdup(text_or_empty(q->sent_action)),
	    .original_action = xstrdup(text_or_empty(q->original_action)),
	    .runner = xstrdup(text_or_empty(q->runner)),
	    .accelerator = xstrdup_or_null(q->accelerator),
	    .text = xstrdup_or_null(q->text),
	    .first_ms = due_ms,
	    .generation = 1,
	    .epoch = db_epoch(d),
	};
}

void outbox_insert(struct txn *d, const struct outbox_request *q, int64_t due_ms)
{
	struct outbox_offer *offer = q->offer;
	bool is_claimed =
	    offer && offer->places[q->kind] > 0 &&
	    !db_has(d, "SELECT 1 FROM outbox WHERE lane = ?1 AND " OUTBOX_IS_UNSENT("") " LIMIT 1", V_TEXT(q->lane));
	int64_t id = db_insert(d,
	    "INSERT INTO outbox (kind, key, lane, target, target_key, number, change_id,"
	    " dispatch_id, runner, delivery_guid, event_type, sent_action, original_action, state,"
	    " n_attempts, first_ms, next_ms, generation, is_uncertain, is_dropped, accelerator, text, epoch)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?17, ?18, ?14, ?14,"
	    " 1, 0, 0, ?15, ?16, ?19) ON CONFLICT (key) DO NOTHING",
	    V_TEXT(outbox_kind_name(q->kind)), V_TEXT(q->key), V_TEXT(q->lane), V_TEXT(q->target),
	    V_TEXT(q->target_key), V_INT(q->number), V_INT_OR_NULL(q->change_id), V_TEXT(text_or_empty(q->dispatch_id)),
	    V_TEXT(text_or_empty(q->runner)), V_TEXT(text_or_empty(q->delivery_guid)),
	    V_TEXT(text_or_empty(q->event_type)), V_TEXT(text_or_empty(q->sent_action)),
	    V_TEXT(text_or_empty(q->original_action)), V_INT(due_ms), V_TEXT(q->accelerator), V_TEXT(q->text),
	    V_TEXT(outbox_state_name(is_claimed ? OUTBOX_IS_SENDING : OUTBOX_IS_DUE)), V_INT(is_claimed),
	    V_INT_OR_NULL(is_claimed ? db_epoch(d) : 0));
	if (id && is_claimed) {
		offer->places[q->kind]--;
		*ARRAY_PUSH(offer->rows, offer->n) = claimed_row(d, q, id, due_ms);
	} else if (id) {
		db_notify(d, outbox_topic(q->kind));
	}
}

struct outbox_place outbox_find(const struct view *d, const char *key)
{
	struct outbox_place at = {0};

	RECORD_READ_FIRST(d, outbox_place, OUTBOX_PLACE_RECORD, &at, "FROM outbox o WHERE o.key = ?1", V_TEXT(key));
	return at;
}

bool outbox_is_unsent(const struct outbox_place *at)
{
	return at->id &&
	       (at->state == OUTBOX_IS_DUE || at->state == OUTBOX_IS_WAITING || at->state == OUTBOX_IS_SENDING);
}

bool outbox_enter(struct txn *d, struct outbox_place *at, enum outbox_state to, const char *error)
{
	if (!at->id || !outbox_may_enter(at->state, to))
		return false;
	if (to != OUTBOX_IS_SENDING)
		at->epoch = 0;
	else if (at->state != OUTBOX_IS_SENDING) /* else its sender keeps it */
		at->epoch = db_epoch(d);
	at->state = to;
	db_exec(d,
	    "UPDATE outbox SET state = ?2, epoch = ?3, n_attempts = ?4, first_ms = ?5, next_ms = ?6,"
	    " generation = ?7, is_uncertain = ?8, is_dropped = ?9,"
	    " last_error = CASE WHEN ?2 = 'sent' THEN NULL ELSE COALESCE(?10, last_error) END WHERE id = ?1",
	    V_INT(at->id), V_TEXT(outbox_state_name(to)), V_INT_OR_NULL(at->epoch), V_INT(at->n_attempts),
	    V_INT(at->first_ms), V_INT(at->next_ms), V_INT(at->generation), V_INT(at->is_uncertain),
	    V_INT(at->is_dropped), V_TEXT(error));
	return true;
}

int64_t outbox_recover(struct txn *d)
{
	struct node_horizon horizon = node_horizon(d);
	struct outbox_place *list = NULL;
	size_t n = 0;
	struct rows *r = db_rows(d,
	    RECORD_QUERY(OUTBOX_PLACE_RECORD, "FROM outbox o WHERE o.state = 'sending' AND " OUTBOX_IS_COUNTED
					      " AND NOT " NODE_IS_WORKING("o.epoch")),
	    V_INT(horizon.first_epoch), V_INT(horizon.seen_by_ms));

	RECORDS_READ(r, outbox_place, list, n);
	for (size_t i = 0; i < n; i++) {
		struct outbox_place *at = &list[i];

		/* It keeps one attempt, whatever their number was: the end of this process was not a failure of
		 * GitHub's, and must not make the pause after the next real failure longer. */
		if (!at->is_dropped) {
			at->is_uncertain = true;
			at->n_attempts = 1;
		}
		/* A request that was dropped while it was being sent is not sent again. */
		outbox_enter(d, at, at->is_dropped ? OUTBOX_IS_CANCELLED : OUTBOX_IS_DUE, NULL);
	}
	free(list);
	if (n)
		db_notify(d, STORE_OUTBOX | STORE_COMMENTS);
	return (int64_t)n;
}

/* ---- claim ---- */

/* It is the first of its lane: no row before it is still unsent. */
#define IS_HEAD_OF_LANE                                                                                                \
	" NOT EXISTS (SELECT 1 FROM outbox b WHERE b.lane = o.lane AND b.id < o.id AND " OUTBOX_IS_UNSENT("b.") ")"

#define SELECT_CLAIMED RECORD_SELECT(OUTBOX_PLACE_RECORD) RECORD_COLUMNS(OUTBOX_ROW_RECORD)

/* Reads one row more than it may claim, so that the same statement shows when the next one is due. limit 0: only that. */
static void claim_rows_of_kind(struct txn *d, struct claim_outbox *c, enum outbox_kind kind, int limit)
{
	struct outbox_place *places = NULL;
	size_t n = 0;
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
	while (rows_next(r)) {
		struct outbox_place at;
		struct outbox_row *row;

		record_read(r, &outbox_place_record, &at);
		if (at.next_ms > c->now_ms || (int)n == limit) {
			if (!c->next_due_ms || at.next_ms < c->next_due_ms)
				c->next_due_ms = at.next_ms;
			rows_end(r);
			break;
		}
		*ARRAY_PUSH(places, n) = at;
		row = ARRAY_PUSH(c->rows, c->n);
		*row = (struct outbox_row){.kind = kind};
		record_read(r, &outbox_row_record, row);
		row->epoch = db_epoch(d);
	}
	for (size_t i = 0; i < n; i++) {
		places[i].n_attempts++;
		outbox_enter(d, &places[i], OUTBOX_IS_SENDING, NULL);
	}
	free(places);
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
	struct rows *r;

	o->accelerators = strv_copy((const char *const[]){o->accelerator, NULL});
	r = db_rows(d,
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

void outbox_offer_read(const struct view *d, struct outbox_offer *offer)
{
	for (size_t i = 0; i < offer->n; i++)
		add_request_facts(d, &offer->rows[i]);
}

void outbox_offer_release(struct outbox_offer *offer)
{
	for (size_t i = 0; i < offer->n; i++) {
		offer->places[offer->rows[i].kind]++;
		outbox_row_release(&offer->rows[i]);
	}
	FREE_AND_NULL(offer->rows);
	offer->n = 0;
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

	release_claimed_rows(c);
	c->next_due_ms = 0;
	for (int k = 0; k < N_OUTBOX_KINDS; k++)
		if (c->kinds & 1u << k)
			claim_rows_of_kind(d, c, (enum outbox_kind)k, limit - (int)c->n);
	for (size_t i = 0; i < c->n; i++)
		add_request_facts(d->view, &c->rows[i]);
	if (c->n)
		qsort(c->rows, c->n, sizeof(*c->rows), compare_row_ids);
	return 0;
}
STORE_OPERATION(claim_outbox)

/* ---- done ---- */

#define SENT_ROW_RECORD(F, S)                                                                                          \
	F(S, OUTBOX_KIND, kind, NULL, "o.kind", "")                                                                    \
	F(S, TEXT, dispatch_id, NULL, "o.dispatch_id", "")                                                             \
	F(S, TEXT, lane, NULL, "o.lane", "")
RECORD_LOCAL(sent_row, SENT_ROW_RECORD)
struct claimed {
	struct sent_row row;
	struct outbox_place at;
};

/* c->at has the columns as they are after the attempt, except the next two. */
static void end_attempt(
    struct txn *d, const struct outbox_done *o, struct claimed *c, enum outbox_state to, int64_t next_ms)
{
	c->at.next_ms = next_ms;
	outbox_enter(d, &c->at, to, o->error);
	/* This row, or the next of its lane, may be due. The rows of a lane have one topic. */
	if (db_has(d, "SELECT 1 FROM outbox WHERE lane = ?1 AND " OUTBOX_IS_UNSENT("") " LIMIT 1", V_TEXT(c->row.lane)))
		db_notify(d, outbox_topic(c->row.kind));
}

static void request_arrived(struct txn *d, const struct claimed *c, int64_t now_ms)
{
	struct dispatch_list l =
	    DISPATCHES_WHERE(d, "id = ?1 AND state <> 'held' ORDER BY accelerator, runner", V_TEXT(c->row.dispatch_id));

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
	struct dispatch_list l = DISPATCHES_WHERE(
	    d, "id = ?1 AND " DISPATCH_IS_AT_WORK("") " ORDER BY accelerator, runner", V_TEXT(c->row.dispatch_id));

	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];

		dispatch_enter(d, s, DISPATCH_FAILED, o->error ? o->error : "it could not be sent", o->now_ms);
		cells_moved(d, s->change_id, s->accelerator, CELLS_NOT_SENT, o->now_ms);
	}
	dispatch_list_release(&l);
}

static void request_done(struct txn *d, struct claimed *c, const struct outbox_done *o)
{
	bool is_dispatch = c->row.kind == OUTBOX_GITHUB_DISPATCH || c->row.kind == OUTBOX_WEBHOOK_DISPATCH;
	enum outbox_state again = c->at.is_dropped ? OUTBOX_IS_CANCELLED : OUTBOX_IS_WAITING;

	/* An attempt that was cut off may have arrived. */
	c->at.is_uncertain =
	    (c->at.is_uncertain || o->is_uncertain) && o->result != OUTBOX_OK && o->result != OUTBOX_DEAD;
	c->at.n_attempts -= o->result == OUTBOX_NOT_YET || o->result == OUTBOX_AGAIN;
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
	bool is_outdated = c->at.generation != o->generation;
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
	c->at.is_uncertain = o->is_uncertain;
	c->at.n_attempts -= o->result == OUTBOX_NOT_YET;
	if (o->result != OUTBOX_RETRY && o->result != OUTBOX_NOT_YET) {
		c->at.n_attempts = 0;
		c->at.first_ms = next_ms;
	}
	end_attempt(d, o, c, state, next_ms);
}

/* ---- content writes ---- */

static const int64_t HOUR_MS = 3600 * 1000;

RECORD_DEFINE(content_write, CONTENT_WRITE_RECORD);

/* A single node has them in memory. */
static void note_writes(struct txn *d, const struct outbox_done *o)
{
	if (!o->n_writes || !db_is_shared(d))
		return;
	db_exec(d, "DELETE FROM content_write WHERE at_ms < ?1", V_INT(o->now_ms - HOUR_MS));
	db_exec(d, "INSERT INTO content_write (at_ms, n) VALUES (?1, ?2)", V_INT(o->now_ms), V_INT(o->n_writes));
}

static int list_writes_run(struct store_query *q, const struct view *d)
{
	struct list_writes *l = CONTAINER_OF(q, struct list_writes, q);

	RECORDS_READ(
	    db_rows(d,
		RECORD_QUERY(CONTENT_WRITE_RECORD,
		    "FROM (SELECT at_ms, n FROM content_write WHERE at_ms > ?1 UNION ALL"
		    " SELECT ?2, 1 FROM outbox WHERE state = 'sending' AND " OUTBOX_IS_COUNTED
		    " AND kind IN ('comment', 'checks', 'reaction', 'reply', 'red_issue')) writes ORDER BY at_ms"),
		V_INT(l->now_ms - HOUR_MS), V_INT(l->now_ms)),
	    content_write, l->list, l->n);
	return 0;
}
STORE_LIST(list_writes, content_write)

static int outbox_done_run(struct store_op *op, struct txn *d)
{
	struct outbox_done *o = CONTAINER_OF(op, struct outbox_done, op);
	struct rows *r = db_rows(
	    d, RECORD_QUERY_BOTH(SENT_ROW_RECORD, OUTBOX_PLACE_RECORD, "FROM outbox o WHERE o.id = ?1"), V_INT(o->id));
	struct claimed c;

	note_writes(d, o);
	if (!rows_next(r))
		return ERR_NOT_FOUND;
	record_read(r, &sent_row_record, &c.row);
	record_read(r, &outbox_place_record, &c.at);
	rows_end(r);
	/* It was ended otherwise, or has another sender because this one was given up. */
	if (c.at.state != OUTBOX_IS_SENDING || c.at.epoch != o->epoch)
		;
	else if (c.row.kind == OUTBOX_COMMENT || c.row.kind == OUTBOX_CHECKS || c.row.kind == OUTBOX_RED_ISSUE)
		update_done(d, &c, o);
	else
		request_done(d, &c, o);
	record_release(&sent_row_record, &c.row);
	return 0;
}
STORE_OPERATION(outbox_done)
