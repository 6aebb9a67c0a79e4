/* Periodic runs as JSON: what /api/v1/nightly answers (docs/api.md). Thread: any. */
#ifndef REPORT_NIGHTLY_JSON_H
#define REPORT_NIGHTLY_JSON_H

#include "model/nightly_view.h"

/* An object's text; free(). next: the text of the cursor, or NULL. public_url: without a trailing slash. */
char *nightly_json(const struct nightly_view *v, const char *next, const char *public_url);

#endif
