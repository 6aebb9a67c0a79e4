#include "store/stored_dispatch.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "store/cells_moved.h"
#include "store/counters.h"
#include "store/experiments.h"
#include "store/job_row.h"
#include "store/requests.h"
#include "store/store.h"
#include "store/stored_lease.h"

static enum runner_kind kind_parse(const char *name)
{
	for (int k = RUNNER_GITHUB; k < RUNNER_INFRA; k++)
		if (strcmp(runner_kind_name((enum runner_kind)k), name) == 0)
			return (enum runner_kind)k;
	return RUNNER_INFRA;
}

static struct stored_dispatch read_row(struct rows *r)
{
	struct stored_dispatch s = {
	    .accelerator = rows_dup(r, 1),
	    .runner = rows_dup(r, 2),
	    .change_id = rows_int(r, 3),
	    .kind = kind_parse(rows_text(r, 4)),
	    .target = rows_dup(r, 5),
	    .target_key = rows_dup(r, 6),
	    .round = rows_int(r, 7),
	    .round_ms = rows_int(r, 8),
	    .is_current = rows_int(r, 9),
	    .state = dispatch_state_parse(rows_text(r, 10)),
	    .held_reason = rows_dup(r, 11),
	    .is_held_for_good = rows_int(r, 12),
	    .number = rows_int(r, 13),
	    .delivery_guid = rows_dup(r, 14),
	    .event_type = rows_dup(r, 15),
	    .sent_action = rows_dup(r, 16),
	    .original_action = rows_dup(r, 17),
	    .acknowledge_ms = rows_int(r, 18),
	    .start_ms = rows_int(r, 19),
	    .finish_ms = rows_int(r, 20),
	    .ack_by_ms = rows_int(r, 21),
	    .start_by_ms = rows_int(r, 22),
	    .finish_by_ms = rows_int(r, 23),
	    .created_ms = rows_int(r, 24),
	    .sent_ms = rows_int(r, 25),
	    .finished_ms = rows_int(r, 26),
	    .is_late = rows_int(r, 27),
	    .last_error = rows_dup(r, 28),
	    .not_before_ms = rows_int(r, 29),
	};

	snprintf(s.id, sizeof(s.id), "%s", rows_text(r, 0));
	return s;
}

struct dispatch_list dispatch_list_take(struct rows *r)
{
	struct dispatch_list l = {0};

	while (rows_next(r)) {
		l.at = xrealloc(l.at, (l.n + 1) * sizeof(*l.at));
		l.at[l.n++] = read_row(r);
	}
	return l;
}

void stored_dispatch_release(struct stored_dispatch *s)
{
	free(s->accelerator);
	free(s->runner);
	free(s->target);
	free(s->target_key);
	free(s->held_reason);
	free(s->delivery_guid);
	free(s->event_type);
	free(s->sent_action);
	free(s->original_action);
	free(s->last_error);
	*s = (struct stored_dispatch){0};
}

void dispatch_list_release(struct dispatch_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		stored_dispatch_release(&l->at[i]);
	FREE_AND_NULL(l->at);
	l->n = 0;
}

struct stored_dispatch stored_dispatch_copy(const struct stored_dispatch *s)
{
	struct stored_dispatch c = *s;

	c.accelerator = xstrdup_or_null(s->accelerator);
	c.runner = xstrdup_or_null(s->runner);
	c.target = xstrdup_or_null(s->target);
	c.target_key = xstrdup_or_null(s->target_key);
	c.held_reason = xstrdup_or_null(s->held_reason);
	c.delivery_guid = xstrdup_or_null(s->delivery_guid);
	c.event_type = xstrdup_or_null(s->event_type);
	c.sent_action = xstrdup_or_null(s->sent_action);
	c.original_action = xstrdup_or_null(s->original_action);
	c.last_error = xstrdup_or_null(s->last_error);
	return c;
}

/* ---- deadlines ---- */

static int64_t by(int64_t now_ms, int64_t duration_ms)
{
	return duration_ms > 0 ? now_ms + duration_ms : 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* The next of the deadlines that still matter; 0: none. */
static int64_t next_due_ms(const struct stored_dispatch *s)
{
	switch (s->state) {
	case DISPATCH_QUEUED:
	case DISPATCH_SENT:
		return earlier(s->ack_by_ms, earlier(s->start_by_ms, s->finish_by_ms));
	case DISPATCH_ACKNOWLEDGED:
		return earlier(s->start_by_ms, s->finish_by_ms);
	case DISPATCH_RUNNING:
		return s->finish_by_ms;
	case DISPATCH_HELD:
	case DISPATCH_DONE:
	case DISPATCH_SUPERSEDED:
	case DISPATCH_CANCELLED:
	case DISPATCH_FAILED:
	case DISPATCH_EXPIRED:
	case N_DISPATCH_STATES:
		break;
	}
	return 0;
}

static void save(struct db *d, const struct stored_dispatch *s)
{
	db_exec(d,
	    "UPDATE dispatch SET is_current = ?4, state = ?5, finish_by_ms = ?6, next_due_ms = ?7,"
	    " sent_ms = ?8, finished_ms = ?9, is_late = ?10, last_error = ?11, ack_by_ms = ?12,"
	    " start_by_ms = ?13"
	    " WHERE id = ?1 AND accelerator = ?2 AND runner = ?3",
	    V_TEXT(s->id), V_TEXT(s->accelerator), V_TEXT(s->runner), V_INT(s->is_current),
	    V_TEXT(dispatch_state_name(s->state)), V_INT_OR_NULL(s->finish_by_ms),
	    V_INT_OR_NULL(next_due_ms(s)), V_INT_OR_NULL(s->sent_ms), V_INT_OR_NULL(s->finished_ms),
	    V_INT(s->is_late), V_TEXT(s->last_error), V_INT_OR_NULL(s->ack_by_ms),
	    V_INT_OR_NULL(s->start_by_ms));
}

/* Experiments are not counted: one that expires is no failure of the vendor's. */
static void count(struct db *d, const struct stored_dispatch *s, enum dispatch_state state, int by)
{
	if (strcmp(s->event_type, EXPERIMENT_EVENT) != 0)
		counter_add(d, (enum counter)((int)COUNT_DISPATCHES + (int)state), by);
}

void dispatch_insert(struct db *d, struct stored_dispatch *s, int64_t now_ms)
{
	int64_t from_ms = s->not_before_ms > now_ms ? s->not_before_ms : now_ms;

	s->is_current =
	    s->state != DISPATCH_HELD ||
	    !db_has(d,
		"SELECT 1 FROM dispatch WHERE change_id = ?1 AND accelerator = ?2 AND runner = ?3"
		" AND is_current = 1 LIMIT 1",
		V_INT(s->change_id), V_TEXT(s->accelerator), V_TEXT(s->runner));
	s->created_ms = now_ms;
	if (s->state == DISPATCH_QUEUED) {
		/* Nobody is asked for a pull dispatch, so nobody can acknowledge it: how long
		 * it may wait is `start`. */
		s->ack_by_ms = s->kind == RUNNER_PULL ? 0 : by(from_ms, s->acknowledge_ms);
		s->start_by_ms = by(from_ms, s->start_ms);
		s->finish_by_ms = by(from_ms, s->finish_ms);
	}
	db_exec(d,
	    "INSERT INTO dispatch (id, accelerator, runner, change_id, kind, target, target_key,"
	    " round, round_ms, is_current, state, held_reason, is_held_for_good, number,"
	    " delivery_guid, event_type, sent_action, original_action, acknowledge_ms, start_ms,"
	    " finish_ms, ack_by_ms, start_by_ms, finish_by_ms, next_due_ms, created_ms,"
	    " not_before_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?27, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
	    " ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)",
	    V_TEXT(s->id), V_TEXT(s->accelerator), V_TEXT(s->runner), V_INT(s->change_id),
	    V_TEXT(runner_kind_name(s->kind)), V_TEXT(s->target), V_TEXT(s->target_key),
	    V_INT(s->round), V_INT(s->round_ms), V_TEXT(dispatch_state_name(s->state)),
	    V_TEXT(s->held_reason), V_INT(s->is_held_for_good), V_INT(s->number),
	    V_TEXT(s->delivery_guid), V_TEXT(s->event_type), V_TEXT(s->sent_action),
	    V_TEXT(s->original_action), V_INT(s->acknowledge_ms), V_INT(s->start_ms),
	    V_INT(s->finish_ms), V_INT_OR_NULL(s->ack_by_ms), V_INT_OR_NULL(s->start_by_ms),
	    V_INT_OR_NULL(s->finish_by_ms), V_INT_OR_NULL(next_due_ms(s)), V_INT(s->created_ms),
	    V_INT_OR_NULL(s->not_before_ms), V_INT(s->is_current));
	count(d, s, s->state, 1);
	db_tell(d, STORE_DISPATCHES);
	db_tell_change(d, s->change_id);
	if (s->kind == RUNNER_PULL && s->state == DISPATCH_QUEUED)
		db_tell(d, STORE_QUEUE);
}

/* Back to work after it had ended: a new attempt, or a result that comes late. It gets a
 * new deadline, because nothing may run for ever. */
static void revive(struct stored_dispatch *s, enum dispatch_state from, int64_t now_ms)
{
	if (from == DISPATCH_EXPIRED || from == DISPATCH_FAILED)
		s->is_late = true;
	s->finish_by_ms = by(now_ms, s->finish_ms);
}

bool dispatch_enter(struct db *d, struct stored_dispatch *s, enum dispatch_state to,
    const char *why, int64_t now_ms)
{
	enum dispatch_state from = s->state;

	if (!dispatch_may_enter(from, to))
		return false;
	if (from == to)
		return true;
	log_event(LOG_DEBUG, "dispatch_state", LOG_S("dispatch", s->id),
	    LOG_S("accelerator", s->accelerator), LOG_S("from", dispatch_state_name(from)),
	    LOG_S("to", dispatch_state_name(to)));
	s->state = to;
	if (!dispatch_is_unfinished(from))
		revive(s, from, now_ms);
	s->finished_ms = dispatch_is_unfinished(to) ? 0 : now_ms;
	if (why) {
		free(s->last_error);
		s->last_error = xstrdup(why);
	}
	save(d, s);
	count(d, s, from, -1);
	count(d, s, to, 1);
	db_tell(d, STORE_DISPATCHES);
	db_tell_change(d, s->change_id);
	db_tell_accelerator(d, s->accelerator);
	if (s->kind == RUNNER_PULL)
		leases_follow(d, s, now_ms);
	return true;
}

bool dispatch_requeue(struct db *d, struct stored_dispatch *s, int64_t now_ms)
{
	s->start_by_ms = by(now_ms, s->start_ms);
	return dispatch_enter(d, s, DISPATCH_QUEUED, NULL, now_ms);
}

void dispatch_note_sent(struct db *d, struct stored_dispatch *s, int64_t now_ms)
{
	if (s->sent_ms)
		return;
	s->sent_ms = now_ms;
	save(d, s);
}

bool dispatch_end(struct db *d, struct stored_dispatch *s, enum dispatch_state to, int64_t now_ms)
{
	bool has_ended = dispatch_is_unfinished(s->state) && dispatch_enter(d, s, to, NULL, now_ms);

	/* An expired one keeps its state, but its request may still wait for a vendor that
	 * is away: that is no longer wanted either. */
	if (has_ended || s->state == DISPATCH_EXPIRED)
		request_drop(d, s, now_ms);
	return has_ended;
}

void dispatch_retire(struct db *d, struct stored_dispatch *s, int64_t now_ms)
{
	s->is_current = false;
	save(d, s);
	dispatch_end(d, s, DISPATCH_SUPERSEDED, now_ms);
	(void)jobs_tell(
	    d, db_rows(d,
		   "UPDATE job SET is_current = 0 WHERE change_id = ?1 AND dispatch_id = ?2"
		   " AND accelerator = ?3 RETURNING id",
		   V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator)));
	cells_moved(d, s->change_id, s->accelerator, CELLS_RETIRED, now_ms);
}

bool dispatch_has_run(struct db *d, const struct stored_dispatch *s)
{
	if (s->state == DISPATCH_HELD)
		return false;
	if (s->state != DISPATCH_CANCELLED && s->state != DISPATCH_SUPERSEDED)
		return true;
	return db_has(d,
	    "SELECT 1 FROM job WHERE change_id = ?1 AND dispatch_id = ?2 AND accelerator = ?3"
	    " LIMIT 1",
	    V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator));
}

void dispatch_delete_held(struct db *d, const struct stored_dispatch *s)
{
	assert(s->state == DISPATCH_HELD);
	db_exec(d, "DELETE FROM dispatch WHERE id = ?1 AND accelerator = ?2 AND runner = ?3",
	    V_TEXT(s->id), V_TEXT(s->accelerator), V_TEXT(s->runner));
	count(d, s, DISPATCH_HELD, -1);
}
