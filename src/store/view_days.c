/* Days as they are shown: every day of the time, also those on which nothing was. */
#include "store/dashboard.h"
#include "store/days.h"

static int64_t time_or_unknown(const struct rows *r, int column)
{
	return rows_is_null(r, column) ? -1 : rows_int(r, column);
}

void days_read(struct db *d, const char *accelerator, int64_t last_day, struct day_view *ret, int n)
{
	int64_t first = last_day - n + 1;
	struct rows *r;

	for (int i = 0; i < n; i++)
		ret[i] = (struct day_view){
		    .queue_p50_ms = -1, .queue_p90_ms = -1, .run_p50_ms = -1, .run_p90_ms = -1};
	r = db_rows(d,
	    "SELECT day, n_runs, n_green, n_flaky, n_fail, n_error, n_miss, n_pass, n_done, n_skip,"
	    " queue_p50_ms, queue_p90_ms, run_p50_ms, run_p90_ms FROM day"
	    " WHERE accelerator = ?1 AND day >= ?2 AND day <= ?3",
	    V_TEXT(accelerator), V_INT(first), V_INT(last_day));
	while (rows_next(r)) {
		struct day_view *v = &ret[rows_int(r, 0) - first];

		*v = (struct day_view){
		    .n_runs = rows_int(r, 1),
		    .n_green = rows_int(r, 2),
		    .n_flaky = rows_int(r, 3),
		    .queue_p50_ms = time_or_unknown(r, 10),
		    .queue_p90_ms = time_or_unknown(r, 11),
		    .run_p50_ms = time_or_unknown(r, 12),
		    .run_p90_ms = time_or_unknown(r, 13),
		};
		v->by_status[TEST_FAIL] = rows_int(r, 4);
		v->by_status[TEST_ERROR] = rows_int(r, 5);
		v->by_status[TEST_MISS] = rows_int(r, 6);
		v->by_status[TEST_PASS] = rows_int(r, 7);
		v->by_status[TEST_DONE] = rows_int(r, 8);
		v->by_status[TEST_SKIP] = rows_int(r, 9);
	}
}

/* Of several runs on one day the last one counts, but what was skipped hides none that was not. One
 * that ended without an outcome was at L1. */
void nightly_days_read(
    struct db *d, const char *accelerator, int64_t last_day, enum day_outcome *ret, int n)
{
	int64_t first = last_day - n + 1;
	struct rows *r;

	for (int i = 0; i < n; i++)
		ret[i] = DAY_NO_RUN;
	r = db_rows(d,
	    "SELECT due_ms, outcome FROM schedule_run WHERE accelerator = ?1 AND due_ms >= ?2"
	    " AND due_ms < ?3 AND (outcome IS NOT NULL OR ended_ms IS NULL) ORDER BY due_ms",
	    V_TEXT(accelerator), V_INT(first * DAY_MS), V_INT((last_day + 1) * DAY_MS));
	while (rows_next(r)) {
		enum day_outcome *at = &ret[day_of(rows_int(r, 0)) - first];
		enum day_outcome o = day_outcome_parse(rows_is_null(r, 1) ? NULL : rows_text(r, 1));

		if (o != DAY_SKIPPED || *at == DAY_NO_RUN)
			*at = o;
	}
}
