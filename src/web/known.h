/* Known issues as JSON: for the API and for outpostctl. */
#ifndef WEB_KNOWN_H
#define WEB_KNOWN_H

#include "base/json.h"
#include "store/known_issues.h"

/* {"known": [...]}, as docs/operators.md has it. */
json_t *known_list_json(const struct list_known *l);

#endif
