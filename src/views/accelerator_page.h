/* One accelerator in full, and its jobs and numbers a page at a time: the queries, and the JSON of docs/api.md. Thread: the queries
 * run on a reader. */
#pragma once

#include "config/config.h"
#include "db/store.h"
#include "model/dashboard.h"
#include "model/schedule.h"
#include "model/test_result.h"
#include "store/registry.h"

enum { PAGE_TREND_DAYS = 90, PAGE_CALENDAR_DAYS = 365, PAGE_JOBS = 25 };

/* A job, all attempts: `job` as j, its change as c, its dispatch as x. `queued_ms` is negative in the database when the
 * clock was put back; then it is not known. */
#define PAGE_JOB_RECORD(F, S)                                                                                          \
	F(S, INT, id, "id", "j.id", "")                                                                                \
	F(S, TEXT, workflow, "workflow", "j.workflow", "")                                                             \
	F(S, TEXT, name, "name", "j.name", "")                                                                         \
	F(S, JOB_STATUS, status, "status", "j.status", "")                                                             \
	F(S, TEXT, conclusion, "conclusion", "j.conclusion", "")                                                       \
	F(S, TEST_STATUS, verdict, "verdict", "j.verdict", "")                                                         \
	F(S, CHANGE_KIND, kind, "kind", "c.kind", "")                                                                  \
	F(S, ID, number, "number", "x.number", "")                                                                     \
	F(S, COMMIT, head_sha, "head_sha", "c.head_sha", "")                                                           \
	F(S, TIME, started_ms, "started_at", "j.started_ms", "")                                                       \
	F(S, TIME, completed_ms, "completed_at", "j.completed_ms", "")                                                 \
	F(S, SECONDS, queued_ms, "queued",                                                                             \
	    "j.started_ms - CASE x.kind WHEN 'pull' THEN x.created_ms ELSE x.sent_ms END", "Seconds.")                 \
	F(S, SECONDS, duration_ms, "duration", "CASE WHEN j.started_ms > 0 THEN j.completed_ms - j.started_ms END",    \
	    "Seconds.")                                                                                                \
	F(S, BOOL, is_late, "late", "j.is_late", "")                                                                   \
	F(S, BOOL, has_counts, NULL, "j.n_tests_fail IS NOT NULL", "")
struct page_job {
	RECORD_MEMBERS(PAGE_JOB_RECORD)
	struct test_counts tests;
};
RECORD_DECLARE(page_job);
struct page_jobs {
	struct page_job *at; /* newest first */
	size_t n;
	bool has_more;
};
void page_jobs_release(struct page_jobs *l);

struct list_accelerator_jobs {
	struct store_query q;
	const char *accelerator;
	int64_t before_id; /* 0: from the newest */
	int limit;
	struct page_jobs jobs; /* out; page_jobs_release() */
};
int store_list_accelerator_jobs(struct store *s, struct list_accelerator_jobs *q) MUST_CHECK;

/* A machine, from its tokens (`token`): two tokens with one name are one machine. */
#define PAGE_MACHINE_RECORD(F, S)                                                                                      \
	F(S, TEXT, name, "name", "name", "")                                                                           \
	F(S, TIME, last_seen_ms, "last_seen", "MAX(COALESCE(last_used_ms, 0))", "")
struct page_machine {
	RECORD_MEMBERS(PAGE_MACHINE_RECORD)
	char **busy_with; /* the runners of its active leases; NULL-terminated, or NULL */
};
RECORD_DECLARE(page_machine);

/* A commit of a red episode; the readers define its columns. `at_ms`: the commit's own time, if a push named it. */
#define PAGE_COMMIT_RECORD(F, S, sha_column, at_column)                                                                \
	F(S, TEXT, sha, "sha", sha_column, "")                                                                         \
	F(S, TIME, at_ms, "at", at_column, "")
#define PAGE_COMMIT_MEMBERS(F, S) PAGE_COMMIT_RECORD(F, S, "", "")
struct page_commit {
	RECORD_MEMBERS(PAGE_COMMIT_MEMBERS)
};
RECORD_DECLARE(page_commit);

/* The open red episode: `red_episode` as e, of several branches the one that is red for longest. */
#define PAGE_RED_RECORD(F, S)                                                                                          \
	F(S, TIME, since_ms, "since", "e.first_bad_ms", "")                                                            \
	F(S, TEXT, issue_url, "issue_url",                                                                             \
	    "'https://github.com/' || e.issue_repository || '/issues/' || NULLIF(e.issue_number, "                     \
	    "0)",                                                                                                      \
	    "")                                                                                                        \
	F(S, INT, first_bad_change, NULL, "e.first_bad_change", "")
struct page_red { /* since_ms 0: it is not red */
	RECORD_MEMBERS(PAGE_RED_RECORD)
	struct page_commit first_bad, last_good; /* sha NULL: not known */
	char **tests;                            /* "SUITE/TEST" at first_bad; NULL-terminated, RED_TESTS_MAX at most */
};
RECORD_DECLARE(page_red);

/* The cost and the results of the accelerator's experiments in the last 24 hours. Computed, so it has no columns. */
#define PAGE_EXPERIMENTS_RECORD(F, S)                                                                                  \
	F(S, INT, n_pending, "pending", "", "")                                                                        \
	F(S, SECONDS, spent_ms, "seconds_24h", "", "")                                                                 \
	F(S, SECONDS, allowed_ms, "seconds_allowed_24h", "", "")                                                       \
	F(S, INT, n_done, "done_24h", "", "")                                                                          \
	F(S, INT, n_void, "void_24h", "", "")                                                                          \
	F(S, INT, n_expired, "expired_24h", "", "")                                                                    \
	F(S, TEXT, newest_loss, "newest_loss", "", "")
struct page_experiments {
	RECORD_MEMBERS(PAGE_EXPERIMENTS_RECORD)
};
RECORD_DECLARE(page_experiments);

/* Everything is empty for an accelerator that is not in the registry's mirror yet. */
struct get_accelerator_page {
	struct store_query q;
	const char *name; /* in */
	int64_t now_ms;   /* in */
	/* out; get_accelerator_page_release() */
	struct accelerator_figures figures;
	int64_t today;
	struct day_view trend[PAGE_TREND_DAYS];
	enum day_outcome calendar[PAGE_CALENDAR_DAYS];
	struct schedule_view schedule;
	struct schedule_run_view last_run;
	struct page_red red;
	struct page_jobs jobs;
	struct page_machine *machines; /* by name */
	size_t n_machines;
	struct page_experiments experiments;
};
int store_get_accelerator_page(struct store *s, struct get_accelerator_page *q) MUST_CHECK;
void get_accelerator_page_release(struct get_accelerator_page *q);

/* Thread: any. As text, which the caller frees. At L1 the page shows the registration and no results. */
char *accelerator_page_json(const struct config *c, const struct accelerator *a, const struct get_accelerator_page *p);
/* Appends the member `jobs` (base/json_out.h). */
void page_jobs_out(struct buf *out, const struct page_jobs *l, const char *public_url);
/* The cursor of the jobs after them; null: there are no more. A new reference. */
json_t *page_jobs_next(const struct page_jobs *l);

/* ---- the numbers that its tests gave (history/days.h), as lines over days ---- */

enum { NUMBER_POINTS_MAX = 20000 }; /* of one answer */

/* `number_day`, one point a day. */
#define NUMBER_POINT_RECORD(F, S)                                                                                      \
	F(S, TIME, at_ms, "at", "at_ms", "")                                                                           \
	F(S, NUMBER, value, "value", "value", "")                                                                      \
	F(S, COMMIT, sha, "sha", "head_sha", "")                                                                       \
	F(S, ID, job_id, "job", "job_id", "")
struct number_point {
	RECORD_MEMBERS(NUMBER_POINT_RECORD)
};
RECORD_DECLARE(number_point);
/* A test as t, with the unit ?2. */
#define NUMBER_SERIES_RECORD(F, S)                                                                                     \
	F(S, TEXT, suite, "suite", "t.suite", "")                                                                      \
	F(S, TEXT, name, "name", "t.name", "")                                                                         \
	F(S, TEXT, dtype, "dtype", "NULLIF(t.dtype, '')", "")                                                          \
	F(S, TEXT, unit, "unit", "NULLIF(?2, '')", "")
struct number_series {
	RECORD_MEMBERS(NUMBER_SERIES_RECORD)
	struct number_point *points; /* oldest first */
	size_t n;
};
RECORD_DECLARE(number_series);

/* An accelerator's lines since a day, in the order in which Outpost saw the tests first. A page ends after `limit` lines,
 * or sooner if they have very many points. Thread: the query runs on a reader. */
struct list_numbers {
	struct store_query q;
	const char *accelerator;
	int64_t since_ms;
	int limit;
	int64_t after_test;         /* 0: from the start */
	const char *after_unit;     /* with it */
	struct number_series *list; /* out; list_numbers_release() */
	size_t n;
	bool has_more; /* out: there are more after next_test, next_unit */
	int64_t next_test;
	char next_unit[REPORT_UNIT_MAX_BYTES + 1];
};
int store_list_numbers(struct store *s, struct list_numbers *q) MUST_CHECK;
void list_numbers_release(struct list_numbers *q);

/* As text, which the caller frees. Thread: any. */
char *numbers_json(const struct list_numbers *l, int64_t days);
