/* One test case as it is reported: an entry of `tests` in a callback and in a report document,
 * and what the cases of other formats become. Vendor's text is cut to size here, once; it is
 * escaped where it is shown.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/states.h"

enum {
	REPORT_TESTS_MAX = 20000,
	REPORT_SUITE_MAX_BYTES = 128,
	REPORT_NAME_MAX_BYTES = 256,
	REPORT_UNIT_MAX_BYTES = 32, /* also dtype */
	REPORT_MESSAGE_MAX_BYTES = 1024,
	REPORT_TRACE_MAX_BYTES = 4096,
	REPORT_URL_MAX_BYTES = 2048,
	REPORT_PATH_MAX_BYTES = 512,
	REPORT_LINE_MAX = 10 * 1000 * 1000,
};

struct test_result {
	char *suite, *name;
	char *dtype; /* may be NULL */
	enum test_status status;
	int64_t duration_ms; /* -1: unknown */
	char *message;       /* may be NULL */
	char *trace;         /* where and how it failed, several lines; may be NULL */
	char *log_url;       /* https, or NULL */
	char *file;          /* of a red one: where it is, relative to the tree; may be NULL */
	int64_t line;        /* from 1; 0: not known */
	bool has_number;
	double number;
	char *unit; /* may be NULL */
};

/* From one entry as contract 6.1 has it. `where` is what errors start with:
 * "workflow.tests[3].status must be …". Required: suite, name, status; an ill-typed member
 * is ERR_INVALID, null counts as absent, unknown members are allowed. Release also after a
 * failure. */
int test_result_parse(const json_t *entry, const char *where, struct test_result *ret, struct error *e) MUST_CHECK;
void test_result_release(struct test_result *t);
/* Sets the place of a red result; call it once the status is known. A path or line that cannot be a place in a source tree is
 * dropped, not refused: an absolute path (its root is not known), a path with `..`, `\` or control characters, a path over
 * REPORT_PATH_MAX_BYTES, and an invalid line. path may be NULL. */
void test_result_locate(struct test_result *t, const char *path, int64_t line);

/* Seconds as milliseconds; -1: not a duration. */
int64_t report_duration_ms(double seconds);
/* A copy on one line, cut to max_bytes of UTF-8: breaks and tabs become spaces, other control
 * characters are dropped. free(). */
char *report_line(const char *s, size_t max_bytes);
/* The same, but breaks and tabs stay and what is blank around it goes. NULL when nothing is
 * left. */
char *report_lines(const char *s, size_t max_bytes);
/* obj[key] through report_line(); NULL when it is absent, no text, or
 * nothing is left of it. */
char *report_text(const json_t *obj, const char *key, size_t max_bytes);
/* A copy of an https URL that may be shown, else NULL: dropped, not refused. s may be NULL. */
char *report_link(const char *s);
/* report_link() of obj[key]. */
char *report_url(const json_t *obj, const char *key);

/* A job's failed tests in the form of CRCR's reporters (pytorch/test-infra#8545): `failed_tests_detail`,
 * `failed_tests_json` or `failed_tests` of the `workflow` object, each an array or the JSON text of one. Pure. */

/* FAIL rows of suite `unit`, the test named as a JUnit case is. Entries: {name, classname, message, stacktrace,
 * duration}. Without a name an entry is left out, and what is ill-typed in one is, as other optional fields of
 * `workflow` are. At most 1000 are read; *ret_n_cut counts the others. Returns the rows, free() after a
 * test_result_release() of each, or NULL: there are none. */
struct test_result *failed_tests_parse(const json_t *workflow, size_t *ret_n, size_t *ret_n_cut);
