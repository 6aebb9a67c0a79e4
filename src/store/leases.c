#include "store/leases.h"

#include "db/counters.h"
#include "experiments/experiments.h"
#include "store/jobs.h"
#include "verdict/cells_moved.h"

RECORD_DEFINE(stored_lease, STORED_LEASE_RECORD);
RECORD_DEFINE(lease_row, LEASE_ROW_RECORD);

bool stored_lease_read(struct rows *r, struct stored_lease *ret)
{
	*ret = (struct stored_lease){0};
	return record_read_first(r, &stored_lease_record, ret);
}

void stored_lease_release(struct stored_lease *l)
{
	record_release(&stored_lease_record, l);
	*l = (struct stored_lease){0};
}

static enum counter lease_counter(enum lease_state state) { return (enum counter)((int)COUNT_LEASES + (int)state); }

void lease_insert(struct txn *d, const struct stored_lease *l, int64_t now_ms)
{
	db_exec(d,
	    "INSERT INTO lease (id, dispatch_id, accelerator, runner, machine, claim_id, attempt, job_id, max_parallel,"
	    " state, lease_ms, until_ms, granted_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?13, ?10, ?11, ?12)",
	    V_TEXT(l->id), V_TEXT(l->dispatch_id), V_TEXT(l->accelerator), V_TEXT(l->runner), V_TEXT(l->machine),
	    V_TEXT(l->claim_id), V_INT(l->attempt), V_INT_OR_NULL(l->job_id), V_INT(l->max_parallel),
	    V_INT(l->lease_ms), V_INT(l->until_ms), V_INT(now_ms), V_TEXT(lease_state_name(LEASE_IS_ACTIVE)));
	counter_add(d, COUNT_LEASES + LEASE_IS_ACTIVE, 1);
}

bool lease_enter(struct txn *d, const struct stored_lease *l, enum lease_state to, const char *reason, int64_t now_ms)
{
	enum lease_state from = (enum lease_state)rows_first_word(
	    db_rows(d, "SELECT state FROM lease WHERE id = ?1", V_TEXT(l->id)), &lease_state_words);

	if (from == N_LEASE_STATES || from == to || !lease_may_enter(from, to))
		return false;
	/* A heartbeat does not wait for operations that decide, so it may have extended the lease since the caller read it. */
	if (!db_exec_count(d,
		"UPDATE lease SET state = ?2, reason = ?3, ended_ms = ?4"
		" WHERE id = ?1 AND (?2 <> 'expired' OR until_ms = ?5)",
		V_TEXT(l->id), V_TEXT(lease_state_name(to)), V_TEXT(reason),
		V_INT_OR_NULL(to == LEASE_IS_ACTIVE ? 0 : now_ms), V_INT(l->until_ms)))
		return false;
	counter_add(d, lease_counter(from), -1);
	counter_add(d, lease_counter(to), 1);
	if (to == LEASE_IS_ACTIVE)
		return true;
	log_event(LOG_DEBUG, "lease_ended", LOG_S("lease", l->id), LOG_S("dispatch", l->dispatch_id),
	    LOG_S("machine", l->machine), LOG_S("as", lease_state_name(to)), LOG_S("reason", reason ? reason : ""));
	db_notify(d, STORE_QUEUE); /* there is room for another */
	if (to == LEASE_IS_EXPIRED || to == LEASE_IS_CANCELLED)
		db_notify(d, STORE_LEASES);
	return true;
}

bool lease_of_attempt(const struct view *d, const char *dispatch_id, int64_t attempt, struct stored_lease *ret)
{
	return LEASE_WHERE(d, ret, "dispatch_id = ?1 AND attempt = ?2", V_TEXT(dispatch_id), V_INT(attempt));
}

bool lease_is_overtaken(const struct view *d, const struct stored_lease *l)
{
	return db_has(d,
	    "SELECT 1 FROM lease WHERE dispatch_id = ?1 AND attempt > ?2 AND state IN ('active', 'done') LIMIT 1",
	    V_TEXT(l->dispatch_id), V_INT(l->attempt));
}

int64_t lease_count_active(const struct view *d, const char *accelerator, const char *runner)
{
	return db_int(d, 0, "SELECT COUNT(*) FROM lease WHERE accelerator = ?1 AND runner = ?2 AND state = 'active'",
	    V_TEXT(accelerator), V_TEXT(runner));
}

int64_t lease_count_first(const struct view *d, const char *accelerator, const char *runner)
{
	return db_int(d, 0,
	    "SELECT COUNT(*) FROM lease l WHERE l.accelerator = ?1 AND l.runner = ?2 AND l.state = 'active'"
	    " AND NOT EXISTS (SELECT 1 FROM dispatch WHERE id = l.dispatch_id AND " IS_EXPERIMENT ")",
	    V_TEXT(accelerator), V_TEXT(runner));
}

bool lease_dispatch(const struct view *d, const struct stored_lease *l, struct stored_dispatch *ret)
{
	return stored_dispatch_read(
	    db_rows(d, "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE id = ?1 AND accelerator = ?2 AND runner = ?3",
		V_TEXT(l->dispatch_id), V_TEXT(l->accelerator), V_TEXT(l->runner)),
	    ret);
}

/* ---- the dispatch ended before its lease ---- */

static const char *lease_end_reason(const struct stored_dispatch *s)
{
	if (s->state == DISPATCH_SUPERSEDED)
		return s->is_current ? "superseded by a newer push" : "replaced by another round";
	if (s->state == DISPATCH_CANCELLED)
		return "closed, or no longer wanted";
	if (s->state == DISPATCH_DONE)
		return "reported already";
	return s->last_error ? s->last_error : dispatch_state_name(s->state);
}

void leases_follow(struct txn *d, const struct stored_dispatch *s, int64_t now_ms)
{
	struct stored_lease l;

	if (s->state == DISPATCH_RUNNING)
		return;
	if (s->state == DISPATCH_QUEUED)
		db_notify(d, STORE_QUEUE);
	if (LEASE_WHERE(d, &l, "dispatch_id = ?1 AND state = 'active'", V_TEXT(s->id))) {
		lease_enter(d, &l, LEASE_IS_CANCELLED, lease_end_reason(s), now_ms);
		job_give_up(d, l.job_id, s->state == DISPATCH_EXPIRED ? "timed_out" : "cancelled", lease_end_reason(s),
		    true, now_ms);
	}
	stored_lease_release(&l);
}

/* ---- a lease ended without a report ---- */

/* Of all its leases, also returned ones, so that machines cannot claim and return one dispatch for ever. */
enum { LEASES_PER_DISPATCH_MAX = 100, REASON_MAX_BYTES = 200 };

static void hand_over_lease(
    struct txn *d, const struct stored_lease *l, const char *conclusion, const char *why, int64_t now_ms)
{
	int64_t n_expired = db_int(
	    d, 0, "SELECT COUNT(*) FROM lease WHERE dispatch_id = ?1 AND state = 'expired'", V_TEXT(l->dispatch_id));
	struct stored_dispatch s;
	char *no_more = NULL; /* NULL: another machine may claim it */

	if (n_expired > LEASE_HANDOVERS_MAX)
		no_more = xasprintf("taken by a machine %lld times and never reported back; the last was %s",
		    (long long)n_expired, l->machine);
	else if (l->attempt >= LEASES_PER_DISPATCH_MAX)
		no_more = xasprintf("taken by a machine %lld times, most of them handed it back; the last was %s",
		    (long long)l->attempt, l->machine);
	if (lease_dispatch(d->view, l, &s) && no_more) {
		job_give_up(d, l->job_id, conclusion, no_more, true, now_ms);
		dispatch_enter(d, &s, DISPATCH_FAILED, no_more, now_ms);
		cells_moved(d, s.change_id, s.accelerator, CELLS_LEASES_EXHAUSTED, now_ms);
	} else if (s.id[0]) {
		/* The next attempt's job is shown instead of the ended attempt's. */
		job_give_up(d, l->job_id, conclusion, why, false, now_ms);
		dispatch_requeue(d, &s, now_ms);
		cells_moved(d, s.change_id, s.accelerator, CELLS_LEASE_ENDED, now_ms);
	}
	stored_dispatch_release(&s);
	free(no_more);
}

/* ---- renew ---- */

static void answer_renewal(struct renew_lease *o, enum lease_word word, const char *reason)
{
	o->word = word;
	snprintf(o->reason, sizeof(o->reason), "%s", reason ? reason : "");
}

static bool find_own_lease(
    const struct view *d, const char *id, const char *accelerator, const char *machine, struct stored_lease *ret)
{
	return LEASE_WHERE(
	    d, ret, "id = ?1 AND accelerator = ?2 AND machine = ?3", V_TEXT(id), V_TEXT(accelerator), V_TEXT(machine));
}

/* The last lease of a dispatch that still waits, if its machine has not reported that it stopped, and if neither the runner's
 * room nor the machine's claim was used for another since. */
static bool lease_may_resume(const struct view *d, const struct stored_lease *l, const struct stored_dispatch *s)
{
	return s->state == DISPATCH_QUEUED && s->is_current &&
	       !db_has(d, "SELECT 1 FROM lease WHERE dispatch_id = ?1 AND attempt > ?2 LIMIT 1", V_TEXT(l->dispatch_id),
		   V_INT(l->attempt)) &&
	       !db_has(d, "SELECT 1 FROM job WHERE id = ?1 AND digest IS NOT NULL", V_INT(l->job_id)) &&
	       !db_has(d,
		   "SELECT 1 FROM lease WHERE accelerator = ?1 AND machine = ?2 AND claim_id = ?3 AND state = 'active'",
		   V_TEXT(l->accelerator), V_TEXT(l->machine), V_TEXT(l->claim_id)) &&
	       (strcmp(s->event_type, EXPERIMENT_EVENT) == 0
		       ? lease_count_active(d, l->accelerator, l->runner)
		       : lease_count_first(d, l->accelerator, l->runner)) < l->max_parallel;
}

static void renew_expired_lease(struct txn *d, struct renew_lease *o, struct stored_lease *l)
{
	struct stored_dispatch s = {0};

	if (o->now_ms + o->lease_ms > l->until_ms && lease_dispatch(d->view, l, &s) &&
	    lease_may_resume(d->view, l, &s)) {
		if (strcmp(s.event_type, EXPERIMENT_EVENT) != 0)
			experiments_make_room(d, l, o->now_ms);
		l->lease_ms = o->lease_ms;
		l->until_ms = o->now_ms + o->lease_ms;
		if (lease_enter(d, l, LEASE_IS_ACTIVE, NULL, o->now_ms))
			db_exec(d, "UPDATE lease SET lease_ms = ?2, until_ms = ?3 WHERE id = ?1", V_TEXT(l->id),
			    V_INT(l->lease_ms), V_INT(l->until_ms));
		job_resume(d, l->job_id);
		dispatch_enter(d, &s, DISPATCH_RUNNING, NULL, o->now_ms);
		cells_moved(d, s.change_id, s.accelerator, CELLS_LEASE_RESUMED, o->now_ms);
		answer_renewal(o, LEASE_ACTIVE, NULL);
	} else {
		answer_renewal(o, LEASE_LOST, "the lease expired, and the work went on without this machine");
	}
	stored_dispatch_release(&s);
}

static int renew_lease_run(struct store_op *op, struct txn *d)
{
	struct renew_lease *o = CONTAINER_OF(op, struct renew_lease, op);
	struct stored_lease l;

	answer_renewal(o, LEASE_ACTIVE, NULL);
	if (db_exec_count(d,
		"UPDATE lease SET " LEASE_RENEWED " WHERE id = ?1"
		" AND accelerator = ?2 AND machine = ?3 AND state = 'active'",
		V_TEXT(o->lease_id), V_TEXT(o->accelerator), V_TEXT(o->machine), V_INT(o->now_ms),
		V_INT(o->lease_ms)) > 0)
		return 0;
	if (op->class == OP_INDEPENDENT) { /* what follows depends on more than the lease */
		op->class = OP_DECIDES;
		return 0;
	}
	if (!find_own_lease(d->view, o->lease_id, o->accelerator, o->machine, &l))
		answer_renewal(o, LEASE_LOST, "this machine has no such lease");
	else if (l.state == LEASE_IS_EXPIRED)
		renew_expired_lease(d, o, &l);
	else if (l.state == LEASE_IS_CANCELLED)
		answer_renewal(o, LEASE_CANCELLED, l.reason);
	else
		answer_renewal(
		    o, LEASE_LOST, l.state == LEASE_IS_DONE ? "it is reported already" : "it was handed back");
	stored_lease_release(&l);
	return 0;
}
STORE_INDEPENDENT(renew_lease)

/* ---- return ---- */

static int return_lease_run(struct store_op *op, struct txn *d)
{
	struct return_lease *o = CONTAINER_OF(op, struct return_lease, op);
	const char *reason = o->reason ? o->reason : "";
	struct stored_lease l;
	char *why;

	if (!find_own_lease(d->view, o->lease_id, o->accelerator, o->machine, &l))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	if (l.state == LEASE_IS_ACTIVE && (!o->granted_until_ms || l.until_ms == o->granted_until_ms)) {
		why = xasprintf("handed back by %s%s%.*s", l.machine, reason[0] ? ": " : "",
		    (int)utf8_cut(reason, strlen(reason), REASON_MAX_BYTES), reason);
		lease_enter(d, &l, LEASE_IS_RETURNED, why, o->now_ms);
		hand_over_lease(d, &l, "cancelled", why, o->now_ms);
		free(why);
	}
	stored_lease_release(&l);
	return 0;
}
STORE_OPERATION(return_lease)

/* ---- silent machines ---- */

enum { EXPIRE_MAX = 500 };

static int expire_leases_run(struct store_op *op, struct txn *d)
{
	struct expire_leases *o = CONTAINER_OF(op, struct expire_leases, op);
	struct stored_lease l;
	char *why;

	for (o->n_expired = 0; o->n_expired < EXPIRE_MAX; o->n_expired++) {
		if (!LEASE_WHERE(
			d, &l, "state = 'active' AND until_ms <= ?1 ORDER BY until_ms, id LIMIT 1", V_INT(o->now_ms)))
			break;
		why = xasprintf("%s sent no heartbeat for %llds", l.machine, (long long)(l.lease_ms / 1000));
		if (lease_enter(d, &l, LEASE_IS_EXPIRED, why, o->now_ms))
			hand_over_lease(d, &l, "stale", why, o->now_ms);
		free(why);
		stored_lease_release(&l);
	}
	o->next_due_ms = db_int(d, 0, "SELECT MIN(until_ms) FROM lease WHERE state = 'active'");
	return 0;
}
STORE_OPERATION(expire_leases)

/* ---- list ---- */

#define COLUMNS                                                                                                        \
	RECORD_SELECT(LEASE_ROW_RECORD)                                                                                \
	" FROM lease l LEFT JOIN dispatch x ON x.id = l.dispatch_id AND x.accelerator = "                              \
	"l.accelerator"                                                                                                \
	" AND x.runner = l.runner LEFT JOIN change c ON c.id = x.change_id"
#define NEWEST_FIRST " ORDER BY l.granted_ms DESC, l.id LIMIT "

int64_t leases_count_queued(const struct view *d, const char *accelerator)
{
	if (accelerator)
		return db_int(d, 0,
		    "SELECT COUNT(*) FROM dispatch WHERE kind = 'pull' AND state = 'queued' AND accelerator = ?1",
		    V_TEXT(accelerator));
	return db_int(d, 0, "SELECT COUNT(*) FROM dispatch WHERE kind = 'pull' AND state = 'queued'");
}

static int list_leases_run(struct store_query *q, const struct view *d)
{
	struct list_leases *l = CONTAINER_OF(q, struct list_leases, q);
	int64_t limit = l->limit > 0 ? l->limit : INT64_MAX;
	struct rows *r;

	l->n_queued = leases_count_queued(d, l->accelerator);
	if (l->only_active && l->accelerator)
		r = db_rows(d, COLUMNS " WHERE l.state = 'active' AND l.accelerator = ?1" NEWEST_FIRST "?2",
		    V_TEXT(l->accelerator), V_INT(limit));
	else if (l->only_active)
		r = db_rows(d, COLUMNS " WHERE l.state = 'active'" NEWEST_FIRST "?1", V_INT(limit));
	else if (l->accelerator)
		r = db_rows(
		    d, COLUMNS " WHERE l.accelerator = ?1" NEWEST_FIRST "?2", V_TEXT(l->accelerator), V_INT(limit));
	else
		r = db_rows(d, COLUMNS NEWEST_FIRST "?1", V_INT(limit));
	RECORDS_READ(r, lease_row, l->list, l->n);
	return 0;
}
STORE_LIST(list_leases, lease_row)
