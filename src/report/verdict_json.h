/* One change in figures, for merge bots: what the check run `outpost` embeds and the API has as
 * `summary`. */
#ifndef REPORT_VERDICT_JSON_H
#define REPORT_VERDICT_JSON_H

#include <jansson.h>

#include "model/change_view.h"

/* A new object:
 *
 *   {"schema": 1, "head_sha": SHA, "merge_base_sha": SHA or null,
 *    "verdict": "pass" | "fail" | "pending" | "unknown", "complete": BOOL,
 *    "new": N, "unclassified": N, "known": N, "base": N, "flaky": N, "missing": N, "not_counted": N,
 *    "rerunning": N, "accelerators": [{"name", "outcome", the seven counts, "passed": N,
 *    "lacking": N, "rerunning": N}]}
 *
 * The seven are numbers of red cells (accelerator, test): by attribution those that are FAIL or
 * ERROR; `missing` those that are MISS, and 1 for an accelerator of which nothing was heard;
 * `not_counted` all those of unhealthy accelerators, which are in none of the others. pass: every
 * accelerator that counts has reported, one has a PASS, and no red is the change's or of unknown
 * cause. `rerunning`: how many of the counted or excused failures an experiment runs again; each stays
 * in its count until that has ended. `complete`: nobody is at work any more, on first runs or on
 * experiments (what is held waits for a person).
 * outcome: "not_counted", "new", "unclassified", "missing", "running", "waiting", "held",
 * "merged_only", "cancelled", "lacking", "unrelated", "passed" or "nothing": the first that
 * applies. Accelerators at L1 are left out; at most 60 are listed, the worst first. A superseded
 * change is "unknown" with no counts at all. */
json_t *verdict_json(const struct change_view *v);

#endif
