/* Asks GitHub for what attribution needs and the database does not have: the merge base of a red
 * change and the files that it touches. Then the store attributes (store/attribution.h).
 *
 * Works from the rows of attribution_due alone, so nothing is lost in a crash; a change is asked
 * about once a head, with growing pauses while GitHub does not answer. Thread: loop. */
#ifndef EVIDENCE_EVIDENCE_H
#define EVIDENCE_EVIDENCE_H

#include "config/config.h"
#include "github/github.h"
#include "loop/loop.h"
#include "store/store.h"

struct evidence;

struct evidence_deps { /* borrowed; they outlive it */
	struct loop *loop;
	struct store *store;
	struct github *github;
};

/* Starts at once. Takes its own reference to the snapshot. */
struct evidence *evidence_new(const struct evidence_deps *deps, struct config *c);
void evidence_configure(struct evidence *e, struct config *c);
/* Cancels what is on the wire, then runs on_closed once. Asynchronous. */
void evidence_close(struct evidence *e, void (*on_closed)(void *owner), void *owner);
/* After on_closed and store_close(). NULL is fine. */
void evidence_free(struct evidence *e);

struct evidence_counters {
	int64_t n_attributed, n_moved; /* changes looked at; of them with a cell that moved */
	int64_t n_asked, n_failures;   /* GitHub */
	int n_in_hand;
};
void evidence_read_counters(const struct evidence *e, struct evidence_counters *ret);

#endif
