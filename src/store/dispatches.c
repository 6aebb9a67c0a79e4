#include "store/dispatches.h"

#include "db/counters.h"
#include "db/key.h"
#include "experiments/experiments.h"
#include "store/jobs.h"
#include "store/leases.h"
#include "store/requests.h"
#include "verdict/cells_moved.h"

RECORD_DEFINE(stored_dispatch, STORED_DISPATCH_RECORD);
RECORD_DEFINE(dispatch_row, DISPATCH_ROW_RECORD);

struct dispatch_list dispatch_list_read(struct rows *r)
{
	struct dispatch_list l = {0};

	RECORDS_READ(r, stored_dispatch, l.at, l.n);
	return l;
}

bool stored_dispatch_read(struct rows *r, struct stored_dispatch *ret)
{
	*ret = (struct stored_dispatch){0};
	return record_read_first(r, &stored_dispatch_record, ret);
}

void stored_dispatch_release(struct stored_dispatch *s)
{
	record_release(&stored_dispatch_record, s);
	*s = (struct stored_dispatch){0};
}

void dispatch_list_release(struct dispatch_list *l) { RECORDS_RELEASE(stored_dispatch, l->at, l->n); }

struct stored_dispatch stored_dispatch_copy(const struct stored_dispatch *s)
{
	struct stored_dispatch c = *s;

	record_copy_texts(&stored_dispatch_record, &c);
	return c;
}

/* ---- deadlines ---- */

static int64_t deadline_after(int64_t now_ms, int64_t duration_ms)
{
	return duration_ms > 0 ? now_ms + duration_ms : 0;
}

static int64_t earlier_ms(int64_t a, int64_t b) { return !a || (b && b < a) ? b : a; }

/* The next of the deadlines that still matter; 0: none. */
static int64_t next_due_ms(const struct stored_dispatch *s)
{
	int64_t due_ms = s->finish_by_ms;

	if (!dispatch_is_unfinished(s->state) || s->state == DISPATCH_HELD)
		return 0;
	if (s->state != DISPATCH_RUNNING)
		due_ms = earlier_ms(s->start_by_ms, due_ms);
	if (s->state == DISPATCH_QUEUED || s->state == DISPATCH_SENT)
		due_ms = earlier_ms(s->ack_by_ms, due_ms);
	return due_ms;
}

static void save_dispatch(struct txn *d, const struct stored_dispatch *s)
{
	db_exec(d,
	    "UPDATE dispatch SET is_current = ?4, state = ?5, finish_by_ms = ?6, next_due_ms = ?7,"
	    " sent_ms = ?8, finished_ms = ?9, is_late = ?10, last_error = ?11, ack_by_ms = ?12,"
	    " start_by_ms = ?13, ended_how = ?14, ended_by = ?15 WHERE id = ?1 AND accelerator = ?2 AND runner = ?3",
	    V_TEXT(s->id), V_TEXT(s->accelerator), V_TEXT(s->runner), V_INT(s->is_current),
	    V_TEXT(dispatch_state_name(s->state)), V_INT_OR_NULL(s->finish_by_ms), V_INT_OR_NULL(next_due_ms(s)),
	    V_INT_OR_NULL(s->sent_ms), V_INT_OR_NULL(s->finished_ms), V_INT(s->is_late), V_TEXT(s->last_error),
	    V_INT_OR_NULL(s->ack_by_ms), V_INT_OR_NULL(s->start_by_ms), V_TEXT(ended_how_name(s->ended_how)),
	    V_TEXT(s->ended_by));
}

/* Experiments do not count, because one that expires is not a failure of the vendor. */
static void count_dispatch(struct txn *d, const struct stored_dispatch *s, enum dispatch_state state, int by)
{
	if (strcmp(s->event_type, EXPERIMENT_EVENT) != 0)
		counter_add(d, (enum counter)((int)COUNT_DISPATCHES + (int)state), by);
}

void dispatch_insert(struct txn *d, struct stored_dispatch *s, int64_t now_ms)
{
	int64_t from_ms = s->not_before_ms > now_ms ? s->not_before_ms : now_ms;

	s->is_current = s->state != DISPATCH_HELD ||
			!db_has(d,
			    "SELECT 1 FROM dispatch WHERE change_id = ?1 AND accelerator = ?2 AND runner = ?3"
			    " AND is_current = 1 LIMIT 1",
			    V_INT(s->change_id), V_TEXT(s->accelerator), V_TEXT(s->runner));
	s->created_ms = now_ms;
	if (s->state == DISPATCH_QUEUED) {
		/* A pull dispatch has no request that a vendor could acknowledge. It may wait until `start`. */
		s->ack_by_ms = s->kind == RUNNER_PULL ? 0 : deadline_after(from_ms, s->acknowledge_ms);
		s->start_by_ms = deadline_after(from_ms, s->start_ms);
		s->finish_by_ms = deadline_after(from_ms, s->finish_ms);
	}
	db_exec(d,
	    "INSERT INTO dispatch (id, accelerator, runner, change_id, kind, target, target_key,"
	    " round, round_ms, is_current, state, held_reason, is_held_for_good, number,"
	    " delivery_guid, event_type, sent_action, original_action, acknowledge_ms, start_ms,"
	    " finish_ms, ack_by_ms, start_by_ms, finish_by_ms, next_due_ms, created_ms, not_before_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?27, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
	    " ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)",
	    V_TEXT(s->id), V_TEXT(s->accelerator), V_TEXT(s->runner), V_INT(s->change_id),
	    V_TEXT(runner_kind_name(s->kind)), V_TEXT(s->target), V_TEXT(s->target_key), V_INT(s->round),
	    V_INT(s->round_ms), V_TEXT(dispatch_state_name(s->state)), V_TEXT(s->held_reason),
	    V_INT(s->is_held_for_good), V_INT(s->number), V_TEXT(s->delivery_guid), V_TEXT(s->event_type),
	    V_TEXT(s->sent_action), V_TEXT(s->original_action), V_INT(s->acknowledge_ms), V_INT(s->start_ms),
	    V_INT(s->finish_ms), V_INT_OR_NULL(s->ack_by_ms), V_INT_OR_NULL(s->start_by_ms),
	    V_INT_OR_NULL(s->finish_by_ms), V_INT_OR_NULL(next_due_ms(s)), V_INT(s->created_ms),
	    V_INT_OR_NULL(s->not_before_ms), V_INT(s->is_current));
	count_dispatch(d, s, s->state, 1);
	db_notify(d, STORE_DISPATCHES);
	db_notify_change(d, s->change_id);
	if (s->kind == RUNNER_PULL && s->state == DISPATCH_QUEUED)
		db_notify(d, STORE_QUEUE);
}

/* s is in its new state, and the row has it. */
static void state_moved(struct txn *d, const struct stored_dispatch *s, enum dispatch_state from)
{
	log_event(LOG_DEBUG, "dispatch_state", LOG_S("dispatch", s->id), LOG_S("accelerator", s->accelerator),
	    LOG_S("from", dispatch_state_name(from)), LOG_S("to", dispatch_state_name(s->state)));
	count_dispatch(d, s, from, -1);
	count_dispatch(d, s, s->state, 1);
	db_notify(d, STORE_DISPATCHES);
	db_notify_change(d, s->change_id);
	db_notify_accelerator(d, s->accelerator);
}

bool dispatch_enter(struct txn *d, struct stored_dispatch *s, enum dispatch_state to, const char *why, int64_t now_ms)
{
	enum dispatch_state from = s->state;

	if (!dispatch_may_enter(from, to))
		return false;
	if (from == to)
		return true;
	s->state = to;
	if (!dispatch_is_unfinished(from)) {
		/* There is a new attempt, or a late result. A new deadline keeps it from running for ever. */
		s->is_late |= from == DISPATCH_EXPIRED || from == DISPATCH_FAILED;
		s->finish_by_ms = deadline_after(now_ms, s->finish_ms);
	}
	s->finished_ms = dispatch_is_unfinished(to) ? 0 : now_ms;
	if (why) {
		free(s->last_error);
		s->last_error = xstrdup(why);
	}
	save_dispatch(d, s);
	state_moved(d, s, from);
	if (s->kind == RUNNER_PULL)
		leases_follow(d, s, now_ms);
	return true;
}

/* Mostly the deadline stays, so the indexes of the other columns that save_dispatch() writes need no change. */
void dispatch_enter_sent(struct txn *d, struct stored_dispatch *s, enum dispatch_state to, int64_t now_ms)
{
	int64_t due_ms = next_due_ms(s);

	assert(s->state == DISPATCH_QUEUED && dispatch_may_enter(DISPATCH_QUEUED, to) && s->kind != RUNNER_PULL);
	if (!s->sent_ms)
		s->sent_ms = now_ms;
	s->state = to;
	if (!dispatch_is_unfinished(to) || next_due_ms(s) != due_ms) {
		s->finished_ms = dispatch_is_unfinished(to) ? 0 : now_ms;
		save_dispatch(d, s);
	} else {
		db_exec(d,
		    "UPDATE dispatch SET state = ?4, sent_ms = ?5 WHERE id = ?1 AND accelerator = ?2 AND runner = ?3",
		    V_TEXT(s->id), V_TEXT(s->accelerator), V_TEXT(s->runner), V_TEXT(dispatch_state_name(to)),
		    V_INT(s->sent_ms));
	}
	state_moved(d, s, DISPATCH_QUEUED);
}

bool dispatch_end_by(struct txn *d, struct stored_dispatch *s, enum ended_how how, const char *login, int64_t now_ms)
{
	if (s->state != DISPATCH_CANCELLED && dispatch_may_enter(s->state, DISPATCH_CANCELLED)) {
		free(s->ended_by);
		s->ended_how = how;
		s->ended_by = xstrdup(login);
	}
	return dispatch_enter(d, s, DISPATCH_CANCELLED, NULL, now_ms);
}

bool dispatch_requeue(struct txn *d, struct stored_dispatch *s, int64_t now_ms)
{
	s->start_by_ms = deadline_after(now_ms, s->start_ms);
	return dispatch_enter(d, s, DISPATCH_QUEUED, NULL, now_ms);
}

void dispatch_note_sent(struct txn *d, struct stored_dispatch *s, int64_t now_ms)
{
	if (s->sent_ms)
		return;
	s->sent_ms = now_ms;
	save_dispatch(d, s);
}

bool dispatch_end(struct txn *d, struct stored_dispatch *s, enum dispatch_state to, int64_t now_ms)
{
	bool has_ended = dispatch_is_unfinished(s->state) && dispatch_enter(d, s, to, NULL, now_ms);

	/* An expired one keeps its state, but its request may still wait for a vendor that
	 * cannot be reached. It is dropped as well. */
	if (has_ended || s->state == DISPATCH_EXPIRED)
		request_drop(d, s, now_ms);
	return has_ended;
}

void dispatch_retire(struct txn *d, struct stored_dispatch *s, int64_t now_ms)
{
	s->is_current = false;
	save_dispatch(d, s);
	dispatch_end(d, s, DISPATCH_SUPERSEDED, now_ms);
	(void)jobs_notify(d, db_exec_rows(d,
				 "UPDATE job SET is_current = 0 WHERE change_id = ?1 AND dispatch_id = ?2"
				 " AND accelerator = ?3 RETURNING id",
				 V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator)));
	cells_moved(d, s->change_id, s->accelerator, CELLS_RETIRED, now_ms);
}

bool dispatch_has_run(const struct view *d, const struct stored_dispatch *s)
{
	if (s->state == DISPATCH_HELD)
		return false;
	if (s->state != DISPATCH_CANCELLED && s->state != DISPATCH_SUPERSEDED)
		return true;
	return db_has(d, "SELECT 1 FROM job WHERE change_id = ?1 AND dispatch_id = ?2 AND accelerator = ?3 LIMIT 1",
	    V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator));
}

void dispatch_delete_held(struct txn *d, const struct stored_dispatch *s)
{
	assert(s->state == DISPATCH_HELD);
	db_exec(d, "DELETE FROM dispatch WHERE id = ?1 AND accelerator = ?2 AND runner = ?3", V_TEXT(s->id),
	    V_TEXT(s->accelerator), V_TEXT(s->runner));
	count_dispatch(d, s, DISPATCH_HELD, -1);
}

/* ---- deadlines that pass ---- */

enum { EXPIRE_MAX = 500 };

/* The deadline that passed, for people. */
static const char *deadline_reason(const struct stored_dispatch *s, int64_t now_ms, char *out, size_t out_bytes)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
	const char *what = "did not finish";
	int64_t within_ms = s->finish_ms;
	size_t i = 0;

	if (s->state != DISPATCH_RUNNING && s->start_by_ms && s->start_by_ms <= now_ms) {
		what = "did not start";
		within_ms = s->start_ms;
	}
	if ((s->state == DISPATCH_QUEUED || s->state == DISPATCH_SENT) && s->ack_by_ms && s->ack_by_ms <= now_ms) {
		what = "not acknowledged";
		within_ms = s->acknowledge_ms;
	}
	while (within_ms % units[i].ms)
		i++;
	snprintf(out, out_bytes, "%s within %lld%s", what, (long long)(within_ms / units[i].ms), units[i].unit);
	return out;
}

static int expire_dispatches_run(struct store_op *op, struct txn *d)
{
	struct expire_dispatches *o = CONTAINER_OF(op, struct expire_dispatches, op);
	struct dispatch_list l = DISPATCHES_WHERE(d,
	    "next_due_ms IS NOT NULL AND next_due_ms <= ?1"
	    " ORDER BY next_due_ms, change_id, accelerator, runner LIMIT ?2",
	    V_INT(o->now_ms), V_INT(EXPIRE_MAX));
	int64_t look_ms;

	o->n_expired = 0;
	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];
		char why[96];

		if (!dispatch_enter(d, s, DISPATCH_EXPIRED, deadline_reason(s, o->now_ms, why, sizeof(why)), o->now_ms))
			continue;
		o->n_expired++;
		if (s->is_current)
			cells_moved(d, s->change_id, s->accelerator, CELLS_DEADLINE_PASSED, o->now_ms);
	}
	dispatch_list_release(&l);
	o->next_experiments_ms = o->experiments_ms;
	look_ms = experiments_look(d, &o->next_experiments_ms, o->now_ms);
	o->next_due_ms = db_int(d, 0, "SELECT MIN(next_due_ms) FROM dispatch WHERE next_due_ms IS NOT NULL");
	if (look_ms && (!o->next_due_ms || look_ms < o->next_due_ms))
		o->next_due_ms = look_ms;
	return 0;
}
STORE_OPERATION(expire_dispatches)

/* ---- lists for outpostctl ---- */

enum { DISPATCHES_MAX = 1000 };

#define COLUMNS                                                                                                        \
	RECORD_SELECT(DISPATCH_ROW_RECORD)                                                                             \
	" FROM dispatch x JOIN change c ON c.id = x.change_id"                                                         \
	" LEFT JOIN experiment e ON e.run_change_id = c.id"                                                            \
	" LEFT JOIN outbox o ON o.key = 'dispatch:' || x.id"
#define NEWEST_FIRST  " ORDER BY x.created_ms DESC, x.id, x.accelerator, x.runner LIMIT "
#define HEADS_OF_PULL "SELECT change_id FROM pull_head WHERE repository_key = ?1 AND number = ?2"
#define OF_PULL                                                                                                        \
	" WHERE x.change_id IN (" HEADS_OF_PULL                                                                        \
	" UNION SELECT run_change_id FROM experiment WHERE change_id IN (" HEADS_OF_PULL "))"

static int list_dispatches_run(struct store_query *q, const struct view *d)
{
	struct list_dispatches *l = CONTAINER_OF(q, struct list_dispatches, q);
	int limit = l->limit > 0 && l->limit < DISPATCHES_MAX ? l->limit : DISPATCHES_MAX;
	struct repository_key key = repository_key(l->repository ? l->repository : "");
	struct rows *r;

	if (l->number && l->accelerator)
		r = db_rows(d, COLUMNS OF_PULL " AND x.accelerator = ?3" NEWEST_FIRST "?4", V_TEXT(key.text),
		    V_INT(l->number), V_TEXT(l->accelerator), V_INT(limit));
	else if (l->number)
		r = db_rows(d, COLUMNS OF_PULL NEWEST_FIRST "?3", V_TEXT(key.text), V_INT(l->number), V_INT(limit));
	else if (l->accelerator)
		r = db_rows(
		    d, COLUMNS " WHERE x.accelerator = ?1" NEWEST_FIRST "?2", V_TEXT(l->accelerator), V_INT(limit));
	else
		r = db_rows(d, COLUMNS NEWEST_FIRST "?1", V_INT(limit));
	RECORDS_READ(r, dispatch_row, l->list, l->n);
	return 0;
}
STORE_LIST(list_dispatches, dispatch_row)
