/* One test case of a report: an entry of `tests` in a callback or a report document. The cases of other formats become
 * such entries. This file cuts vendors' texts to size; the code that shows them escapes them.
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
	char *trace;         /* the place and the way it failed, several lines; may be NULL */
	char *log_url;       /* https, or NULL */
	char *file;          /* of a red test, relative to the tree; may be NULL */
	int64_t line;        /* from 1; 0: not known */
	bool has_number;
	double number;
	char *unit;       /* may be NULL */
	bool is_borrowed; /* the texts are not its own */
};

/* From one entry of `tests` (docs/report.md). Errors start with `where`: "workflow.tests[3].status must be …".
 * Required: suite, name, status. An ill-typed member is ERR_INVALID, null counts as absent, and unknown members are
 * allowed. Release also after a failure. */
int test_result_parse(const json_t *entry, const char *where, struct test_result *ret, struct error *e) MUST_CHECK;
void test_result_release(struct test_result *t);
/* Copies borrowed texts. */
void test_result_own(struct test_result *t);

/* The members of an entry, however it is read. */
enum test_member {
	MEMBER_SUITE,
	MEMBER_NAME,
	MEMBER_STATUS,
	MEMBER_DURATION,
	MEMBER_DTYPE,
	MEMBER_MESSAGE,
	MEMBER_TRACE,
	MEMBER_LOG_URL,
	MEMBER_FILE,
	MEMBER_NUMBER, /* an object: test_entry.number and .unit are its members */
	MEMBER_LINE,
	N_TEST_MEMBERS
};
extern const char *const TEST_MEMBERS[N_TEST_MEMBERS + 1]; /* their names; NULL at the end */
struct test_value {
	enum { VALUE_IS_ABSENT, VALUE_IS_NULL, VALUE_IS_TEXT, VALUE_IS_NUMBER, VALUE_IS_OTHER } kind;
	char *text; /* of a text; else NULL */
	double number;
};
struct test_entry {
	struct test_value of[N_TEST_MEMBERS], number, unit;
	/* True: the result points to these texts and cuts them in their place; their memory stays the caller's. False: it copies
	 * them. */
	bool is_borrowed;
};
/* The rules of test_result_parse() for the members. */
int test_result_fill(
    const struct test_entry *m, const char *where, struct test_result *ret, struct error *e) MUST_CHECK;
/* Sets the place of a red result; call it once the status is known. A path or line that cannot be a place in a source
 * tree is dropped, not refused: an absolute path (its root is not known), a path with `..`, `\` or control characters,
 * a path over REPORT_PATH_MAX_BYTES, and an invalid line. path may be NULL. */
void test_result_locate(struct test_result *t, const char *path, int64_t line);

/* Seconds as milliseconds; -1: not a duration. */
int64_t report_duration_ms(double seconds);
/* A copy on one line, cut to max_bytes: breaks and tabs become spaces, other control characters are dropped. free(). */
char *report_line(const char *s, size_t max_bytes);
/* The same, but breaks and tabs stay, and blanks around the text are dropped. NULL: nothing is left. */
char *report_lines(const char *s, size_t max_bytes);
/* obj[key] through report_line(); NULL: it is absent, not text, or empty then. */
char *report_text(const json_t *obj, const char *key, size_t max_bytes);
/* A copy of an https URL that may be shown, else NULL: dropped, not refused. s may be NULL. */
char *report_link(const char *s);
/* report_link() of obj[key]. */
char *report_url(const json_t *obj, const char *key);

/* A job's failed tests in the form of CRCR's reporters (pytorch/test-infra#8545): `failed_tests_detail`,
 * `failed_tests_json` or `failed_tests` of the `workflow` object, each an array or the JSON text of one. Entries:
 * {name, classname, message, stacktrace, duration}. Each becomes a FAIL of the suite `unit` with the name of a JUnit
 * case. Entries without a name and ill-typed members are left out. At most 1000 are read; *ret_n_cut counts the others.
 * Returns the results, free() after a test_result_release() of each; NULL: there are none. */
struct test_result *failed_tests_parse(const json_t *workflow, size_t *ret_n, size_t *ret_n_cut);
