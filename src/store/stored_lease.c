#include "store/stored_lease.h"

#include "base/alloc.h"
#include "base/log.h"
#include "store/counters.h"
#include "store/experiments.h"
#include "store/job_row.h"
#include "store/store.h"

static const char *const state_names[] = {
#define X(e, name) name,
    LEASE_STATES(X)
#undef X
};

const char *lease_state_name(enum lease_state s)
{
	return state_names[s];
}

static enum lease_state state_parse(const char *name)
{
	int s = 0;

	while (s < N_LEASE_STATES - 1 && strcmp(state_names[s], name) != 0)
		s++;
	return (enum lease_state)s;
}

bool stored_lease_take(struct rows *r, struct stored_lease *ret)
{
	bool is_found = rows_next(r);

	*ret = (struct stored_lease){0};
	if (is_found) {
		*ret = (struct stored_lease){
		    .accelerator = rows_dup(r, 2),
		    .runner = rows_dup(r, 3),
		    .machine = rows_dup(r, 4),
		    .claim_id = rows_dup(r, 5),
		    .attempt = rows_int(r, 6),
		    .job_id = rows_int(r, 7),
		    .max_parallel = rows_int(r, 8),
		    .state = state_parse(rows_text(r, 9)),
		    .reason = rows_dup(r, 10),
		    .lease_ms = rows_int(r, 11),
		    .until_ms = rows_int(r, 12),
		};
		snprintf(ret->id, sizeof(ret->id), "%s", rows_text(r, 0));
		snprintf(ret->dispatch_id, sizeof(ret->dispatch_id), "%s", rows_text(r, 1));
	}
	rows_end(r);
	return is_found;
}

void stored_lease_release(struct stored_lease *l)
{
	free(l->accelerator);
	free(l->runner);
	free(l->machine);
	free(l->claim_id);
	free(l->reason);
	*l = (struct stored_lease){0};
}

static enum counter counter_of(enum lease_state state)
{
	return (enum counter)((int)COUNT_LEASES + (int)state);
}

void lease_insert(struct db *d, const struct stored_lease *l, int64_t now_ms)
{
	db_exec(d,
	    "INSERT INTO lease (id, dispatch_id, accelerator, runner, machine, claim_id, attempt,"
	    " job_id, max_parallel, state, lease_ms, until_ms, granted_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'active', ?10, ?11, ?12)",
	    V_TEXT(l->id), V_TEXT(l->dispatch_id), V_TEXT(l->accelerator), V_TEXT(l->runner),
	    V_TEXT(l->machine), V_TEXT(l->claim_id), V_INT(l->attempt), V_INT_OR_NULL(l->job_id),
	    V_INT(l->max_parallel), V_INT(l->lease_ms), V_INT(l->until_ms), V_INT(now_ms));
	counter_add(d, COUNT_LEASES + LEASE_IS_ACTIVE, 1);
}

void lease_end(struct db *d, const struct stored_lease *l, enum lease_state to, const char *reason,
    int64_t now_ms)
{
	if (!db_exec(d,
		"UPDATE lease SET state = ?2, reason = ?3, ended_ms = ?4"
		" WHERE id = ?1 AND state = 'active'",
		V_TEXT(l->id), V_TEXT(lease_state_name(to)), V_TEXT(reason), V_INT(now_ms)))
		return;
	log_event(LOG_DEBUG, "lease_ended", LOG_S("lease", l->id),
	    LOG_S("dispatch", l->dispatch_id), LOG_S("machine", l->machine),
	    LOG_S("as", lease_state_name(to)), LOG_S("reason", reason ? reason : ""));
	counter_add(d, counter_of(LEASE_IS_ACTIVE), -1);
	counter_add(d, counter_of(to), 1);
	db_tell(d, STORE_QUEUE); /* there is room for another */
	if (to == LEASE_IS_EXPIRED || to == LEASE_IS_CANCELLED)
		db_tell(d, STORE_LEASES);
}

void lease_take_up(struct db *d, const struct stored_lease *l)
{
	if (!db_exec(d,
		"UPDATE lease SET state = 'active', reason = NULL, ended_ms = NULL, lease_ms = ?2,"
		" until_ms = ?3 WHERE id = ?1 AND state = 'expired'",
		V_TEXT(l->id), V_INT(l->lease_ms), V_INT(l->until_ms)))
		return;
	counter_add(d, counter_of(LEASE_IS_EXPIRED), -1);
	counter_add(d, counter_of(LEASE_IS_ACTIVE), 1);
}

bool lease_of_attempt(
    struct db *d, const char *dispatch_id, int64_t attempt, struct stored_lease *ret)
{
	return stored_lease_take(
	    db_rows(d,
		"SELECT " LEASE_COLUMNS " FROM lease WHERE dispatch_id = ?1 AND attempt = ?2",
		V_TEXT(dispatch_id), V_INT(attempt)),
	    ret);
}

bool lease_is_overtaken(struct db *d, const struct stored_lease *l)
{
	return db_has(d,
	    "SELECT 1 FROM lease WHERE dispatch_id = ?1 AND attempt > ?2"
	    " AND state IN ('active', 'done') LIMIT 1",
	    V_TEXT(l->dispatch_id), V_INT(l->attempt));
}

int64_t lease_count_active(struct db *d, const char *accelerator, const char *runner)
{
	return db_int(d, 0,
	    "SELECT COUNT(*) FROM lease WHERE accelerator = ?1 AND runner = ?2"
	    " AND state = 'active'",
	    V_TEXT(accelerator), V_TEXT(runner));
}

int64_t lease_count_first(struct db *d, const char *accelerator, const char *runner)
{
	return db_int(d, 0,
	    "SELECT COUNT(*) FROM lease l WHERE l.accelerator = ?1 AND l.runner = ?2"
	    " AND l.state = 'active' AND NOT EXISTS (SELECT 1 FROM dispatch"
	    "  WHERE id = l.dispatch_id AND " IS_EXPERIMENT ")",
	    V_TEXT(accelerator), V_TEXT(runner));
}

bool lease_dispatch(struct db *d, const struct stored_lease *l, struct stored_dispatch *ret)
{
	struct dispatch_list list = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE id = ?1 AND accelerator = ?2"
	    " AND runner = ?3",
	    V_TEXT(l->dispatch_id), V_TEXT(l->accelerator), V_TEXT(l->runner)));
	bool is_found = list.n == 1; /* the key */

	if (is_found) {
		*ret = list.at[0];
		list.n = 0;
	}
	dispatch_list_release(&list);
	return is_found;
}

/* ---- the dispatch ends, and the machine does not know yet ---- */

static const char *why_over(const struct stored_dispatch *s)
{
	switch (s->state) {
	case DISPATCH_SUPERSEDED:
		return s->is_current ? "superseded by a newer push" : "asked for once more";
	case DISPATCH_CANCELLED:
		return "closed, or no longer wanted";
	case DISPATCH_DONE:
		return "somebody else reported it";
	case DISPATCH_EXPIRED:
	case DISPATCH_FAILED:
	case DISPATCH_HELD:
	case DISPATCH_QUEUED:
	case DISPATCH_SENT:
	case DISPATCH_ACKNOWLEDGED:
	case DISPATCH_RUNNING:
	case N_DISPATCH_STATES:
		break;
	}
	return s->last_error ? s->last_error : dispatch_state_name(s->state);
}

static const char *conclusion_of(enum dispatch_state s)
{
	return s == DISPATCH_EXPIRED ? "timed_out" : "cancelled";
}

void leases_follow(struct db *d, const struct stored_dispatch *s, int64_t now_ms)
{
	struct stored_lease l;

	if (s->state == DISPATCH_RUNNING)
		return;
	if (s->state == DISPATCH_QUEUED)
		db_tell(d, STORE_QUEUE);
	if (stored_lease_take(db_rows(d,
				  "SELECT " LEASE_COLUMNS
				  " FROM lease WHERE dispatch_id = ?1 AND state = 'active'",
				  V_TEXT(s->id)),
		&l)) {
		lease_end(d, &l, LEASE_IS_CANCELLED, why_over(s), now_ms);
		job_give_up(d, l.job_id, conclusion_of(s->state), why_over(s), true, now_ms);
	}
	stored_lease_release(&l);
}
