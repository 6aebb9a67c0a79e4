/* Which write on upstream's repository may go now, when GitHub's budget (a minute's, an hour's, one
 * a second) is not enough for all at once. Pure: the caller tells the time.
 *
 * Urgent writes always find room: each class stops at its own share of a window, so the rest is
 * left to those above it. A write that waits grows into a larger share, and past STARVED_MS only
 * first failures come before it: nothing waits for ever. What waits is merged by itself, because a
 * comment and a check run are written as they are by then.
 *
 * github/ sends content writes in order, one a second. Only what may go now is handed over, so that
 * an urgent one never queues behind many. Any thread. */
#pragma once

#include "github/budget.h"

/* Most urgent first. */
enum write_class {
	WRITE_FIRST_FAILURE, /* the comment tells of something red for the first time at this head */
	WRITE_CHECK,         /* check runs at L3 and L4 */
	WRITE_ANSWER,        /* a reaction or a reply to a command */
	WRITE_FIRST_COMMENT, /* nothing red yet */
	WRITE_LAST_RESULT,   /* the comment is complete with it */
	WRITE_ISSUE,         /* an issue in a repository of the same installation */
	WRITE_EDIT,          /* anything else about a comment */
	N_WRITE_CLASSES
};

enum {
	PACING_PER_HOUR = 500,
	PACING_STARVED_MS = 30 * 60 * 1000,
	PACING_LATEST_MS = 60 * 1000, /* nobody is told to wait longer without asking again */
};

struct pacing {
	struct budget_window minute, hour; /* what was let go */
	int64_t free_ms;                   /* when what was handed over has left, one a second */
	/* Those who were sent away come back one by one, a second apart. */
	int64_t slot_ms[N_WRITE_CLASSES];
};

void pacing_init(struct pacing *p, int writes_per_minute);
void pacing_release(struct pacing *p);
/* Another number a minute; what was counted stays counted. */
void pacing_configure(struct pacing *p, int writes_per_minute);

struct pacing_question {
	enum write_class class;
	int64_t age_ms; /* for how long it has been wanted; negative counts as 0 */
	int64_t now_ms; /* monotonic */
};
/* 0: hand it to github/ now; it has been counted. Else in how many ms to ask again, up to
 * PACING_LATEST_MS; nothing has been counted or kept for it, so it may also never come back. */
int64_t pacing_ask(struct pacing *p, const struct pacing_question *q);

/* ---- debouncing ----
 * When a comment that has something new to say may be written: at least min_interval behind
 * the last time, but the first failure and the last result go at once. Another result may follow
 * the apparent last one (a vendor whose jobs come one by one), so each pull request has an
 * allowance for that. */

enum { DEBOUNCE_PULLS = 64, DEBOUNCE_ALLOWANCE = 6 };
#define DEBOUNCE_WINDOW_MS (INT64_C(10) * 60 * 1000)

/* Who used the allowance lately; zero-initialise. Kept in memory only: a restart gives
 * everybody a new one. */
struct debounce {
	struct debounce_pull {
		int64_t number, since_wall_ms;
		int n_used;
	} pulls[DEBOUNCE_PULLS];
	size_t next; /* which is overwritten next */
};

struct debounce_question {
	int64_t number;
	int64_t now_wall_ms, written_wall_ms; /* written: 0 for never */
	int64_t min_interval_ms;
	bool has_red, had_red; /* now; in what was written last */
	bool is_complete;
};

/* The wall time from which it may be written; now or earlier: write it (and, where the
 * allowance was used, it has been counted). */
int64_t debounce_due_ms(struct debounce *d, const struct debounce_question *q);
