/* One change as JSON: what /api/v1/pulls/{n} and /api/v1/commits/{sha} answer. */
#ifndef REPORT_CHANGE_JSON_H
#define REPORT_CHANGE_JSON_H

#include <jansson.h>

#include "model/change_view.h"
#include "report/verdict_list.h"

/* A new object: the contract's fields, each always there (null where nothing is known), then
 * ours, among them `summary` (report/verdict_json.h, and as `text` the sentence that the comment begins
 * with, as plain text). A cell's `evidence_url` shows whose its
 * failure is: the issue of a KNOWN one, else the page of the job that is the evidence, and null where
 * there is none (verdict_evidence_of()). Accelerators at L1 are left out. Bytes that are no UTF-8 become U+FFFD. public_url:
 * without a trailing slash, what `evidence_url` starts with. choice: which verdicts are listed; all
 * else is of the whole change. */
json_t *change_json(
    const struct change_view *v, const char *public_url, const struct verdict_choice *choice);

#endif
