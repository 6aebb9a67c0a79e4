#include "store/failures.h"

#include "model/failure_text.h"
#include "store/verdicts.h"

enum { PIECE = 2000 };

void failure_put(struct db *d, const struct failure_place *at, int64_t test_id,
    enum test_status status, const char *message)
{
	int64_t key = test_status_is_red(status) ? failure_text_key(message) : 0;

	if (key)
		db_exec(d,
		    "INSERT INTO failure (accelerator, test_id, key, at_ms, job_id, change_id,"
		    " status) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
		    V_TEXT(at->accelerator), V_INT(test_id), V_INT(key), V_INT(at->now_ms),
		    V_INT(at->job_id), V_INT(at->change_id), V_TEXT(test_status_name(status)));
}

void failures_put(
    struct db *d, const struct failure_place *at, const struct test_result *tests, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct test_result *t = &tests[i];

		if (test_status_is_red(t->status))
			failure_put(d, at, test_id_of(d, t->suite, t->name, t->dtype), t->status,
			    t->message);
	}
}

bool failures_drop(struct db *d, int64_t before_ms)
{
	return db_exec(d,
		   "DELETE FROM failure WHERE (accelerator, test_id, key, at_ms, job_id) IN"
		   " (SELECT accelerator, test_id, key, at_ms, job_id FROM failure"
		   "  WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
		   V_INT(before_ms), V_INT(PIECE)) > 0;
}
