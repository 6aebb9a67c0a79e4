/* Leases: the right of one machine to work on one pull dispatch. The machine renews the lease until it has reported; when
 * the lease expires, the dispatch goes back to the queue. Only lease_enter() changes a state.
 *
 * Thread: functions with a connection run on its thread (db/db.h); store_*() functions run on the loop. */
#pragma once

#include "db/record_rows.h"
#include "db/store.h"
#include "model/record_states.h"
#include "model/runner_protocol.h"
#include "store/dispatches.h"

enum { LEASE_HANDOVERS_MAX = 3 }; /* how often an expired lease goes to another machine */

/* The job of every lease has this name; its workflow is the runner's name. */
#define LEASE_JOB_NAME "tests"

#define STORED_LEASE_RECORD(F, S)                                                                                      \
	F(S, KEY, id, NULL, "id", "")                                                                                  \
	F(S, KEY, dispatch_id, NULL, "dispatch_id", "")                                                                \
	F(S, TEXT, accelerator, NULL, "accelerator", "")                                                               \
	F(S, TEXT, runner, NULL, "runner", "")                                                                         \
	F(S, TEXT, machine, NULL, "machine", "")                                                                       \
	F(S, TEXT, claim_id, NULL, "claim_id", "")                                                                     \
	F(S, INT, attempt, NULL, "attempt", "")                                                                        \
	F(S, ID, job_id, NULL, "job_id", "0: none is kept (L1).")                                                      \
	F(S, INT, max_parallel, NULL, "max_parallel", "Of the runner, when the lease was granted.")                    \
	F(S, LEASE_STATE, state, NULL, "state", "")                                                                    \
	F(S, TEXT, reason, NULL, "reason", "Why it ended.")                                                            \
	F(S, INT, lease_ms, NULL, "lease_ms", "")                                                                      \
	F(S, TIME, until_ms, NULL, "until_ms", "")
RECORD_STRUCT(stored_lease, STORED_LEASE_RECORD);

/* SELECT LEASE_COLUMNS FROM lease …: the first row, or false. Ends the rows. */
#define LEASE_COLUMNS "0" RECORD_COLUMNS(STORED_LEASE_RECORD)
bool stored_lease_read(struct rows *r, struct stored_lease *ret);
/* The first lease that meets the condition, which may end with ORDER BY and LIMIT; false: none does. */
#define LEASE_WHERE(d, ret, condition, ...)                                                                            \
	stored_lease_read(db_rows(d, "SELECT " LEASE_COLUMNS " FROM lease WHERE " condition, __VA_ARGS__), ret)
void stored_lease_release(struct stored_lease *l);
/* For UPDATE lease SET: a heartbeat at ?4 for ?5 milliseconds. It never brings the end nearer, because it may be written minutes after a
 * later one, by a daemon that was cut off from the database. It always moves the end, so that until_ms shows whether there was one. */
#define LEASE_RENEWED "until_ms = CASE WHEN until_ms >= ?4 + ?5 THEN until_ms + 1 ELSE ?4 + ?5 END, lease_ms = ?5"

void lease_insert(struct txn *d, const struct stored_lease *l, int64_t now_ms);
/* The only way from one state to another. The caller moves its job and its dispatch. False when it is in that state
 * already, the step is not legal, or it is to expire and was extended meanwhile: nothing changes then. reason: why it
 * ended; NULL: none. */
bool lease_enter(struct txn *d, const struct stored_lease *l, enum lease_state to, const char *reason, int64_t now_ms);

/* The lease of a dispatch's attempt; false: there is none. */
bool lease_of_attempt(const struct view *d, const char *dispatch_id, int64_t attempt, struct stored_lease *ret);
/* Whether a later attempt of the dispatch is active or has reported. */
bool lease_is_overtaken(const struct view *d, const struct stored_lease *l);
int64_t lease_count_active(const struct view *d, const char *accelerator, const char *runner);
/* Without leases of experiments, which do not count against first runs. */
int64_t lease_count_first(const struct view *d, const char *accelerator, const char *runner);
/* The dispatch of the lease; false: it does not exist any more. */
bool lease_dispatch(const struct view *d, const struct stored_lease *l, struct stored_dispatch *ret);
/* A pull dispatch has entered a state: every state but `running` ends its active lease, with the lease's job. */
void leases_follow(struct txn *d, const struct stored_dispatch *s, int64_t now_ms);

/* A heartbeat. ACTIVE: good until now + lease_ms, or longer. An expired lease becomes active again while its dispatch waits in the
 * queue, no other machine had the work since, the runner has room (max_parallel of the claim), the machine has not
 * reported that it stopped, and the heartbeat is newer than those before. CANCELLED: the dispatch ended, and reason says
 * how. LOST: everything else. */
struct renew_lease {
	struct store_op op;
	const char *lease_id, *accelerator, *machine; /* another machine's lease is LOST */
	int64_t lease_ms, now_ms;
	enum lease_word word; /* out */
	char reason[160];     /* out */
};
int store_renew_lease(struct store *s, struct renew_lease *op) MUST_CHECK;

/* The machine returns it: the dispatch is queued again, and the attempt's job is completed as cancelled and not shown. A
 * lease that ended otherwise stays as it is. A dispatch that had 100 leases fails. ERR_NOT_FOUND: this machine has no
 * such lease. */
struct return_lease {
	struct store_op op;
	const char *lease_id, *accelerator, *machine, *reason;
	int64_t now_ms;
	/* 0, or until when it was granted to a machine that left before it had the answer. If it was renewed since, it stays: the machine
	 * asked again and has it, perhaps from another daemon. */
	int64_t granted_until_ms;
};
int store_return_lease(struct store *s, struct return_lease *op) MUST_CHECK;

/* Ends leases past their time: the dispatch goes back to the queue, or, after LEASE_HANDOVERS_MAX, fails with the reason
 * (→ MISS). The attempt's job is completed as `stale` and, except for the last, no longer shown. A late report of its
 * machine replaces it, unless a later attempt is active or has reported. At most 500 at a time: then the rest is due at
 * once. out: the next one's time (0: none). */
struct expire_leases {
	struct store_op op;
	int64_t now_ms;
	int n_expired;
	int64_t next_due_ms;
};
int store_expire_leases(struct store *s, struct expire_leases *op) MUST_CHECK;

/* `lease` as l, its dispatch as x and the change as c. */
#define LEASE_ROW_RECORD(F, S)                                                                                         \
	F(S, TEXT, id, "id", "l.id", "")                                                                               \
	F(S, TEXT, dispatch_id, "dispatch", "l.dispatch_id", "")                                                       \
	F(S, TEXT, accelerator, NULL, "l.accelerator", "")                                                             \
	F(S, TEXT, runner, "runner", "l.runner", "")                                                                   \
	F(S, TEXT, machine, NULL, "l.machine", "")                                                                     \
	F(S, TEXT, state, NULL, "l.state", "active, done, returned, expired or cancelled.")                            \
	F(S, INT, attempt, "attempt", "l.attempt", "")                                                                 \
	F(S, INT, job_id, "job", "l.job_id", "")                                                                       \
	F(S, INT, number, "pr", "x.number", "")                                                                        \
	F(S, TEXT, head_sha, "head_sha", "c.head_sha", "")                                                             \
	F(S, TIME, granted_ms, "since", "l.granted_ms", "")                                                            \
	F(S, TIME, until_ms, NULL, "l.until_ms", "")                                                                   \
	F(S, TIME, ended_ms, NULL, "l.ended_ms", "")
RECORD_STRUCT(lease_row, LEASE_ROW_RECORD);
struct list_leases {
	struct store_query q;
	bool only_active;
	const char *accelerator; /* NULL: any */
	int limit;               /* 0: all */
	struct lease_row *list;  /* out, newest first; list_leases_release() */
	size_t n;
	int64_t n_queued; /* out: pull dispatches that wait (of the accelerator) */
};
int store_list_leases(struct store *s, struct list_leases *q) MUST_CHECK;
void list_leases_release(struct list_leases *q);
/* Pull dispatches that wait for a machine; accelerator NULL: of all. Thread: reader. */
int64_t leases_count_queued(const struct view *d, const char *accelerator);
