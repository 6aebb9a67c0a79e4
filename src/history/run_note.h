/* Runs: one accelerator's test of one change, as it ended. The numbers by which a level is judged, the circuit breaker
 * (model/accelerator.h) and the 72-hour rule read runs and nothing else, so that none of them walks over results.
 *
 * An accelerator at L1 has no runs, because it shows nothing.
 *
 * Thread: all functions run inside a writer's transaction. */
#ifndef HISTORY_RUN_NOTE_H
#define HISTORY_RUN_NOTE_H

#include "db/db.h"
#include "model/states.h"

/* How a run ended, as it is stored by name. */
#define RUN_GREEN   "green"   /* something passed, and each failure is explained */
#define RUN_RED     "red"     /* something is red */
#define RUN_OWN     "own"     /* of a pull request: all failures are NEW */
#define RUN_NOTHING "nothing" /* nothing passed and nothing is red: the run is no evidence */

/* Cells or dispatches of the change have changed on this accelerator. Once all its dispatches have ended, the run is
 * written, or written again, and then the circuit breaker and, for a push, the episode. Cancelled dispatches do not count;
 * when all were cancelled there is no run. Only cells_moved() calls it, after the cells have their attribution. */
void run_note(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);

/* ---- the cells of a run, counted in all and by suite, so that no page has to walk over them ---- */

enum { RUN_SUITES_MAX = 24 };

/* The name under which the suites behind the first RUN_SUITES_MAX - 1 are added up: formats whose suites are files bring
 * thousands. */
#define RUN_SUITES_OTHERS "other suites"

struct cell_counts {
	int64_t by_status[N_TEST_STATUSES];
	int64_t n_flaky;
	int64_t n_broken; /* red, and not explained as FLAKY or KNOWN */
};

/* Conditions on the run `r` of a push: its deadlines passed without any report (such cells have a suite of their own and no
 * job, verdict/verdicts.c); it has red tests that are not excused. */
#define RUN_IS_SILENT                                                                              \
	"(EXISTS (SELECT 1 FROM run_suite s WHERE s.change_id = r.change_id"                       \
	" AND s.accelerator = r.accelerator) AND NOT EXISTS (SELECT 1 FROM run_suite s"            \
	" WHERE s.change_id = r.change_id AND s.accelerator = r.accelerator"                       \
	" AND NOT (s.suite = 'dispatch' AND s.job_id IS NULL)))"
#define RUN_HAS_RED_TESTS                                                                          \
	"EXISTS (SELECT 1 FROM run_suite s WHERE s.change_id = r.change_id"                        \
	" AND s.accelerator = r.accelerator AND s.n_broken > 0"                                    \
	" AND NOT (s.suite = 'dispatch' AND s.job_id IS NULL))"

/* Writes the change's suites on this accelerator again and counts all its cells. When there are more than RUN_SUITES_MAX,
 * the usual suites and the worst others keep their own rows. */
struct cell_counts run_suites_put(struct db *d, int64_t change_id, const char *accelerator);

/* The change is about to be deleted: deletes its runs. */
void runs_drop(struct db *d, int64_t change_id);

#endif
