/* The store: a database behind one writer thread with group commit and a few reader threads.
 *
 * An operation is a struct that the caller owns, fills and submits; `done` gives it back on the loop, once, after the
 * commit that holds it is on disk. One operation writes an effect with its cause, so they are in one transaction. */
#pragma once

#include "loop/loop.h"

struct store;
struct db;
struct view;
struct txn;

struct store_options {
	const char *state_dir;   /* holds outpost.db and the lock; created (0700) when missing */
	const char *database;    /* NULL: outpost.db; or the URL of a database of PostgreSQL, without a password */
	struct secret *password; /* of the database's user; NULL: none */
	size_t max_queue_ops;    /* 0: 8192 */
	size_t max_queue_bytes;  /* 0: 16 MiB; the last operation may pass it, and long ones stop at half of it */
	int n_readers;           /* 0: 2 */
	const char *node;        /* this daemon's name among several (db/nodes.h); NULL: "outpost" */
	bool has_others;         /* other daemons may use the database of PostgreSQL at the same time */
	int patience_ms;         /* store_open() waits up to this long for a server that is away; 0: it fails at once */
	/* Runs on the writer's connection before any thread has it, in no transaction (store/maintenance.h). NULL:
	 * nothing to repair. */
	int (*recover)(struct db *d, struct error *e);
	/* Runs in the transaction in which this daemon begins to write while no other one was alive: at the start, and after the
	 * database was away (store/maintenance.h). NULL: nothing. */
	void (*after_silence)(struct txn *d, int64_t now_ms);
};

/* Keeps other daemons away from a folder until *ret_fd is closed. *ret_ended_epoch: the node of the last daemon that used it
 * (db/nodes.h); 0: none. Thread: any. ERR_EXISTS: one uses it. */
int store_lock_folder(const char *state_dir, int *ret_fd, int64_t *ret_ended_epoch, struct error *e) MUST_CHECK;
/* Opens, locks the state directory against a second daemon, migrates, recovers. It blocks, so call it before the loop
 * runs. ERR_CORRUPT, ERR_TOO_NEW, ERR_EXISTS (another daemon holds it), ERR_IO, … with the file named. */
int store_open(struct loop *l, const struct store_options *o, struct store **ret, struct error *e) MUST_CHECK;
/* Refuses new work, finishes the queued work, checkpoints, joins, closes. on_closed runs once on the loop; every submitted
 * operation is done before it. */
void store_close(struct store *s, void (*on_closed)(void *owner), void *owner);

/* ---- topics: subscribers are notified on the loop after the commit that changed something ---- */
enum store_topic {
	STORE_DELIVERIES = 1 << 0,  /* a delivery waits to be planned */
	STORE_OUTBOX = 1 << 1,      /* a request to a vendor is due */
	STORE_DISPATCHES = 1 << 2,  /* a deadline may have come nearer */
	STORE_CHANGES = 1 << 3,     /* a change looks different */
	STORE_QUEUE = 1 << 4,       /* a pull dispatch waits, or a place for one is free */
	STORE_LEASES = 1 << 5,      /* Outpost ended a lease, or moved its time */
	STORE_TOKENS = 1 << 6,      /* credentials came or went */
	STORE_ATTRIBUTION = 1 << 7, /* red cells wait for their evidence (verdict/attribution.h) */
	STORE_SCHEDULES = 1 << 8,   /* a periodic run is due at once, or may be */
	STORE_COMMENTS = 1 << 9,    /* another effect is due: a comment, check runs, an answer, an issue */
	STORE_NODE = 1 << 10,       /* store_is_acting(), store_epoch() or store_n_nodes() has another answer */
	/* among several nodes (db/seats.h) */
	STORE_SEATS = 1 << 11,    /* a seat became free, or a node came */
	STORE_REGISTRY = 1 << 12, /* accelerators.git may have a new commit */
	STORE_LIMITS = 1 << 13,   /* a node met a limit of GitHub's (store/published.h) */
};
/* Inside on_topic: the changes, jobs and accelerators that the batch touched (db/touched.h). */
struct store_touched;
const struct store_touched *store_touched(const struct store *s);
/* Never unsubscribed before store_close(); several subscribers a topic are fine. */
void store_subscribe(struct store *s, unsigned topics, void (*on_topic)(unsigned topics, void *owner), void *owner);

/* ---- several daemons on one database (db/nodes.h) ---- */

/* The number of this incarnation of the daemon. It changes when the others have given it up meanwhile: the work that it had began under
 * the old number is theirs then. Any thread. */
int64_t store_epoch(const struct store *s);
/* False: the others may believe that this daemon is dead, because it did not reach the database for a while. It must not send anything
 * to the outside then. Any thread. */
bool store_is_acting(const struct store *s);
/* 0, or the error of the last commit on a server's database that is away: a write would wait for it, and somebody who waits for an answer gets
 * this error at once. It names hosts and users, so it is for operators and the log. With a file it is 0, because an attempt itself ends at
 * once. Thread: loop. */
int store_check_writable(const struct store *s, struct error *e) MUST_CHECK;
/* This daemon's name among the others. Borrowed. */
const char *store_node_name(const struct store *s);
/* Whether other daemons may use the database. */
bool store_is_shared(const struct store *s);

/* ---- retries ---- */

/* Makes an operation or a query patient: while the store has no room for it, or the disk is full or fails, the store
 * keeps it and submits it again. The pause is half a second at first and doubles up to 4 s. `done` comes once, with
 * the final result. It is for results that must be recorded. Work that is found by looking into the database is
 * retried by its bell (bell_retry() in loop/bell.h). */
struct store_retry {
	const char *event; /* in: the log line of each failed attempt; NULL: not patient */
	/* in: set to the wall clock before each further attempt, because deadlines count from it and the disk may be full
	 * for hours; NULL: the operation has no such time */
	int64_t *now_ms;
	/* store's own */
	TAILQ_ENTRY(store_retry) link;
	void (*submit)(struct store_retry *r);
	int64_t due_ms;
	int n_failed;
};
/* Whether an operation that failed with `err` may succeed later without a change. */
bool store_is_passing(int err);
/* From now on an operation fails at its first failure. Waiting ones get one last attempt soon, and then `done`. Call
 * it before those who submit patient operations are closed. Thread: loop. */
void store_stop_retrying(struct store *s);

/* ---- writing ---- */
/* Operations that decide run one after the other, over all daemons: each sees everything that the ones before it wrote. An independent
 * one never waits for them. It is right whatever others do at the same time, and changes rows with one statement, which is atomic by
 * itself and needs no savepoint (a savepoint costs a copy of each page that it touches). */
enum op_class { OP_DECIDES, OP_INDEPENDENT };
struct store_op {
	/* in: the caller sets done, the typed submit functions the other two. A transaction may be repeated, so run is called for each
	 * attempt, and first clears the output of the one before. */
	int (*run)(struct store_op *op, struct txn *d); /* a writer's thread, in a savepoint */
	void (*done)(struct store_op *op);              /* loop, once, never inside submit */
	size_t bytes;                                   /* weight in the queue */
	/* in; run may make an independent operation one that decides, as long as it has written nothing: it runs again as such */
	enum op_class class;
	bool is_intake;           /* GitHub waits for it */
	struct store_retry retry; /* `.retry.event`: see above */
	/* out */
	int err; /* 0: committed and synced. ERR_FULL, ERR_IO, …: nothing of it happened */
	struct error why;
	unsigned topics; /* set by run */
	/* Set by run: it wrote a part, and runs again after the commit and after the operations that wait meanwhile. So a long
	 * operation does not block the others. After a crash between the parts, only the first ones happened. */
	bool is_unfinished;
	int64_t n_parts; /* how many of them are committed */
	/* store's own */
	struct store *store;
	struct inbox_item item;
	STAILQ_ENTRY(store_op) link;
};
/* Thread: loop. 0: the store owns op until op->done(op). ERR_BUSY (queue full; not of a patient operation) or
 * ERR_CLOSING: op stays the caller's and done will not run. */
int store_submit(struct store *s, struct store_op *op) MUST_CHECK;
/* For a .c file: defines store_NAME(), which submits a struct NAME; NAME_run() does the work. The struct is the operation's
 * whole weight. */
#define STORE_OPERATION(name)                   STORE_SUBMIT(name, OP_DECIDES, 0)
/* The same for an independent operation. */
#define STORE_INDEPENDENT(name)                 STORE_SUBMIT(name, OP_INDEPENDENT, 0)
/* The same for an operation that also weighs `more_bytes`, an expression of op. */
#define STORE_HEAVY_OPERATION(name, more_bytes) STORE_SUBMIT(name, OP_DECIDES, more_bytes)
#define STORE_SUBMIT(name, its_class, more_bytes)                                                                      \
	int store_##name(struct store *s, struct name *op)                                                             \
	{                                                                                                              \
		op->op.run = name##_run;                                                                               \
		op->op.bytes = sizeof(*op) + (more_bytes);                                                             \
		op->op.class = (its_class);                                                                            \
		return store_submit(s, &op->op);                                                                       \
	}
/* Sets `member` of the struct, and all members behind it, to zero. */
#define CLEAR_FROM(s, member) memset(&(s)->member, 0, sizeof(*(s)) - offsetof(__typeof__(*(s)), member))
/* fn runs on the loop right before each operation is queued; an operation that fn submits is written first. One fn at
 * a time; NULL: none. */
void store_before_submit(struct store *s, void (*fn)(void *owner), void *owner);

/* ---- reading ---- */
enum query_kind {
	QUERY_OF_PAGE, /* or of a list: two at a time, with a low priority */
	QUERY_URGENT,  /* a dispatch waits for it, and it is short: with the priority of the loop */
	QUERY_LONG,    /* it reads the whole file: one at a time, and no other kind waits for it */
	N_QUERY_KINDS
};
struct store_query {
	/* reader thread, in one read snapshot */
	int (*run)(struct store_query *q, const struct view *d);
	void (*done)(struct store_query *q);
	enum query_kind kind;     /* in */
	struct store_retry retry; /* in: as for operations */
	int err;
	struct error why;
	/* store's own */
	struct store *store;
	struct inbox_item item;
	STAILQ_ENTRY(store_query) link;
};
int store_query(struct store *s, struct store_query *q) MUST_CHECK; /* as store_submit() */
/* As STORE_OPERATION(). */
#define STORE_QUERY(name)                                                                                              \
	int store_##name(struct store *s, struct name *q)                                                              \
	{                                                                                                              \
		q->q.run = name##_run;                                                                                 \
		return store_query(s, &q->q);                                                                          \
	}
/* The same; clears the outputs first: the members from `first_output` to the end of the struct. */
#define STORE_QUERY_CLEARED(name, first_output)                                                                        \
	int store_##name(struct store *s, struct name *q)                                                              \
	{                                                                                                              \
		CLEAR_FROM(q, first_output);                                                                           \
		q->q.run = name##_run;                                                                                 \
		return store_query(s, &q->q);                                                                          \
	}
/* The same for a query whose results are the records S in `list`, `n` of them; defines NAME_release() too. */
#define STORE_LIST(name, S)                                                                                            \
	STORE_QUERY_CLEARED(name, list)                                                                                \
                                                                                                                       \
	void name##_release(struct name *q) { RECORDS_RELEASE(S, q->list, q->n); }

/* ---- figures ---- */
struct store_stats {
	int64_t n_queued_ops, n_queued_bytes;
	int64_t n_queued_intake; /* of the operations, those of intake */
	int64_t n_commits, n_ops, n_failed_commits;
	int64_t n_writes;       /* commits that changed a row, and notes of other nodes that they did so */
	int64_t last_commit_us; /* how long the last one took */
	struct histogram commit_times;
	bool is_writable; /* false after a failed commit until one succeeds, and while store_is_acting() is false */
	/* Why it is not: without names of hosts, users or files, because everybody may read it. The log and store_check_writable() have the whole
	 * error. Lives as long as the store; NULL: it is writable. */
	const char *why_not_writable;
};
void store_stats(struct store *s, struct store_stats *ret);
/* The limits of the queue, for a caller that leaves room for other operations. */
struct store_limits {
	size_t max_queue_ops, max_queue_bytes;
};
void store_limits(const struct store *s, struct store_limits *ret);
/* Tries a small write when the last commit failed, to notice without traffic that the disk has room again. Thread: loop;
 * cheap. */
void store_probe(struct store *s);
