/* Numbers that tests give (model/test_result.h), as lines over days: of pushes and periodic runs,
 * one a day for each test and unit, the newest. They outlive the results that they are from. */
#ifndef STORE_NUMBER_DAYS_H
#define STORE_NUMBER_DAYS_H

#include "model/test_result.h"
#include "store/db.h"
#include "store/store.h"

/* These tests have become results of the job: notes their numbers where the job is shown and of a
 * push or periodic run. Inside a writer's transaction. */
void number_days_note(
    struct db *d, int64_t job_id, const struct test_result *tests, size_t n, int64_t now_ms);
/* The change goes: its numbers stay, but lead nowhere. Inside a writer's transaction. */
void number_days_forget_change(struct db *d, int64_t change_id);
/* Those of days before go, at most `limit`; how many did. Inside a writer's transaction. */
int64_t number_days_drop(struct db *d, int64_t before_day, int limit);
/* From the newest jobs on record, until results_max results were looked at. Inside a writer's
 * transaction. */
void number_days_fill(struct db *d, int64_t results_max);

enum { NUMBER_POINTS_MAX = 20000 }; /* of one answer */

struct number_point {
	int64_t at_ms, job_id; /* job 0: it has gone */
	double value;
	char sha[41];
};
struct number_series {
	char *suite, *name, *dtype, *unit; /* dtype, unit may be "" */
	struct number_point *points;       /* oldest first */
	size_t n;
};
/* An accelerator's lines since a day, in the order in which tests were first seen. A page ends after
 * `limit` lines, or sooner where they hold very many points. */
struct list_numbers {
	struct store_query q;
	const char *accelerator;
	int64_t since_ms;
	int limit;
	int64_t after_test;         /* 0: from the start */
	const char *after_unit;     /* with it */
	struct number_series *list; /* out; list_numbers_release() */
	size_t n;
	bool has_more; /* out: go on behind next_test, next_unit */
	int64_t next_test;
	char next_unit[REPORT_UNIT_MAX_BYTES + 1];
};
int store_list_numbers(struct store *s, struct list_numbers *q) MUST_CHECK;
void list_numbers_release(struct list_numbers *q);

#endif
