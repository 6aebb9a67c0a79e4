/* The cells of one accelerator's test of one change, counted in all and by suite, so that no page has to walk over them.
 *
 * Thread: all functions run inside a writer's transaction. */
#ifndef HISTORY_RUN_SUITES_H
#define HISTORY_RUN_SUITES_H

#include "db/db.h"
#include "model/states.h"

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
/* The change is about to be deleted. */
void run_suites_drop(struct db *d, int64_t change_id);

#endif
