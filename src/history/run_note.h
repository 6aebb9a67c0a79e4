/* Runs: one accelerator's test of one change, after its end. The numbers by which a level is judged, the circuit breaker
 * (model/accelerator.h) and the 72-hour rule read only runs, so that none of them reads results.
 *
 * An accelerator at L1 has no runs, because it shows nothing.
 *
 * Thread: all functions run inside a writer's transaction, unless their section says otherwise. */
#pragma once

#include "db/db.h"
#include "model/accelerator.h"
#include "model/states.h"

/* How a run ended, as it is stored by name. */
#define RUN_GREEN   "green"   /* something passed, and each failure is explained */
#define RUN_RED     "red"     /* something is red */
#define RUN_OWN     "own"     /* of a pull request: all failures are NEW */
#define RUN_NOTHING "nothing" /* nothing passed and nothing is red: the run is no evidence */

/* Cells or dispatches of the change have changed on this accelerator. After all its dispatches have ended, writes the run,
 * or writes it again, and then the circuit breaker and, for a push, the episode. Cancelled dispatches do not count; if all
 * were cancelled there is no run. Only cells_moved() calls it, after the cells have their attribution. */
void run_note(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms);

/* ---- the cells of a run, counted in total and by suite, so that no page has to read them ---- */

enum { RUN_SUITES_MAX = 24 };

/* The name of the sum of all suites after the first RUN_SUITES_MAX - 1: in some formats each file is a suite, which makes
 * thousands. */
#define RUN_SUITES_OTHERS "other suites"

struct cell_counts {
	int64_t by_status[N_TEST_STATUSES];
	int64_t n_flaky;
	int64_t n_broken; /* red, and not explained as FLAKY or KNOWN */
};

/* Conditions on the run `r` of a push: its deadlines passed without any report (such cells have the suite `dispatch` and no
 * job, verdict/verdicts.c); it has red tests that are not excused. */
#define RUN_IS_SILENT                                                                                                  \
	"(EXISTS (SELECT 1 FROM run_suite s WHERE s.change_id = r.change_id AND s.accelerator = r.accelerator)"        \
	" AND NOT EXISTS (SELECT 1 FROM run_suite s WHERE s.change_id = r.change_id AND s.accelerator = r.accelerator" \
	" AND NOT (s.suite = 'dispatch' AND s.job_id IS NULL)))"
#define RUN_HAS_RED_TESTS                                                                                              \
	"EXISTS (SELECT 1 FROM run_suite s WHERE s.change_id = r.change_id AND s.accelerator = r.accelerator"          \
	" AND s.n_broken > 0 AND NOT (s.suite = 'dispatch' AND s.job_id IS NULL))"

/* Writes the change's suites on this accelerator again and counts all its cells. If there are more than RUN_SUITES_MAX,
 * only the usual suites and the worst others have separate rows. */
struct cell_counts run_suites_put(struct txn *d, int64_t change_id, const char *accelerator);

/* The change is about to be deleted: deletes its runs. Returns how many rows. */
int64_t runs_drop(struct txn *d, int64_t change_id);

/* ---- run_jobs.c: the jobs of pull requests by which levels are judged (model/accelerator.h) ----
 *
 * Stores the figures of each run, and the sums of a day. level_read() runs also on a reader. */

/* A run of a pull request has ended, or its cells have changed: counts its jobs again. */
void run_jobs_note(struct txn *d, int64_t change_id, const char *accelerator, int64_t ended_ms);
/* Retention is about to delete the change: the sums of its days stay as they are from now on. Returns how many rows it deleted. */
int64_t run_jobs_drop_change(struct txn *d, int64_t change_id);
int64_t run_jobs_drop_days(struct txn *d, int64_t before_day, int limit);
/* Moves the figures of a runner to its new name. (CRCR's allowlist has the repository under its device at L3 and under its
 * own name below.) */
void run_jobs_move(
    struct txn *d, const char *from_accelerator, const char *from_runner, const char *accelerator, const char *runner);

/* runner NULL: all of the accelerator's. Fills the numbers that come from jobs and from the registry. */
void level_read(
    const struct view *d, const char *accelerator, const char *runner, int64_t now_ms, struct level_numbers *ret);

/* ---- nightly_note.c: periodic runs as history (history/history.h) ----
 *
 * Stores the results of a run in the accelerator's row of days, and the state of each test for pages. The last run of each
 * UTC day counts. Its day is that of its due time, or of the report if the vendor started the run. L1 has no history.
 * nightly_fill() has its own transaction. */

/* The outcome of a run, as schedule_run stores it. */
#define NIGHTLY_GREEN  "green"  /* something passed, nothing is red */
#define NIGHTLY_RED    "red"    /* something is FAIL or ERROR */
#define NIGHTLY_MISSED "missed" /* no report says anything about the code */
#define NIGHTLY_FAILED "failed" /* it could not be sent, or was cancelled */

/* Cells or dispatches of a nightly change have changed on this accelerator. Writes its day and, after its dispatches have
 * ended, its outcome and the states of the tests. Does nothing if schedule_run has no row of the run; a run that the vendor
 * started has one, too. Call it again at each correction. At L1 it only ends the run. */
void nightly_note(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms);

/* The change is about to be deleted: its days stay, without links. */
void nightly_forget_change(struct txn *d, int64_t change_id);
/* Deletes days before before_ms, at most `limit` rows of each table, and with an accelerator's last day the states of its
 * tests. True: there may be more. */
bool nightly_drop(struct txn *d, int64_t before_ms, int limit);

/* Writes, once, the days of runs that versions before the fourth recorded: of the newest runs that vendors started, as many
 * as take a second or two. Call it at the start. */
int nightly_fill(struct db *d, struct error *e) MUST_CHECK;

/* ---- platform_tests.c: which versions of PyTorch were tested on which systems, and whether the must-pass tests were green. The
 * platforms page shows it beside the vendor's own statements ---- */

/* Jobs or cells of the change have changed on this accelerator. Judges each (version, system) that its current jobs report,
 * by the jobs that report it and those that name no version or system. A failure counts at once; a missing or green test
 * counts when no job runs any more. An older change overwrites nothing. The same change again corrects its rows, and a row
 * that it does not support any more gets the result of the change before it. Pull requests and L1 write nothing. */
void platform_tests_note(struct txn *d, int64_t change_id, const char *accelerator);
/* The accelerator has other must-pass tests: judges the rows on record again, as far as their changes still exist. */
void platform_tests_changed(struct txn *d, const char *accelerator);
/* Judges, once, the changes that earlier versions of this program recorded. Call it when the registry is mirrored. */
void platform_tests_fill(struct txn *d);
/* The change is about to be deleted: its rows stay, without links. */
void platform_tests_forget(struct txn *d, int64_t change_id);
