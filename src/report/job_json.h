/* Jobs as JSON: a line of /api/v1/pulls/{n}, and /api/v1/jobs/{id} in full. */
#ifndef REPORT_JOB_JSON_H
#define REPORT_JOB_JSON_H

#include <jansson.h>

#include "model/job_detail.h"

/* New objects. */
json_t *job_view_json(const struct job_view *j);
/* The same fields, then what was tested and every result. public_url: without a trailing
 * slash. */
json_t *job_detail_json(const struct job_detail *d, const char *public_url);

#endif
