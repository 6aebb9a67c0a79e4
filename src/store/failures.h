/* What failed with which message: attribution's memory of other changes and of attempts that were
 * replaced since. Rows go after FAILURES_KEPT_MS. Inside a writer's transaction. */
#ifndef STORE_FAILURES_H
#define STORE_FAILURES_H

#include "model/test_result.h"
#include "store/db.h"

#define FAILURES_KEPT_MS (INT64_C(30) * 24 * 3600 * 1000)

struct failure_place {
	int64_t change_id, job_id, now_ms;
	const char *accelerator;
};
/* The tests that failed, of a pull request or a push; others leave no row. */
void failures_put(
    struct db *d, const struct failure_place *at, const struct test_result *tests, size_t n);
/* The same for a job without tests, which stands for itself. */
void failure_put_job(struct db *d, const struct failure_place *at, const char *workflow,
    const char *name, enum test_status status, const char *message);

/* Drops some that are older; false when none is. */
bool failures_drop(struct db *d, int64_t before_ms);

#endif
