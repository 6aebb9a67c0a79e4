/* The quality dashboard as people get to see it, and in which order: every accelerator at the newest
 * commit of upstream's branch, worst first, and what is running. The store fills it in one read
 * transaction. */
#ifndef MODEL_DASHBOARD_H
#define MODEL_DASHBOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/accelerator.h"
#include "model/states.h"

enum { DASHBOARD_DAYS = 30, DASHBOARD_RUNNING_MAX = 50 };

/* Commits so far apart that nobody knows how many lie between (store/branch_commits.h). */
enum { DISTANCE_UNKNOWN = 1000000 };

/* An accelerator of which nothing was heard for so long is silent. */
#define SILENT_AFTER_MS (INT64_C(7) * 86400 * 1000)

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
	enum level level;
	bool is_unhealthy, is_overdue;
	int64_t red_since_ms;   /* 0: it is not red */
	bool is_red_in_silence; /* by nothing but deadlines that passed without a report */
	int64_t last_report_ms;
	/* the newest commit that it has tested; sha NULL: none */
	char *sha;
	int64_t change_id, commit_ms;
	int64_t position;          /* on the branch; -1: not known */
	struct suite_view *suites; /* in the order of suite_order() */
	size_t n_suites;
	/* the newest one behind that whose deadline passed in silence; NULL: none */
	char *silent_sha;
	int64_t silent_ms;                    /* since when that is known */
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

/* Over the days that are shown; of n_runs 0 nothing is known. */
void dashboard_row_runs(const struct dashboard_row *r, int64_t *ret_n_runs, int64_t *ret_n_green);
/* What is red: "tests", "silence"; NULL: nothing. */
const char *red_by_name(int64_t red_since_ms, bool is_silence);
/* Worst first: overdue, then red ones by since when, then by how much is broken, then silent ones,
 * then by pass rate; those that never reported last. */
void dashboard_sort(struct dashboard *d, int64_t now_ms);

/* The suites of contract 6.1 in its order, then the others by name. As strcmp(). */
int suite_order(const char *a, const char *b);
bool suite_is_usual(const char *name);

#endif
