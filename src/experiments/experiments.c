/* Decides which experiments are needed, and cancels the others. */
#include "experiments/experiments.h"

#include "experiments/experiment_rows.h"
#include "store/dispatches.h"
#include "store/requests.h"
#include "verdict/cells_moved.h"

enum {
	/* If more tests need both sides, the head runs first, because most of them prove to be flaky there. */
	BOTH_SIDES_MAX = 8,
	CELLS_MAX = 2000, /* read for one runner */
	SAMPLE_TESTS = 4, /* of the tests that look like a bad machine */
	PAUSES_MAX = 4,
	EXPERIMENTS_PER_ROUND_MAX = 8, /* on one side, with the cancelled ones */
};
/* The first pause before a bad machine is tried again. Each further pause is twice as long. */
static const int64_t FIRST_PAUSE_MS = INT64_C(3600) * 1000;

bool experiment_is_run(const struct view *d, int64_t change_id)
{
	return db_int(d, 0, "SELECT experiment_id FROM change WHERE id = ?1", V_INT(change_id));
}

/* ---- an experiment ends before its time ---- */

/* A person cancels it (`by`), or else it ends for the reason `why`. Its row ends before its dispatch, so that the end of
 * the dispatch does not change the experiment again. */
static void cancel_experiment(struct txn *d, struct experiment *e, const char *by, const char *why, int64_t now_ms)
{
	struct dispatch_list l;

	/* the end of the other side may already have ended this one */
	if (!experiment_is_open(d->view, e))
		return;
	if (by)
		experiment_cancel_by(d, e, by, now_ms);
	else
		experiment_enter(d, e, EXPERIMENT_IS_CANCELLED, why, now_ms);
	experiment_sharers_due(d, e, now_ms);
	if (!e->run_change_id)
		return;
	l = experiment_dispatches(d->view, e);
	for (size_t i = 0; i < l.n; i++)
		if (by ? dispatch_end_by(d, &l.at[i], ENDED_CANCELLED, by, now_ms)
		       : dispatch_enter(d, &l.at[i], DISPATCH_CANCELLED, why, now_ms)) {
			request_drop(d, &l.at[i], now_ms);
			cells_moved(d, e->run_change_id, e->accelerator, CELLS_CANCELLED, now_ms);
		}
	dispatch_list_release(&l);
	experiment_counterpart_moves(d, e, now_ms);
}

/* An experiment that Outpost planned itself and that never began leaves no trace. */
static void give_up_experiment(struct txn *d, struct experiment *e, const char *why, int64_t now_ms)
{
	if (e->run_change_id || e->is_stress) {
		cancel_experiment(d, e, NULL, why, now_ms);
	} else {
		experiment_delete(d, e->id);
		experiment_sharers_due(d, e, now_ms);
	}
}

int experiments_call_off(struct txn *d, int64_t change_id, const char *accelerator, const char *by, int64_t now_ms)
{
	struct experiment_list l = experiments_read(db_rows(d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE change_id = ?1"
	    " AND (?2 IS NULL OR accelerator = ?2) AND " EXPERIMENT_IS_OPEN " ORDER BY accelerator, id",
	    V_INT(change_id), V_TEXT(accelerator)));
	int n = (int)l.n;

	for (size_t i = 0; i < l.n; i++)
		cancel_experiment(d, &l.at[i], by, NULL, now_ms);
	for (size_t i = 0; i < l.n; i++)
		if (!i || strcmp(l.at[i].accelerator, l.at[i - 1].accelerator) != 0)
			cells_moved(d, change_id, l.at[i].accelerator, CELLS_EXPERIMENT_MOVED, now_ms);
	experiment_list_release(&l);
	return n;
}

/* ---- which tests ---- */

struct review {
	struct txn *d;
	int64_t change_id;
	const char *accelerator;
	int64_t now_ms;
	bool has_moved;
};

struct planned { /* the tests of one side */
	struct experiment_tests tests;
	int64_t not_before_ms; /* all wait until then for a good machine; 0: they do not wait */
};

static void add_test(struct planned *p, const struct rerunner *u, int64_t test_id, bool waits)
{
	struct experiment_tests *t = &p->tests;

	if ((int64_t)t->n == u->n_tests_max)
		return;
	*ARRAY_PUSH(t->at, t->n) = test_id;
	t->n_waiting += waits;
}

#define UNDECIDED_OF(v, u)                                                                                             \
	V_INT((v)->change_id), V_TEXT((v)->accelerator), V_TEXT((u)->dispatch_id), V_TEXT((u)->runner),                \
	    V_INT((u)->is_by_test)

/* A red cell that needs experiments. */
#define UNDECIDED_RECORD(F, S)                                                                                         \
	F(S, ID, test_id, NULL, "v.test_id", "")                                                                       \
	F(S, INT, needs, NULL, "v.needs", "")                                                                          \
	F(S, BOOL, waits, NULL, "v.needs & 4", "For a good machine: NEEDS_GOOD_MACHINE.")
RECORD_LOCAL(undecided, UNDECIDED_RECORD)
struct undecided_list { /* those that need this side now */
	struct undecided at[CELLS_MAX];
	size_t n;
};

static void read_undecided(
    const struct review *v, const struct rerunner *u, enum experiment_side side, struct undecided_list *l)
{
	int64_t n_both =
	    db_int(v->d, 0, "SELECT COUNT(*) FROM (SELECT 1" UNDECIDED " AND (v.needs & 7) = 3 LIMIT ?6) both_sides",
		UNDECIDED_OF(v, u), V_INT(BOTH_SIDES_MAX + 1));
	bool is_after_head =
	    n_both <= BOTH_SIDES_MAX ||
	    db_has(v->d,
		"SELECT 1 FROM experiment WHERE change_id = ?1 AND accelerator = ?2 AND dispatch_id = ?3"
		" AND runner = ?4 AND side = 'head' AND cause = 'auto' AND state = " EXPERIMENT_SQL_DONE " LIMIT 1",
		V_INT(v->change_id), V_TEXT(v->accelerator), V_TEXT(u->dispatch_id), V_TEXT(u->runner));
	struct rows *r =
	    db_rows(v->d, RECORD_SELECT(UNDECIDED_RECORD) UNDECIDED " ORDER BY v.needs & 4, v.test_id LIMIT ?6",
		UNDECIDED_OF(v, u), V_INT(CELLS_MAX));

	l->n = 0;
	while (rows_next(r)) {
		struct undecided *cell = &l->at[l->n];
		bool is_needed;

		record_read(r, &undecided_record, cell);
		is_needed = cell->needs & NEEDS_HEAD;
		/* two changes do not run one test on their merge base at the same time, because the outcome counts for
		 * both */
		if (side == EXPERIMENT_BASE)
			is_needed = cell->needs & NEEDS_BASE && u->sha[EXPERIMENT_BASE] &&
				    (is_after_head || !is_needed) &&
				    !db_has(v->d,
					"SELECT 1 WHERE " ANOTHER_RUNS_ON_BASE("?1", "?2", "?3", "?4", "e.runner = ?5"),
					V_INT(v->change_id), V_TEXT(v->accelerator), V_TEXT(u->sha[EXPERIMENT_BASE]),
					V_INT(cell->test_id), V_TEXT(u->runner));
		l->n += is_needed;
	}
}

/* No more of the tests of experiment e that waited for a good machine passed than failed. */
#define HAD_BAD_MACHINE                                                                                                \
	"(SELECT COALESCE(SUM(v.status = 'PASS'), 0) <= COALESCE(SUM(v.status IN ('FAIL', 'ERROR')), 0)"               \
	" FROM experiment_test t LEFT JOIN cell v ON v.change_id = e.run_change_id"                                    \
	" AND v.accelerator = e.accelerator AND v.test_id = t.test_id WHERE t.experiment_id = e.id AND t.waits = 1)"
#define HAS_WAITED "EXISTS (SELECT 1 FROM experiment_test t WHERE t.experiment_id = e.id AND t.waits = 1)"

#define MACHINE_TRY_RECORD(F, S)                                                                                       \
	F(S, ID, id, NULL, "e.id", "")                                                                                 \
	F(S, TIME, ended_ms, NULL, "e.ended_ms", "")                                                                   \
	F(S, BOOL, was_bad, NULL, HAD_BAD_MACHINE, "")
RECORD_LOCAL(machine_try, MACHINE_TRY_RECORD)
/* How the experiments on one side ended for the tests that waited for a good machine. */
struct machine_tries {
	int64_t n, n_bad;
	struct machine_try last;
};

static struct machine_tries read_tries(const struct review *v, const struct rerunner *u, enum experiment_side side)
{
	struct machine_tries tries = {.n = 0};
	struct rows *r = db_rows(v->d,
	    RECORD_QUERY(MACHINE_TRY_RECORD, "FROM experiment e WHERE e.change_id = ?1 AND e.accelerator = ?2"
					     " AND e.runner = ?3 AND e.side = ?4 AND e.cause = 'auto'"
					     " AND e.state = " EXPERIMENT_SQL_DONE " AND " HAS_WAITED " ORDER BY e.id"),
	    V_INT(v->change_id), V_TEXT(v->accelerator), V_TEXT(u->runner), V_TEXT(experiment_side_name(side)));

	while (rows_next(r)) {
		record_read(r, &machine_try_record, &tries.last);
		tries.n++;
		tries.n_bad += tries.last.was_bad;
	}
	return tries;
}

/* A bad machine is tried again after a pause. Each pause is twice as long as the one before it. */
static int64_t next_try_ms(const struct review *v, const struct rerunner *u, const struct machine_tries *tries)
{
	int64_t n = tries->n_bad < PAUSES_MAX ? tries->n_bad : PAUSES_MAX, pause_ms = FIRST_PAUSE_MS << (n - 1),
		most_ms = u->finish_ms / 2, at_ms;

	if (pause_ms > most_ms)
		pause_ms = most_ms;
	at_ms = tries->last.ended_ms + pause_ms;
	return at_ms < v->now_ms + pause_ms ? at_ms : v->now_ms + pause_ms; /* after a clock jump */
}

static bool was_in_experiment(const struct review *v, int64_t experiment_id, int64_t test_id)
{
	return db_has(v->d, "SELECT 1 FROM experiment_test WHERE experiment_id = ?1 AND test_id = ?2",
	    V_INT(experiment_id), V_INT(test_id));
}

/* Tests that look as if a bad machine failed them: a sample of them runs first, because a rerun on the same machine would
 * only fail again. If the sample passed, the others follow. If it failed, it runs again later, or as soon as a machine is
 * good. A runner that runs everything needs no sample. */
static void add_tests_that_wait(const struct review *v, const struct rerunner *u, enum experiment_side side,
    const struct undecided_list *l, struct planned *p)
{
	struct machine_tries tries = read_tries(v, u, side),
			     other = read_tries(v, u, side == EXPERIMENT_HEAD ? EXPERIMENT_BASE : EXPERIMENT_HEAD);
	/* the other side passed since the last try, so a machine is good now */
	bool is_good_now = other.n && !other.last.was_bad && other.last.ended_ms > tries.last.ended_ms;
	size_t most = u->is_by_test && (tries.last.was_bad || !tries.n) ? SAMPLE_TESTS : CELLS_MAX;
	bool is_again = false; /* a test of the last sample still waits */

	if (tries.last.was_bad && !is_good_now) {
		int64_t at_ms = next_try_ms(v, u, &tries);

		if (p->tests.n && v->now_ms < at_ms)
			return; /* others run now, and these wait */
		if (!p->tests.n)
			p->not_before_ms = at_ms;
	}
	for (size_t i = 0; i < l->n; i++)
		is_again |=
		    l->at[i].waits && tries.last.was_bad && was_in_experiment(v, tries.last.id, l->at[i].test_id);
	for (size_t i = 0; i < l->n && most > 0; i++)
		if (l->at[i].waits && (!is_again || was_in_experiment(v, tries.last.id, l->at[i].test_id))) {
			add_test(p, u, l->at[i].test_id, true);
			most--;
		}
}

/* ---- one side of one runner ---- */

/* An experiment that ran, or may still run. One that was cancelled before any of its jobs was reported does not count: a
 * later job of the first run may decide its tests. Nor does one that belongs to an earlier dispatch and never began. ?5:
 * the dispatch. */
#define HAS_BEGUN                                                                                                      \
	"((e.state <> " EXPERIMENT_SQL_CANCELLED " AND (e.dispatch_id = ?5 OR e.run_change_id IS NOT NULL))"           \
	" OR EXISTS (SELECT 1 FROM job j WHERE j.change_id = e.run_change_id))"
#define PAST_EXPERIMENTS                                                                                               \
	" FROM experiment e WHERE e.change_id = ?1 AND e.accelerator = ?2 AND e.runner = ?3"                           \
	" AND e.cause = 'auto' AND e.state <> " EXPERIMENT_SQL_PLANNED

/* Each test has n_rounds_max rounds: one run of the head and one of the merge base each. If one side needs fewer runs, the
 * other may have the rest as long as all of its runs had results: most tests of a merge base are known from another change,
 * and a test that fails now and then needs the head more often. */
static bool has_round_left(const struct review *v, const struct rerunner *u, enum experiment_side side, int64_t test_id)
{
	return db_has(v->d,
	    "SELECT 1 FROM (SELECT COUNT(*) AS n_runs, COUNT(*) FILTER (WHERE e.side = ?4) AS n_here,"
	    " COUNT(*) FILTER (WHERE e.side = ?4 AND e.state <> " EXPERIMENT_SQL_DONE ") AS n_lost" PAST_EXPERIMENTS
	    " AND " HAS_BEGUN " AND EXISTS (SELECT 1 FROM experiment_test t WHERE t.experiment_id = e.id"
	    "  AND t.test_id = ?6 AND t.waits = 0)) past WHERE n_here < ?7 OR (n_runs < 2 * ?7 AND n_lost = 0)",
	    V_INT(v->change_id), V_TEXT(v->accelerator), V_TEXT(u->runner), V_TEXT(experiment_side_name(side)),
	    V_TEXT(u->dispatch_id), V_INT(test_id), V_INT(u->n_rounds_max));
}

/* Whether the runner may get another experiment on this side. The number of all experiments of a side is bounded, so that a
 * verdict that changes often cannot start them without end. The runner gets no further request for this dispatch after an
 * experiment of this side expired before it began, or a person cancelled one on either side.
 *
 * Tests that wait for a good machine share their rounds, because a sample of them runs first. They have as many rounds as
 * one other test, and as many more that pass, because the others of these tests follow the sample. */
#define PAST_EXPERIMENTS_RECORD(F, S)                                                                                  \
	F(S, INT, next_round, NULL, "COALESCE(MAX(round) FILTER (WHERE side = ?4), 0) + 1", "")                        \
	F(S, INT, n_waited, NULL, "COUNT(*) FILTER (WHERE has_waited AND NOT is_good AND side = ?4)", "On this side.") \
	F(S, INT, n_waited_both, NULL, "COUNT(*) FILTER (WHERE has_waited AND NOT is_good)", "")                       \
	F(S, BOOL, has_lost, NULL,                                                                                     \
	    "COUNT(*) FILTER (WHERE has_waited AND side = ?4 AND state <> " EXPERIMENT_SQL_DONE ")",                   \
	    "One of these on this side began and has no result.")                                                      \
	F(S, BOOL, is_refused, NULL,                                                                                   \
	    "COUNT(*) FILTER (WHERE dispatch_id = ?5"                                                                  \
	    " AND ((side = ?4 AND started_ms IS NULL AND state = " EXPERIMENT_SQL_EXPIRED ")"                          \
	    " OR cancelled_by IS NOT NULL))",                                                                          \
	    "The runner gets no further request.")                                                                     \
	F(S, INT, n_good, NULL, "COUNT(*) FILTER (WHERE has_waited AND is_good AND side = ?4)", "")
RECORD_LOCAL(past_experiments, PAST_EXPERIMENTS_RECORD)

static bool may_experiment_begin(
    const struct review *v, const struct rerunner *u, enum experiment_side side, bool waits, int64_t *ret_round)
{
	struct past_experiments past = {0};
	int64_t n_max = u->n_rounds_max, n_both_max = N_EXPERIMENT_SIDES * n_max;

	record_read_first(db_rows(v->d,
			      "WITH past AS (SELECT e.*, " HAS_BEGUN " AND ?6 <> 0 AND " HAS_WAITED
			      " AS has_waited, e.state = " EXPERIMENT_SQL_DONE " AND NOT " HAD_BAD_MACHINE
			      " AS is_good" PAST_EXPERIMENTS ") " RECORD_SELECT(PAST_EXPERIMENTS_RECORD) " FROM past",
			      V_INT(v->change_id), V_TEXT(v->accelerator), V_TEXT(u->runner),
			      V_TEXT(experiment_side_name(side)), V_TEXT(u->dispatch_id), V_INT(waits)),
	    &past_experiments_record, &past);
	*ret_round = past.next_round;
	return (past.n_waited < n_max || (past.n_waited_both < n_both_max && !past.has_lost)) && !past.is_refused &&
	       past.next_round <= EXPERIMENTS_PER_ROUND_MAX * n_max && past.n_good < n_both_max;
}

/* The reason why an experiment ends. NULL: it goes on. u NULL: no dispatch of its runner accepts experiments for this
 * change. */
static const char *why_experiment_ends(const struct review *v, const struct rerunner *u, const struct experiment *e)
{
	if (!u) {
		int64_t takes = db_int(v->d, -1,
		    "SELECT CASE WHEN " RUNNER_ACCEPTS_EXPERIMENTS
		    " THEN 1 ELSE 0 END FROM runner r CROSS JOIN accelerator a ON a.name = r.accelerator"
		    " WHERE r.accelerator = ?1 AND r.name = ?2 AND r.is_gone = 0 AND a.is_gone = 0",
		    V_TEXT(e->accelerator), V_TEXT(e->runner));

		return takes < 0 ? "its runner is not registered any more"
		       : takes   ? "the run that it explains counts no longer"
				 : "its runner takes no reruns any more";
	}
	if (!u->sha[e->side] || strcmp(u->sha[e->side], e->sha) != 0)
		return "the pull request has another merge base";
	if (e->is_stress)
		return NULL;
	if (strcmp(u->dispatch_id, e->dispatch_id) != 0)
		return "the tests were asked for once more";
	if (db_has(v->d,
		"SELECT 1 FROM experiment_test t CROSS JOIN verdict v ON v.change_id = ?2"
		" AND v.accelerator = ?3 AND v.test_id = t.test_id WHERE t.experiment_id = ?1"
		" AND v.attribution IS NOT NULL AND (v.needs & ?4) <> 0 LIMIT 1",
		V_INT(e->id), V_INT(v->change_id), V_TEXT(v->accelerator),
		V_INT(e->side == EXPERIMENT_HEAD ? NEEDS_HEAD : NEEDS_BASE)))
		return NULL;
	return "its tests are decided";
}

/* may: whether tests that do not wait for a good machine may run, and whether those that do. */
static struct planned plan_tests(
    const struct review *v, const struct rerunner *u, enum experiment_side side, const bool may[2])
{
	struct undecided_list *l = xmalloc(sizeof(*l));
	struct planned p = {.not_before_ms = 0};
	bool has_waiting = false;

	read_undecided(v, u, side, l);
	for (size_t i = 0; i < l->n; i++) {
		if (!l->at[i].waits && may[false] && has_round_left(v, u, side, l->at[i].test_id))
			add_test(&p, u, l->at[i].test_id, false);
		has_waiting |= l->at[i].waits;
	}
	if (has_waiting && may[true])
		add_tests_that_wait(v, u, side, l, &p);
	free(l);
	return p;
}

static void review_side(struct review *v, const struct rerunner *u, enum experiment_side side)
{
	struct experiment_list l = experiments_read(db_rows(v->d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE change_id = ?1"
	    " AND accelerator = ?2 AND runner = ?3 AND side = ?4 AND cause = 'auto' AND " EXPERIMENT_IS_OPEN,
	    V_INT(v->change_id), V_TEXT(v->accelerator), V_TEXT(u->runner), V_TEXT(experiment_side_name(side))));
	bool is_planned = l.n && l.at[0].state == EXPERIMENT_IS_PLANNED, may[2];
	int64_t round = 0;

	for (int waits = 0; waits < 2; waits++)
		may[waits] = (is_planned || !l.n) && may_experiment_begin(v, u, side, waits, &round);
	if (may[false] || may[true]) {
		struct planned p = plan_tests(v, u, side, may);
		struct experiment e = {
		    .change_id = v->change_id,
		    .accelerator = (char *)v->accelerator,
		    .runner = u->runner,
		    .dispatch_id = u->dispatch_id,
		    .round = round,
		    .side = side,
		    .sha = u->sha[side],
		    .expires_ms = v->now_ms + u->finish_ms,
		    .not_before_ms = p.not_before_ms,
		};

		/* an experiment that has not begun gets the tests that are undecided now */
		if (is_planned && p.tests.n) {
			v->has_moved |= experiment_tests_put(v->d, l.at[0].id, &p.tests, p.not_before_ms);
		} else if (is_planned) {
			give_up_experiment(v->d, &l.at[0], NULL, v->now_ms);
			v->has_moved = true;
		} else if (p.tests.n) {
			experiment_insert(v->d, &e, &p.tests, v->now_ms);
			v->has_moved = true;
		}
		free(p.tests.at);
	}
	experiment_list_release(&l);
}

/* ---- all of it ---- */

static void end_unneeded(struct review *v, const struct rerunner *list, size_t n)
{
	struct experiment_list l = experiments_read(db_rows(v->d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE change_id = ?1"
	    " AND accelerator = ?2 AND " EXPERIMENT_IS_OPEN " ORDER BY id",
	    V_INT(v->change_id), V_TEXT(v->accelerator)));

	for (size_t i = 0; i < l.n; i++) {
		const struct rerunner *u = NULL;
		const char *why;

		for (size_t k = 0; k < n && !u; k++)
			u = strcmp(list[k].runner, l.at[i].runner) == 0 ? &list[k] : NULL;
		why = why_experiment_ends(v, u, &l.at[i]);
		if (!why)
			continue;
		give_up_experiment(v->d, &l.at[i], why, v->now_ms);
		v->has_moved = true;
	}
	experiment_list_release(&l);
}

bool experiments_review(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct review v = {d, change_id, accelerator, now_ms, false};
	struct rerunner *list;
	size_t n;

	if (!db_has(d,
		"SELECT 1 WHERE EXISTS (SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
		"  AND attribution IS NOT NULL AND needs <> 0) OR EXISTS (SELECT 1 FROM experiment"
		"  WHERE change_id = ?1 AND accelerator = ?2 AND " EXPERIMENT_IS_OPEN ")",
		V_INT(change_id), V_TEXT(accelerator)))
		return false;
	list = rerunners_of(d->view, change_id, accelerator, &n);
	end_unneeded(&v, list, n);
	for (size_t i = 0; i < n; i++) {
		for (int side = 0; list[i].has_ended && side < N_EXPERIMENT_SIDES; side++)
			review_side(&v, &list[i], (enum experiment_side)side);
	}
	rerunners_release(list, n);
	return v.has_moved;
}
