/* Maintenance of the whole database: repairs at the start, retention, and a wall clock that jumps. */
#pragma once

#include "db/db.h"
#include "db/store.h"

/* For store_options: repairs the state that a daemon left when it ended. Requests that it was sending are due again
 * (outbox_recover()), and days and periodic runs of an older version get their rows of history. On failure the code, and the
 * reason in e. Thread: the caller of store_open(), before any other thread runs. */
int store_recover(struct db *d, struct error *e) MUST_CHECK;
/* For store_options: the machines of active leases could not send heartbeats, because no daemon was there to receive them. Every active
 * lease has its full time again. Thread: a writer. */
void store_after_silence(struct txn *d, int64_t now_ms);

/* Gives up the nodes that are silent (db/nodes.h), and takes over the work of those that cannot be doing it any more. For a database that
 * several daemons use. Thread: loop. */
enum { NODE_NAMES_BYTES = 400 };
struct watch_nodes {
	struct store_op op;
	int64_t now_ms;
	int64_t n_gone, n_taken_over; /* out */
	char names[NODE_NAMES_BYTES]; /* out: of those that are gone; cut */
};
int store_watch_nodes(struct store *s, struct watch_nodes *op) MUST_CHECK;

/* The wall clock jumped by delta_ms: every stored due time moves with it, so that nothing expires or waits because of the
 * jump. Only active leases and nodes get their full time from now on: those that were renewed since the jump are right already, and
 * moving them would end them or keep them forever. Thread: loop. */
struct shift_clock {
	struct store_op op;
	int64_t delta_ms, now_ms;
	/* store_clock_generation() before the jump was noticed: nothing happens if another node has applied it since then; 0: there is
	 * no other node. store_clock_epoch() then: nothing happens either if this node was given up since, or if another one has the seat
	 * of the deadlines, because it may be this node's own clock that stood still. */
	int64_t generation, epoch;
	/* out: of the next jump: one more if the stored times have this one now, whichever node applied it */
	int64_t next_generation;
};
int store_shift_clock(struct store *s, struct shift_clock *op) MUST_CHECK;

/* Deletes bodies and rows past their retention, a bounded piece at a time, so that the writer is soon free for other
 * operations. When nothing is left to delete, the pieces make the file shorter. out: whether more is left. Thread: loop. */
struct apply_retention {
	struct store_op op;
	int64_t deliveries_before_ms, results_before_ms, failures_before_ms, days_before_ms;
	int64_t staged_before_ms; /* of reports that began before and are not complete */
	bool has_more;
};
int store_apply_retention(struct store *s, struct apply_retention *op) MUST_CHECK;
/* One piece; returns whether more is left. For the operation and for tests/bench/retention.c. */
bool retention_piece(struct txn *d, const struct apply_retention *o);
