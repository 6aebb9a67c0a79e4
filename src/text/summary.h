/* The verdict on a change: as one sentence, the first thing that a maintainer reads, and as JSON for merge
 * bots. Pure. Thread: any. */
#pragma once

#include "text/table.h"

struct summary_style {
	const char *bold_on, *bold_off;
	void (*append_title)(struct buf *out, const char *title);
};

/* Appends the sentence without a line break: the verdict's sign, its cause in bold, then the other facts. It
 * never says that something passed without a PASS, or that the change did not cause an unclassified failure. */
void summary_append(const struct table *t, const struct summary_style *style, struct buf *out);
/* "1 known, 2 on the base, 3 flaky", or "flaky" if all are. */
void summary_append_unrelated(const struct table *t, struct buf *out);
/* "1,234,567": easier to read, and GitHub may take seven digits without commas for a commit. */
void count_append(struct buf *out, size_t n);
/* `{public_url}/{folder}/{id}` as a link's target. Returns false and appends nothing if there is no id or no public_url. */
bool own_url_append(struct buf *out, const char *public_url, const char *folder, int64_t id);
/* Whether the test of a red cell runs again, or why a rerun did not help, with a link to the rerun's job; nothing: no rerun. */
void rerun_append(struct buf *out, const struct verdict_view *w, const char *public_url);

/* The verdict in figures, which the check run `outpost` embeds and the API has as `summary`. A new object:
 *
 *   {"schema": 1, "head_sha": SHA, "merge_base_sha": SHA or null,
 *    "verdict": "pass" | "fail" | "pending" | "unknown", "complete": BOOL,
 *    "new": N, "unclassified": N, "known": N, "base": N, "flaky": N, "missing": N, "not_counted": N,
 *    "rerunning": N, "accelerators": [{"name", "outcome", the seven counts, "passed": N,
 *    "lacking": N, "rerunning": N}]}
 *
 * The seven are numbers of red cells (accelerator, test): by attribution for FAIL and ERROR; `missing` for MISS, and 1
 * for an accelerator without any report; `not_counted` for all of unhealthy accelerators, which are in no other count.
 * pass: every accelerator that counts has reported, one has a PASS, and no red cell comes from the change or has an
 * unknown cause. `rerunning`: how many of the failures that count or are excused an experiment runs again; each stays
 * in its count until the experiment has ended. `complete`: see table_is_complete(). outcome: "not_counted", "new",
 * "unclassified", "missing", "running", "waiting", "held", "merged_only", "cancelled", "lacking", "unrelated", "passed"
 * or "nothing": the first that applies. Accelerators at L1 are left out; at most 60 are listed, the worst first. A
 * superseded change is "unknown" and has no counts. */
json_t *verdict_json(const struct table *t);
