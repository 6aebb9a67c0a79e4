/* One <testcase> of a JUnit document while it is read: which of the elements in it decides, and
 * what the test is called. Private to report/. */
#ifndef REPORT_JUNIT_CASE_H
#define REPORT_JUNIT_CASE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "model/test_result.h"
#include "report/junit_property.h"

/* What an element in a case says, weakest first: the strongest one decides. */
enum junit_outcome { JUNIT_SILENT, JUNIT_FLAKY, JUNIT_SKIPPED, JUNIT_ERROR, JUNIT_FAILURE };

struct junit_case {
	enum junit_outcome outcome;
	char *name, *class_name; /* never NULL while the case is open */
	int64_t duration_ms;
	char *file;    /* may be NULL */
	int64_t line;  /* as it is written; -1: none */
	char *message; /* of the element that decides; may be NULL */
	struct buf text;
	bool is_text_full;
	struct junit_facts facts;
};

/* A copy of a name, long enough to be told from others, short enough to be copied for each
 * case; "" when absent. free(). */
char *junit_name(const char *const *attributes, const char *name);

/* Opens it from its attributes, which may decide already (gtest's and node's do). */
void junit_case_open(struct junit_case *c, const char *const *attributes);
/* JUNIT_SILENT: an element that says nothing about the outcome. */
enum junit_outcome junit_outcome_of(const char *element);
/* An element that says `outcome` begins. True when it is stronger than what was there: what
 * text is in it belongs to junit_case_text(). */
bool junit_case_decide(
    struct junit_case *c, enum junit_outcome outcome, const char *const *attributes);
void junit_case_text(struct junit_case *c, const char *s, size_t n);
/* Hands the result over and closes the case. suite: what the innermost testsuite is called, or
 * NULL. *ret_is_whole is false when a name was cut or missing, so that it may be another test's too. */
void junit_case_close(
    struct junit_case *c, const char *suite, struct test_result *ret, bool *ret_is_whole);
void junit_case_release(struct junit_case *c);

#endif
