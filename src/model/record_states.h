/* The states of the rows that move through the store, besides dispatches (model/states.h): each list in one place, with
 * the legal steps. Rows store and pages show the names; the order is not stored. Pure functions, any thread.
 *
 * X(ENUM, name, next): `next` is a set of bits 1u << state. A step that stays in a state is always legal. */
#pragma once

#include "model/record.h"

/* A row of the outbox. A new request makes a row due again, also after it was sent or given up. */
#define OUTBOX_STATES(X)                                                                                               \
	X(DUE, "due", 1u << OUTBOX_IS_SENDING | 1u << OUTBOX_IS_SENT | 1u << OUTBOX_IS_CANCELLED)                      \
	X(WAITING, "waiting", /* for its next attempt */                                                               \
	    1u << OUTBOX_IS_DUE | 1u << OUTBOX_IS_SENDING | 1u << OUTBOX_IS_SENT | 1u << OUTBOX_IS_CANCELLED)          \
	X(SENDING, "sending",                                                                                          \
	    1u << OUTBOX_IS_DUE | 1u << OUTBOX_IS_WAITING | 1u << OUTBOX_IS_SENT | 1u << OUTBOX_IS_DEAD |              \
		1u << OUTBOX_IS_CANCELLED)                                                                             \
	X(SENT, "sent", 1u << OUTBOX_IS_DUE)                                                                           \
	X(DEAD, "dead", 1u << OUTBOX_IS_DUE) /* given up */                                                            \
	X(CANCELLED, "cancelled", 0)         /* dropped before it was sent */
#define OUTBOX_VALUE(e, name, next) OUTBOX_IS_##e,
enum outbox_state { OUTBOX_STATES(OUTBOX_VALUE) N_OUTBOX_STATES };
#define RECORD_C_OUTBOX_STATE enum outbox_state
#define RECORD_T_OUTBOX_STATE RECORD_WORD, &outbox_state_words
WORDS_DECLARE(outbox_state);
bool outbox_may_enter(enum outbox_state from, enum outbox_state to);

/* A delivery. A replay accepts it again, and a repeated plan may end otherwise. */
#define DELIVERY_STATES(X)                                                                                             \
	X(ACCEPTED, "accepted", 1u << DELIVERY_IS_PLANNED | 1u << DELIVERY_IS_IGNORED | 1u << DELIVERY_IS_FAILED)      \
	X(PLANNED, "planned", 1u << DELIVERY_IS_ACCEPTED | 1u << DELIVERY_IS_IGNORED | 1u << DELIVERY_IS_FAILED)       \
	X(IGNORED, "ignored", 1u << DELIVERY_IS_ACCEPTED | 1u << DELIVERY_IS_PLANNED | 1u << DELIVERY_IS_FAILED)       \
	X(FAILED, "failed", 1u << DELIVERY_IS_ACCEPTED | 1u << DELIVERY_IS_PLANNED | 1u << DELIVERY_IS_IGNORED)
#define DELIVERY_VALUE(e, name, next) DELIVERY_IS_##e,
enum delivery_state { DELIVERY_STATES(DELIVERY_VALUE) N_DELIVERY_STATES };
#define RECORD_C_DELIVERY_STATE enum delivery_state
#define RECORD_T_DELIVERY_STATE RECORD_WORD, &delivery_state_words
WORDS_DECLARE(delivery_state);
bool delivery_may_enter(enum delivery_state from, enum delivery_state to);

/* A periodic run. A result that comes after its end may give it another outcome; it stays `done` then. */
#define SCHEDULE_RUN_STATES(X)                                                                                         \
	X(READING, "reading",                                                                                          \
	    1u << SCHEDULE_RUN_IS_DISPATCHED | 1u << SCHEDULE_RUN_IS_SKIPPED | 1u << SCHEDULE_RUN_IS_FAILED)           \
	X(DISPATCHED, "dispatched", 1u << SCHEDULE_RUN_IS_DONE)                                                        \
	X(DONE, "done", 0)                                                                                             \
	X(SKIPPED, "skipped", 0)                                                                                       \
	X(FAILED, "failed", 0)
#define SCHEDULE_RUN_VALUE(e, name, next) SCHEDULE_RUN_IS_##e,
enum schedule_run_state { SCHEDULE_RUN_STATES(SCHEDULE_RUN_VALUE) N_SCHEDULE_RUN_STATES };
#define RECORD_C_SCHEDULE_RUN_STATE enum schedule_run_state
#define RECORD_T_SCHEDULE_RUN_STATE RECORD_WORD, &schedule_run_state_words
WORDS_DECLARE(schedule_run_state);
bool schedule_run_may_enter(enum schedule_run_state from, enum schedule_run_state to);

/* A machine's right to run a pull dispatch. */
#define LEASE_STATES(X)                                                                                                \
	X(ACTIVE, "active",                                                                                            \
	    1u << LEASE_IS_DONE | 1u << LEASE_IS_RETURNED | 1u << LEASE_IS_EXPIRED | 1u << LEASE_IS_CANCELLED)         \
	X(DONE, "done", 0)                           /* its machine reported */                                        \
	X(RETURNED, "returned", 0)                   /* its machine returned it */                                     \
	X(EXPIRED, "expired", 1u << LEASE_IS_ACTIVE) /* its machine sent no heartbeat in time */                       \
	X(CANCELLED, "cancelled", 0)                 /* its dispatch ended otherwise */
#define LEASE_VALUE(e, name, next) LEASE_IS_##e,
enum lease_state { LEASE_STATES(LEASE_VALUE) N_LEASE_STATES };
#define RECORD_C_LEASE_STATE enum lease_state
#define RECORD_T_LEASE_STATE RECORD_WORD, &lease_state_words
WORDS_DECLARE(lease_state);
bool lease_may_enter(enum lease_state from, enum lease_state to);

/* A run of red tests on one commit (experiments/experiments.h). A vendor may report more of a run after its end, so an
 * experiment that ended may get another outcome; one that was cancelled keeps its state, because it is not needed. */
#define EXPERIMENT_STATES(X)                                                                                           \
	X(PLANNED, "planned",                                                                                          \
	    1u << EXPERIMENT_IS_STARTED | 1u << EXPERIMENT_IS_CANCELLED | 1u << EXPERIMENT_IS_EXPIRED)                 \
	X(STARTED, "started", /* `planned` again: it made way for a first run */                                       \
	    1u << EXPERIMENT_IS_PLANNED | 1u << EXPERIMENT_IS_DONE | 1u << EXPERIMENT_IS_CANCELLED |                   \
		1u << EXPERIMENT_IS_EXPIRED | 1u << EXPERIMENT_IS_VOID)                                                \
	X(DONE, "done", 1u << EXPERIMENT_IS_CANCELLED | 1u << EXPERIMENT_IS_EXPIRED | 1u << EXPERIMENT_IS_VOID)        \
	X(CANCELLED, "cancelled", 0)                                                                                   \
	X(EXPIRED, "expired", /* it ended without a result */                                                          \
	    1u << EXPERIMENT_IS_DONE | 1u << EXPERIMENT_IS_CANCELLED | 1u << EXPERIMENT_IS_VOID)                       \
	X(VOID, "void", /* its result proves nothing */                                                                \
	    1u << EXPERIMENT_IS_DONE | 1u << EXPERIMENT_IS_CANCELLED | 1u << EXPERIMENT_IS_EXPIRED)

/* The names as SQL literals: SQLite uses a partial index only where the statement has the literal text of its condition. */
#define EXPERIMENT_SQL_PLANNED   "'planned'"
#define EXPERIMENT_SQL_STARTED   "'started'"
#define EXPERIMENT_SQL_DONE      "'done'"
#define EXPERIMENT_SQL_CANCELLED "'cancelled'"
#define EXPERIMENT_SQL_EXPIRED   "'expired'"
#define EXPERIMENT_SQL_VOID      "'void'"
#define EXPERIMENT_IS_OPEN                                                                                             \
	"state IN (" EXPERIMENT_SQL_PLANNED ", " EXPERIMENT_SQL_STARTED ")" /* of a row of `experiment` */
#define EXPERIMENT_VALUE(e, name, next) EXPERIMENT_IS_##e,
enum experiment_state { EXPERIMENT_STATES(EXPERIMENT_VALUE) N_EXPERIMENT_STATES };
#define RECORD_C_EXPERIMENT_STATE enum experiment_state
#define RECORD_T_EXPERIMENT_STATE RECORD_WORD, &experiment_state_words
WORDS_DECLARE(experiment_state);
bool experiment_may_enter(enum experiment_state from, enum experiment_state to);

/* How long an accelerator is red on a branch. No column stores the name: it follows from ended_ms and closed_ms. */
#define RED_EPISODE_STATES(X)                                                                                          \
	X(OPEN, "open", 1u << RED_EPISODE_IS_ENDED)                                                                    \
	X(ENDED, "ended", 1u << RED_EPISODE_IS_CLOSED)                                                                 \
	X(CLOSED, "closed", 0) /* its vendor was notified of the end */
#define RED_EPISODE_VALUE(e, name, next) RED_EPISODE_IS_##e,
enum red_episode_state { RED_EPISODE_STATES(RED_EPISODE_VALUE) N_RED_EPISODE_STATES };
bool red_episode_may_enter(enum red_episode_state from, enum red_episode_state to);
