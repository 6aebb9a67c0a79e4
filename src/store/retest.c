#include "store/retest.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"

const char *retest_result_name(enum retest_result r)
{
	static const char *const names[N_RETEST_RESULTS] = {
	    [RETEST_STARTED] = "started",
	    [RETEST_NOT_MEANT] = "not meant",
	    [RETEST_RUNNING] = "still running",
	    [RETEST_HELD] = "held",
	    [RETEST_CLEAN] = "clean",
	    [RETEST_NO_SUITE] = "no such suite",
	};

	return names[r];
}

void retested_release(struct retested *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].accelerator);
		free(list[i].runner);
	}
	free(list);
}

static bool is_declined(const struct stored_dispatch *s)
{
	return s->state == DISPATCH_CANCELLED && s->held_reason && s->last_error &&
	       str_has_prefix(s->last_error, "declined by ");
}

/* Everything that it reported is there, and none of it is red. */
static bool is_clean(struct db *d, const struct stored_dispatch *s)
{
	return s->state == DISPATCH_DONE &&
	       db_has(d,
		   "SELECT 1 FROM job WHERE change_id = ?1 AND dispatch_id = ?2"
		   " AND accelerator = ?3 AND is_current = 1 LIMIT 1",
		   V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator)) &&
	       !db_has(d,
		   "SELECT 1 FROM job WHERE change_id = ?1 AND dispatch_id = ?2"
		   " AND accelerator = ?3 AND is_current = 1"
		   " AND (verdict IS NULL OR verdict IN ('FAIL', 'ERROR', 'MISS')) LIMIT 1",
		   V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator));
}

/* A job without tests is a cell of its workflow: that name is its suite. */
static bool has_suite(struct db *d, const struct stored_dispatch *s, const char *suite)
{
	return db_has(d,
	    "SELECT 1 FROM job j WHERE j.change_id = ?1 AND j.dispatch_id = ?2"
	    " AND j.accelerator = ?3 AND j.runner = ?4 AND j.is_current = 1"
	    " AND (lower(j.workflow) = lower(?5) OR EXISTS (SELECT 1 FROM result r"
	    "  JOIN test t ON t.id = r.test_id WHERE r.job_id = j.id"
	    "  AND lower(t.suite) = lower(?5))) LIMIT 1",
	    V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator), V_TEXT(s->runner),
	    V_TEXT(suite));
}

static bool is_about(const struct retest *r, const struct plan_want *w)
{
	return (!r->accelerator || strcasecmp(r->accelerator, w->accelerator) == 0) &&
	       (!r->runner || strcmp(r->runner, w->runner) == 0);
}

static enum retest_result choose(struct db *d, const struct retest *r, const struct plan_want *w,
    const struct stored_dispatch *last)
{
	/* The infra repository itself hears of each change; only who it hosts is tested. */
	if (!w->accelerator[0] || !is_about(r, w))
		return RETEST_NOT_MEANT;
	if (last && last->state == DISPATCH_HELD)
		return w->held_reason ? RETEST_HELD : RETEST_STARTED;
	if (last && is_declined(last))
		return RETEST_HELD;
	if (last && dispatch_is_unfinished(last->state))
		return RETEST_RUNNING;
	if (r->suite && !(last && has_suite(d, last, r->suite)))
		return RETEST_NO_SUITE;
	return !r->accelerator && last && is_clean(d, last) ? RETEST_CLEAN : RETEST_STARTED;
}

enum retest_result retest_choose(struct db *d, const struct plan *p, const struct plan_want *w,
    const struct stored_dispatch *last)
{
	enum retest_result best = RETEST_NOT_MEANT;

	for (size_t i = 0; i < p->n_retests && best != RETEST_STARTED; i++) {
		enum retest_result one = choose(d, &p->retests[i], w, last);

		if (one != RETEST_NOT_MEANT && (best == RETEST_NOT_MEANT || one < best))
			best = one;
	}
	return best;
}
