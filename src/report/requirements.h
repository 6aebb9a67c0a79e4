/* What is required of an accelerator and not there: suites that it has to report, tests that have
 * to pass (contract 2, `required`, and 3, `tests.must_pass`). Asked only of accelerators that
 * finished: who is silent or still running is told of as such. Private to report/. */
#ifndef REPORT_REQUIREMENTS_H
#define REPORT_REQUIREMENTS_H

#include "report/table.h"

enum requirement_state {
	REQUIREMENT_MET,
	REQUIREMENT_RED,          /* the test failed: its failure is told of like any other */
	REQUIREMENT_NOT_PASSED,   /* the test was skipped, or measured only */
	REQUIREMENT_NOT_REPORTED, /* suite or test */
	REQUIREMENT_UNKNOWN,      /* the view was cut before it */
};

/* Of one column: suites first, then tests, each in the registry's order. */
struct requirements {
	const struct accelerator_view *accelerator;
	enum requirement_state *suites, *tests; /* as required_suites, must_pass */
	size_t n_suites, n_tests;
};

/* One for each column (n_columns), all empty where nothing is asked. requirements_free(). */
struct requirements *requirements_read(const struct table *t);
void requirements_free(struct requirements *list, const struct table *t);
/* Fills each column's n_lacking. */
void requirements_count(struct table *t);

#endif
