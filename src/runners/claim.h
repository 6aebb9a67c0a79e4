/* POST /api/v1/runner/claim: machines ask for work and wait for it, up to CLAIM_WAIT_MAX_S.
 *
 * A waiting machine costs its connection and a few hundred bytes: the store looks for work for it only when something is
 * queued. When its client leaves, the claim is dropped. If the client leaves during such a look, the work that was found
 * goes to a request with the same claim_id, if there is one, else back to the queue.
 *
 * Thread: loop, every function. */
#pragma once

#include "runners/runners_internal.h"
#include "store/claims.h"
#include "store/leases.h"

enum { CLAIMS_PER_MACHINE_MAX = 16 }; /* waiting at the same time */

/* Adds the route. r is borrowed. */
struct claims *claims_new(struct runners *r, struct http_server *h);
/* r->config has changed: labels, limits, accelerators. */
void claims_configure(struct claims *c);
/* The store published STORE_QUEUE. */
void claims_on_queue(struct claims *c);
/* Answers 401 to every claim whose token is no longer valid. */
void claims_on_tokens(struct claims *c);
/* Answers 503 to every claim. r->is_stopping is set. */
void claims_stop(struct claims *c);
int claims_n_waiting(const struct claims *c);
/* After claims_stop() and the last look. NULL is fine. */
void claims_free(struct claims *c);

/* ---- claim_queue.c, for claim.c only: the machines that wait for work of one accelerator, in the order of their
 * arrival. The store looks for work for one of them at a time, the longest idle machine first.
 *
 * If the store finds nothing for a machine, the same round skips the machines that could take no other work than that
 * one. So a thousand idle machines cost one statement each time that something is queued ---- */

enum { PULL_RUNNERS_MAX = 128 };

/* A set of the accelerator's runners, by their index in its file. */
struct runner_set {
	uint64_t bits[PULL_RUNNERS_MAX / 64];
};

struct claim {
	struct claim_queue *queue;
	TAILQ_ENTRY(claim) link;
	struct http_request *request; /* NULL: answered, or the client left */
	int64_t token_id;
	char *machine, *claim_id, **labels; /* owned */
	struct runner_set set;              /* the runners whose labels the machine has */
	int64_t until_ms;                   /* mono: then 204 */
	int64_t looked;                     /* the round of its last look; 0: none yet */
};

struct claim_queue {
	struct runners *runners;
	char *accelerator;          /* owned */
	TAILQ_HEAD(, claim) claims; /* oldest first */
	size_t n;
	int64_t round;         /* increases each time that there may be work */
	struct claim *looking; /* the claim that the store looks for work for; it stays linked */
	/* the request to the store; `config` keeps the texts that it borrows */
	struct claim_dispatch op;
	struct config *config;
	struct claim_choice *choices;
	int64_t look_round;
	LIST_ENTRY(claim_queue) link;
};

struct claim_queue *claim_queue_new(struct runners *r, const char *accelerator);
/* Adds the claim and takes it over; a: its accelerator. */
void claim_queue_add(struct claim_queue *q, struct claim *c, const struct accelerator *a);
/* Unlinks and frees a claim, but not `looking`. */
void claim_queue_drop(struct claim_queue *q, struct claim *c);
/* The claim with the same claim_id; NULL: none. *ret_n_of_machine: the number of the machine's claims. */
struct claim *claim_queue_find(
    const struct claim_queue *q, const char *machine, const char *claim_id, int *ret_n_of_machine);
/* Labels or runners changed: finds the runners of each claim again. */
void claim_queue_match_runners(struct claim_queue *q, const struct accelerator *a);

/* Looks for work for the next claim of this round. */
void claim_queue_look(struct claim_queue *q);
/* claim.c: runs after each look, with its error, and may free the queue. If the store is busy, it runs inside
 * claim_queue_look(). */
void claims_look_ended(struct claim_queue *q, int err);

/* Answers 204. The claim stays. */
void claim_answer_nothing(struct claim *c);
