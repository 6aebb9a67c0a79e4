/* The daemons that share a database. A node is one incarnation of outpostd. Its number, the epoch, rises with each start, and a row of
 * work in progress names the epoch that has it. A node that the others have given up cannot write: its next transaction fails (the
 * node is fenced), and it goes on as a node with a new epoch, to which the old one's work does not belong.
 *
 * On a file there is one node: the lock of the state directory proves that all earlier ones have ended.
 *
 * Thread: struct node belongs to the store; its atomic members are for any thread, and the functions for a writer's thread, on the
 * writer's connection. Times are db_now_ms(), except those with `mono` in their names. */
#pragma once

#include <stdatomic.h>

#include "db/db.h"

enum {
	NODE_BEAT_MS = 3000,
	/* Without a beat: it begins no request any more, and cuts off the open ones within a second. */
	NODE_SILENT_MS = 8000,
	/* A request that has left arrives within this time or never: its connection breaks. */
	NODE_CONFIRM_MS = 5000,
	/* Of a server that sends nothing while a statement waits for it: each connection is given up then. The node connects again, perhaps
	 * to another server, and beats before the others give it up. */
	NODE_ANSWER_MS = 15000,
	/* Without a beat: the others give it up and take its work over. All its requests have had their effect by then, because GitHub
	 * works on a request for 10 s at most. */
	NODE_DEAD_MS = 25000,
};

/* Whether the node `epoch` (an expression of SQL) may still be working: ?1 and ?2 are struct node_horizon. NODE_IS_ALIVE: it may also
 * write. */
#define NODE_IS_WORKING(epoch) NODE_EXISTS(epoch, "(node.gone_ms IS NULL OR node.seen_ms > ?2)")
#define NODE_IS_ALIVE(epoch)   NODE_EXISTS(epoch, "node.gone_ms IS NULL")
#define NODE_EXISTS(epoch, condition)                                                                                  \
	"EXISTS (SELECT 1 FROM node WHERE node.epoch = " epoch " AND node.epoch >= ?1 AND " condition ")"
struct node_horizon {
	int64_t first_epoch; /* of a file: this node's, because only it can be alive */
	int64_t seen_by_ms;  /* a node that is gone and had its last beat by then does nothing any more */
};
struct node_horizon node_horizon(struct txn *d);

/* One transaction of a writer. The row that it raises shows later whether its commit happened. */
struct node_batch {
	bool is_independent; /* in: of the writer that does not wait for its turn */
	int64_t epoch, number, mono_ms;
};

struct node {
	/* set before the threads start */
	const char *name;
	bool is_shared;
	/* The node of the process that had this state directory before and has certainly ended; 0: not known. */
	int64_t ended_epoch;
	/* Runs in the transaction in which a node begins to write while no other one was alive, before anything else in it: at the
	 * start, and after the database was away. NULL: nothing. */
	void (*after_silence)(struct txn *d, int64_t now_ms);

	/* the last attempt to register. Its number is random, so that this process knows its row if the COMMIT had no answer */
	struct node_batch registration;

	_Atomic int64_t epoch;
	_Atomic int64_t seen_mono_ms; /* the last commit that the others see as a beat, before it was sent */
};

/* Makes this process a new node, in a transaction of its own; or the node that an earlier call made, if its COMMIT had no answer.
 * ERR_EXISTS: a younger node has the name; ERR_TOO_NEW: a newer release has changed the tables so that this program cannot use them. */
int node_register(struct node *n, struct db *d, struct error *e) MUST_CHECK;
/* For the end of the process, after its last operation: the others need not wait for its silence. */
void node_leave(struct node *n, struct db *d);

/* Begins the transaction's work: waits for this daemon's turn, unless it is independent, and raises the row. The failure sticks to
 * the connection. True: it is fenced, so nothing may be written. An independent writer is fenced only if its row is deleted. */
bool node_begin(struct node *n, struct db *d, struct node_batch *b);
void node_committed(struct node *n, const struct node_batch *b);
/* In another transaction, after a commit without an answer: whether it happened. Waits until the server has ended the old one. */
bool node_has_committed(struct db *d, const struct node_batch *b);

/* For an operation: the others see that this node is alive. False: it is fenced. After the commit node_seen() gets the monotonic time
 * before it. */
bool node_beat(struct node *n, struct txn *d);
void node_seen(struct node *n, int64_t mono_ms); /* any thread */
/* For an operation: gives up the nodes that were silent for too long, and forgets those of last week. Returns how many it gave up, and appends
 * their names.
 * asked_ms: clock_wall_ms() when it was submitted. If the database has another time, its clock jumped meanwhile, which proves nothing about
 * a node: nothing happens then, and it returns -1. */
int64_t nodes_give_up(struct txn *d, int64_t asked_ms, struct buf *names);
/* For an operation: the database's clock jumped by by_ms. Every node has its full time again: to beat, or to end its requests. */
void nodes_follow_clock(struct txn *d, int64_t by_ms);
/* For a migration to tables that programs older than this version cannot use: gives up the nodes with such a program. Both their
 * writers are fenced, and node_register() refuses them. The transaction has its turn. */
void nodes_give_up_older(struct txn *d, int64_t schema_version);
