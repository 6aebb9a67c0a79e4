/* The cases of a report while it is read: what has one name becomes one case, and of more than
 * REPORT_TESTS_MAX the worst are kept. However many cases come, at most twice that many are
 * held. */
#ifndef REPORT_CASE_LIST_H
#define REPORT_CASE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "model/test_result.h"

struct listed_case;

/* Zero-initialise. */
struct case_list {
	struct listed_case *cases; /* in the order in which they came */
	size_t n;
	size_t n_cut; /* cases that were left out, with those of one name */
};

/* Its own case, whatever else has its name. */
#define CASE_ALONE 0

/* Takes over what t holds. Of cases of one `group` (other than CASE_ALONE) with the same suite,
 * name and dtype the worst counts, and of equally bad ones the last. */
void case_list_add(struct case_list *l, struct test_result *t, uint32_t group);
/* Moves the cases out, at most REPORT_TESTS_MAX: FAIL first, then ERROR, MISS and the rest are
 * kept, in the order in which they came. The list is empty after it. free() *ret_tests. */
void case_list_finish(
    struct case_list *l, struct test_result **ret_tests, size_t *ret_n, size_t *ret_n_cut);
void case_list_release(struct case_list *l);

#endif
