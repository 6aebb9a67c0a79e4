/* How one test did on a branch near a commit: the nearest tested one before or after it. Inside a
 * writer's transaction; part of store/attribution_facts.h. */
#ifndef STORE_ATTRIBUTION_NEAREST_H
#define STORE_ATTRIBUTION_NEAREST_H

#include "store/attribution_facts.h"

enum base_state { BASE_NOT_KNOWN, BASE_IS_GREEN, BASE_AMID_GREEN, BASE_IS_BROKEN };
/* Whether a change whose merge base stands at that position of the branch (-1: not known) had that
 * failure of the cell from there. Green: at the merge base itself. Amid green: on both sides of it,
 * between which a breakage may have come and gone. Broken: red so right before it, and not in a single
 * run between two green ones, which is not known to be more than a flake. */
enum base_state attribution_base_state(const struct attribution_case *c, const char *ref,
    int64_t position, const struct red_cell *cell);

struct nearest {
	enum test_status status; /* N_TEST_STATUSES: nothing was tested there */
	int64_t key, position;
};
bool nearest_is_green(const struct nearest *n);
bool nearest_is_same(const struct nearest *n, const struct red_cell *cell);

#endif
