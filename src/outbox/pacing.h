/* Decides which content write on upstream's repository may go to GitHub now, when GitHub's budget (for a minute, for an
 * hour, and budget_gap_ms() between two) is not enough for all. Pure: the caller passes the time.
 *
 * Each class stops at its own share of a window, so the rest is left to more urgent classes. The share of a waiting write
 * grows with its age, and after PACING_STARVED_MS only first failures come before it, so no write waits for ever. Waiting
 * writes need no merge, because a comment or a check run is rendered when it is written.
 *
 * github/ sends content writes in order, budget_gap_ms() apart. It gets only writes that may go now, so that an urgent write never
 * queues behind many. Thread: one at a time. */
#pragma once

#include "github/budget.h"

/* Most urgent first. */
enum write_class {
	WRITE_FIRST_FAILURE, /* the comment has something red for the first time at this head */
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
	PACING_LATEST_MS = 60 * 1000, /* the longest wait before the next attempt */
};

struct pacing {
	struct budget_window minute, hour; /* the writes that went */
	int64_t free_ms;                   /* when github/ has sent all that it got */
	/* By class: the next free time for a write that has to wait, so that they come back one after the other. */
	int64_t slot_ms[N_WRITE_CLASSES];
};

void pacing_init(struct pacing *p, int writes_per_minute);
void pacing_release(struct pacing *p);
/* Changes the number a minute; the writes so far still count. */
void pacing_configure(struct pacing *p, int writes_per_minute);

/* Counts no write that went so far. */
void pacing_forget(struct pacing *p);
/* A write that went at that time (monotonic, not before the one that was noted last). */
void pacing_note(struct pacing *p, int64_t at_ms);

struct pacing_request {
	enum write_class class;
	int64_t age_ms; /* since its request; negative counts as 0 */
	int64_t now_ms; /* monotonic */
};
/* Returns 0: pass the write to github/ now; it has been counted. Else the milliseconds until the next attempt, at most
 * PACING_LATEST_MS; nothing has been counted or reserved, so there need not be another attempt. */
int64_t pacing_reserve(struct pacing *p, const struct pacing_request *q);

/* ---- debouncing ----
 *
 * Decides when a comment with a new text may be written: at least min_interval after the last time, but the first failure and
 * the last result at once. Another result may follow the apparent last one (a vendor whose jobs come one by one), so each
 * pull request has an allowance for that. */

enum { DEBOUNCE_PULLS = 64, DEBOUNCE_ALLOWANCE = 6 };
#define DEBOUNCE_WINDOW_MS (INT64_C(10) * 60 * 1000)

/* The pull requests that used the allowance lately; zero-initialise. In memory only: a restart gives each a new one. */
struct debounce {
	struct debounce_pull {
		int64_t number, since_wall_ms;
		int n_used;
	} pulls[DEBOUNCE_PULLS];
	size_t next; /* the entry that is overwritten next */
};

struct debounce_question {
	int64_t number;
	int64_t now_wall_ms, written_wall_ms; /* written: 0 for never */
	int64_t min_interval_ms;
	bool has_red, had_red; /* now; in the last text */
	bool is_complete;
};

/* The wall time from which it may be written. Now or earlier: write it; the allowance has been counted if it was used. */
int64_t debounce_due_ms(struct debounce *d, const struct debounce_question *q);
