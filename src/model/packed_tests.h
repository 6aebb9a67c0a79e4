/* The results of one report in a few bytes for each test: the list of its tests, which many reports share, and the statuses
 * and durations in the order of that list. Results with more to say (a failure, a message, a number) also have a row.
 *
 * Thread: any. Pure functions; out-buffers and arrays belong to the caller. Bytes that are read may be damaged: the functions
 * check each of them and return false. */
#pragma once

#include "model/failure_text.h"
#include "model/test_result.h"

struct compressor;

/* Names a list: equal digests mean equal (suite, name, dtype) in the same order. */
void test_list_digest(const struct test_result *tests, size_t n, uint8_t ret[SHA256_BYTES]);

/* The ids of the tests of a list as bytes: lists that differ in a few tests differ in a few bytes. Appends to out. */
void test_list_put(struct buf *out, const int64_t *ids, size_t n);
/* Fills ids[n]. */
bool test_list_get(const void *p, size_t bytes, int64_t *ids, size_t n) MUST_CHECK;

/* Where packed results belong: the job, the ordinal of the first one, the list. It is part of their checksum, so that damage
 * never shows the results of another job or of other tests. */
struct packed_place {
	int64_t job_id, first, list_id;
};
/* Replaces the content of out with the statuses and durations of the tests. */
void packed_cells_put(
    struct compressor *c, const struct packed_place *place, const struct test_result *tests, size_t n, struct buf *out);
/* Fills statuses[n] (enum test_status), and durations[n] (milliseconds, -1: unknown) unless it is NULL. */
bool packed_cells_get(const void *p, size_t bytes, const struct packed_place *place, uint8_t *statuses,
    int64_t *durations, size_t n) MUST_CHECK;

/* Whether the packed form loses something of the result. */
bool test_result_needs_row(const struct test_result *t);

/* All that the store writes of the tests of a report, made in one pass before the writer has it: the writer does nothing for
 * each test whose list it knows. */
struct packed_tests {
	const struct test_result *tests; /* borrowed */
	size_t n;
	uint8_t digest[SHA256_BYTES]; /* test_list_digest() */
	struct buf cells;             /* packed_cells_put() for no place */
	int64_t by_status[N_TEST_STATUSES];
	uint32_t *rows;             /* which of the tests need one */
	struct failure_mark *marks; /* of each of these; set if it is FAIL or ERROR */
	size_t n_rows;
	bool has_numbers;
	/* the store's */
	int64_t list_id;    /* 0: its list is not stored, or not looked for yet */
	bool has_leftovers; /* with list_id: the job has rows of a report that did not end */
	int64_t *ids;       /* of the tests, as far as they are known */
	size_t n_named;     /* how many are */
	size_t n_staged;    /* how many rows are written before the report is */
	int64_t staged_job; /* for this job; 0: none */
};
/* Replaces *ret; packed_tests_release() it. */
void packed_tests_make(struct packed_tests *ret, const struct test_result *tests, size_t n);
void packed_tests_release(struct packed_tests *p);
/* Makes the cells those of this place. */
void packed_tests_place(struct packed_tests *p, const struct packed_place *place);
int64_t packed_tests_n_red(const struct packed_tests *p);
/* The worst status of a test, if it is worse than this one. */
enum test_status packed_tests_worst(const struct packed_tests *p, enum test_status worst);
