/* Experiments: the red tests of a pull request run again, on the same head and on its merge base, to prove the cause of the
 * failures. `experiment` has a row for each run of one side, `experiment_test` has its tests (docs/schema.md).
 *
 * A started experiment has a separate change of kind `experiment`, with one dispatch. So jobs, leases, deadlines and the
 * outbox work as for any dispatch, and the `verdict` rows of that change are its outcome. They are only evidence. Readers
 * of an outcome use
 *
 *   experiment e JOIN experiment_test t ON t.experiment_id = e.id
 *   JOIN cell v ON v.change_id = e.run_change_id AND v.accelerator = e.accelerator AND v.test_id = t.test_id
 *   WHERE e.state = 'done'
 *
 * Tests that were not requested may have verdicts there, too: they prove nothing. A test that runs in several jobs has a
 * `result` row in each job of that change. An experiment on the base side counts for every change that has `sha` as its
 * merge base. `sha` may be an older merge base of the change itself, after the pull request got another base branch. `done`
 * may become `void` later, or the other way round, when more of the run is reported.
 *
 * Thread: the writer, inside a transaction, unless a function says otherwise; store_…() and its release function: the loop.
 * Ownership: arguments are borrowed; each result names its release function. */
#pragma once

#include "db/db.h"
#include "db/store.h"
#include "model/experiment.h"
#include "model/record_states.h"

struct stored_lease;

/* Of a row of `dispatch` or `outbox`: it is the run of an experiment, or it is not. */
#define IS_EXPERIMENT    "event_type = 'experiment'"
#define IS_FIRST_RUN     "event_type <> 'experiment'"
#define EXPERIMENT_EVENT "experiment"
/* Of a row r of `runner` and a row a of its `accelerator`: experiments can run there. */
#define RUNNER_ACCEPTS_EXPERIMENTS                                                                                     \
	"r.is_gone = 0 AND r.reruns <> 'none' AND a.is_gone = 0 AND a.level > 1 AND a.experiment_share > 0"

/* The time that the jobs of `experiment e` took, ?3: now. A job that never ended took no longer than its experiment, and a
 * job of which only the end was reported began with it. */
#define EXPERIMENT_SPENT_MS                                                                                            \
	"COALESCE((SELECT SUM(MAX(COALESCE(j.completed_ms, CASE WHEN e.state = " EXPERIMENT_SQL_STARTED                \
	" AND j.is_current = 1 THEN ?3 ELSE e.ended_ms END) - COALESCE(j.started_ms, e.started_ms), 0))"               \
	" FROM job j WHERE j.change_id = e.run_change_id), 0)"

/* The request to the runner, by the dispatch that carries it. False: that dispatch is not of an experiment. A reader may
 * call it, too. experiment_request_release(). */
bool experiment_request_read(const struct view *d, const char *dispatch_id, struct experiment_request *ret);

/* The time that Outpost's own experiments (without `stress`) took in the last 24 hours, and how much they may take. A
 * reader may call it, too. */
void experiments_budget(
    const struct view *d, const char *accelerator, int64_t now_ms, int64_t *ret_spent_ms, int64_t *ret_allowed_ms);

/* The pull request that the run of an experiment explains; 0: the change is not such a run. */
int64_t experiment_pull(const struct view *d, int64_t run_change_id);
/* Whether the change is the run of an experiment. */
bool experiment_is_run(const struct view *d, int64_t change_id);

/* Whether a text that a vendor reports can name a commit ("unknown" cannot), and whether it names this one, perhaps in a
 * short form. Pure. */
bool names_a_commit(const char *text);
bool names_commit(const char *text, const char *sha);

/* ---- steps of cells_moved(), which alone calls them ---- */

/* Plans the experiments that would help to decide the red cells of a pull request's change (verdict.needs), and cancels
 * those that are not needed any more. Returns whether the visible part changed ("re-running"). */
bool experiments_review(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* Sends the planned experiments of the accelerator as far as it is idle and their budget permits. */
void experiments_start(struct txn *d, const char *accelerator, int64_t now_ms);
/* Call it after a change in the run of an experiment: the experiment ends when its dispatch has ended.
 * *ret_explained: the change that it explains. False: the experiment did not change. */
bool experiments_follow(struct txn *d, int64_t run_change_id, int64_t now_ms, int64_t *ret_explained);

/* ---- causes ---- */

/* The person with this login cancels the open experiments of a change, on one accelerator or on all (NULL). The runner gets
 * no further request before a retest, for either side. Returns how many were cancelled. */
int experiments_call_off(struct txn *d, int64_t change_id, const char *accelerator, const char *by, int64_t now_ms);
/* The registry changes: call experiment_runners() before the change, and pass its result to experiments_recheck() after it.
 * If other runners accept experiments than before, or in another repository, the open changes with red cells or experiments
 * are attributed again one by one, and their experiments begin or end. strv_free(). */
char **experiment_runners(const struct view *d);
void experiments_recheck(struct txn *d, char *const *runners_before, int64_t now_ms);
/* Call it as time passes. Planned experiments expire, or start when the budget permits it. If a first run waits for a
 * machine, an experiment makes way. *start_ms: when to try next to start experiments that wait for the budget; 0 at first,
 * later the value that the last call set. Returns when to call it again; 0: nothing waits. */
int64_t experiments_look(struct txn *d, int64_t *start_ms, int64_t now_ms);
/* Runs that ended without any of their tests prove nothing after 15 seconds without a further report. Returns when to call
 * it again; 0: no such run. */
int64_t experiments_without_tests_end(struct txn *d, int64_t now_ms);
/* A first run is about to get a lease: if the runner has no room, the newest lease of an experiment ends. */
void experiments_make_room(struct txn *d, const struct stored_lease *first, int64_t now_ms);
/* Retention deletes the runs of a change's experiments, which are changes, and then the experiments themselves. */
int64_t experiments_next_run(const struct view *d, int64_t change_id); /* 0: no more */
void experiments_drop(struct txn *d, int64_t change_id);

/* ---- use: open experiments, and the part of its budget that each accelerator has spent on them ---- */

/* How the experiments of an accelerator ended in the last 24 hours. An experiment that had not begun, or that made way for
 * a first run, is not the vendor's fault and does not count. Inside a transaction; a reader may call it, too. */
#define EXPERIMENT_ENDS_RECORD(F, S)                                                                                   \
	F(S, INT, n_done, NULL, "SUM(state = " EXPERIMENT_SQL_DONE ")", "")                                            \
	F(S, INT, n_expired, NULL, "SUM(state = " EXPERIMENT_SQL_EXPIRED ")", "")                                      \
	F(S, INT, n_void, NULL, "SUM(state = " EXPERIMENT_SQL_VOID ")", "")
struct experiment_ends {
	RECORD_MEMBERS(EXPERIMENT_ENDS_RECORD)
	/* Why the newest expired or void one gave no result; NULL: none. free() */
	char *newest_loss;
};
RECORD_DECLARE(experiment_ends);
struct experiment_ends experiment_ends_read(const struct view *d, const char *accelerator, int64_t now_ms);

#define N_EXPERIMENTS_IN(state_)                                                                                       \
	"(SELECT COUNT(*) FROM experiment e WHERE e.accelerator = a.name AND e." EXPERIMENT_IS_OPEN                    \
	" AND e.state = " state_ ")"
#define EXPERIMENT_USE_RECORD(F, S)                                                                                    \
	F(S, TEXT, name, NULL, "a.name", "")                                                                           \
	F(S, INT, n_planned, NULL, N_EXPERIMENTS_IN(EXPERIMENT_SQL_PLANNED), "")                                       \
	F(S, INT, n_started, NULL, N_EXPERIMENTS_IN(EXPERIMENT_SQL_STARTED), "")
struct experiment_use {
	RECORD_MEMBERS(EXPERIMENT_USE_RECORD)
	int64_t spent_ms, allowed_ms; /* in 24 hours, without `stress` */
};
RECORD_DECLARE(experiment_use);
struct experiment_use_list {
	struct experiment_use *at;
	size_t n;
};
/* The accelerators that take experiments or have open ones, by name, at most 500. experiment_use_list_release(). Thread:
 * reader. */
void experiment_use_read(const struct view *d, int64_t now_ms, struct experiment_use_list *ret);
void experiment_use_list_release(struct experiment_use_list *l);
