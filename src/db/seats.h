/* Seats: the parts of the daemon of which there is one among all nodes, and the node that runs each of them now.
 *
 * A seat is a row with the epoch of its node and the time until which it is held. Each node's keeper renews its own seats every three
 * seconds, takes those that are free, and hands those over that belong elsewhere: seat_target() spreads the seats over the nodes that live.
 * A seat is free when its node gave it up, or when this node has seen the same row for ten seconds, because each renewal changes it. A node
 * stops its parts nine seconds after a renewal. Both measure with their own monotonic clocks, so two nodes never run one part, whatever the
 * database's clock does, and also if one of them has just started. With SQLite there is one node, which holds every seat from the beginning; nothing runs or is written then.
 *
 * The keeper also learns what a node has to know of the others: how many live, and the database's time, which clock_wall_ms() follows.
 *
 * Thread: loop, where a function does not say otherwise. */
#pragma once

#include "db/db.h"
#include "db/store.h"
#include "model/record.h"

/* Each name is the key of a row, and is shown in /api/v1/status. */
#define SEATS(X)                                                                                                       \
	X(SEAT_PLANNER, "planner")                                                                                     \
	X(SEAT_SCHEDULER, "scheduler")                                                                                 \
	X(SEAT_DEADLINES, "deadlines")                                                                                 \
	X(SEAT_RECONCILER, "reconciler")                                                                               \
	X(SEAT_EVIDENCE, "evidence")                                                                                   \
	X(SEAT_PUBLISHER, "publisher")                                                                                 \
	X(SEAT_RETENTION, "retention")                                                                                 \
	X(SEAT_REGISTRY, "registry")
enum seat {
#define X(e, name) e,
	SEATS(X)
#undef X
	    N_SEATS
};
const char *seat_name(enum seat seat); /* any thread */

/* Whether this node may look for work of that part now. A node that was fenced has no seat before it has looked again. */
bool store_has_seat(const struct store *s, enum seat seat);
/* How many nodes live, this one included; 1 with SQLite. A limit for all of them is divided by it. */
int store_n_nodes(const struct store *s);
/* How many jumps of the database's clock had been applied to the stored times (store/maintenance.h) when this node last compared its clock
 * with the database's, and one. 0: it has not done so yet, or SQLite. */
int64_t store_clock_generation(const struct store *s);
int64_t store_clock_epoch(const struct store *s); /* this node's epoch then */
#define CLOCK_GENERATION "clock.generation"       /* the setting */

/* One part of the daemon. A part looks for work only while store_has_seat() is true. */
struct seat_part {
	enum seat seat;
	/* The seat came: forget what was remembered, because another node may have worked meanwhile, and look at everything. Or it goes:
	 * begin nothing more. Not inside store_add_part(): a new part begins as if the seat had just come, if it has it.
	 * NULL: nothing to do. */
	void (*on_seat)(enum seat seat, bool has_seat, void *owner);
	/* After the seat went: whether all work has ended that another node must not find running. NULL: it need not wait. */
	bool (*is_idle)(enum seat seat, void *owner);
	void *owner;
};
/* Never removed before store_close(), so the owner lives until then. */
void store_add_part(struct store *s, const struct seat_part *part);

/* ---- the keeper, for db/store.c ---- */
struct seats;
/* NULL: the database is a file. */
struct seats *seats_new(struct store *s);
/* Looks at the seats soon: another node changed them. NULL is fine. */
void seats_ring(struct seats *k);
/* Gives all seats up, with an operation that the store still takes. NULL is fine. */
void seats_stop(struct seats *k);
void seats_free(struct seats *k); /* when no operation runs any more; NULL is fine */
/* Makes clock_wall_ms() follow the database's. Does nothing with a file. Thread: the connection's. */
void seats_learn_time(struct db *d);

/* ---- nodes and seats ---- */
#define SEAT_NODE_RECORD(F, S)                                                                                         \
	F(S, INT, epoch, NULL, "epoch", "")                                                                            \
	F(S, TEXT, name, NULL, "name", "")                                                                             \
	F(S, TEXT, version, NULL, "version", "")                                                                       \
	F(S, INT, schema_version, NULL, "schema_version", "")                                                          \
	F(S, TIME, seen_ms, NULL, "seen_ms", "")
struct seat_node {
	RECORD_MEMBERS(SEAT_NODE_RECORD)
	bool has_seat[N_SEATS];
};
RECORD_DECLARE(seat_node);
struct seat_nodes {
	struct seat_node *at;
	size_t n;
};
/* The nodes that are not gone, by name, and the seats that each holds at now_ms. Thread: the connection's. */
void seat_nodes_read(const struct view *d, int64_t now_ms, struct seat_nodes *ret);
void seat_nodes_release(struct seat_nodes *l);
/* Whether a node that is not gone and is not `me` (epoch) holds the seat at now_ms. Thread: the connection's. */
bool seat_is_anothers(const struct view *d, enum seat seat, int64_t me, int64_t now_ms);

/* ---- the decision, pure ---- */
enum { SEAT_LEASE_MS = 10 * 1000, SEAT_NODE_LIVES_MS = 10 * 1000 };
/* Whether a node was seen lately. */
bool seat_node_lives(const struct seat_node *node, int64_t now_ms);
/* The node that should have the seat: of those that live and have the newest schema_version among them, the one with the highest hash of
 * both names (rendezvous hashing). So a node that comes or goes moves its own seats only, and in a rolling upgrade no part of an older
 * release runs that would not fill in what the newer one added. Of two nodes with one name, the later one. NULL: no node lives. */
const struct seat_node *seat_target(const char *seat, const struct seat_nodes *nodes, int64_t now_ms);

enum seat_step {
	SEAT_LEAVE,   /* it is another node's, or will be */
	SEAT_TAKE,    /* it is free */
	SEAT_RENEW,   /* it is ours, and stays */
	SEAT_DRAIN,   /* it is ours, and belongs elsewhere: renew it, and begin no work */
	SEAT_RELEASE, /* the same, and the work has ended */
};
struct seat_question {
	const char *seat;
	int64_t me;               /* epoch */
	int64_t holder, until_ms; /* of the row; holder 0: there is none; until_ms 0: it gave the seat up */
	int64_t unchanged_ms;     /* for how long this node has seen the row like that */
	bool is_idle;             /* this node's parts of the seat have no work */
	const struct seat_nodes *nodes;
	int64_t now_ms;  /* the database's time */
	bool has_jumped; /* not long ago: the stored times do not show who is alive, so no seat moves */
};
enum seat_step seat_decide(const struct seat_question *q);
