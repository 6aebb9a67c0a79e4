/* The history of one test in the periodic runs of an accelerator: since when it is red, and whether that is new. The
 * caller passes the runs to a walk one by one, the newest first, until the walk needs no more. The last part of this
 * header is the page that shows such histories.
 *
 * Rules guarded here: red is FAIL or ERROR, green is PASS or DONE. MISS says nothing about the code, so it neither
 * hides nor makes a red test; SKIP means that the test should not run now. A run without the test counts only for its
 * disappearance.
 *
 * Thread: any, one at a time; pure functions and plain data. A reader fills in a nightly_view (views/nightly.h).
 * Owns: a nightly_view owns everything below it; nightly_view_free(). A walk owns nothing. */
#pragma once

#include "model/accelerator.h"
#include "model/schedule.h"
#include "model/states.h"

/* X(ENUM, name): worst first, as lists are sorted; stored by name */
#define HISTORY_STATES(X)                                                                                              \
	X(REGRESSION, "regression")                                                                                    \
	X(STILL_FAILING, "still_failing")                                                                              \
	X(UNSTABLE, "unstable")                                                                                        \
	X(DISAPPEARED, "disappeared")                                                                                  \
	X(FIXED, "fixed")                                                                                              \
	X(PASSING, "passing")                                                                                          \
	X(SKIPPED, "skipped")

#define HISTORY_VALUE(e, name) HISTORY_##e,
/* HISTORY_NONE: nothing to show, because the test is not there and was not there lately */
enum history_state { HISTORY_STATES(HISTORY_VALUE) N_HISTORY_STATES, HISTORY_NONE = N_HISTORY_STATES };
#define RECORD_C_HISTORY_STATE enum history_state
#define RECORD_T_HISTORY_STATE RECORD_WORD, &history_state_words
WORDS_DECLARE(history_state);

enum {
	HISTORY_WINDOW = 10, /* runs within which three changes make a test unstable */
	HISTORY_CHANGES = 3,
	HISTORY_FORGET = 30, /* runs without a test after which it is not listed any more */
};

/* A run by its number: 0 is the newest. -1: none, or older than the runs of the walk. */
struct history_mark {
	int run;
	int64_t tag; /* the caller's, of history_walk_add() */
};

struct history_verdict {
	enum history_state state;
	int since; /* the run with which the state began; -1: not known */
	/* The oldest run of the red streak that the state is about, and the green run before it; not with PASSING and SKIPPED. */
	struct history_mark first_bad, last_good;
};

/* The walk over the runs of one test. Zero: a walk without a run. */
struct history_walk {
	int n_runs;
	int n_judged; /* of them, green or red */
	int n_changes;
	int changed_in;          /* + 1: the newer run of the oldest change within the window */
	int gone_since;          /* + 1 */
	int first_run, last_run; /* + 1: judged, the newest and the last one */
	int green_since;         /* + 1 */
	int newest_red;          /* + 1: the newest red */
	int bad_run, good_run;   /* + 1 */
	int64_t bad_tag, good_tag;
	bool is_red, was_red, is_second_red; /* of the judged: the newest, the last one, the second */
	bool is_skipped, is_there;           /* in the newest; in any */
};
/* The next older run had the test. tag: the caller's, returned in a mark. */
void history_walk_add(struct history_walk *w, enum test_status status, int64_t tag);
/* The next older run did not have it. */
void history_walk_absent(struct history_walk *w);
/* The newest run is not over, and may still have the test. Call it while the walk has only absences. */
void history_walk_unfinished(struct history_walk *w);
/* More of the past may change the verdict. */
bool history_walk_wants_more(const struct history_walk *w);
struct history_verdict history_walk_end(const struct history_walk *w);

/* ---- the page of periodic runs: some tests, worst first, across accelerators and days ---- */

/* Days are counted from 1970, UTC. An accelerator, from the table `accelerator` as a. */
#define NIGHTLY_ACCELERATOR_RECORD(F, S)                                                                               \
	F(S, TEXT, name, "name", "a.name", "")                                                                         \
	F(S, TEXT, title, "title", "a.title", "")                                                                      \
	F(S, LEVEL, level, "level", "a.level", "")
struct nightly_accelerator {
	RECORD_MEMBERS(NIGHTLY_ACCELERATOR_RECORD)
	struct schedule_view schedule;
	struct schedule_run_view *runs; /* n_days of them, the last of each day */
};
RECORD_DECLARE(nightly_accelerator);

/* The run at one end of a row of days: `history_run` as h, and ?3 the job that reported it there. A text is NULL when
 * no row has it any more, and `job` is 0 when the job is gone. */
#define NIGHTLY_MARK_RECORD(F, S)                                                                                      \
	F(S, TIME, at_ms, "at", "h.at_ms", "")                                                                         \
	F(S, TEXT, repository, NULL, "h.repository", "")                                                               \
	F(S, COMMIT, upstream_sha, "upstream_sha", "h.upstream_sha", "")                                               \
	F(S, TEXT, source_url, NULL, "h.source_url", "")                                                               \
	F(S, TEXT, source_sha, "source_sha", "h.source_sha", "")                                                       \
	F(S, ID, job, "job", "(SELECT j.id FROM job j WHERE j.id = ?3)", "")
struct nightly_mark {
	int64_t day;
	RECORD_MEMBERS(NIGHTLY_MARK_RECORD)
};
RECORD_DECLARE(nightly_mark);

/* That end. Most tests that broke, broke together, so several cells have one mark. */
struct nightly_end {
	int64_t day; /* -1: there is none */
	int64_t job; /* 0: it is gone, or not known */
	size_t mark; /* place in the view's list; if there is one */
};

/* A commit of upstream; history/commits_between.h reads it. */
#define NIGHTLY_COMMIT_RECORD(F, S)                                                                                    \
	F(S, TEXT, sha, "sha", "", "")                                                                                 \
	F(S, TEXT, title, "title", "", "")                                                                             \
	F(S, TEXT, author, "author", "", "")
RECORD_STRUCT(nightly_commit, NIGHTLY_COMMIT_RECORD);

/* The commits of upstream between two runs; several cells share one. */
struct nightly_commits {
	char *repository, *good_sha, *bad_sha;
	int64_t n;                   /* -1: not known */
	struct nightly_commit *list; /* the newest, newest first */
	size_t n_listed;
};

/* What a run says about a test; several tests of a run have one outcome. */
struct nightly_outcome {
	enum test_status status;
	int64_t job; /* 0: it is gone */
};

struct nightly_cell {
	size_t accelerator; /* place in the view's list */
	enum history_state state;
	int64_t since_day; /* -1: not known */
	struct nightly_end first_bad, last_good;
	int commits;    /* place in the view's list; -1: none between */
	uint32_t *days; /* n_days places in the view's list of outcomes, from 1 on; 0: no result. The view owns them */
};

/* `test` as t. */
#define NIGHTLY_TEST_RECORD(F, S)                                                                                      \
	F(S, INT, id, NULL, "t.id", "")                                                                                \
	F(S, TEXT, suite, "suite", "t.suite", "")                                                                      \
	F(S, TEXT, name, "name", "t.name", "")                                                                         \
	F(S, TEXT, dtype, "dtype", "NULLIF(t.dtype, '')", "")
struct nightly_test {
	RECORD_MEMBERS(NIGHTLY_TEST_RECORD)
	struct nightly_cell *cells; /* of the accelerators that have it */
	size_t n_cells;
};
RECORD_DECLARE(nightly_test);

/* Where a list continues: after this test. */
struct nightly_place {
	enum history_state state;
	char *suite; /* NULL: at the beginning, or (as `next`) nothing is left */
	int64_t test_id;
};

struct nightly_view {
	int64_t first_day;
	size_t n_days;
	struct nightly_accelerator *accelerators;
	size_t n_accelerators;
	int64_t counts[N_HISTORY_STATES]; /* cells */
	struct nightly_test *tests;
	size_t n_tests;
	uint32_t *days; /* of all cells */
	struct nightly_outcome *outcomes;
	size_t n_outcomes;
	struct nightly_mark *marks;
	size_t n_marks;
	struct nightly_commits *commits;
	size_t n_commits;
	struct nightly_place next;
};

void nightly_view_free(struct nightly_view *v); /* NULL is fine */
