/* The order of the dashboard's rows and of suites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/alloc.h"
#include "model/dashboard.h"

#define NOW  INT64_C(1795176000000)
#define HOUR INT64_C(3600000)

struct row {
	const char *name;
	int64_t red_since_ms;
	bool is_overdue;
	int64_t n_broken;
	int64_t last_report_ms;
	int64_t n_runs, n_green;
};

static void add(struct dashboard *d, const struct row *r)
{
	struct dashboard_row *row;

	d->rows = xrealloc(d->rows, (d->n_rows + 1) * sizeof(*d->rows));
	row = &d->rows[d->n_rows++];
	*row = (struct dashboard_row){.name = xstrdup(r->name),
	    .red_since_ms = r->red_since_ms,
	    .is_overdue = r->is_overdue,
	    .last_report_ms = r->last_report_ms};
	row->days[DASHBOARD_DAYS - 1] =
	    (struct day_view){.n_runs = r->n_runs, .n_green = r->n_green};
	if (r->n_broken) {
		row->suites = xcalloc(1, sizeof(*row->suites));
		row->n_suites = 1;
		row->suites[0] =
		    (struct suite_view){.suite = xstrdup("unit"), .n_broken = r->n_broken};
	}
}

static void worst_comes_first(void **state)
{
	static const struct row rows[] = {
	    {"perfect", 0, false, 0, NOW - HOUR, 10, 10},
	    {"never-heard-of", 0, false, 0, 0, 0, 0},
	    {"fair", 0, false, 0, NOW - HOUR, 10, 9},
	    {"no-runs", 0, false, 0, NOW - HOUR, 0, 0},
	    {"silent", 0, false, 0, NOW - 8 * 24 * HOUR, 10, 10},
	    {"broken-1", 0, false, 1, NOW - HOUR, 10, 10},
	    {"broken-7", 0, false, 7, NOW - HOUR, 10, 10},
	    {"red-new", NOW - HOUR, false, 1, NOW - HOUR, 10, 9},
	    {"red-old", NOW - 50 * HOUR, false, 0, NOW - HOUR, 10, 9},
	    {"overdue", NOW - 80 * HOUR, true, 1, NOW - HOUR, 10, 9},
	    {"fair-too", 0, false, 0, NOW - HOUR, 100, 90},
	};
	static const char *const expected[] = {"overdue", "red-old", "red-new", "broken-7",
	    "broken-1", "silent", "fair", "fair-too", "perfect", "no-runs", "never-heard-of"};
	struct dashboard *d = xcalloc(1, sizeof(*d));

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		add(d, &rows[i]);
	dashboard_sort(d, NOW);
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		assert_string_equal(d->rows[i].name, expected[i]);
	dashboard_free(d);
	d = xcalloc(1, sizeof(*d));
	dashboard_sort(d, NOW);
	dashboard_free(d);
	dashboard_free(NULL);
}

static void suites_have_their_places(void **state)
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
	    cmocka_unit_test(worst_comes_first),
	    cmocka_unit_test(suites_have_their_places),
	    cmocka_unit_test(outcomes_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
