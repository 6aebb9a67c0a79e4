/* Which cells of a change an answer lists: a part of them, some kinds of them. Pure. */
#ifndef REPORT_VERDICT_LIST_H
#define REPORT_VERDICT_LIST_H

#include <jansson.h>

#include "model/change_view.h"

struct verdict_choice {
	size_t limit;          /* 0: all */
	unsigned statuses;     /* bits by enum test_status; 0: all */
	unsigned attributions; /* bits by enum attribution; 0: all, also those without one */
	/* where to go on: what was in the cursor; 0 bytes: from the beginning */
	const char *after;
	size_t after_bytes;
};

/* Sets in obj: `verdicts`, `verdicts_total` (how many the choice admits, listed or not) and `next`
 * (the cursor of the rest as base64url, or null). By suite, test, dtype and accelerator, so that a
 * cursor stays good while cells come and go. L1 is left out. cell makes one entry. */
void verdict_list_json(json_t *obj, const struct change_view *v,
    const struct verdict_choice *choice,
    json_t *(*cell)(
	const struct change_view *v, const struct verdict_view *w, const char *public_url),
    const char *public_url);

#endif
