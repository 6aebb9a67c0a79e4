/* Properties in JUnit XML that say what it has no place for. pytest writes them with
 * `record_property("outpost.dtype", "bf16")`. Private to report/. */
#ifndef REPORT_JUNIT_PROPERTY_H
#define REPORT_JUNIT_PROPERTY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/test_result.h"

/* Of a <testcase>. */
#define JUNIT_STATUS  "outpost.status" /* MISS of an error, DONE of what passed; else ignored */
#define JUNIT_DTYPE   "outpost.dtype"
#define JUNIT_NUMBER  "outpost.number"
#define JUNIT_UNIT    "outpost.unit"
#define JUNIT_LOG_URL "outpost.log_url"
/* Of a <testsuite>: tests that were left out, and what it ran on. */
#define JUNIT_CUT     "outpost.cut"
extern const struct junit_environment {
	const char *property, *object, *key; /* environment[object][key]; object NULL: at its top */
} JUNIT_ENVIRONMENT[];                       /* ends with property NULL */

/* Of one case while it is read. Zero-initialise. */
struct junit_facts {
	char *dtype, *unit, *log_url;
	bool has_number, is_done, is_miss;
	double number;
};
/* A <property>. Others than ours, and what says nothing sensible, are passed over. */
void junit_facts_add(struct junit_facts *f, const char *const *attributes);
/* "llama3 (bf16)" → "llama3" where bf16 is the dtype: so junit_out.c writes it. In place. */
void junit_facts_strip(const struct junit_facts *f, char *name);
/* Moves them into the result, whose status is decided. */
void junit_facts_apply(struct junit_facts *f, struct test_result *t);
void junit_facts_release(struct junit_facts *f);

/* A <property> of a suite. The first value of each counts; *environment is made when the first
 * comes. */
void junit_environment_add(json_t **environment, size_t *n_cut, const char *const *attributes);

#endif
