/* The cells of one accelerator's test of one change, counted, so that no page has to walk over
 * them: in all, and by suite. */
#ifndef STORE_RUN_SUITES_H
#define STORE_RUN_SUITES_H

#include "model/states.h"
#include "store/db.h"

enum { RUN_SUITES_MAX = 24 };

/* What stands for the suites behind the first RUN_SUITES_MAX - 1: formats whose suites are files
 * bring thousands. */
#define RUN_SUITES_OTHERS "other suites"

struct cell_counts {
	int64_t by_status[N_TEST_STATUSES];
	int64_t n_flaky;
	int64_t n_broken; /* red, and not explained as FLAKY or KNOWN */
};

/* Of the run `r` of a push: all that is known is that its deadlines passed without a report (the suite
 * of store/verdicts.c, of no job); and that tests of it are red without an excuse. */
#define RUN_IS_SILENT                                                                              \
	"(EXISTS (SELECT 1 FROM run_suite s WHERE s.change_id = r.change_id"                       \
	" AND s.accelerator = r.accelerator) AND NOT EXISTS (SELECT 1 FROM run_suite s"            \
	" WHERE s.change_id = r.change_id AND s.accelerator = r.accelerator"                       \
	" AND NOT (s.suite = 'dispatch' AND s.job_id IS NULL)))"
#define RUN_HAS_RED_TESTS                                                                          \
	"EXISTS (SELECT 1 FROM run_suite s WHERE s.change_id = r.change_id"                        \
	" AND s.accelerator = r.accelerator AND s.n_broken > 0"                                    \
	" AND NOT (s.suite = 'dispatch' AND s.job_id IS NULL))"

/* Writes the change's suites on this accelerator anew and counts all its cells. Where there are too
 * many the usual ones (contract 6.1) and those with the worst news stay themselves.
 * Inside a writer's transaction. */
struct cell_counts run_suites_put(struct db *d, int64_t change_id, const char *accelerator);
/* The change goes. Inside a writer's transaction. */
void run_suites_drop(struct db *d, int64_t change_id);

#endif
