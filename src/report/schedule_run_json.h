/* RUN of docs/api.md. Thread: any. */
#ifndef REPORT_SCHEDULE_RUN_JSON_H
#define REPORT_SCHEDULE_RUN_JSON_H

#include <jansson.h>

#include "model/schedule_run.h"

/* A new reference; null where there is none. */
json_t *schedule_run_json(
    const struct schedule_run_view *v, const char *accelerator, const char *public_url);
/* An accelerator's nightly page of one day. free(). */
char *nightly_day_url(const char *public_url, const char *accelerator, const char *day);

#endif
