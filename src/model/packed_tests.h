/* The results of one report in a few bytes for each test: the list of its tests, which many reports share, and the statuses
 * and durations in the order of that list. Results with more to say (a failure, a message, a number) also have a row.
 *
 * Thread: any. Pure functions; out-buffers and arrays belong to the caller. Bytes that are read may be damaged: the functions
 * check each of them and return false. */
#pragma once

#include "model/test_result.h"

struct compressor;

/* Names a list: equal digests mean equal (suite, name, dtype) in the same order. */
void test_list_digest(const struct test_result *tests, size_t n, uint8_t ret[SHA256_BYTES]);

/* The ids of the tests of a list as bytes: lists that differ in a few tests differ in a few bytes. Appends to out. */
void test_list_put(struct buf *out, const int64_t *ids, size_t n);
/* Fills ids[n]. */
bool test_list_get(const void *p, size_t bytes, int64_t *ids, size_t n) MUST_CHECK;

/* Replaces the content of out with the statuses and durations of the tests. The bytes are of use only for the same owner: it
 * is part of their checksum, so that damage never shows the results of another job. */
void packed_cells_put(struct compressor *c, int64_t owner, const struct test_result *tests, size_t n, struct buf *out);
/* Fills statuses[n] (enum test_status), and durations[n] (milliseconds, -1: unknown) unless it is NULL. */
bool packed_cells_get(
    const void *p, size_t bytes, int64_t owner, uint8_t *statuses, int64_t *durations, size_t n) MUST_CHECK;

/* Whether the packed form loses something of the result. */
bool test_result_needs_row(const struct test_result *t);
