/* The compute platforms as JSON: what /api/v1/platforms and the page are made of (docs/api.md). Vendors'
 * texts are in it as they wrote them: whoever shows them shows text. */
#ifndef REPORT_PLATFORM_JSON_H
#define REPORT_PLATFORM_JSON_H

#include <jansson.h>

#include "model/accelerator.h"
#include "model/accelerator_state.h"
#include "model/platform_test.h"

struct platform_entry {
	const struct accelerator *a;       /* with a platform */
	const struct platform_test *tests; /* its own, newest first */
	size_t n_tests;
	struct standing at; /* of its accelerator on upstream's branch; borrowed */
};

/* {"choices", "platforms"}: what is tested and green first, examples last, else by title; sorts
 * `list`. public_url without a slash at its end. New references. */
json_t *platforms_json(
    struct platform_entry *list, size_t n, int64_t now_ms, const char *public_url);
/* One of them. */
json_t *platform_json(const struct platform_entry *e, int64_t now_ms, const char *public_url);

#endif
