/* The rows of experiments, and the runners that accept them. Shared by the files of this folder and views/.
 *
 * Thread: the writer, inside a transaction, unless a function says otherwise. Ownership: lists own their texts until their
 * release function. */
#pragma once

#include "db/record_rows.h"
#include "experiments/experiments.h"
#include "store/dispatches.h"

static const int64_t DEFAULT_FINISH_MS = INT64_C(6) * 3600 * 1000; /* for a dispatch without a deadline */

#define EXPERIMENT_RECORD(F, S)                                                                                        \
	F(S, ID, id, NULL, "id", "")                                                                                   \
	F(S, ID, change_id, NULL, "change_id", "The change that it explains.")                                         \
	F(S, TEXT, accelerator, NULL, "accelerator", "")                                                               \
	F(S, TEXT, runner, NULL, "runner", "")                                                                         \
	F(S, TEXT, dispatch_id, NULL, "dispatch_id", "The dispatch that it explains.")                                 \
	F(S, BOOL, is_stress, NULL, "cause = 'stress'", "")                                                            \
	F(S, INT, round, NULL, "round", "")                                                                            \
	F(S, EXPERIMENT_SIDE, side, NULL, "side", "")                                                                  \
	F(S, TEXT, sha, NULL, "sha", "")                                                                               \
	F(S, EXPERIMENT_STATE, state, NULL, "state", "")                                                               \
	F(S, ID, run_change_id, NULL, "run_change_id",                                                                 \
	    "0: it has not begun. A planned one with a run made way for a first run.")                                 \
	F(S, ID, command_id, NULL, "command_id", "Of a stress; else 0.")                                               \
	F(S, TIME, expires_ms, NULL, "expires_ms", "")                                                                 \
	F(S, TIME, not_before_ms, NULL, "not_before_ms", "It waits until then for a good machine; 0: it does not wait.")
struct experiment {
	RECORD_MEMBERS(EXPERIMENT_RECORD)
};
RECORD_DECLARE(experiment);
struct experiment_list {
	struct experiment *at;
	size_t n;
};

/* SELECT EXPERIMENT_COLUMNS FROM experiment …, which experiments_read() reads. */
#define EXPERIMENT_COLUMNS "0" RECORD_COLUMNS(EXPERIMENT_RECORD)
struct experiment_list experiments_read(struct rows *r);
void experiment_list_release(struct experiment_list *l);

/* A test is red in job j: by a result, or because it is the cell (`cell_job`) of the job itself. */
#define TEST_IS_RED_IN_JOB(test, cell_job)                                                                             \
	"(j.id = " cell_job " OR (j.n_red > 0 AND EXISTS (SELECT 1 FROM result x INDEXED BY result_of_test"            \
	" WHERE x.job_id = j.id AND x.test_id = " test " AND x.ordinal < j.n_tests"                                    \
	" AND x.status IN ('FAIL', 'ERROR'))))"

/* Of an experiment e that is open. */
#define WAITS_FOR_GOOD_MACHINE "(e.state = 'planned' AND e.not_before_ms > 0)"
/* An experiment e of another change than `change` runs the test on the merge base `sha`, or will run it soon, on the runner
 * that `is_runner` selects. Its outcome counts for each change with this merge base. */
#define ANOTHER_RUNS_ON_BASE(change, accelerator_, sha_, test, is_runner)                                              \
	"EXISTS (SELECT 1 FROM experiment e CROSS JOIN experiment_test q"                                              \
	" ON q.experiment_id = e.id AND q.test_id = " test " WHERE e.accelerator = " accelerator_ " AND e.sha = " sha_ \
	" AND e.side = 'base' AND e.change_id <> " change " AND e." EXPERIMENT_IS_OPEN " AND e.cause = 'auto'"         \
	" AND (e.state = " EXPERIMENT_SQL_STARTED " OR e.not_before_ms = 0) AND " is_runner ")"

/* The dispatches x of change ?1 and accelerator ?2 that experiments may explain: released, the newest of the runner, not
 * cancelled, and still selected by the pull request; the runner accepts experiments and has the same repository as before.
 * A release that a person revoked does not count, and while a round waits for a release no older round counts either. */
#define EXPLAINABLE                                                                                                    \
	" FROM dispatch x CROSS JOIN change c ON c.id = x.change_id"                                                   \
	" CROSS JOIN runner r ON r.accelerator = x.accelerator AND r.name = x.runner"                                  \
	"  AND r.kind = x.kind AND (x.kind <> 'github' OR lower(r.target) = lower(x.target))"                          \
	" CROSS JOIN accelerator a ON a.name = x.accelerator"                                                          \
	" WHERE x.change_id = ?1 AND x.accelerator = ?2 AND x.is_current = 1 AND x.is_wanted = 1"                      \
	" AND x.state NOT IN ('held', 'superseded', 'cancelled')"                                                      \
	" AND (x.held_reason IS NULL OR c.is_released = 1)"                                                            \
	" AND c.kind = 'pull_request' AND c.state = 'open' AND " RUNNER_ACCEPTS_EXPERIMENTS                            \
	" AND NOT EXISTS (SELECT 1 FROM dispatch h WHERE h.change_id = x.change_id"                                    \
	"  AND h.accelerator = x.accelerator AND h.runner = x.runner AND h.state = 'held')"

/* The tests of an experiment; the last n_waiting of them wait for a good machine. */
struct experiment_tests {
	int64_t *at;
	size_t n, n_waiting;
};
/* Adds a planned experiment and returns its id. */
int64_t experiment_insert(
    struct txn *d, const struct experiment *e, const struct experiment_tests *tests, int64_t now_ms);
/* Replaces the tests of a planned experiment. Returns whether they differ. */
bool experiment_tests_put(struct txn *d, int64_t id, const struct experiment_tests *tests, int64_t not_before_ms);
/* Deletes an experiment with its tests. */
void experiment_delete(struct txn *d, int64_t id);
/* The only function that changes an experiment's state, also in *e. It counts and logs the step, and an end notifies the
 * `stress` that waits for it. False: the experiment is in that state already, or may not enter it. reason: why it ended;
 * NULL: none, or the experiment goes on. */
bool experiment_enter(
    struct txn *d, struct experiment *e, enum experiment_state to, const char *reason, int64_t now_ms);
/* Enters `cancelled` because the person with this login cancelled it. */
bool experiment_cancel_by(struct txn *d, struct experiment *e, const char *login, int64_t now_ms);
/* The earlier of two times; 0: never. */
static inline int64_t earlier_ms(int64_t a, int64_t b) { return !a || (b && b < a) ? b : a; }

/* Whether it is planned or started, by its row. */
bool experiment_is_open(const struct view *d, const struct experiment *e);
/* The current dispatch of its run, as a list. dispatch_list_release() */
struct dispatch_list experiment_dispatches(const struct view *d, const struct experiment *e);

/* An experiment on the base side ended or was deleted. The other changes with this merge base are due, because its outcome
 * counts for them, or because they waited for it. */
void experiment_sharers_due(struct txn *d, const struct experiment *e, int64_t now_ms);

/* A planned experiment expires because no machine was idle; the rules decide without it. */
void experiment_expire(struct txn *d, struct experiment *e, const char *why, int64_t now_ms);
/* It ended. The run on the other side, which may have waited for it, counts now. */
void experiment_counterpart_moves(struct txn *d, const struct experiment *e, int64_t now_ms);

/* A runner that accepts experiments for a change: its newest dispatch was released and not cancelled. */
#define RERUNNER_RECORD(F, S)                                                                                          \
	F(S, TEXT, dispatch_id, NULL, "x.id", "")                                                                      \
	F(S, TEXT, runner, NULL, "x.runner", "")                                                                       \
	F(S, BOOL, has_ended, NULL, "x.state IN ('done', 'expired', 'failed')", "The dispatch.")                       \
	F(S, BOOL, is_by_test, NULL, "r.reruns = 'tests'", "It runs only the named tests.")                            \
	F(S, INT, finish_ms, NULL, "x.finish_ms", "")                                                                  \
	F(S, INT, n_tests_max, NULL, "a.experiment_tests", "")                                                         \
	F(S, INT, n_rounds_max, NULL, "a.experiment_per_head", "")                                                     \
	F(S, TEXT, head_sha, NULL, "c.head_sha", "")                                                                   \
	F(S, TEXT, merge_base_sha, NULL, "c.merge_base_sha", "")
struct rerunner {
	RECORD_MEMBERS(RERUNNER_RECORD)
	char *sha[N_EXPERIMENT_SIDES]; /* these two; base: NULL while the merge base is not known */
};
RECORD_DECLARE(rerunner);
/* rerunners_release(). NULL: none. A reader may call it, too. */
struct rerunner *rerunners_of(const struct view *d, int64_t change_id, const char *accelerator, size_t *n);
void rerunners_release(struct rerunner *list, size_t n);

/* The red cells v of change ?1 on accelerator ?2 whose test is red in a job j of dispatch ?3, too: its runner ?4 may decide
 * them. The cell of a whole job is not a test, so a runner that runs named tests (?5) cannot run it. */
#define RED_JOBS                                                                                                       \
	" FROM job j WHERE j.change_id = ?1 AND j.accelerator = ?2 AND j.is_current = 1 AND j.dispatch_id = ?3"        \
	" AND j.runner = ?4 AND j.digest IS NOT NULL AND " TEST_IS_RED_IN_JOB(                                         \
	    "v.test_id", "v.job_id") " AND NOT (?5 <> 0 AND t.suite = j.workflow AND t.name = j.name)"
#define UNDECIDED                                                                                                      \
	" FROM verdict v CROSS JOIN test t ON t.id = v.test_id WHERE v.change_id = ?1 AND v.accelerator = ?2"          \
	" AND v.attribution IS NOT NULL AND v.needs <> 0 AND EXISTS (SELECT 1" RED_JOBS ")"

/* Since when a first run of a runner in a vendor's CI waits for its first job: when its request left, or now. 0: none
 * waits. */
int64_t experiments_first_run_waits_ms(
    const struct view *d, const char *accelerator, const char *runner, int64_t now_ms);
/* Experiments make way for first runs that wait for long. Returns when to call it again; 0: nothing waits. */
int64_t experiments_make_way(struct txn *d, int64_t now_ms);

/* Writes the reply to a `stress` once none of its experiments is open. */
void stress_answer(struct txn *d, int64_t command_id, int64_t now_ms);
