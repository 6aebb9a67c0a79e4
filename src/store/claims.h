/* Claims: a machine asks for work and gets a dispatch from the queue as a lease.
 *
 * Thread: loop. Strings and arrays are borrowed until done. */
#pragma once

#include "db/store.h"
#include "model/runner_protocol.h"

/* A runner of the accelerator that this machine's labels satisfy. */
struct claim_choice {
	const char *runner;
	int max_parallel; /* leases at a time, over all machines */
};

/* Takes the newest dispatch that waits for one of the choices (a retest of an older change is newer than a change from
 * before it). In one transaction the dispatch goes to `running`, the lease becomes active and (unless the accelerator is
 * silent) the job (workflow = runner, name = "tests", run_id = the dispatch's id, attempt = how many leases it has had) is
 * in progress. The same claim_id from the same machine gets its lease again while that is active, with its time extended,
 * so a lost answer loses no work. Release the offer whatever op.err says. */
struct claim_dispatch {
	struct store_op op;
	const char *accelerator;
	const struct claim_choice *choices;
	size_t n_choices;
	const char *machine, *claim_id;
	bool is_silent; /* L1: no job is kept */
	int64_t lease_ms, now_ms;
	bool is_found;   /* out */
	int64_t next_ms; /* out, not is_found: when a dispatch of the accelerator may go; 0: none */
	bool was_known;  /* out: that claim_id had it already */
	/* out, is_found: all but visibility and change_url; lease_offer_release() */
	struct lease_offer offer;
};
int store_claim_dispatch(struct store *s, struct claim_dispatch *op) MUST_CHECK;

/* For runners of one accelerator: how many dispatches a machine could claim now, and how many leases are active. */
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
