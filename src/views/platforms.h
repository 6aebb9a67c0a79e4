/* The compute platforms: the query of their tested versions and systems, and their JSON, the answers of
 * /api/v1/platforms and of the pages (docs/api.md). The JSON has vendors' texts as the vendors wrote them, so a page must
 * show them as text. */
#pragma once

#include "db/store.h"
#include "model/accelerator.h"
#include "model/accelerator_state.h"
#include "model/platform.h"

/* Thread: the query runs on a reader. */
struct get_platform_tests {
	struct store_query q;
	const char *only; /* in: this accelerator; NULL: all */
	/* in: the accelerators whose standings are read */
	const char *const *names;
	size_t n_names;
	int64_t now_ms;             /* in */
	struct platform_test *list; /* out, by accelerator, newest first; get_platform_tests_release() */
	size_t n;
	struct standing *standings; /* out: one for each name */
};
int store_get_platform_tests(struct store *s, struct get_platform_tests *q) MUST_CHECK;
void get_platform_tests_release(struct get_platform_tests *q);

/* Everything is borrowed. */
struct platform_entry {
	const struct accelerator *a;       /* with a platform */
	const struct platform_test *tests; /* its own, newest first */
	size_t n_tests;
	struct standing at; /* of its accelerator on upstream's branch */
};

/* {"choices", "platforms"}: tested and green ones first, examples last, else by title; sorts `list`. public_url: without a
 * trailing slash. New references; thread: any. */
json_t *platforms_json(struct platform_entry *list, size_t n, int64_t now_ms, const char *public_url);
/* One of them. */
json_t *platform_json(const struct platform_entry *e, int64_t now_ms, const char *public_url);
