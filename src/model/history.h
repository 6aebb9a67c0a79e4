/* What a row of periodic runs says of one test: since when it is red, and whether that is new. Pure:
 * the runs are told one by one, the newest first, until the walk has heard enough.
 *
 * Rules guarded here: red is FAIL or ERROR, green is PASS or DONE. MISS says nothing about the code,
 * so it neither hides a red test nor makes one; SKIP says that the test is not meant to run now. A
 * run that did not have the test counts for nothing but its disappearance. */
#ifndef MODEL_HISTORY_H
#define MODEL_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/states.h"

/* X(ENUM, name): worst first, as lists are sorted; stored by name */
#define HISTORY_STATES(X)                                                                          \
	X(REGRESSION, "regression")                                                                \
	X(STILL_FAILING, "still_failing")                                                          \
	X(UNSTABLE, "unstable")                                                                    \
	X(DISAPPEARED, "disappeared")                                                              \
	X(FIXED, "fixed")                                                                          \
	X(PASSING, "passing")                                                                      \
	X(SKIPPED, "skipped")

enum history_state {
#define X(e, name) HISTORY_##e,
	HISTORY_STATES(X)
#undef X
	    N_HISTORY_STATES,
	HISTORY_NONE = N_HISTORY_STATES, /* nothing to show: it is not there, and was not lately */
};
const char *history_state_name(enum history_state s);     /* "regression", … */
enum history_state history_state_parse(const char *name); /* N_HISTORY_STATES: none of them */

enum {
	HISTORY_WINDOW = 10, /* runs within which three changes make a test unstable */
	HISTORY_CHANGES = 3,
	HISTORY_FORGET = 30, /* runs without a test after which it is not listed any more */
};

/* Of a run by its number: 0 is the newest. -1: none, or before what was told. */
struct history_mark {
	int run;
	int64_t tag; /* as it was told */
};

struct history_verdict {
	enum history_state state;
	int since; /* the run with which the state began; -1: not known */
	/* Of the red streak that the state is about: the oldest red run, and the green one before
	 * it. Not of PASSING and SKIPPED. */
	struct history_mark first_bad, last_good;
};

/* One test's walk. Zero is a walk that has heard nothing. */
struct history_walk {
	int n_runs;
	int n_judged; /* of them, green or red */
	int n_changes;
	int changed_in;          /* + 1: the newer run of the oldest change within the window */
	int gone_since;          /* + 1 */
	int first_run, last_run; /* + 1: judged, the newest and the last told */
	int green_since;         /* + 1 */
	int newest_red;          /* + 1: the newest red */
	int bad_run, good_run;   /* + 1 */
	int64_t bad_tag, good_tag;
	bool is_red, was_red,
	    is_second_red;         /* of the judged: the newest, the last told, the second */
	bool is_skipped, is_there; /* in the newest; in any */
};
/* The next older run had the test. tag: whatever the caller wants back in a mark. */
void history_walk_add(struct history_walk *w, enum test_status status, int64_t tag);
/* The next older run did not have it. */
void history_walk_absent(struct history_walk *w);
/* The newest run may have it yet: it is not over. Before anything but absences was told. */
void history_walk_untold(struct history_walk *w);
/* More of the past may change the verdict. */
bool history_walk_wants_more(const struct history_walk *w);
struct history_verdict history_walk_end(const struct history_walk *w);

#endif
