/* One lease as a row: a pull dispatch in the hands of one machine. Leases end here, and
 * with each the job that its machine was running. */
#ifndef STORE_STORED_LEASE_H
#define STORE_STORED_LEASE_H

#include "store/stored_dispatch.h"

/* The job of every lease bears this name; its workflow is the runner's name. */
#define LEASE_JOB_NAME "tests"

/* X(ENUM, name); stored by name */
#define LEASE_STATES(X)                                                                            \
	X(ACTIVE, "active")                                                                        \
	X(DONE, "done")           /* its machine reported */                                       \
	X(RETURNED, "returned")   /* its machine handed it back */                                 \
	X(EXPIRED, "expired")     /* its machine was not heard of in time */                       \
	X(CANCELLED, "cancelled") /* its dispatch ended otherwise */

enum lease_state {
#define X(e, name) LEASE_IS_##e,
	LEASE_STATES(X)
#undef X
	    N_LEASE_STATES
};
const char *lease_state_name(enum lease_state s);

struct stored_lease {
	char id[ID_BYTES], dispatch_id[ID_BYTES];
	char *accelerator, *runner, *machine, *claim_id;
	int64_t attempt;
	int64_t job_id;       /* 0: none is kept (L1) */
	int64_t max_parallel; /* of the runner, when it was granted */
	enum lease_state state;
	char *reason; /* why it ended, or NULL */
	int64_t lease_ms, until_ms;
};

/* SELECT LEASE_COLUMNS FROM lease …: the first row, or false. */
#define LEASE_COLUMNS                                                                              \
	"id, dispatch_id, accelerator, runner, machine, claim_id, attempt, job_id, max_parallel,"  \
	" state, reason, lease_ms, until_ms"
bool stored_lease_take(struct rows *r, struct stored_lease *ret);
void stored_lease_release(struct stored_lease *l);

void lease_insert(struct db *d, const struct stored_lease *l, int64_t now_ms);
/* An active one ends. The caller moves its job and its dispatch. */
void lease_end(struct db *d, const struct stored_lease *l, enum lease_state to, const char *reason,
    int64_t now_ms);
/* One that ran out is active again until l->until_ms. */
void lease_take_up(struct db *d, const struct stored_lease *l);

/* The lease of a dispatch's attempt; false: there is none. */
bool lease_of_attempt(
    struct db *d, const char *dispatch_id, int64_t attempt, struct stored_lease *ret);
/* Is a later attempt of the dispatch at work, or has one reported? */
bool lease_is_overtaken(struct db *d, const struct stored_lease *l);
int64_t lease_count_active(struct db *d, const char *accelerator, const char *runner);
/* Without those of experiments, which take no room from first runs. */
int64_t lease_count_first(struct db *d, const char *accelerator, const char *runner);
/* A row of the dispatch that the lease is of; false: it is gone. */
bool lease_dispatch(struct db *d, const struct stored_lease *l, struct stored_dispatch *ret);

/* What a pull dispatch's new state means for the lease that it may have: all but `running`
 * ends an active one, with the job that nobody is going to report any more. */
void leases_follow(struct db *d, const struct stored_dispatch *s, int64_t now_ms);

#endif
