/* Lists of tests, which the jobs that report the same tests share. A connection keeps those that it read last.
 *
 * Thread: the connection's. Ownership: a list belongs to its users, each of which releases it. */
#pragma once

#include "db/db.h"
#include "model/packed_tests.h"

struct test_list {
	int64_t id;
	uint8_t digest[SHA256_BYTES]; /* a list that retention deleted may have had the id */
	int n_users;
	size_t n;
	bool is_distinct; /* no test is in it twice */
	bool has_order;
	uint32_t *order; /* test_list_order() */
	char **suites;   /* test_list_suites(): their names; NULL: not read yet */
	uint32_t n_suites;
	uint32_t *suite_of; /* by place: one of `suites` */
	int64_t ids[];
};

/* Returns NULL if the list is missing or damaged. Call test_list_release() at the end. */
struct test_list *test_list_of(const struct view *d, int64_t id);
/* The same for a row of test_list that was read with other rows, which costs no statement if the connection has the list. Its columns
 * begin at `at`. */
#define TEST_LIST_COLUMNS "l.id, l.digest, l.n, l.is_distinct"
struct test_list *test_list_of_row(const struct view *d, const struct rows *r, int at);
void test_list_release(struct test_list *l); /* NULL is fine */
/* Its places by test_id, and equal ones by place; NULL: it is in this order already. */
const uint32_t *test_list_order(struct test_list *l);
/* Reads the suites of its tests, once, from a job whose results from `first` on have this list. False: they are damaged. */
bool test_list_suites(const struct view *d, struct test_list *l, int64_t job_id, int64_t first) MUST_CHECK;
/* The next place of the test in the list, from `i`; l->n: there is none. */
size_t test_list_find(const struct test_list *l, int64_t test_id, size_t i);

/* ---- for db.c: the lists that a connection keeps ---- */

struct test_lists *test_lists_new(void);
void test_lists_free(struct test_lists *l); /* NULL is fine */
/* The writer undid changes: forgets the lists, because their tests may get other ids now. */
void test_lists_undone(struct test_lists *l);
