/* Compares failures: it reduces the text of a failure to a key. The key has the whole message, all text of the last
 * exception of the trace, and the place that raised it, without numbers, addresses, paths, times, SHAs, ids and the
 * name of the failed test itself.
 *
 * A key shows that two failures are alike. It does not always show that they have the same cause: many failures say
 * "worker crashed". The store learns that from data (verdict/attribution_elsewhere.c); the list of words here
 * (failure_mark.is_general) only helps where there is no data.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/states.h"

/* One failure. Every member except suite and test may be NULL. */
struct failure_text {
	const char *message, *trace;
	const char *suite, *test, *dtype;
};

/* The parts of a failure that are compared. */
struct failure_mark {
	enum test_status status;
	int64_t key;            /* 0: it has no text */
	int64_t numbers;        /* a key of the whole numbers that it compares: "Expected 4 but got 7" */
	bool is_cut;            /* its message or trace was cut: two such failures may differ in the missing part */
	bool is_general;        /* its words fit any failure, or it was cut */
	bool is_infrastructure; /* a harness or machine reports its own failure: full disk, lost device, network … */
};
struct failure_mark failure_mark(enum test_status status, const struct failure_text *t);
/* As bytes, which the store keeps with the result. FAILURE_MARK_VERSION rises when failure_mark() reads any text differently:
 * marks of another version are computed again. */
enum { FAILURE_MARK_VERSION = 2, FAILURE_MARK_BYTES = 18 };
void failure_mark_put(const struct failure_mark *m, uint8_t ret[FAILURE_MARK_BYTES]);
/* False: there is none, or it is of another version. */
bool failure_mark_get(const void *p, size_t n, enum test_status status, struct failure_mark *ret) MUST_CHECK;
/* The same status and the same words. */
bool failure_marks_are_alike(const struct failure_mark *a, const struct failure_mark *b);
/* They are alike, compare the same numbers, and neither was cut. */
bool failure_marks_are_same(const struct failure_mark *a, const struct failure_mark *b);

/* ---- parts, for tests ---- */

enum { FAILURE_TEXT_MAX_BYTES = 4096 }; /* more than a report's message has */
/* The text as it is compared: one line of at most FAILURE_TEXT_MAX_BYTES; free(). Idempotent. */
char *failure_text_normalise(const char *text);
/* A normalised text that fits any failure ("Process completed with exit code N", "Killed", "Timeout", an
 * exception's bare name, or nothing but placeholders). NULL is general. */
bool failure_text_is_general(const char *normalised);
bool failure_text_is_infrastructure(const char *text); /* NULL is not */
/* A copy with one T for each place where the failed test is named: "TestNN.test_add_cuda_float32",
 * "test_nn.py::TestNN::test_add[cuda-float32]", … free(). */
char *failure_text_without_name(const char *text, const struct failure_text *t);
/* Of a trace: the last exception with its whole text, and "file function" of the place that raised it, unless that is
 * the test itself; NULL: there is none. free(). */
char *failure_trace_exception(const char *trace);
char *failure_trace_place(const char *trace, const struct failure_text *t);

/* ---- one word of a message: failure_word.c ---- */

enum { FAILURE_WORD_MAX_BYTES = 200 }; /* a longer one is not a word but a blob or a key */

#define FAILURE_PLACEHOLDER 'N' /* replaces a number or an id */

bool failure_is_digit(char c);
/* Letters, digits (ASCII) and '_'. */
bool failure_is_word(char c);
size_t failure_span(const char *p, bool (*is_part)(char c));
bool failure_has_digit(const char *p, size_t n);
/* Whether p[0..n) is in the NULL-terminated list; ignores the case of letters. */
bool failure_is_listed(const char *p, size_t n, const char *const *list);

struct failure_word {
	char text[FAILURE_WORD_MAX_BYTES];
	size_t len;
};
/* The word of n > 0 bytes at p, with the fraction and the unit of a number and the rest of a UUID after it. Returns the
 * number of bytes in all. */
size_t failure_word_read(const char *p, size_t n, struct failure_word *ret);
