/* The order of the dashboard's rows and of suites. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/dashboard.h"

#define NOW  INT64_C(1795176000000)
#define HOUR INT64_C(3600000)

static struct dashboard_row *add(
    struct dashboard *d, const char *name, enum accelerator_status status, int64_t since_ms)
{
	struct dashboard_row *row;

	d->rows = xrealloc(d->rows, (d->n_rows + 1) * sizeof(*d->rows));
	row = &d->rows[d->n_rows++];
	*row = (struct dashboard_row){.name = xstrdup(name), .at.state = {.status = status, .since_ms = since_ms}};
	return row;
}

static void add_runs(
    struct dashboard *d, const char *name, enum accelerator_status status, int64_t n_runs, int64_t n_green)
{
	struct accelerator_facts *f = &add(d, name, status, 0)->at.facts;

	f->n_runs = n_runs;
	f->n_green = n_green;
}

static void the_worst_accelerator_is_first(void **state)
{
	static const char *const expected[] = {"overdue", "red-old", "red-new", "unhealthy", "silent", "no-report",
	    "no-pass", "stale", "fair", "fair-too", "perfect", "no-runs", "untested"};
	struct dashboard *d = xcalloc(1, sizeof(*d));

	(void)state;
	add_runs(d, "perfect", ACCELERATOR_GREEN, 10, 10);
	add(d, "untested", ACCELERATOR_UNTESTED, 0);
	add_runs(d, "fair", ACCELERATOR_EXPLAINED, 10, 9);
	add_runs(d, "no-runs", ACCELERATOR_GREEN, 0, 0);
	add(d, "no-report", ACCELERATOR_NO_REPORT, NOW - HOUR);
	add(d, "silent", ACCELERATOR_SILENT, NOW - 8 * 24 * HOUR);
	add(d, "stale", ACCELERATOR_STALE, NOW - 8 * 24 * HOUR);
	add_runs(d, "no-pass", ACCELERATOR_NO_PASS, 10, 2);
	add(d, "red-new", ACCELERATOR_RED, NOW - HOUR);
	add(d, "red-old", ACCELERATOR_RED, NOW - 50 * HOUR);
	add(d, "overdue", ACCELERATOR_OVERDUE, NOW - 80 * HOUR);
	add(d, "unhealthy", ACCELERATOR_NOT_COUNTED, 0);
	add_runs(d, "fair-too", ACCELERATOR_GREEN, 100, 90);
	dashboard_sort(d);
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		assert_string_equal(d->rows[i].name, expected[i]);
	dashboard_free(d);
	d = xcalloc(1, sizeof(*d));
	dashboard_sort(d);
	dashboard_free(d);
	dashboard_free(NULL);
}

/* A row without a PASS is not sorted among those that pass, however high its pass rate is. */
static void rows_are_in_the_order_of_the_states(void **state)
{
	(void)state;
	for (int worse = 0; worse < N_ACCELERATOR_STATUSES; worse++)
		for (int better = worse + 1; better < N_ACCELERATOR_STATUSES; better++) {
			struct dashboard *d = xcalloc(1, sizeof(*d));

			if (worse == ACCELERATOR_EXPLAINED && better == ACCELERATOR_GREEN)
				better++;
			add_runs(d, "better", (enum accelerator_status)better, 10, 1);
			add_runs(d, "worse", (enum accelerator_status)worse, 10, 9);
			dashboard_sort(d);
			assert_string_equal(d->rows[0].name, "worse");
			dashboard_free(d);
		}
}

static void bad_news_come_from_the_newest_night_that_ended(void **state)
{
	struct dashboard_row r = {.name = NULL};
	enum day_outcome *n = &r.nightly[DASHBOARD_DAYS - 4];

	(void)state;
	assert_int_equal(dashboard_bad_night(&r), DAY_NO_RUN);
	n[0] = DAY_RED;
	assert_int_equal(dashboard_bad_night(&r), DAY_RED);
	n[1] = DAY_GREEN;
	n[3] = DAY_RUNNING;
	assert_int_equal(dashboard_bad_night(&r), DAY_NO_RUN);
	n[2] = DAY_MISSED;
	n[3] = DAY_SKIPPED;
	assert_int_equal(dashboard_bad_night(&r), DAY_MISSED);
}

static void suites_have_a_fixed_order(void **state)
{
	static const char *const order[] = {
	    "build", "unit", "model", "benchmark", "integration", "Alpha", "alpha", "zeta"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		for (size_t k = 0; k < ARRAY_LEN(order); k++) {
			int o = suite_order(order[i], order[k]);

			assert_int_equal((o > 0) - (o < 0), (i > k) - (i < k));
		}
	assert_true(suite_is_usual("integration"));
	assert_false(suite_is_usual("Build"));
	assert_false(suite_is_usual(""));
}

static void outcomes_have_words(void **state)
{
	(void)state;
	for (int o = DAY_GREEN; o < N_DAY_OUTCOMES; o++)
		assert_int_equal(day_outcome_parse(day_outcome_name((enum day_outcome)o)), o);
	assert_null(day_outcome_name(DAY_NO_RUN));
	assert_int_equal(day_outcome_parse(NULL), DAY_RUNNING);
	assert_int_equal(day_outcome_parse("odd"), DAY_RUNNING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_worst_accelerator_is_first),
	    cmocka_unit_test(rows_are_in_the_order_of_the_states),
	    cmocka_unit_test(bad_news_come_from_the_newest_night_that_ended),
	    cmocka_unit_test(suites_have_a_fixed_order),
	    cmocka_unit_test(outcomes_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
