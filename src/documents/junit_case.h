/* One <testcase> of a JUnit document while it is read, and the properties called "outpost.…" for everything
 * that JUnit XML has no place for. pytest writes them with `record_property("outpost.dtype", "bf16")`,
 * junit_out.c writes them too, and other tools show or skip them. Private to documents/. Thread: any. */
#ifndef DOCUMENTS_JUNIT_CASE_H
#define DOCUMENTS_JUNIT_CASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "model/test_result.h"

/* Properties of a <testcase>. */
#define JUNIT_STATUS  "outpost.status" /* MISS for an error, DONE for a pass; else ignored */
#define JUNIT_DTYPE   "outpost.dtype"
#define JUNIT_NUMBER  "outpost.number"
#define JUNIT_UNIT    "outpost.unit"
#define JUNIT_LOG_URL "outpost.log_url"
/* Properties of a <testsuite>: how many tests were left out, and the environment. */
#define JUNIT_CUT     "outpost.cut"
extern const struct junit_environment {
	const char *property, *object, *key; /* environment[object][key]; object NULL: at its top */
} JUNIT_ENVIRONMENT[];                       /* ends with property NULL */

/* The outcome that an element in a case means, weakest first: the strongest one decides. */
enum junit_outcome { JUNIT_SILENT, JUNIT_FLAKY, JUNIT_SKIPPED, JUNIT_ERROR, JUNIT_FAILURE };

struct junit_case {
	enum junit_outcome outcome;
	char *name, *class_name; /* never NULL while the case is open */
	int64_t duration_ms;
	char *file;    /* may be NULL */
	int64_t line;  /* as it is written; -1: none */
	char *message; /* of the deciding element; may be NULL */
	struct buf text;
	bool is_text_full;
	/* from the case's properties */
	char *dtype, *unit, *log_url;
	bool has_number, is_done, is_miss;
	double number;
};

/* A copy of a name, bounded because each case keeps one; "" when it is absent. free(). */
char *junit_name(const char *const *attributes, const char *name);

/* Opens the case from its attributes, which may decide it already (gtest's and node's do). */
void junit_case_open(struct junit_case *c, const char *const *attributes);
/* JUNIT_SILENT: the element has no outcome. */
enum junit_outcome junit_outcome_of(const char *element);
/* An element of this outcome begins. True if it decides now: then its text goes to junit_case_text(). */
bool junit_case_decide(
    struct junit_case *c, enum junit_outcome outcome, const char *const *attributes);
void junit_case_text(struct junit_case *c, const char *s, size_t n);
/* A <property> of the case. Unknown properties and invalid values are ignored. */
void junit_case_add_property(struct junit_case *c, const char *const *attributes);
/* Moves the result out and closes the case. suite: the name of the innermost testsuite, or NULL.
 * *ret_is_whole is false if a name was cut or missing, so that another test may have the same one. */
void junit_case_close(
    struct junit_case *c, const char *suite, struct test_result *ret, bool *ret_is_whole);
void junit_case_release(struct junit_case *c);

/* A <property> of a suite. The first value of each counts. Creates *environment with the first one. */
void junit_environment_add(json_t **environment, size_t *n_cut, const char *const *attributes);

#endif
