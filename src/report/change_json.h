/* One change as JSON: what /api/v1/pulls/{n} and /api/v1/commits/{sha} answer. */
#ifndef REPORT_CHANGE_JSON_H
#define REPORT_CHANGE_JSON_H

#include <jansson.h>

#include "model/change_view.h"

/* A new object: the contract's fields, each always there (null where nothing is known), then
 * ours. Accelerators at L1 are left out. Bytes that are no UTF-8 become U+FFFD. public_url:
 * without a trailing slash, what `evidence_url` starts with. */
json_t *change_json(const struct change_view *v, const char *public_url);

#endif
