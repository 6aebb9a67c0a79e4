/* The quality dashboard as people get to see it, and in which order: every accelerator at the newest
 * commit of upstream's branch, worst first, and what is running. The store fills it in one read
 * transaction. */
#ifndef MODEL_DASHBOARD_H
#define MODEL_DASHBOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/accelerator.h"
#include "model/accelerator_state.h"
#include "model/states.h"

enum { DASHBOARD_DAYS = 30, DASHBOARD_RUNNING_MAX = 50 };

/* Commits so far apart that nobody knows how many lie between (store/branch_commits.h). */
enum { DISTANCE_UNKNOWN = 1000000 };

/* One UTC day of an accelerator. */
struct day_view {
	int64_t n_runs, n_green;                     /* of pushes, those that said something */
	int64_t by_status[N_TEST_STATUSES], n_flaky; /* their cells */
	int64_t queue_p50_ms, queue_p90_ms, run_p50_ms, run_p90_ms; /* -1: not known */
};

/* What came of a day's last periodic run; DAY_NO_RUN: there was none. The order is that of the
 * stored names in dashboard.c. */
enum day_outcome {
	DAY_NO_RUN,
	DAY_GREEN,
	DAY_RED,
	DAY_SKIPPED,
	DAY_MISSED,
	DAY_FAILED,
	DAY_RUNNING,
	N_DAY_OUTCOMES
};
const char *day_outcome_name(enum day_outcome o);     /* NULL for DAY_NO_RUN */
enum day_outcome day_outcome_parse(const char *name); /* NULL and unknown ones: DAY_RUNNING */

struct suite_view {
	char *suite;
	enum test_status status; /* the worst */
	int64_t by_status[N_TEST_STATUSES];
	int64_t n_broken; /* red, and not explained as FLAKY or KNOWN */
	int64_t job_id;   /* 0: none */
};

struct dashboard_row {
	char *name, *title, *vendor, *docs_url, *help_url;
	struct standing at;
	/* of the newest commit that it has tested, in the order of suite_order(); a deadline that one of
	 * its runners let pass is told by the state and is no suite */
	struct suite_view *suites;
	size_t n_suites;
	struct day_view days[DASHBOARD_DAYS]; /* oldest first */
	enum day_outcome nightly[DASHBOARD_DAYS];
};

struct running_view {
	char *id, *accelerator, *runner, *head_sha, *title;
	enum dispatch_state state;
	enum change_kind kind;
	int64_t number;           /* 0: no pull request */
	int64_t since_ms, due_ms; /* due 0: none */
};

struct dashboard {
	/* the newest commit that anybody has tested; sha NULL: none */
	char *sha, *title, *author;
	int64_t commit_ms, position;
	size_t n_tested;            /* how many accelerators have */
	struct dashboard_row *rows; /* worst first */
	size_t n_rows;
	struct running_view *running; /* at most DASHBOARD_RUNNING_MAX */
	size_t n_running;
	int64_t n_running_total;
	int64_t today; /* days since 1970: the last of each row's */
};
void dashboard_free(struct dashboard *d); /* NULL is fine */

/* What the newest periodic run that has ended came to, where that is bad news; else DAY_NO_RUN. */
enum day_outcome dashboard_bad_night(const struct dashboard_row *r);
/* Worst first, by enum accelerator_status and since when; those that pass by pass rate, and those
 * that have tested nothing of the branch last. */
void dashboard_sort(struct dashboard *d);

/* The suites of contract 6.1 in its order, then the others by name. As strcmp(). */
int suite_order(const char *a, const char *b);
bool suite_is_usual(const char *name);

#endif
