/* The quality dashboard as JSON: what /api/v1/dashboard answers (docs/api.md), and the parts that an
 * accelerator's page has as well. Thread: any. */
#ifndef REPORT_DASHBOARD_JSON_H
#define REPORT_DASHBOARD_JSON_H

#include <jansson.h>

#include "model/dashboard.h"

/* A new reference. */
json_t *dashboard_json(
    const struct dashboard *d, const char *repository, const char *branch, const char *public_url);

/* n days up to and with last_day (days since 1970), oldest first. */
enum trend_detail { TREND_SHORT, TREND_FULL };
json_t *trend_json(const struct day_view *days, int n, int64_t last_day, enum trend_detail detail);
/* The same of periodic runs; each links to its accelerator's nightly page of that day. */
json_t *calendar_json(const enum day_outcome *days, int n, int64_t last_day,
    const char *accelerator, const char *public_url);

/* {"pass", "fail", …} of N_TEST_STATUSES counts. */
json_t *test_counts_json(const int64_t *by_status);
/* Where a change is shown: its pull request, or its commit where number is 0. A commit may have been
 * pushed and tested periodically, too, so the latter says which is meant. */
void json_set_change_url(json_t *obj, const char *key, const char *public_url,
    enum change_kind kind, int64_t number, const char *sha);
/* "YYYY-MM-DD" into out (DAY_TEXT_BYTES). */
enum { DAY_TEXT_BYTES = 16 };
const char *day_text(int64_t day, char *out);

#endif
