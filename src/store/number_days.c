#include "store/number_days.h"

/* A test that is reported twice has the later one's number; a report that came late moves nothing
 * back. */
#define PUT                                                                                        \
	"INSERT INTO number_day (accelerator, test_id, unit, day, at_ms, value, change_id,"        \
	" head_sha, job_id) SELECT j.accelerator, r.test_id, COALESCE(r.unit, ''),"                \
	" ?2 / 86400000, ?2, r.number, c.id, c.head_sha, j.id FROM job j"                          \
	" JOIN change c ON c.id = j.change_id JOIN result r ON r.job_id = j.id"                    \
	" WHERE j.id = ?1 AND j.is_current = 1 AND c.kind IN ('push', 'nightly')"                  \
	" AND r.number IS NOT NULL ORDER BY r.ordinal"                                             \
	" ON CONFLICT (accelerator, test_id, unit, day) DO UPDATE SET at_ms = excluded.at_ms,"     \
	" value = excluded.value, change_id = excluded.change_id, head_sha = excluded.head_sha,"   \
	" job_id = excluded.job_id WHERE excluded.at_ms >= number_day.at_ms"

void number_days_note(
    struct db *d, int64_t job_id, const struct test_result *tests, size_t n, int64_t now_ms)
{
	bool has_any = false;

	for (size_t i = 0; i < n && !has_any; i++)
		has_any = tests[i].has_number;
	if (has_any)
		db_exec(d, PUT, V_INT(job_id), V_INT(now_ms));
}

void number_days_forget_change(struct db *d, int64_t change_id)
{
	db_exec(d,
	    "UPDATE number_day SET job_id = NULL WHERE change_id = ?1 AND job_id IS NOT NULL",
	    V_INT(change_id));
}

int64_t number_days_drop(struct db *d, int64_t before_day, int limit)
{
	return db_exec(d,
	    "DELETE FROM number_day WHERE (accelerator, test_id, unit, day) IN"
	    " (SELECT accelerator, test_id, unit, day FROM number_day WHERE day < ?1 LIMIT ?2)",
	    V_INT(before_day), V_INT(limit));
}

void number_days_fill(struct db *d, int64_t results_max)
{
	struct rows *r = db_rows(d,
	    "SELECT j.id, j.reported_ms, j.n_tests FROM job j JOIN change c ON c.id = j.change_id"
	    " WHERE j.is_current = 1 AND c.kind IN ('push', 'nightly') ORDER BY j.id DESC");

	while (results_max > 0 && rows_next(r)) {
		db_exec(d, PUT, V_INT(rows_int(r, 0)), V_INT(rows_int(r, 1)));
		results_max -= rows_int(r, 2) + 1;
	}
	rows_end(r);
}
