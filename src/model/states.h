/* The states of dispatches, tests, jobs and changes, each list in one place, and the legal steps of a dispatch. Rows
 * store and pages show the names; the order is not stored.
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
#define DISPATCH_VALUE(e, name, is_unfinished) DISPATCH_##e,
enum dispatch_state { DISPATCH_STATES(DISPATCH_VALUE) N_DISPATCH_STATES };
#define RECORD_C_DISPATCH_STATE enum dispatch_state
#define RECORD_T_DISPATCH_STATE RECORD_WORD, &dispatch_state_words
WORDS_DECLARE(dispatch_state);
bool dispatch_is_unfinished(enum dispatch_state s);
/* It ended before its results were in, on purpose: superseded or cancelled. Later reports for it change no cell. */
bool dispatch_is_called_off(enum dispatch_state s);
/* The legal steps: forward through held…done, also past some of them; from an unfinished state to superseded,
 * cancelled, failed or expired; from done, expired and failed back to running or done, for a new attempt or a late
 * result; from acknowledged and running back to queued, when the machine of a pull dispatch returns it or becomes
 * silent; and none at all. */
bool dispatch_may_enter(enum dispatch_state from, enum dispatch_state to);

/* How a person ended a dispatch with a comment: `ok-to-test cancel` declines it, `cancel` cancels it. Both leave it
 * `cancelled`. X(ENUM, name, text before the login) */
#define PERSON_ENDS(X)                                                                                                 \
	X(DECLINED, "declined", "declined by ")                                                                        \
	X(CANCELLED, "cancelled", "cancelled by ")
#define ENDED_VALUE(e, name, text) ENDED_##e,
/* ENDED_OTHERWISE: it has not ended, or no person ended it */
enum ended_how { ENDED_OTHERWISE, PERSON_ENDS(ENDED_VALUE) N_ENDED_HOWS };
extern const struct words ended_how_words; /* "": ENDED_OTHERWISE */
#define RECORD_C_ENDED_HOW enum ended_how
#define RECORD_T_ENDED_HOW RECORD_WORD, &ended_how_words
/* NULL: ENDED_OTHERWISE */
const char *ended_how_name(enum ended_how how);
/* The same in SQL, of a row `x` of `dispatch`: how a person ended it, else why it failed or expired. */
#define PERSON_END_IN_SQL(e, name, text) " WHEN '" name "' THEN '" text "' || COALESCE(x.ended_by, '')"
#define DISPATCH_WHY                     "CASE x.ended_how" PERSON_ENDS(PERSON_END_IN_SQL) " ELSE x.last_error END"
/* "declined by LOGIN", as people read it; NULL: ENDED_OTHERWISE. free() it. */
char *ended_how_text(enum ended_how how, const char *login);

/* KCIDB's words: the first of several is the status of all. */
#define TEST_STATUSES(X)                                                                                               \
	X(FAIL)  /* the code under test is wrong */                                                                    \
	X(ERROR) /* the test is */                                                                                     \
	X(MISS)  /* the harness or the vendor is */                                                                    \
	X(PASS)                                                                                                        \
	X(DONE) /* measured only */                                                                                    \
	X(SKIP)
#define TEST_VALUE(e) TEST_##e,
enum test_status { TEST_STATUSES(TEST_VALUE) N_TEST_STATUSES };
#define RECORD_C_TEST_STATUS enum test_status
#define RECORD_T_TEST_STATUS RECORD_WORD, &test_status_words
WORDS_DECLARE(test_status);
bool test_status_is_red(enum test_status s); /* FAIL, ERROR, MISS */
/* A job's conclusion as GitHub names it: success PASS, failure FAIL, skipped SKIP, neutral DONE; others and NULL MISS. */
enum test_status test_status_of_conclusion(const char *conclusion);

/* X(ENUM, name) */
#define JOB_STATUSES(X)                                                                                                \
	X(IN_PROGRESS, "in_progress")                                                                                  \
	X(COMPLETED, "completed")
#define JOB_VALUE(e, name) JOB_##e,
enum job_status { JOB_STATUSES(JOB_VALUE) N_JOB_STATUSES };
#define RECORD_C_JOB_STATUS enum job_status
#define RECORD_T_JOB_STATUS RECORD_WORD, &job_status_words
WORDS_DECLARE(job_status);

/* CHANGE_EXPERIMENT: one run of an experiment (experiments/experiments.h). Its cells are evidence for another
 * change, so pages, counts and figures leave it out. */
enum change_kind { CHANGE_PULL_REQUEST, CHANGE_PUSH, CHANGE_NIGHTLY, CHANGE_EXPERIMENT, N_CHANGE_KINDS };
#define RECORD_C_CHANGE_KIND enum change_kind
#define RECORD_T_CHANGE_KIND RECORD_WORD, &change_kind_words
WORDS_DECLARE(change_kind);

enum change_state { CHANGE_OPEN, CHANGE_SUPERSEDED, CHANGE_CLOSED, N_CHANGE_STATES };
#define RECORD_C_CHANGE_STATE enum change_state
#define RECORD_T_CHANGE_STATE RECORD_WORD, &change_state_words
WORDS_DECLARE(change_state);
