/* A job's failed tests in the form of CRCR's reporters (pytorch/test-infra#8545): `failed_tests_detail`,
 * `failed_tests_json` or `failed_tests` of the `workflow` object, each an array or the JSON text of one. Pure. */
#ifndef MODEL_FAILED_TESTS_H
#define MODEL_FAILED_TESTS_H

#include "model/test_result.h"

/* FAIL rows of suite `unit`, the test named as a JUnit case is. Entries: {name, classname, message, stacktrace,
 * duration}. Without a name an entry is left out, and what is ill-typed in one is, as other optional fields of
 * `workflow` are. At most 1000 are read; *ret_n_cut counts the others. Returns the rows, free() after a
 * test_result_release() of each, or NULL: there are none. */
struct test_result *failed_tests_parse(const json_t *workflow, size_t *ret_n, size_t *ret_n_cut);

#endif
