/* The machines that wait for work of one accelerator, in the order in which they came, and the
 * look into the store for one of them at a time. The longest idle machine is asked for first.
 *
 * A look that finds nothing ends the round for every machine that could take no more than the
 * one that was looked for; so a thousand idle machines cost one statement each time that
 * something is queued.
 *
 * For runners/claim.c only. Thread: loop. */
#ifndef RUNNERS_CLAIM_QUEUE_H
#define RUNNERS_CLAIM_QUEUE_H

#include "http/server.h"
#include "runners/runners_internal.h"
#include "store/leases.h"

enum { PULL_RUNNERS_MAX = 128 };

/* Which of the accelerator's runners, by their place in its file. */
struct runner_set {
	uint64_t bits[PULL_RUNNERS_MAX / 64];
};

struct claim {
	struct claim_queue *queue;
	struct claim *prev, *next;
	struct http_request *request; /* NULL: nobody waits for the answer any more */
	int64_t token_id;
	char *machine, *claim_id, **labels; /* owned */
	struct runner_set set;              /* whose labels it has all of */
	int64_t until_ms;                   /* mono: then 204 */
	int64_t looked;                     /* the round of its last look; 0: none yet */
};

struct claim_queue {
	struct runners *runners;
	char *accelerator; /* owned */
	struct claim *first, *last;
	size_t n;
	int64_t round;         /* counts up whenever there may be work */
	struct claim *looking; /* whom the look in hand is for; linked like all */
	/* the look in hand; owns what it borrows from the configuration */
	struct claim_dispatch op;
	struct config *config;
	struct claim_choice *choices;
	int64_t look_round;
	/* See to those who still wait. */
	void (*on_look_ended)(struct claim_queue *q, int err);
	struct claim_queue *next;
};

struct claim_queue *claim_queue_new(struct runners *r, const char *accelerator,
    void (*on_look_ended)(struct claim_queue *q, int err));
void claim_queue_free(struct claim_queue *q); /* empty, and no look in hand */

/* Takes the claim over; a is its accelerator. */
void claim_queue_add(struct claim_queue *q, struct claim *c, const struct accelerator *a);
/* Unlinks and frees; not the one that a look is for. */
void claim_queue_drop(struct claim_queue *q, struct claim *c);
/* The one that asks for the same lease; NULL: none. *ret_n_of_machine counts the machine's. */
struct claim *claim_queue_find(
    const struct claim_queue *q, const char *machine, const char *claim_id, int *ret_n_of_machine);
/* Labels or runners changed. */
void claim_queue_sort_out(struct claim_queue *q, const struct accelerator *a);

/* Something may be there: everyone is looked for again, in order. */
void claim_queue_ring(struct claim_queue *q);
/* Goes on with who was not looked for in this round. on_look_ended runs after each look, with
 * its error; after a submit that failed, too (inside this call). */
void claim_queue_look(struct claim_queue *q);

/* Answers and forgets the request; the claim stays for the caller. */
void claim_answer_nothing(struct claim *c);

#endif
