/* The state of an accelerator on upstream's branch. Everything that shows a state uses accelerator_state_of(): the
 * dashboard, the accelerator's page, its badge, the API, /metrics, the platforms page, the comment's "not counted" and
 * outpostctl.
 *
 * Rule guarded here: nothing is green without a PASS on the commit of the branch that the state refers to. A job of a
 * pull request makes nothing green.
 *
 * Thread: any. Plain data and pure functions. Owns: a standing owns its texts; standing_release(). */
#pragma once

#include "model/accelerator.h"

/* An accelerator is silent after this time without a report, and a test of the branch is stale after it. */
#define SILENT_AFTER_MS (INT64_C(7) * 86400 * 1000)
#define RED_OVERDUE_MS  (INT64_C(72) * 3600 * 1000) /* the 72-hour rule */

/* How the newest commit of the branch that the accelerator has tested ended. */
enum branch_result {
	BRANCH_UNTESTED,  /* it has tested no commit */
	BRANCH_PASSED,    /* something passed, nothing is red */
	BRANCH_EXPLAINED, /* something passed, and each red test is FLAKY or KNOWN */
	BRANCH_RED,       /* some test is red that is not explained */
	BRANCH_NO_REPORT, /* no test is red, but one of its runners missed a deadline */
	BRANCH_NO_PASS,   /* nothing passed, and each red test is explained */
};

struct accelerator_facts {
	enum level level;
	bool is_unhealthy;      /* the circuit breaker (model/accelerator.h) */
	int64_t red_since_ms;   /* on a branch of upstream (history/red_episodes.h); 0: it is not red */
	bool is_red_in_silence; /* only because deadlines passed without a report */
	int64_t last_report_ms; /* of anything, pull requests too; 0: never */
	enum branch_result newest;
	int64_t tested_ms; /* when that test ended; 0: BRANCH_UNTESTED */
	/* When the deadline of the newest push after it passed without a report; 0: none did. */
	int64_t no_report_ms;
	/* Runs of pushes with a result in the last 30 days, and how many of them were green (docs/levels.md, pass_rate). */
	int64_t n_runs, n_green;
};

/* One order for everything: of several states that apply, the first one is the accelerator's state, and
 * lists begin with the first one (dashboard_sort()). docs/levels.md lists them in this order. */
enum accelerator_status {
	ACCELERATOR_OFF,         /* at L1: no page shows it */
	ACCELERATOR_OVERDUE,     /* tests have been red on the branch for 72 hours */
	ACCELERATOR_RED,         /* tests are red on the branch */
	ACCELERATOR_NOT_COUNTED, /* unhealthy */
	ACCELERATOR_SILENT,      /* it reported nothing for a week */
	ACCELERATOR_NO_REPORT,   /* it missed the deadline of a push */
	ACCELERATOR_NO_PASS,     /* its newest test of the branch ended without a PASS */
	ACCELERATOR_STALE,       /* its newest test of the branch is older than a week */
	ACCELERATOR_EXPLAINED,   /* it passes, except for flaky tests and known issues */
	ACCELERATOR_GREEN,
	ACCELERATOR_UNTESTED, /* it has not tested any commit of the branch */
	N_ACCELERATOR_STATUSES
};

struct accelerator_state {
	enum accelerator_status status;
	int64_t since_ms; /* 0: not known for this status */
	/* More facts: red or without a report for 72 hours; the deadline of a newer push passed; the circuit breaker.
	 * The last two are false if the status itself says the same. */
	bool is_overdue, has_no_report, is_not_counted;
};
struct accelerator_state accelerator_state_of(const struct accelerator_facts *f, int64_t now_ms);

/* The facts about one accelerator, its state, and the commits that they refer to. */
struct standing {
	struct accelerator_facts facts;
	struct accelerator_state state;
	/* the newest commit of the branch that it has tested; sha NULL: none */
	char *sha;
	int64_t change_id, commit_ms;
	int64_t position; /* on the branch; -1: not known */
	/* the newest push after it whose deadline passed without a report; NULL: none */
	char *silent_sha;
};
void standing_release(struct standing *s);

bool red_is_overdue(int64_t since_ms, int64_t now_ms); /* since_ms 0: it is not red */
/* "tests" or "silence"; NULL: it is not red. */
const char *red_by_name(int64_t red_since_ms, bool is_silence);
/* A status that is not known to be green never counts as green. */
bool accelerator_status_is_red(enum accelerator_status s);
bool accelerator_status_is_green(enum accelerator_status s); /* GREEN, EXPLAINED */

/* The words and the symbol of a status; all pages use the same. */
struct accelerator_words {
	const char *name;   /* in JSON and metrics: "not_counted" */
	const char *word;   /* for people: "unhealthy, not counted" */
	const char *symbol; /* "✗", "!", "?", "✓" */
	const char *tone;   /* of the pages' colours: "fail", "error", "miss", "pass" */
};
const struct accelerator_words *accelerator_words(enum accelerator_status s);
/* The text before "for 2 d" if the state has a since_ms: "red", "no report", "silent", … */
const char *accelerator_state_text(const struct accelerator_state *s);
