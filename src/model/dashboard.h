/* The quality dashboard as people see it, and its order: every accelerator at the newest commit of upstream's branch,
 * worst first, and the unfinished dispatches. Plain data and pure functions.
 * Thread: a reader fills it in one transaction (views/dashboard.h); then one thread at a time owns it. Owns: everything
 * below it; dashboard_free(). */
#pragma once

#include "model/accelerator.h"
#include "model/accelerator_state.h"
#include "model/states.h"

enum { DASHBOARD_DAYS = 30, DASHBOARD_RUNNING_MAX = 50 };

/* Commits so far apart that the number between them is not known (store/branch_commits.h). */
enum { DISTANCE_UNKNOWN = 1000000 };

/* How many tests have each status. P: in front of the names of the columns n_fail, n_error, …; only the readers know
 * it, so they define the list: #define DAY_TESTS(F, S) TEST_COUNTS_RECORD(F, S, "n_"). */
#define TEST_COUNTS_RECORD(F, S, P)                                                                                    \
	F(S, INT, by_status[TEST_PASS], "pass", P "pass", "")                                                          \
	F(S, INT, by_status[TEST_FAIL], "fail", P "fail", "")                                                          \
	F(S, INT, by_status[TEST_ERROR], "error", P "error", "")                                                       \
	F(S, INT, by_status[TEST_MISS], "miss", P "miss", "")                                                          \
	F(S, INT, by_status[TEST_DONE], "done", P "done", "")                                                          \
	F(S, INT, by_status[TEST_SKIP], "skip", P "skip", "")
struct test_counts {
	int64_t by_status[N_TEST_STATUSES];
};
RECORD_DECLARE(test_counts);

/* One UTC day of an accelerator, from the table `day`: the runs of pushes that gave a result, and, in the details,
 * their flaky cells and times. */
#define DAY_VIEW_RECORD(F, S)                                                                                          \
	F(S, INT, n_runs, "runs", "n_runs", "")                                                                        \
	F(S, INT, n_green, "green", "n_green", "")
#define DAY_DETAILS_RECORD(F, S)                                                                                       \
	F(S, INT, n_flaky, "flaky", "n_flaky", "")                                                                     \
	F(S, SECONDS, queue_p50_ms, "queue_p50", "queue_p50_ms", "")                                                   \
	F(S, SECONDS, queue_p90_ms, "queue_p90", "queue_p90_ms", "")                                                   \
	F(S, SECONDS, run_p50_ms, "run_p50", "run_p50_ms", "")                                                         \
	F(S, SECONDS, run_p90_ms, "run_p90", "run_p90_ms", "")
struct day_view {
	RECORD_MEMBERS(DAY_VIEW_RECORD)
	RECORD_MEMBERS(DAY_DETAILS_RECORD)
	struct test_counts tests;
};
RECORD_DECLARE(day_view);
RECORD_DECLARE(day_details);
extern const struct day_view empty_day; /* nothing ran, and no time is known */

/* The outcome of a day's last periodic run. DAY_NO_RUN has no name, and NULL and unknown names are DAY_RUNNING. */
enum day_outcome { DAY_NO_RUN, DAY_GREEN, DAY_RED, DAY_SKIPPED, DAY_MISSED, DAY_FAILED, DAY_RUNNING, N_DAY_OUTCOMES };
WORDS_DECLARE(day_outcome);

/* One suite of a run, from the table `run_suite`. `status`: the worst. `n_broken`: red, and not explained as FLAKY or
 * KNOWN. */
#define SUITE_VIEW_RECORD(F, S)                                                                                        \
	F(S, TEXT, suite, "suite", "suite", "")                                                                        \
	F(S, TEST_STATUS, status, "status", "status", "")                                                              \
	F(S, INT, n_broken, "red", "n_broken", "")                                                                     \
	F(S, ID, job_id, "job", "job_id", "")
struct suite_view {
	RECORD_MEMBERS(SUITE_VIEW_RECORD)
	struct test_counts tests;
};
RECORD_DECLARE(suite_view);

/* One accelerator, from the table `accelerator`. */
#define DASHBOARD_ROW_RECORD(F, S)                                                                                     \
	F(S, TEXT, name, "name", "name", "")                                                                           \
	F(S, TEXT, title, "title", "title", "")                                                                        \
	F(S, TEXT, vendor, "vendor", "vendor", "")                                                                     \
	F(S, TEXT, docs_url, NULL, "docs_url", "")                                                                     \
	F(S, TEXT, help_url, NULL, "help_url", "")
struct dashboard_row {
	RECORD_MEMBERS(DASHBOARD_ROW_RECORD)
	struct standing at;
	/* of the newest commit that it has tested, in the order of suite_order(); a deadline that one of its runners
	 * missed is part of the state and not a suite */
	struct suite_view *suites;
	size_t n_suites;
	struct day_view days[DASHBOARD_DAYS]; /* oldest first */
	enum day_outcome nightly[DASHBOARD_DAYS];
};
RECORD_DECLARE(dashboard_row);

/* A dispatch that has not ended: `dispatch` as x, its change as c, its pull request as p. */
#define RUNNING_VIEW_RECORD(F, S)                                                                                      \
	F(S, TEXT, id, "dispatch", "x.id", "")                                                                         \
	F(S, TEXT, accelerator, "accelerator", "x.accelerator", "")                                                    \
	F(S, TEXT, runner, "runner", "x.runner", "")                                                                   \
	F(S, DISPATCH_STATE, state, "state", "x.state", "")                                                            \
	F(S, CHANGE_KIND, kind, "kind", "c.kind", "")                                                                  \
	F(S, ID, number, "number", "x.number", "")                                                                     \
	F(S, TEXT, head_sha, "head_sha", "c.head_sha", "")                                                             \
	F(S, TEXT, title, "title", "COALESCE(p.title, c.title)", "")                                                   \
	F(S, TIME, since_ms, "since", "x.created_ms", "")                                                              \
	F(S, TIME, due_ms, "due", "x.next_due_ms", "")
RECORD_STRUCT(running_view, RUNNING_VIEW_RECORD);

/* The newest tested commit: its change as c, its place on the branch as b, and ?1 the change's id. `n_tested`: how many
 * accelerators have tested it. */
#define DASHBOARD_RECORD(F, S)                                                                                         \
	F(S, TEXT, sha, "sha", "c.head_sha", "")                                                                       \
	F(S, TEXT, title, "title", "COALESCE(b.title, c.title)", "")                                                   \
	F(S, TEXT, author, "author", "COALESCE(b.author, c.author)", "")                                               \
	F(S, TIME, commit_ms, "at", "COALESCE(b.at_ms, c.created_ms)", "")                                             \
	F(S, INT, n_tested, "accelerators",                                                                            \
	    "(SELECT COUNT(*) FROM run r JOIN accelerator a ON a.name = r.accelerator"                                 \
	    " WHERE r.change_id = ?1 AND a.is_gone = 0 AND a.level > 1"                                                \
	    " AND NOT " RUN_IS_SILENT ")",                                                                             \
	    "")
struct dashboard {
	RECORD_MEMBERS(DASHBOARD_RECORD) /* sha NULL: no commit was tested */
	int64_t position;                /* of this commit on the branch; -1: not known */
	struct dashboard_row *rows;      /* worst first */
	size_t n_rows;
	struct running_view *running; /* at most DASHBOARD_RUNNING_MAX */
	size_t n_running;
	int64_t n_running_total;
	int64_t today; /* days since 1970: the last of each row's */
};
RECORD_DECLARE(dashboard);
void dashboard_free(struct dashboard *d); /* NULL is fine */

/* The outcome of the newest periodic run that has ended, if it is bad news; else DAY_NO_RUN. */
enum day_outcome dashboard_bad_night(const struct dashboard_row *r);
/* Worst first, by enum accelerator_status and then by since_ms; accelerators that pass by their pass rate, and those
 * without a test of the branch last. */
void dashboard_sort(struct dashboard *d);

/* The usual suites in their order, then the others by name. Like strcmp(). */
int suite_order(const char *a, const char *b);
bool suite_is_usual(const char *name);
