/* Days and periodic runs of an accelerator as pages show them. */
#pragma once

#include "db/db.h"
#include "model/dashboard.h"
#include "model/schedule.h"

/* ---- thread: reader ---- */

/* n days up to and with last_day (days since 1970), oldest first. A day without runs is empty_day or DAY_NO_RUN. */
void days_read(const struct view *d, const char *accelerator, int64_t last_day, struct day_view *ret, int n);
void nightly_days_read(const struct view *d, const char *accelerator, int64_t last_day, enum day_outcome *ret, int n);

/* ---- thread: any; they append a value to a JSON text (base/json_out.h) ---- */

/* The same days. */
enum trend_detail { TREND_SHORT, TREND_FULL };
void trend_out(
    struct buf *out, const char *key, const struct day_view *days, int n, int64_t last_day, enum trend_detail detail);
/* Each links to its accelerator's page of periodic runs of that day. */
void calendar_out(struct buf *out, const char *key, const enum day_outcome *days, int n, int64_t last_day,
    const char *accelerator, const char *public_url);
/* RUN of docs/api.md; null: no run. The first is an array of them. */
void schedule_runs_out(struct buf *out, const char *key, const struct schedule_run_view *list, size_t n,
    const char *accelerator, const char *public_url);
void schedule_run_out(struct buf *out, const char *key, const struct schedule_run_view *v, const char *accelerator,
    const char *public_url);
/* "YYYY-MM-DD" into out (DAY_TEXT_BYTES). */
enum { DAY_TEXT_BYTES = 16 };
const char *day_text(int64_t day, char *out);
