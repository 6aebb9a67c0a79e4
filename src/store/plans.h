/* A plan, applied: in one transaction the pull request's head moves, superseded dispatches end, and each runner that
 * wants the change gets at most one dispatch per round. Applying a plan twice changes nothing the second time.
 *
 * Thread: functions with a struct txn run inside a writer's transaction; store_apply_plan() runs on the loop. */
#pragma once

#include "db/db.h"
#include "db/store.h"
#include "model/plan.h"
#include "store/outbox.h"

/* Applies a plan and marks its delivery planned (or ignored), in one transaction. The same event under another GUID
 * changes nothing either:
 *  - a pull request event older (by GitHub's updated_at) than the stored one moves nothing back;
 *  - a head that is new to the pull request supersedes the older one, unless another open pull request has it:
 *    unfinished dispatches become superseded, their unsent requests are dropped, and webhook runners that got a request
 *    get a `cancel`;
 *  - each want gets at most one dispatch per round. A round starts when the plan says so (once per GitHub time of the
 *    event), or when the last dispatch was superseded or cancelled. Wants that share a repository share one dispatch id
 *    and one request, which lists every released, unfinished accelerator there and never held ones;
 *  - a held want becomes a dispatch in state held, without a request;
 *  - PLAN_CLOSE: unfinished dispatches become cancelled, webhook runners get `cancel`, and every repository that got a
 *    request for any head of the pull request gets one `closed`. */
struct apply_plan {
	struct store_op op;
	int64_t delivery_id; /* 0: none (reconciler, retest): `body` is stored as a new one */
	const char *guid;    /* delivery_id of the requests to vendors */
	const char *body;    /* delivery_id 0 only: the body of webhook shape to forward */
	size_t body_bytes;
	const struct plan *plan;
	int64_t now_ms;
	struct outbox_offer offer; /* places for the requests of the wants */
	int64_t change_id;         /* out; 0: none */
	int n_new_dispatches;      /* out */
	bool is_stale;             /* out: older than the stored event */
	bool was_planned;          /* out: the delivery had been planned before */
	/* out: the result of a retest for each want; retested_release() */
	struct retested *retested;
	size_t n_retested;
};
int store_apply_plan(struct store *s, struct apply_plan *op) MUST_CHECK;
/* The same inside a transaction, without a delivery to mark. o->plan is no PLAN_IGNORE. */
void plan_apply(struct txn *d, struct apply_plan *o);

enum retest_result {
	RETEST_STARTED,
	RETEST_NOT_MEANT, /* the retest names other runners */
	RETEST_RUNNING,   /* its dispatch has not ended: it does not run twice */
	RETEST_HELD,      /* it stays held: only ok-to-test releases it */
	RETEST_CLEAN,     /* its last round has no failure, and the command did not name it */
	RETEST_NO_SUITE,  /* none of its jobs reported that suite */
	N_RETEST_RESULTS
};
const char *retest_result_name(enum retest_result r);

/* The result for one want. */
struct retested {
	char *accelerator, *runner;
	enum retest_result result;
	char id[ID_BYTES]; /* STARTED: of the new dispatch */
};
void retested_release(struct retested *list, size_t n);
