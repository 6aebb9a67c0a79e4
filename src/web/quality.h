/* How an accelerator fares, as JSON: health, numbers, thresholds, and what level they carry. Shown
 * by /api/v1/accelerators and outpostctl status. Private to web/. */
#ifndef WEB_QUALITY_H
#define WEB_QUALITY_H

#include "base/json.h"
#include "config/config.h"
#include "store/quality.h"

/* q NULL: nothing is known of it yet. At L1 nothing but the level's fields is shown. */
void quality_add_json(json_t *v, const struct config *c, enum level level, const struct quality *q);

#endif
