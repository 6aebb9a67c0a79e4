#include "store/failures.h"

#include "model/attribution.h"
#include "store/verdicts.h"

enum { PIECE = 2000 };

/* The run of an experiment is evidence for the change that it explains, and no witness for others. */
static bool is_witness(struct db *d, const struct failure_place *at)
{
	return db_has(d, "SELECT 1 FROM change WHERE id = ?1 AND kind IN ('pull_request', 'push')",
	    V_INT(at->change_id));
}

static void put(struct db *d, const struct failure_place *at, int64_t test_id,
    enum test_status status, const struct failure_text *text)
{
	struct failure_mark mark;

	if (!attribution_applies(status))
		return;
	mark = failure_mark(status, text);
	if (mark.key)
		db_exec(d,
		    "INSERT INTO failure (accelerator, test_id, key, at_ms, job_id, change_id,"
		    " status) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
		    V_TEXT(at->accelerator), V_INT(test_id), V_INT(mark.key), V_INT(at->now_ms),
		    V_INT(at->job_id), V_INT(at->change_id), V_TEXT(test_status_name(status)));
}

void failures_put(
    struct db *d, const struct failure_place *at, const struct test_result *tests, size_t n)
{
	if (n == 0 || !is_witness(d, at))
		return;
	for (size_t i = 0; i < n; i++) {
		const struct test_result *t = &tests[i];
		struct failure_text text = {t->message, t->trace, t->suite, t->name, t->dtype};

		if (attribution_applies(t->status))
			put(d, at, test_id_of(d, t->suite, t->name, t->dtype), t->status, &text);
	}
}

void failure_put_job(struct db *d, const struct failure_place *at, const char *workflow,
    const char *name, enum test_status status, const char *message)
{
	struct failure_text text = {
	    .message = message, .suite = workflow, .test = name, .dtype = ""};

	if (attribution_applies(status) && is_witness(d, at))
		put(d, at, test_id_of(d, workflow, name, NULL), status, &text);
}

bool failures_drop(struct db *d, int64_t before_ms)
{
	return db_exec(d,
		   "DELETE FROM failure WHERE (accelerator, test_id, key, at_ms, job_id) IN"
		   " (SELECT accelerator, test_id, key, at_ms, job_id FROM failure"
		   "  WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
		   V_INT(before_ms), V_INT(PIECE)) > 0;
}
