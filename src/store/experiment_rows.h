/* Experiments as rows, and the runners that take them: what experiments*.c share. Inside a writer's transaction. */
#ifndef STORE_EXPERIMENT_ROWS_H
#define STORE_EXPERIMENT_ROWS_H

#include "store/experiments.h"

static const int64_t DEFAULT_FINISH_MS =
    INT64_C(6) * 3600 * 1000; /* of a dispatch without a deadline */

struct experiment {
	int64_t id, change_id;
	char *accelerator, *runner, *dispatch_id;
	bool is_stress;
	int64_t round;
	enum experiment_side side;
	char *sha, *state;
	int64_t
	    run_change_id; /* 0: it has not begun; a planned one that has, made way for a first run */
	int64_t command_id; /* stress; else 0 */
	int64_t expires_ms;
};
struct experiment_list {
	struct experiment *at;
	size_t n;
};

/* SELECT EXPERIMENT_COLUMNS FROM experiment …, read by experiments_take(). */
#define EXPERIMENT_COLUMNS                                                                         \
	"id, change_id, accelerator, runner, dispatch_id, cause = 'stress', round, side, sha,"     \
	" state, run_change_id, command_id, expires_ms"
struct experiment_list experiments_take(struct rows *r);
void experiment_list_release(struct experiment_list *l);

/* A test is red in job j: by a result, or as the job itself, for which a cell (`cell_job`) stands. */
#define TEST_IS_RED_IN_JOB(test, cell_job)                                                         \
	"(j.id = " cell_job                                                                        \
	" OR (j.n_red > 0 AND EXISTS (SELECT 1 FROM result x INDEXED BY result_of_test"            \
	" WHERE x.job_id = j.id AND x.test_id = " test " AND x.status IN ('FAIL', 'ERROR'))))"

/* The dispatches x of change ?1 and accelerator ?2 that experiments may explain: let in, the newest of the runner, not
 * called off, still asked for by the pull request, and the runner takes experiments and is where it was. A release that
 * was taken back counts no longer, and a round that waits for a release holds the head, too. */
#define EXPLAINABLE                                                                                \
	" FROM dispatch x CROSS JOIN change c ON c.id = x.change_id"                               \
	" CROSS JOIN runner r ON r.accelerator = x.accelerator AND r.name = x.runner"              \
	"  AND r.kind = x.kind AND (x.kind <> 'github' OR lower(r.target) = lower(x.target))"      \
	" CROSS JOIN accelerator a ON a.name = x.accelerator"                                      \
	" WHERE x.change_id = ?1 AND x.accelerator = ?2 AND x.is_current = 1 AND x.is_wanted = 1"  \
	" AND x.state NOT IN ('held', 'superseded', 'cancelled')"                                  \
	" AND (x.held_reason IS NULL OR c.is_released = 1)"                                        \
	" AND c.kind = 'pull_request' AND c.state = 'open' AND " RUNNER_TAKES_EXPERIMENTS          \
	" AND NOT EXISTS (SELECT 1 FROM dispatch h WHERE h.change_id = x.change_id"                \
	"  AND h.accelerator = x.accelerator AND h.runner = x.runner AND h.state = 'held')"

/* A planned one. Its id. */
int64_t experiment_insert(
    struct db *d, const struct experiment *e, const int64_t *tests, size_t n, int64_t now_ms);
/* Its tests become these. Returns whether they were others. */
bool experiment_tests_put(struct db *d, int64_t id, const int64_t *tests, size_t n);
/* With its tests. */
void experiment_delete(struct db *d, int64_t id);
/* It enters one of the states in which it has ended. reason NULL: none. */
void experiment_end(struct db *d, const struct experiment *e, const char *state, const char *reason,
    int64_t now_ms);

/* One on the base side ended or went: the other changes with this merge base are due, because its outcome counts for
 * them, or because they waited for it. */
void experiment_sharers_due(struct db *d, const struct experiment *e, int64_t now_ms);

/* Its run is there, all of it: it is done, or void because it proves nothing. */
void experiment_conclude(struct db *d, const struct experiment *e, int64_t now_ms);
/* Was any of its tests reported with a result? */
bool experiment_has_any_test(struct db *d, const struct experiment *e);
/* None was, and the job with its tests may report in a moment. */
bool experiment_may_get_tests(struct db *d, const struct experiment *e, int64_t now_ms);

/* It ended or made way: the run on the other side, which may have waited for it, counts now. */
void experiment_counterpart_moves(struct db *d, const struct experiment *e, int64_t now_ms);

/* A runner that takes experiments for a change: its newest dispatch was let in and was not called off. */
struct rerunner {
	char *dispatch_id, *runner;
	bool has_ended;  /* the dispatch */
	bool is_by_test; /* it runs just what is named */
	int64_t finish_ms;
	int64_t n_tests_max, n_rounds_max;
	char *sha[N_EXPERIMENT_SIDES]; /* base: NULL while the merge base is not known */
};
/* rerunners_release(). NULL where there is none. A reader may ask as well. */
struct rerunner *rerunners_of(struct db *d, int64_t change_id, const char *accelerator, size_t *n);
void rerunners_release(struct rerunner *list, size_t n);

/* The red cells v of change ?1 on accelerator ?2 whose test is red in a job j of dispatch ?3, too: its runner ?4 may decide
 * them. The cell that stands for a whole job is no test that one could name to a runner that takes names (?5). */
#define RED_JOBS                                                                                   \
	" FROM job j WHERE j.change_id = ?1 AND j.accelerator = ?2 AND j.is_current = 1"           \
	" AND j.dispatch_id = ?3 AND j.runner = ?4 AND j.digest IS NOT NULL"                       \
	" AND " TEST_IS_RED_IN_JOB(                                                                \
	    "v.test_id", "v.job_id") " AND NOT (?5 AND t.suite = j.workflow AND t.name = j.name)"
#define UNDECIDED                                                                                  \
	" FROM verdict v CROSS JOIN test t ON t.id = v.test_id"                                    \
	" WHERE v.change_id = ?1 AND v.accelerator = ?2 AND v.attribution IS NOT NULL"             \
	" AND v.needs <> 0 AND EXISTS (SELECT 1" RED_JOBS ")"

/* Since when a first run of the runner, of a vendor's CI, waits for its first job: when its request left, or now. 0: none
 * does. */
int64_t experiments_first_run_waits_ms(
    struct db *d, const char *accelerator, const char *runner, int64_t now_ms);
/* Experiments give their places to first runs that wait for long. Returns when to look again; 0: nothing waits. */
int64_t experiments_make_way(struct db *d, int64_t now_ms);

/* The reply to a `stress` of which no experiment is open any more. */
void stress_answer(struct db *d, int64_t command_id, int64_t now_ms);

#endif
