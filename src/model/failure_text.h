/* When two failures are the same: what a failure says is reduced to a key. Numbers, addresses, paths, times, SHAs, ids
 * and the name of the failed test itself are taken out; the whole message, all that the last exception of its
 * trace says, and the place where that was raised stay. Pure.
 *
 * A key shows that two failures are alike. Whether it also shows that they have the same cause is another question:
 * many failures say "worker crashed". The store learns that from data (store/attribution_seen.c); the list of words
 * here (failure_mark.is_general) is only a net below it. */
#ifndef MODEL_FAILURE_TEXT_H
#define MODEL_FAILURE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/states.h"

/* What is known of one failure. Every member but suite and test may be NULL. */
struct failure_text {
	const char *message, *trace;
	const char *suite, *test, *dtype;
};

/* A failure as it is compared. */
struct failure_mark {
	enum test_status status;
	int64_t key;     /* 0: it says nothing at all */
	int64_t numbers; /* a key of the whole numbers that it compares: "Expected 4 but got 7" */
	bool is_cut; /* its message or trace was cut: two of them may differ in what is missing */
	bool is_general; /* its words would fit any failure, or it was cut */
	bool
	    is_infrastructure; /* a harness or machine says that it failed itself: full disk, lost device, network … */
};
struct failure_mark failure_mark(enum test_status status, const struct failure_text *t);
/* The same status and the same words, whatever they are worth. */
bool failure_marks_are_alike(const struct failure_mark *a, const struct failure_mark *b);
/* They are alike, compare the same numbers, and nothing that could tell them apart is missing. */
bool failure_marks_are_same(const struct failure_mark *a, const struct failure_mark *b);

/* ---- the parts of it ---- */

enum { FAILURE_TEXT_MAX_BYTES = 4096 }; /* more than a report's message has */
/* The text as it is compared: one line of at most FAILURE_TEXT_MAX_BYTES; free(). Idempotent. */
char *failure_text_normalise(const char *text);
/* A normalised text that would fit any failure ("Process completed with exit code N", "Killed", "Timeout", an
 * exception's bare name, or nothing but placeholders). NULL is general. */
bool failure_text_is_general(const char *normalised);
bool failure_text_is_infrastructure(const char *text); /* NULL is not */
/* A copy with one T for each place where the failed test is named: "TestNN.test_add_cuda_float32",
 * "test_nn.py::TestNN::test_add[cuda-float32]", … free(). */
char *failure_text_without_name(const char *text, const struct failure_text *t);
/* Of a trace: the last exception and all that it says, and "file function" of the place that raised it, unless that is
 * the test itself; each NULL where there is none. free(). */
char *failure_trace_exception(const char *trace);
char *failure_trace_place(const char *trace, const struct failure_text *t);

#endif
