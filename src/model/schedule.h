/* When an accelerator's periodic run is due: its cron texts (UTC) and a delay of its own behind each time, so that
 * accelerators with the same text do not start at once. The last part of this header is a run and a schedule as pages
 * show them.
 *
 * The crons give the due times, and a run starts when its delay is over, too. The delay is a stable share (a hash of
 * the name) of the configured jitter, or of a quarter of the gap to the next due time if that is shorter. So due times
 * keep their order, and a cron for each minute still starts one run a minute.
 *
 * Thread: any. Plain data and pure functions. Owns: schedule_release(); the views own their texts: record_release(). */
#pragma once

#include "model/record.h"

/* A cron text, in UTC: five fields (minute hour day-of-month month day-of-week) with lists, ranges, steps and English
 * names, or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually. If both day fields are restricted, one
 * of them has to match; a field that starts with '*' is not a restriction (Vixie's rule). */
struct cron { /* bit n set: the value n matches */
	uint64_t minutes;
	uint32_t hours, days, months, weekdays; /* days 1…31, months 1…12, weekdays 0…6, 0 = Sunday */
	bool is_any_day, is_any_weekday;        /* that field starts with '*' */
};

/* ERR_INVALID with the reason in e (may be NULL); also for a time that never comes, such as 30 February. */
int cron_parse(const char *text, struct cron *ret, struct error *e) MUST_CHECK;
/* The first matching minute later than after_ms (wall clock, ms since 1970). */
int64_t cron_next(const struct cron *c, int64_t after_ms);

struct schedule {
	struct cron *crons;
	size_t n;
	int64_t jitter_ms;
	double share; /* of it, in [0,1) */
};

/* texts: NULL-terminated, checked by the configuration; NULL or empty: never due. */
void schedule_init(struct schedule *s, const char *name, const char *const *texts, int64_t jitter_ms);
void schedule_release(struct schedule *s);

/* The start of the run of that due time. */
int64_t schedule_start_ms(const struct schedule *s, int64_t due_ms);

struct schedule_look {
	int64_t due_ms;      /* the latest due time that has come and is not handled; 0: none */
	bool is_missed;      /* there were others before it, or its start is more than a minute ago */
	int64_t next_due_ms; /* the one after it (or after now); 0: never */
	int64_t next_ms;     /* and its start */
	int64_t last_ms;     /* for the next look */
};
/* last_ms: the last handled due time, or the time from which they count. If it is later than now, the clock was put
 * back: due times count from now then, and the caller recognises those that it has handled. */
struct schedule_look schedule_look(const struct schedule *s, int64_t last_ms, int64_t now_ms);
/* The first look at a schedule that replaces `before` (last_ms is of that one). Due times of the old schedule are not
 * lost, and past due times of the new one alone are not missed. */
struct schedule_look schedule_look_at_other(
    const struct schedule *s, const struct schedule *before, int64_t last_ms, int64_t now_ms);

/* ---- the back-off of retries: exponential with jitter between 1 s and 15 min, 24 h in all ---- */

#define BACKOFF_FIRST_MS   INT64_C(1000)
#define BACKOFF_LONGEST_MS (INT64_C(15) * 60 * 1000)
#define BACKOFF_GIVE_UP_MS (INT64_C(24) * 3600 * 1000)

/* The delay before attempt n_attempts + 1. random01 in [0,1). retry_after_ms is the peer's lower bound. */
int64_t backoff_delay_ms(int n_attempts, int64_t retry_after_ms, double random01);
/* Whether the time for retries, from the first attempt at first_ms, is over at next_ms. */
bool backoff_is_over(int64_t first_ms, int64_t next_ms);

/* ---- one due time with its outcome, and the schedule, as pages show them (docs/api.md: RUN) ---- */

/* `schedule_run` as x, with its words as stored (docs/schema.md). */
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
