/* Reads the tests of a large report in one pass over its text, without a tree of it: the texts of all tests lie in one block.
 * It reads only entries of the usual form. It refuses all others, and each mistake; the caller then reads the whole document as a
 * tree, which explains the mistake. So both ways give the same tests, and only the errors need one of them.
 *
 * Thread: any. Pure functions; the caller owns the struct. */
#pragma once

#include "model/test_result.h"

struct test_array {
	struct test_result *tests; /* is_borrowed: their texts are in `texts` */
	size_t n;
	char *texts;
	struct buf rest;  /* the document with [] in the place of the array. It is not checked */
	struct buf plain; /* the array as json_dumps() with JSON_COMPACT | JSON_SORT_KEYS writes it, if it is wanted */
};

/* Reads the array that the keys (NULL-terminated, from the document's own) lead to. False: there is none, it is empty, or it
 * has to be read as a tree. After success the array is valid JSON. The caller checks the rest of the text, and refuses objects
 * with one key twice. Release it after success. */
bool test_array_read(
    const char *text, size_t n, const char *const *path, bool is_plain_wanted, struct test_array *ret) MUST_CHECK;
void test_array_release(struct test_array *a);
