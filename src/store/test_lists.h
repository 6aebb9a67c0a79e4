/* The lists of tests of reports: jobs with the same tests share one row of `test_list`.
 *
 * Thread: the writer, inside a transaction. Ownership: the arguments are borrowed; packed_tests.ids and .n_named are written here. */
#pragma once

#include "db/db.h"
#include "model/packed_tests.h"

/* The tests of a long list that is not known get their rows in transactions of their own, because each takes some microseconds.
 * These rows mean nothing without a report. Returns whether it wrote some, and the report has to wait for another transaction. */
bool test_list_put_part(struct txn *d, struct packed_tests *p); /* NULL has none */
/* Call it first in each transaction: the first n_parts transactions wrote parts and are committed. NULL is fine. */
void test_list_go_on(struct packed_tests *p, int64_t n_parts);
/* The id of the list's row, which is written if there is none. job_id: the job whose list it is. */
int64_t test_list_put_row(struct txn *d, int64_t job_id, struct packed_tests *p);
/* Finds the ids of the tests that need rows. The packed results are written, with this first ordinal. */
void test_list_name_rows(struct txn *d, int64_t job_id, int64_t first, struct packed_tests *p);
