/* The state machines' words, each list in one place, and which step is legal. What is
 * stored and shown are these names; the enum order is not stored anywhere.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/record.h"

/* X(ENUM, name, is_unfinished) */
#define DISPATCH_STATES(X)                                                                                             \
	X(HELD, "held", true)                                                                                          \
	X(QUEUED, "queued", true)                                                                                      \
	X(SENT, "sent", true)                                                                                          \
	X(ACKNOWLEDGED, "acknowledged", true)                                                                          \
	X(RUNNING, "running", true)                                                                                    \
	X(DONE, "done", false)                                                                                         \
	X(SUPERSEDED, "superseded", false)                                                                             \
	X(CANCELLED, "cancelled", false)                                                                               \
	X(FAILED, "failed", false)                                                                                     \
	X(EXPIRED, "expired", false)

enum dispatch_state {
#define X(e, name, unfinished) DISPATCH_##e,
	DISPATCH_STATES(X)
#undef X
	    N_DISPATCH_STATES
};

extern const struct words dispatch_state_words;
#define RECORD_C_DISPATCH_STATE enum dispatch_state
#define RECORD_T_DISPATCH_STATE RECORD_WORD, &dispatch_state_words
const char *dispatch_state_name(enum dispatch_state s);
/* N_DISPATCH_STATES when there is none of that name. */
enum dispatch_state dispatch_state_parse(const char *name);
bool dispatch_is_unfinished(enum dispatch_state s);
/* It ended before its results were in, on purpose: superseded or cancelled. Later reports for it change no cell. */
bool dispatch_is_called_off(enum dispatch_state s);
/* Forward through held…done, skipping allowed; from any unfinished one to superseded,
 * cancelled, failed, expired; from done, expired, failed back to running or done when a
 * new attempt or a late result comes; from acknowledged and running back to queued when the
 * machine that had a pull dispatch hands it back or falls silent (no other kind is moved so).
 * Staying put is legal. */
bool dispatch_may_enter(enum dispatch_state from, enum dispatch_state to);

/* How a person ended a dispatch with a comment: `ok-to-test cancel` declines it, `cancel` cancels it. Both leave it
 * `cancelled`. X(ENUM, name, text before the login) */
#define PERSON_ENDS(X)                                                                                                 \
	X(DECLINED, "declined", "declined by ")                                                                        \
	X(CANCELLED, "cancelled", "cancelled by ")

enum ended_how {
	ENDED_OTHERWISE, /* it has not ended, or no person ended it */
#define X(e, name, text) ENDED_##e,
	PERSON_ENDS(X)
#undef X
	    N_ENDED_HOWS
};
extern const struct words ended_how_words; /* "": ENDED_OTHERWISE */
#define RECORD_C_ENDED_HOW enum ended_how
#define RECORD_T_ENDED_HOW RECORD_WORD, &ended_how_words
/* NULL: ENDED_OTHERWISE */
const char *ended_how_name(enum ended_how how);
/* The same in SQL, of a row `x` of `dispatch`: how a person ended it, else why it failed or expired. */
#define PERSON_END_IN_SQL(e, name, text) " WHEN '" name "' THEN '" text "' || COALESCE(x.ended_by, '')"
#define DISPATCH_WHY                     "CASE x.ended_how" PERSON_ENDS(PERSON_END_IN_SQL) " ELSE x.last_error END"
/* ENDED_OTHERWISE for NULL and unknown names. */
enum ended_how ended_how_parse(const char *name);
/* "declined by LOGIN", as people read it; NULL: ENDED_OTHERWISE. free() it. */
char *ended_how_text(enum ended_how how, const char *login);

/* KCIDB's words, in the order in which they win a roll-up. */
#define TEST_STATUSES(X)                                                                                               \
	X(FAIL)  /* the code under test is wrong */                                                                    \
	X(ERROR) /* the test is */                                                                                     \
	X(MISS)  /* the harness or the vendor is */                                                                    \
	X(PASS)                                                                                                        \
	X(DONE) /* measured only */                                                                                    \
	X(SKIP)

enum test_status {
#define X(e) TEST_##e,
	TEST_STATUSES(X)
#undef X
	    N_TEST_STATUSES
};
extern const struct words test_status_words;
#define RECORD_C_TEST_STATUS enum test_status
#define RECORD_T_TEST_STATUS RECORD_WORD, &test_status_words
const char *test_status_name(enum test_status s);     /* "FAIL" … */
enum test_status test_status_parse(const char *name); /* N_TEST_STATUSES: none */
bool test_status_is_red(enum test_status s);          /* FAIL, ERROR, MISS */
/* A job's conclusion as GitHub names it: success PASS, failure FAIL, skipped SKIP, neutral
 * DONE, everything else (NULL too) MISS. */
enum test_status test_status_of_conclusion(const char *conclusion);

/* X(ENUM, name) */
#define JOB_STATUSES(X)                                                                                                \
	X(IN_PROGRESS, "in_progress")                                                                                  \
	X(COMPLETED, "completed")

enum job_status {
#define X(e, name) JOB_##e,
	JOB_STATUSES(X)
#undef X
	    N_JOB_STATUSES
};
extern const struct words job_status_words;
#define RECORD_C_JOB_STATUS enum job_status
#define RECORD_T_JOB_STATUS RECORD_WORD, &job_status_words
const char *job_status_name(enum job_status s);
enum job_status job_status_parse(const char *name);

/* CHANGE_EXPERIMENT: one run of an experiment (experiments/experiments.h). Its cells are evidence for another
 * change, so pages, counts and figures leave it out. */
enum change_kind { CHANGE_PULL_REQUEST, CHANGE_PUSH, CHANGE_NIGHTLY, CHANGE_EXPERIMENT, N_CHANGE_KINDS };
extern const struct words change_kind_words;
#define RECORD_C_CHANGE_KIND enum change_kind
#define RECORD_T_CHANGE_KIND RECORD_WORD, &change_kind_words
/* "pull_request", "push", "nightly", "experiment" */
const char *change_kind_name(enum change_kind k);
enum change_kind change_kind_parse(const char *name);

enum change_state { CHANGE_OPEN, CHANGE_SUPERSEDED, CHANGE_CLOSED, N_CHANGE_STATES };
extern const struct words change_state_words;
#define RECORD_C_CHANGE_STATE enum change_state
#define RECORD_T_CHANGE_STATE RECORD_WORD, &change_state_words
const char *change_state_name(enum change_state s);
enum change_state change_state_parse(const char *name);
