/* Shared by the readers and writers of the three report formats. Private to documents/. Thread: any, because
 * nothing here is shared between calls. */
#pragma once

#include "documents/report_file.h"

/* ---- the readers behind report_file_parse() ---- */

/* The text is not empty and has at most REPORT_FILE_MAX_BYTES; *ret is zero. After an error *ret may be
 * partly filled: the caller releases it. */
int junit_parse(const char *text, size_t n, struct report_file *ret, struct error *e) MUST_CHECK;
int ctrf_parse(const char *text, size_t n, struct report_file *ret, struct error *e) MUST_CHECK;
int outpost_parse(const char *text, size_t n, struct report_file *ret, struct error *e) MUST_CHECK;
/* The same in one pass. False: it is not a document of Outpost's, not of the usual form, or has a mistake. */
bool outpost_parse_usual(const char *text, size_t n, struct report_file *ret) MUST_CHECK;

enum { ENVIRONMENT_MAX_BYTES = 16 << 10 };
/* Checks the object against docs/report.schema.json and writes it as compact JSON. free() *ret. */
int environment_text(const json_t *environment, char **ret, struct error *e) MUST_CHECK;

/* The largest number of cut tests that a reader takes from a document. */
#define REPORT_CUT_MAX (INT64_C(1) << 40)

/* Also true for NULL. */
bool text_is_blank(const char *s);
/* The text as report_line(), or the fallback if it is blank. s may be NULL. free(). */
char *line_or(const char *s, size_t max_bytes, const char *fallback);
/* Says in the message that the test passed only when it ran again, and keeps the message of the failure before. */
void test_result_mark_flaky(struct test_result *t);

/* ---- the cases of a document while it is read ---- */

struct listed_case;

/* Zero-initialise. It holds at most twice REPORT_TESTS_MAX cases, however many come. */
struct case_list {
	struct listed_case *cases; /* in the order of arrival */
	size_t n;
	size_t n_cut; /* cases that were left out */
};

/* The case never becomes one with another case of the same name. */
#define CASE_ALONE 0

/* Takes over the content of t. Cases of one `group` (other than CASE_ALONE) with the same suite, name and
 * dtype become one: the worst counts, and of equally bad ones the last. */
void case_list_add(struct case_list *l, struct test_result *t, uint32_t group);
/* Moves at most REPORT_TESTS_MAX cases out, in the order of arrival. If there are more, it keeps FAIL first,
 * then ERROR, MISS and the rest. The list is empty afterwards. free() *ret_tests. */
void case_list_finish(struct case_list *l, struct test_result **ret_tests, size_t *ret_n, size_t *ret_n_cut);
void case_list_release(struct case_list *l);

/* ---- the writers behind job_document() ---- */

/* How much of a report is written, the most first. */
enum report_detail { REPORT_WHOLE, REPORT_WITHOUT_TRACES, REPORT_BARE };

struct report_out {
	const struct job_detail *job;
	const struct test_result *tests; /* the job's, and perhaps one row for the job itself */
	size_t n_tests;
	enum report_detail detail;
};

void junit_out(const struct report_out *o, struct buf *out);
void ctrf_out(const struct report_out *o, struct buf *out);
void outpost_out(const struct report_out *o, struct buf *out);

/* The test's text if this detail includes it, else NULL. */
const char *report_out_message(const struct report_out *o, const struct test_result *t);
const char *report_out_trace(const struct report_out *o, const struct test_result *t);

/* Sets obj[key] unless the text is NULL or empty. Bytes that are not UTF-8 become U+FFFD. */
void report_set_text(json_t *obj, const char *key, const char *text);
/* Sets obj["number"] to {"value", "unit"} if the test has a number. */
void report_set_number(json_t *obj, const struct test_result *t);
/* The shorter of 15 and 17 digits that is the same number: "31.2", not "31.199999999999999". Returns the
 * number of digits; `text` takes 32 bytes and may be NULL. */
int report_number_text(double number, char *text);

/* ---- junit_case.c: one <testcase> of a JUnit document while it is read, and the properties called "outpost.…" for
 * everything that JUnit XML has no place for. pytest writes them with `record_property("outpost.dtype", "bf16")`,
 * junit_out.c writes them too, and other tools show or skip them ---- */

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
bool junit_case_decide(struct junit_case *c, enum junit_outcome outcome, const char *const *attributes);
void junit_case_text(struct junit_case *c, const char *s, size_t n);
/* A <property> of the case. Unknown properties and invalid values are ignored. */
void junit_case_add_property(struct junit_case *c, const char *const *attributes);
/* Moves the result out and closes the case. suite: the name of the innermost testsuite, or NULL.
 * *ret_is_whole is false if a name was cut or missing, so that another test may have the same one. */
void junit_case_close(struct junit_case *c, const char *suite, struct test_result *ret, bool *ret_is_whole);
void junit_case_release(struct junit_case *c);

/* A <property> of a suite. The first value of each counts. Creates *environment with the first one. */
void junit_environment_add(json_t **environment, size_t *n_cut, const char *const *attributes);
