/* The sentences with which the dashboard begins. Private to report/. */
#ifndef REPORT_DASHBOARD_HEADLINE_H
#define REPORT_DASHBOARD_HEADLINE_H

#include <jansson.h>

#include "model/dashboard.h"

/* A new object: {"symbol": "✗", "tone": "fail", "text": "2 of 3 accelerators are red on main",
 * "rest": "NPU is silent." or ""}. Plain text: titles are vendors', and no UTF-8 in them is U+FFFD.
 * It says that all are green only where each is; what else is known is in `rest`. */
json_t *dashboard_headline_json(const struct dashboard *d, const char *branch);

#endif
