/* Pull runners' work: a dispatch leaves the queue as a lease, which a machine renews until
 * it has reported, and which goes back to the queue when it runs out. */
#ifndef STORE_LEASES_H
#define STORE_LEASES_H

#include "model/runner_protocol.h"
#include "store/store.h"

enum { LEASE_HANDOVERS_MAX = 3 }; /* how often a lease that ran out goes to another machine */

/* The runners of one accelerator that this machine's labels satisfy. */
struct claim_choice {
	const char *runner;
	int max_parallel; /* leases at a time, over all machines */
};

/* Takes what was queued last of all that waits for one of the choices (a retest of an older
 * change is newer than a change from before it). In one transaction the dispatch
 * goes to `running`, the lease is active and (unless the accelerator is silent) the job
 * (workflow = runner, name = "tests", run_id = the dispatch's id, attempt = how many leases it has
 * had) is in progress. The same claim_id from the same machine gets its lease again, as long as
 * that is active, with its time extended: an answer that was lost takes no work away.
 * offer is to be released whatever op.err says. */
struct claim_dispatch {
	struct store_op op;
	const char *accelerator;
	const struct claim_choice *choices;
	size_t n_choices;
	const char *machine, *claim_id;
	bool is_silent; /* L1: no job is kept */
	int64_t lease_ms, now_ms;
	bool is_found; /* out */
	int64_t
	    next_ms; /* out, not is_found: the accelerator has something that waits for this time */
	bool was_known; /* out: that claim_id had it already */
	struct lease_offer
	    offer; /* out, is_found: all but visibility and change_url; lease_offer_release() */
};
int store_claim_dispatch(struct store *s, struct claim_dispatch *op) MUST_CHECK;

/* A heartbeat. ACTIVE: good until now + lease_ms. A lease that ran out but whose dispatch still
 * waits in the queue is taken up again, as long as nobody else had the work since, the runner
 * has room (max_parallel of the claim) and the machine has not reported that it stopped.
 * CANCELLED: the dispatch ended, and reason says how. LOST: everything else. */
struct renew_lease {
	struct store_op op;
	const char *lease_id, *accelerator, *machine; /* another's lease is LOST */
	int64_t lease_ms, now_ms;
	enum lease_word word; /* out */
	char reason[160];     /* out */
};
int store_renew_lease(struct store *s, struct renew_lease *op) MUST_CHECK;

/* The machine hands it back: the dispatch is queued again, the attempt's job is completed as
 * cancelled and not shown. Idempotent; one that ended otherwise stays as it is. A dispatch that
 * had 100 leases fails. ERR_NOT_FOUND: no such lease of this machine. */
struct return_lease {
	struct store_op op;
	const char *lease_id, *accelerator, *machine, *reason;
	int64_t now_ms;
};
int store_return_lease(struct store *s, struct return_lease *op) MUST_CHECK;

/* Leases past their time: the dispatch goes back to the queue, or, after
 * LEASE_HANDOVERS_MAX, fails with the reason (→ MISS). The attempt's job is completed as `stale`
 * and, but for the last, no longer shown; what its machine reports after all takes the place of
 * that unless a later attempt is at work or has reported. At most 500 at a time: the rest is due
 * at once. out: the next one's time (0: none). */
struct expire_leases {
	struct store_op op;
	int64_t now_ms;
	int n_expired;
	int64_t next_due_ms;
};
int store_expire_leases(struct store *s, struct expire_leases *op) MUST_CHECK;

struct lease_row {
	char *id, *dispatch_id, *accelerator, *runner, *machine,
	    *state; /* active, done, returned, expired, cancelled */
	int attempt;
	int64_t job_id, granted_ms, until_ms, ended_ms, number;
	char *head_sha;
};
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

/* For runners of one accelerator: how many dispatches wait that a machine could have now, and how
 * many leases are active. */
struct pull_work {
	const char *runner;          /* borrowed */
	int64_t n_waiting, n_active; /* out */
};
struct count_pull_work {
	struct store_query q;
	const char *accelerator;
	int64_t now_ms;
	struct pull_work *list;
	size_t n;
};
int store_count_pull_work(struct store *s, struct count_pull_work *q) MUST_CHECK;

#endif
