#include "store/lease_handover.h"

#include "base/alloc.h"
#include "base/str.h"
#include "store/cells_moved.h"
#include "store/job_row.h"
#include "store/leases.h"

/* However often it is handed back: a farm that takes and returns one change for ever ends. */
enum { LEASES_PER_DISPATCH_MAX = 100, REASON_MAX_BYTES = 200 };

/* NULL: another machine may have it. free(). */
static char *why_no_more(struct db *d, const struct stored_lease *l)
{
	int64_t n =
	    db_int(d, 0, "SELECT COUNT(*) FROM lease WHERE dispatch_id = ?1 AND state = 'expired'",
		V_TEXT(l->dispatch_id));

	if (n > LEASE_HANDOVERS_MAX)
		return xasprintf("taken by a machine %lld times and never reported back; the last"
				 " was %s",
		    (long long)n, l->machine);
	if (l->attempt >= LEASES_PER_DISPATCH_MAX)
		return xasprintf("taken by a machine %lld times, most of them handed it back; the"
				 " last was %s",
		    (long long)l->attempt, l->machine);
	return NULL;
}

static void fail_dispatch(struct db *d, const struct stored_lease *l, struct stored_dispatch *s,
    const char *conclusion, const char *why, int64_t now_ms)
{
	job_give_up(d, l->job_id, conclusion, why, true, now_ms);
	dispatch_enter(d, s, DISPATCH_FAILED, why, now_ms);
	cells_moved(d, s->change_id, s->accelerator, CELLS_LEASES_EXHAUSTED, now_ms);
}

/* What the ended attempt's job says is its own story: the next attempt's is shown. */
static void wait_again(struct db *d, const struct stored_lease *l, struct stored_dispatch *s,
    const char *conclusion, const char *why, int64_t now_ms)
{
	job_give_up(d, l->job_id, conclusion, why, false, now_ms);
	dispatch_requeue(d, s, now_ms);
	cells_moved(d, s->change_id, s->accelerator, CELLS_LEASE_ENDED, now_ms);
}

static void hand_over(struct db *d, const struct stored_lease *l, const char *conclusion,
    const char *why, int64_t now_ms)
{
	char *no_more = why_no_more(d, l);
	struct stored_dispatch s = {0};

	if (lease_dispatch(d, l, &s) && no_more)
		fail_dispatch(d, l, &s, conclusion, no_more, now_ms);
	else if (s.id[0])
		wait_again(d, l, &s, conclusion, why, now_ms);
	stored_dispatch_release(&s);
	free(no_more);
}

void lease_hand_back(struct db *d, const struct stored_lease *l, const char *reason, int64_t now_ms)
{
	const char *said = reason ? reason : "";
	char *why = xasprintf("handed back by %s%s%.*s", l->machine, said[0] ? ": " : "",
	    (int)utf8_cut(said, strlen(said), REASON_MAX_BYTES), said);

	lease_end(d, l, LEASE_IS_RETURNED, why, now_ms);
	hand_over(d, l, "cancelled", why, now_ms);
	free(why);
}

void lease_run_out(struct db *d, const struct stored_lease *l, int64_t now_ms)
{
	char *why =
	    xasprintf("%s was not heard of for %llds", l->machine, (long long)(l->lease_ms / 1000));

	lease_end(d, l, LEASE_IS_EXPIRED, why, now_ms);
	hand_over(d, l, "stale", why, now_ms);
	free(why);
}
