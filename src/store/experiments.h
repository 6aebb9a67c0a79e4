/* Experiments: the red tests of a pull request run again, on the same head and on its merge base, to prove whose
 * the failures are. `experiment` has a row for each run of one side, `experiment_test` has its tests (docs/schema.md).
 *
 * A started experiment has a change of its own, of kind `experiment`, with one dispatch. So jobs, leases, deadlines
 * and the outbox work as for any dispatch, and the `verdict` rows of that change are what it found. These are
 * evidence and nothing else: readers of an outcome use
 *
 *   experiment e JOIN experiment_test t ON t.experiment_id = e.id
 *   JOIN verdict v ON v.change_id = e.run_change_id AND v.accelerator = e.accelerator AND v.test_id = t.test_id
 *   WHERE e.state = 'done'
 *
 * Tests that were not asked for may have verdicts there, too: they prove nothing. A test that runs in several jobs
 * has a `result` row in each job of that change. An experiment on the base side counts for every change that has
 * `sha` as its merge base; a change's own one may have an older merge base as its `sha`, after the pull request got
 * another base branch. `done` may become `void` later, or the other way round, when more of the run is reported.
 *
 * All functions run inside a writer's transaction, unless they say otherwise. */
#ifndef STORE_EXPERIMENTS_H
#define STORE_EXPERIMENTS_H

#include "model/experiment.h"
#include "store/db.h"

struct stored_lease;

/* Of a row of `dispatch` or `outbox`: it is the run of an experiment. */
#define IS_EXPERIMENT      "event_type = 'experiment'"
#define IS_FIRST_RUN       "event_type <> 'experiment'"      /* and it is not */
#define EXPERIMENT_IS_OPEN "state IN ('planned', 'started')" /* of a row of `experiment` */
#define EXPERIMENT_EVENT   "experiment"
/* Of a row r of `runner` and a row a of its `accelerator`: experiments can run there. */
#define RUNNER_TAKES_EXPERIMENTS                                                                   \
	"r.is_gone = 0 AND r.reruns <> 'none' AND a.is_gone = 0 AND a.level > 1"                   \
	" AND a.experiment_share > 0"

/* The time that the jobs of `experiment e` took, ?3: now. A job that never ended took no longer than its experiment,
 * and one of which only the end was reported began with it. */
#define EXPERIMENT_SPENT_MS                                                                        \
	"COALESCE((SELECT SUM(MAX(COALESCE(j.completed_ms, CASE WHEN e.state = 'started'"          \
	" AND j.is_current = 1 THEN ?3 ELSE e.ended_ms END) - COALESCE(j.started_ms, "             \
	"e.started_ms), 0))"                                                                       \
	" FROM job j WHERE j.change_id = e.run_change_id), 0)"

/* What the runner is asked for, by the dispatch that carries it. False: that dispatch is no experiment. A reader may
 * ask as well. experiment_request_release(). */
bool experiment_request_read(struct db *d, const char *dispatch_id, struct experiment_request *ret);

/* The time that experiments which Outpost planned by itself took in the last 24 hours, and how much they may take. A
 * reader may ask as well. */
void experiments_budget(struct db *d, const char *accelerator, int64_t now_ms,
    int64_t *ret_spent_ms, int64_t *ret_allowed_ms);

/* The pull request that the run of an experiment explains; 0: it is none. */
int64_t experiment_pull(struct db *d, int64_t run_change_id);

/* Is the change the run of one? */
bool experiment_is_run(struct db *d, int64_t change_id);

/* ---- steps of cells_moved(), which alone calls them ---- */

/* The experiments that would help to decide the red cells of a pull request's change (verdict.needs) are planned, and
 * those that nobody needs any more are cancelled. Returns whether people see a difference ("re-running"). */
bool experiments_review(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);
/* Sends the planned experiments of the accelerator, as far as it is idle and their budget lasts. */
void experiments_start(struct db *d, const char *accelerator, int64_t now_ms);
/* The change is the run of an experiment, of which something moved: the experiment ends when its dispatch has ended.
 * *ret_explained: the change that it explains. False: nothing of the experiment moved. */
bool experiments_follow(
    struct db *d, int64_t run_change_id, int64_t now_ms, int64_t *ret_explained);

/* ---- causes ---- */

/* A person calls off what is open for a change, on one accelerator or on all (NULL). The runner is not asked again
 * before a retest, for either side, where `why` begins with CALLED_OFF_BY. Returns how many. */
int experiments_call_off(
    struct db *d, int64_t change_id, const char *accelerator, const char *why, int64_t now_ms);
/* The registry changes: ask for experiments_takers() ahead of it, and give it to experiments_recheck() when it is
 * written. Where other runners than before take experiments, or at another place, the open changes with red cells or
 * experiments are due: they are attributed again one by one, and their experiments begin or end. strv_free(). */
char **experiments_takers(struct db *d);
void experiments_recheck(struct db *d, char *const *takers_before, int64_t now_ms);
/* Time passed: what nobody had room for expires, what the budget has room for again starts, and where a first run
 * waits for a machine an experiment makes way. Returns when to look again; 0: nothing waits. */
int64_t experiments_look(struct db *d, int64_t now_ms);
/* Runs that ended without any of their tests prove nothing once no further report came for 15 seconds. Returns when to
 * look again; 0: there is none. */
int64_t experiments_without_tests_end(struct db *d, int64_t now_ms);
/* A first run is about to get a lease: where the runner has no room left, the newest lease of an experiment ends. */
void experiments_make_room(struct db *d, const struct stored_lease *first, int64_t now_ms);
/* Retention: the runs of a change's experiments, as the changes that they are, and then the experiments themselves. */
int64_t experiments_next_run(struct db *d, int64_t change_id); /* 0: none is left */
void experiments_drop(struct db *d, int64_t change_id);

/* ---- `stress`: one test many times, on the head and on its merge base ---- */

struct stress {
	int64_t command_id;      /* the comment that asks */
	int64_t change_id;       /* of a pull request, open */
	const char *accelerator; /* NULL: each one that takes experiments for this change */
	const int64_t *tests;    /* of one name: one for each dtype */
	size_t n_tests;
	int n_rounds; /* 1…STRESS_ROUNDS_MAX */
	int64_t now_ms;
};
/* Plans the rounds; each begins when the one before has ended. Returns on how many accelerators. 0: no runner takes
 * experiments for this change, because it has `reruns: none`, or because its dispatch is held, was called off or has
 * not ended.
 *
 * Once none of the comment's experiments is open any more, a reply is queued, once: an outbox row of kind REPLY whose
 * text is JSON, {"comment": ID, "stress": {"test": "suite/test", "rounds": N, "accelerators": [{"accelerator": NAME,
 * "head": {"sha", "passed", "failed", "lost"}, "base": {the same} (absent: the merge base is not known)}, …]}}. "lost"
 * counts the runs that said nothing of the test, or that did not end. */
int stress_plan(struct db *d, const struct stress *s);

#endif
