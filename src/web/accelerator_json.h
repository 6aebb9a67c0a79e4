/* What is said of an accelerator in the list of all and on its own page. For web/ only. Thread:
 * loop. */
#ifndef WEB_ACCELERATOR_JSON_H
#define WEB_ACCELERATOR_JSON_H

#include "base/json.h"
#include "config/config.h"
#include "store/registry.h"

/* A new reference. f NULL: nothing is known of it yet. At L1 it shows nothing, nor what it showed at
 * another level. */
json_t *accelerator_json(
    const struct config *c, const struct accelerator *a, const struct accelerator_figures *f);

#endif
