/* Which experiments are wanted, and how one is called off. */
#include "store/experiments.h"

#include "base/alloc.h"
#include "base/strv.h"
#include "store/cells_moved.h"
#include "store/experiment_rows.h"
#include "store/plan_apply.h"
#include "store/requests.h"
#include "store/stored_dispatch.h"

enum {
	/* Where more tests need both sides, the head goes first: most of them turn out to be flaky there. */
	BOTH_SIDES_MAX = 8,
	CELLS_MAX = 2000, /* looked at for one runner */
};

bool experiment_is_run(struct db *d, int64_t change_id)
{
	return db_int(d, 0, "SELECT experiment_id FROM change WHERE id = ?1", V_INT(change_id));
}

/* ---- an experiment ends before its time ---- */

/* A started one ends first as a row, so that its dispatch, which ends with it, finds nothing left to follow. */
static void cancel(struct db *d, const struct experiment *e, const char *why, int64_t now_ms)
{
	struct dispatch_list l;

	/* the end of its counterpart may have been its own */
	if (!db_has(
		d, "SELECT 1 FROM experiment WHERE id = ?1 AND " EXPERIMENT_IS_OPEN, V_INT(e->id)))
		return;
	experiment_end(d, e, "cancelled", why, now_ms);
	experiment_sharers_due(d, e, now_ms);
	if (!e->run_change_id)
		return;
	l = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE change_id = ?1 AND is_current = 1",
	    V_INT(e->run_change_id)));
	for (size_t i = 0; i < l.n; i++)
		if (dispatch_enter(d, &l.at[i], DISPATCH_CANCELLED, why, now_ms)) {
			request_drop(d, &l.at[i], now_ms);
			cells_moved(d, e->run_change_id, e->accelerator, CELLS_CANCELLED, now_ms);
		}
	dispatch_list_release(&l);
	experiment_counterpart_moves(d, e, now_ms);
}

/* One that Outpost planned by itself and that never began leaves no trace. */
static void give_up(struct db *d, const struct experiment *e, const char *why, int64_t now_ms)
{
	if (e->run_change_id || e->is_stress) {
		cancel(d, e, why, now_ms);
	} else {
		experiment_delete(d, e->id);
		experiment_sharers_due(d, e, now_ms);
	}
}

int experiments_call_off(
    struct db *d, int64_t change_id, const char *accelerator, const char *why, int64_t now_ms)
{
	struct experiment_list l = experiments_take(db_rows(d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE change_id = ?1"
	    " AND (?2 IS NULL OR accelerator = ?2) AND " EXPERIMENT_IS_OPEN
	    " ORDER BY accelerator, id",
	    V_INT(change_id), V_TEXT(accelerator)));
	int n = (int)l.n;

	for (size_t i = 0; i < l.n; i++)
		cancel(d, &l.at[i], why, now_ms);
	for (size_t i = 0; i < l.n; i++)
		if (!i || strcmp(l.at[i].accelerator, l.at[i - 1].accelerator) != 0)
			cells_moved(
			    d, change_id, l.at[i].accelerator, CELLS_EXPERIMENT_MOVED, now_ms);
	experiment_list_release(&l);
	return n;
}

/* ---- which tests ---- */

struct review {
	struct db *d;
	int64_t change_id;
	const char *accelerator;
	int64_t now_ms;
	bool has_moved;
};

struct wanted {
	int64_t *tests[N_EXPERIMENT_SIDES];
	size_t n[N_EXPERIMENT_SIDES];
};

static void want(struct wanted *w, enum experiment_side side, int64_t test_id)
{
	w->tests[side] = xrealloc(w->tests[side], (w->n[side] + 1) * sizeof(int64_t));
	w->tests[side][w->n[side]++] = test_id;
}

#define UNDECIDED_OF(v, u)                                                                         \
	V_INT((v)->change_id), V_TEXT((v)->accelerator), V_TEXT((u)->dispatch_id),                 \
	    V_TEXT((u)->runner), V_INT((u)->is_by_test)

/* An experiment b on the merge base showed what the test does in job j, or in a job whose name is new here and may stand
 * for any. It may explain another change. */
#define IS_KNOWN_ON_BASE                                                                           \
	"EXISTS (SELECT 1 FROM experiment e CROSS JOIN experiment_test q"                          \
	" ON q.experiment_id = e.id AND q.test_id = v.test_id"                                     \
	" CROSS JOIN job b ON b.change_id = e.run_change_id AND b.accelerator = e.accelerator"     \
	" WHERE e.accelerator = ?2 AND e.sha = ?7 AND e.side = 'base' AND e.runner = ?4"           \
	" AND e.state = 'done' AND (b.name = j.name OR NOT EXISTS (SELECT 1 FROM job o"            \
	"  WHERE o.change_id = ?1 AND o.accelerator = ?2 AND o.runner = ?4 AND o.is_current = 1"   \
	"  AND o.name = b.name)) AND (EXISTS (SELECT 1 FROM result s INDEXED BY result_of_test "   \
	"WHERE s.job_id = b.id"                                                                    \
	"   AND s.test_id = v.test_id AND s.status IN ('PASS', 'FAIL', 'ERROR'))"                  \
	"  OR (b.n_tests = 0 AND EXISTS (SELECT 1 FROM verdict s WHERE s.change_id = b.change_id"  \
	"   AND s.accelerator = ?2 AND s.test_id = v.test_id AND s.job_id = b.id"                  \
	"   AND s.status IN ('PASS', 'FAIL', 'ERROR', 'DONE')))))"

/* An outcome on the merge base is used again, and two changes do not run one test there at the same time. */
static bool is_known_on_base(const struct review *v, const struct rerunner *u, int64_t test_id)
{
	return !db_has(v->d,
		   "SELECT 1 FROM verdict v CROSS JOIN test t ON t.id = v.test_id"
		   " WHERE v.change_id = ?1 AND v.accelerator = ?2 AND v.test_id = ?6"
		   " AND EXISTS (SELECT 1" RED_JOBS " AND NOT " IS_KNOWN_ON_BASE ")",
		   UNDECIDED_OF(v, u), V_INT(test_id), V_TEXT(u->sha[EXPERIMENT_BASE])) ||
	       db_has(v->d,
		   "SELECT 1 FROM experiment e CROSS JOIN experiment_test t"
		   " ON t.experiment_id = e.id AND t.test_id = ?4 WHERE e.accelerator = ?1"
		   " AND e.sha = ?2 AND e.side = 'base' AND e.runner = ?5 AND e.change_id <> ?3"
		   " AND e." EXPERIMENT_IS_OPEN " AND e.cause = 'auto' LIMIT 1",
		   V_TEXT(v->accelerator), V_TEXT(u->sha[EXPERIMENT_BASE]), V_INT(v->change_id),
		   V_INT(test_id), V_TEXT(u->runner));
}

static struct wanted wanted_of(const struct review *v, const struct rerunner *u)
{
	struct wanted w = {.n = {0}};
	int64_t n_both =
	    db_int(v->d, 0, "SELECT COUNT(*) FROM (SELECT 1" UNDECIDED " AND v.needs = 3 LIMIT ?6)",
		UNDECIDED_OF(v, u), V_INT(BOTH_SIDES_MAX + 1));
	struct rows *r =
	    db_rows(v->d, "SELECT v.test_id, v.needs" UNDECIDED " ORDER BY v.test_id LIMIT ?6",
		UNDECIDED_OF(v, u), V_INT(CELLS_MAX));

	while (rows_next(r)) {
		int64_t test_id = rows_int(r, 0), needs = rows_int(r, 1);
		bool is_head_first = n_both > BOTH_SIDES_MAX && needs & NEEDS_HEAD;

		if (needs & NEEDS_HEAD && (int64_t)w.n[EXPERIMENT_HEAD] < u->n_tests_max)
			want(&w, EXPERIMENT_HEAD, test_id);
		if (needs & NEEDS_BASE && !is_head_first && u->sha[EXPERIMENT_BASE] &&
		    (int64_t)w.n[EXPERIMENT_BASE] < u->n_tests_max &&
		    !is_known_on_base(v, u, test_id))
			want(&w, EXPERIMENT_BASE, test_id);
	}
	return w;
}

static void wanted_release(struct wanted *w)
{
	for (int side = 0; side < N_EXPERIMENT_SIDES; side++)
		free(w->tests[side]);
}

/* ---- one side of one runner ---- */

/* A round is a run of the head and one of the merge base. Where one side needs fewer, the other may have the rest, as
 * long as all of its own runs had results: most tests of a merge base are known from another change, and a test that fails now
 * and then needs the head more often.
 *
 * One that an earlier run had, and that ended before it ran, does not count. The runner is not asked again for this dispatch
 * once it had no time for one until the end, or after a person called off what explains it, on either side. */
static bool may_begin(
    const struct review *v, const struct rerunner *u, enum experiment_side side, int64_t *ret_round)
{
	struct rows *r = db_rows(v->d,
	    "WITH past AS (SELECT *, dispatch_id = ?5 AS is_own,"
	    "  (dispatch_id = ?5 OR (state <> 'cancelled' AND run_change_id IS NOT NULL)"
	    "   OR EXISTS (SELECT 1 FROM job j WHERE j.change_id = e.run_change_id)) AS has_begun"
	    "  FROM experiment e WHERE change_id = ?1 AND accelerator = ?2 AND runner = ?3"
	    "  AND cause = 'auto')"
	    " SELECT COALESCE(MAX(round) FILTER (WHERE side = ?4), 0) + 1,"
	    " COUNT(*) FILTER (WHERE has_begun AND side = ?4), COUNT(*) FILTER (WHERE has_begun),"
	    " COUNT(*) FILTER (WHERE has_begun AND side = ?4 AND state <> 'done'),"
	    " COUNT(*) FILTER (WHERE is_own"
	    "  AND ((side = ?4 AND started_ms IS NULL AND state = 'expired')"
	    "   OR (state = 'cancelled' AND reason LIKE '" CALLED_OFF_BY "%'))) FROM past",
	    V_INT(v->change_id), V_TEXT(v->accelerator), V_TEXT(u->runner),
	    V_TEXT(experiment_side_name(side)), V_TEXT(u->dispatch_id));
	bool may = false;

	if (rows_next(r)) {
		bool is_within = rows_int(r, 1) < u->n_rounds_max,
		     may_have_rest =
			 rows_int(r, 2) < N_EXPERIMENT_SIDES * u->n_rounds_max && !rows_int(r, 3);

		*ret_round = rows_int(r, 0);
		may = (is_within || may_have_rest) && !rows_int(r, 4);
	}
	rows_end(r);
	return may;
}

/* Does any of its tests still need that side? */
static bool is_useful(const struct review *v, const struct experiment *e)
{
	return db_has(v->d,
	    "SELECT 1 FROM experiment_test t CROSS JOIN verdict v ON v.change_id = ?2"
	    " AND v.accelerator = ?3 AND v.test_id = t.test_id WHERE t.experiment_id = ?1"
	    " AND v.attribution IS NOT NULL AND v.needs & ?4 LIMIT 1",
	    V_INT(e->id), V_INT(v->change_id), V_TEXT(v->accelerator),
	    V_INT(e->side == EXPERIMENT_HEAD ? NEEDS_HEAD : NEEDS_BASE));
}

/* No dispatch of its runner takes experiments for this change any more. */
static const char *why_no_rerunner(const struct review *v, const struct experiment *e)
{
	struct rows *r = db_rows(v->d,
	    "SELECT r.is_gone OR a.is_gone, " RUNNER_TAKES_EXPERIMENTS
	    " FROM runner r CROSS JOIN accelerator a ON a.name = r.accelerator"
	    " WHERE r.accelerator = ?1 AND r.name = ?2",
	    V_TEXT(e->accelerator), V_TEXT(e->runner));
	const char *why = "its runner is not registered any more";

	if (rows_next(r) && !rows_int(r, 0))
		why = rows_int(r, 1) ? "the run that it explains counts no longer"
				     : "its runner takes no reruns any more";
	rows_end(r);
	return why;
}

/* NULL: it goes on. */
static const char *why_not(
    const struct review *v, const struct rerunner *u, const struct experiment *e)
{
	if (!u)
		return why_no_rerunner(v, e);
	if (!u->sha[e->side] || strcmp(u->sha[e->side], e->sha) != 0)
		return "the pull request has another merge base";
	if (e->is_stress)
		return NULL;
	if (strcmp(u->dispatch_id, e->dispatch_id) != 0)
		return "the tests were asked for once more";
	return is_useful(v, e) ? NULL : "its tests are decided";
}

static void review_side(
    struct review *v, const struct rerunner *u, enum experiment_side side, const struct wanted *w)
{
	struct experiment_list l = experiments_take(db_rows(v->d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE change_id = ?1"
	    " AND accelerator = ?2 AND runner = ?3 AND side = ?4 AND cause = 'auto'"
	    " AND " EXPERIMENT_IS_OPEN,
	    V_INT(v->change_id), V_TEXT(v->accelerator), V_TEXT(u->runner),
	    V_TEXT(experiment_side_name(side))));
	int64_t round;

	if (l.n) {
		/* What has not left yet asks for what is wanted now. */
		bool is_planned = strcmp(l.at[0].state, "planned") == 0;

		if (is_planned && w->n[side])
			v->has_moved |=
			    experiment_tests_put(v->d, l.at[0].id, w->tests[side], w->n[side]);
		else if (is_planned) {
			give_up(v->d, &l.at[0], NULL, v->now_ms);
			v->has_moved = true;
		}
	} else if (w->n[side] && may_begin(v, u, side, &round)) {
		struct experiment e = {
		    .change_id = v->change_id,
		    .accelerator = (char *)v->accelerator,
		    .runner = u->runner,
		    .dispatch_id = u->dispatch_id,
		    .round = round,
		    .side = side,
		    .sha = u->sha[side],
		    .expires_ms = v->now_ms + u->finish_ms,
		};

		experiment_insert(v->d, &e, w->tests[side], w->n[side], v->now_ms);
		v->has_moved = true;
	}
	experiment_list_release(&l);
}

/* ---- all of it ---- */

static const struct rerunner *find(const struct rerunner *list, size_t n, const char *runner)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].runner, runner) == 0)
			return &list[i];
	return NULL;
}

static void drop_unwanted(struct review *v, const struct rerunner *list, size_t n)
{
	struct experiment_list l = experiments_take(db_rows(v->d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE change_id = ?1"
	    " AND accelerator = ?2 AND " EXPERIMENT_IS_OPEN,
	    V_INT(v->change_id), V_TEXT(v->accelerator)));

	for (size_t i = 0; i < l.n; i++) {
		const char *why = why_not(v, find(list, n, l.at[i].runner), &l.at[i]);

		if (!why)
			continue;
		give_up(v->d, &l.at[i], why, v->now_ms);
		v->has_moved = true;
	}
	experiment_list_release(&l);
}

static bool has_anything(const struct review *v)
{
	return db_has(v->d,
		   "SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
		   " AND attribution IS NOT NULL AND needs <> 0 LIMIT 1",
		   V_INT(v->change_id), V_TEXT(v->accelerator)) ||
	       db_has(v->d,
		   "SELECT 1 FROM experiment WHERE change_id = ?1 AND accelerator = ?2"
		   " AND " EXPERIMENT_IS_OPEN " LIMIT 1",
		   V_INT(v->change_id), V_TEXT(v->accelerator));
}

bool experiments_review(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct review v = {d, change_id, accelerator, now_ms, false};
	struct rerunner *list;
	size_t n;

	if (!has_anything(&v))
		return false;
	list = rerunners_of(d, change_id, accelerator, &n);
	drop_unwanted(&v, list, n);
	for (size_t i = 0; i < n; i++) {
		struct wanted w;

		if (!list[i].has_ended)
			continue;
		w = wanted_of(&v, &list[i]);
		for (int side = 0; side < N_EXPERIMENT_SIDES; side++)
			review_side(&v, &list[i], (enum experiment_side)side, &w);
		wanted_release(&w);
	}
	rerunners_release(list, n);
	return v.has_moved;
}
