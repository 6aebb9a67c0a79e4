/* When an accelerator's periodic run is due: its cron texts (UTC) and a delay of its own behind each time, so that
 * accelerators with the same text do not start at once. The last part of this header is a run and a schedule as pages
 * show them.
 *
 * A due time is what the crons say; a run starts when its delay is over as well. The delay is a
 * stable share (a hash of the name) of the configured jitter, or of a quarter of the gap to the
 * next due time where that is shorter: so due times keep their order and an every-minute cron
 * stays one a minute.
 *
 * Pure: the time is an argument, so a clock that stands wrong or jumps is a test.
 *
 * Thread: any. Plain data and pure functions. Owns: schedule_release(); the views own their texts: record_release(). */
#pragma once

#include "model/record.h"

/* Cron texts, in UTC: five fields (minute hour day-of-month month day-of-week) with
 * lists, ranges, steps and English names, or @hourly, @daily, @midnight, @weekly,
 * @monthly, @yearly, @annually. Where both day fields are restricted, either may
 * match; a field that starts with '*' restricts nothing by itself (Vixie's rule). */

struct cron { /* bit n set: the value n matches */
	uint64_t minutes;
	uint32_t hours, days, months, weekdays; /* days 1…31, months 1…12, weekdays 0…6, 0 = Sunday */
	bool is_any_day, is_any_weekday;        /* that field starts with '*' */
};

/* ERR_INVALID with the reason in e (may be NULL); also for a time that never comes,
 * as 30 February. */
int cron_parse(const char *text, struct cron *ret, struct error *e) MUST_CHECK;
/* The first matching minute after after_ms (wall clock, ms since 1970), never
 * after_ms itself. */
int64_t cron_next(const struct cron *c, int64_t after_ms);

struct schedule {
	struct cron *crons;
	size_t n;
	int64_t jitter_ms;
	double share; /* of it, in [0,1) */
};

/* texts: NULL-terminated, as the configuration took them; NULL or empty: never due. */
void schedule_init(struct schedule *s, const char *name, const char *const *texts, int64_t jitter_ms);
void schedule_release(struct schedule *s);

/* When the run of that due time starts. */
int64_t schedule_start_ms(const struct schedule *s, int64_t due_ms);

struct schedule_look {
	/* The due time to act upon now, 0: none. However many went by, it is the latest. */
	int64_t due_ms;
	bool is_missed;      /* others went by before it, or its start is more than a minute ago */
	int64_t next_due_ms; /* the one to come after it (or after now), 0: never */
	int64_t next_ms;     /* and its start */
	int64_t last_ms;     /* what is last_ms from now on */
};
/* last_ms: the due time that was acted upon last, or since when times count. One that lies ahead
 * of now was of a clock that has been put back since: then times count from now, and of those that
 * come round again the caller knows which he has acted upon. */
struct schedule_look schedule_look(const struct schedule *s, int64_t last_ms, int64_t now_ms);
/* The first look at a schedule that takes the place of `before` (last_ms is of that). What was due by
 * the one before is not lost, and what only the new one would have had due until now is not missed. */
struct schedule_look schedule_look_at_other(
    const struct schedule *s, const struct schedule *before, int64_t last_ms, int64_t now_ms);

/* When to try again: exponential with jitter between 1 s and 15 min, 24 h in all. */

#define BACKOFF_FIRST_MS   INT64_C(1000)
#define BACKOFF_LONGEST_MS (INT64_C(15) * 60 * 1000)
#define BACKOFF_GIVE_UP_MS (INT64_C(24) * 3600 * 1000)

/* Delay before try number n_attempts + 1. random01 in [0,1). A positive retry_after_ms
 * (what the peer asked for) is a lower bound. */
int64_t backoff_delay_ms(int n_attempts, int64_t retry_after_ms, double random01);
/* True when a thing first tried at first_ms may not be tried again at next_ms. */
bool backoff_is_over(int64_t first_ms, int64_t next_ms);

/* ---- one due time with its outcome, and the schedule, as pages show them (docs/api.md: RUN) ---- */

/* `schedule_run` as x. The words are those that are stored (docs/schema.md). */
#define SCHEDULE_RUN_RECORD(F, S)                                                                                      \
	F(S, INT, id, "id", "x.id", "")                                                                                \
	F(S, TIME, due_ms, "due_at", "x.due_ms", "")                                                                   \
	F(S, TEXT, cause, "cause", "x.cause", "")                                                                      \
	F(S, TEXT, state, "state", "x.state", "")                                                                      \
	F(S, TEXT, outcome, "outcome", "COALESCE(x.outcome, 'running')", "")                                           \
	F(S, TEXT, reason, "reason", "x.reason",                                                                       \
	    "The reason why it was skipped or failed. While it is reading, the reason why the "                        \
	    "last attempt to read the heads failed.")                                                                  \
	F(S, COMMIT, upstream_sha, "upstream_sha", "x.upstream_sha", "")                                               \
	F(S, TEXT, source_sha, "source_sha", "x.source_sha", "")                                                       \
	F(S, TIME, started_ms, "started_at", "x.started_ms", "")                                                       \
	F(S, TIME, ended_ms, "ended_at", "x.ended_ms", "")
RECORD_STRUCT(schedule_run_view, SCHEDULE_RUN_RECORD); /* id 0: no run */

/* An accelerator's schedule, the table `schedule` as s, maybe without a row. */
#define SCHEDULE_VIEW_RECORD(F, S)                                                                                     \
	F(S, BOOL, is_there, NULL, "s.cron IS NOT NULL", "")                                                           \
	F(S, TEXTS, crons, "cron", "s.cron", "")                                                                       \
	F(S, TIME, next_ms, "next", "s.next_ms", "")                                                                   \
	F(S, BOOL, is_next_skipped, "skip_next", "s.is_next_skipped", "")
RECORD_STRUCT(schedule_view, SCHEDULE_VIEW_RECORD);
