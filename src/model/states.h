/* The state machines' words, each list in one place, and which step is legal. What is
 * stored and shown are these names; the enum order is not stored anywhere. */
#ifndef MODEL_STATES_H
#define MODEL_STATES_H

#include <stdbool.h>

/* X(ENUM, name, is_unfinished) */
#define DISPATCH_STATES(X)                                                                         \
	X(HELD, "held", true)                                                                      \
	X(QUEUED, "queued", true)                                                                  \
	X(SENT, "sent", true)                                                                      \
	X(ACKNOWLEDGED, "acknowledged", true)                                                      \
	X(RUNNING, "running", true)                                                                \
	X(DONE, "done", false)                                                                     \
	X(SUPERSEDED, "superseded", false)                                                         \
	X(CANCELLED, "cancelled", false)                                                           \
	X(FAILED, "failed", false)                                                                 \
	X(EXPIRED, "expired", false)

enum dispatch_state {
#define X(e, name, unfinished) DISPATCH_##e,
	DISPATCH_STATES(X)
#undef X
	    N_DISPATCH_STATES
};

const char *dispatch_state_name(enum dispatch_state s);
/* N_DISPATCH_STATES when there is none of that name. */
enum dispatch_state dispatch_state_parse(const char *name);
bool dispatch_is_unfinished(enum dispatch_state s);
/* Forward through held…done, skipping allowed; from any unfinished one to superseded,
 * cancelled, failed, expired; from done, expired, failed back to running or done when a
 * new attempt or a late result comes; from acknowledged and running back to queued when the
 * machine that had a pull dispatch hands it back or falls silent (no other kind is moved so).
 * Staying put is legal. */
bool dispatch_may_enter(enum dispatch_state from, enum dispatch_state to);

/* KCIDB's words, in the order in which they win a roll-up. */
#define TEST_STATUSES(X)                                                                           \
	X(FAIL)  /* the code under test is wrong */                                                \
	X(ERROR) /* the test is */                                                                 \
	X(MISS)  /* the harness or the vendor is */                                                \
	X(PASS)                                                                                    \
	X(DONE) /* measured only */                                                                \
	X(SKIP)

enum test_status {
#define X(e) TEST_##e,
	TEST_STATUSES(X)
#undef X
	    N_TEST_STATUSES
};
const char *test_status_name(enum test_status s);     /* "FAIL" … */
enum test_status test_status_parse(const char *name); /* N_TEST_STATUSES: none */
bool test_status_is_red(enum test_status s);          /* FAIL, ERROR, MISS */
/* A job's conclusion as GitHub names it: success PASS, failure FAIL, skipped SKIP, neutral
 * DONE, everything else (NULL too) MISS. */
enum test_status test_status_of_conclusion(const char *conclusion);

enum job_status { JOB_IN_PROGRESS, JOB_COMPLETED, N_JOB_STATUSES };
const char *job_status_name(enum job_status s); /* "in_progress", "completed" */
enum job_status job_status_parse(const char *name);

/* CHANGE_EXPERIMENT: one run of an experiment (store/experiments.h). Its cells are evidence for another
 * change, so pages, counts and figures leave it out. */
enum change_kind {
	CHANGE_PULL_REQUEST,
	CHANGE_PUSH,
	CHANGE_NIGHTLY,
	CHANGE_EXPERIMENT,
	N_CHANGE_KINDS
};
/* "pull_request", "push", "nightly", "experiment" */
const char *change_kind_name(enum change_kind k);
enum change_kind change_kind_parse(const char *name);

enum change_state { CHANGE_OPEN, CHANGE_SUPERSEDED, CHANGE_CLOSED, N_CHANGE_STATES };
const char *change_state_name(enum change_state s);
enum change_state change_state_parse(const char *name);

#endif
