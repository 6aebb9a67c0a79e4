/* Shared by the files that make up the store's threads. store/registry.c includes it for the backup; no other file does. */
#pragma once

#include <pthread.h>

#include "db/db.h"
#include "db/nodes.h"
#include "db/store.h"
#include "db/touched.h"

enum {
	SUBSCRIBERS_MAX = 16,
	READERS_MAX = 8,
};

/* ---- writer.c ---- */
/* Starts a thread without signals, which are for the loop's thread. */
void thread_start(pthread_t *ret, void *(*run)(void *owner), void *owner);
struct writer;
/* OP_DECIDES: also prepares the database and registers the node. OP_INDEPENDENT: the second writer, of a server's database, after it. */
int writer_start(struct store *s, enum op_class class, const struct store_options *o, struct writer **ret,
    struct error *e) MUST_CHECK;
STAILQ_HEAD(op_queue, store_op);
void writer_push(struct writer *w, struct op_queue *ops); /* any thread; empties ops */
/* Thread: loop. Returns at once; the thread finishes the queue, calls wait_first(), empties the log and posts `gone`. */
void writer_stop(struct writer *w, void (*wait_first)(void *owner), void *owner, struct inbox_item *gone);
void writer_join(struct writer *w); /* after `gone` came; frees */

/* ---- checkpointer.c: of SQLite's file; only the writer's thread calls it ---- */
struct checkpointer;
int checkpointer_start(const char *path, struct checkpointer **ret, struct error *e) MUST_CHECK;
/* After a commit that left the log so large. */
void checkpointer_on_commit(struct checkpointer *c, struct db *writer, int64_t wal_bytes);
/* Waits for a running checkpoint. NULL is fine. */
void checkpointer_stop(struct checkpointer *c);

/* ---- reader.c ---- */
struct readers;
void readers_start(struct store *s, int n, struct readers **ret);
void readers_push(struct readers *r, struct store_query *q); /* thread: loop */
void readers_stop(struct readers *r);                        /* thread: loop; returns at once */
void readers_wait(void *readers);     /* any thread, after readers_stop(): all connections closed */
bool readers_go_on(void *readers);    /* false once readers_stop() was called */
void readers_join(struct readers *r); /* frees */

/* One committed or failed batch; the loop gets it after the batch's operations are done. */
struct batch_note {
	struct inbox_item item;
	struct store *store;
	unsigned topics;
	struct store_touched touched;
	int err;
	struct error why;
	enum op_class class; /* the writer's */
	int64_t commit_us;
	int64_t n_ops;
	bool did_write;
};

struct store {
	/* set by store_open(), then only read */
	struct loop *loop;
	struct inbox *inbox;
	struct writer *writer;
	struct writer *independent; /* NULL: the first one has these operations, too */
	struct readers *readers;
	struct node node;
	char *node_name;
	char why_replaced[240]; /* by another daemon with this name */
	struct seats *seats;    /* NULL: the database is a file, as for the next */
	struct notes *notes;
	char *path;              /* the file, or the URL of the database */
	struct secret *password; /* NULL: none */
	int lock_fd;             /* stays open as long as the directory is ours */
	size_t max_queue_ops, max_queue_bytes;

	/* loop thread */
	struct subscriber {
		unsigned topics;
		void (*on_topic)(unsigned topics, void *owner);
		void *owner;
	} subscribers[SUBSCRIBERS_MAX];
	int n_subscribers;
	void (*before_submit)(void *owner); /* NULL: none */
	void *before_submit_owner;
	const struct store_touched *touched; /* while subscribers are notified */
	struct store_stats stats;
	enum op_class failed_class;   /* of the last failed commit */
	struct error failure;         /* its whole error */
	struct op_queue submitted[2]; /* by enum op_class: in this turn, and not with the writer yet */
	int n_submitted;              /* in this turn */
	int64_t n_queries;
	TAILQ_HEAD(store_retries, store_retry) retries; /* operations that wait for their next attempt */
	struct timer *retry_timer;
	bool is_closing, is_probing, has_stopped_retrying;
	void (*on_closed)(void *owner);
	void *owner;
	struct inbox_item writer_gone;
	struct store_op probe; /* of store_probe() */

	/* the beats, on a database that others share */
	struct timer *beat_timer;
	struct store_op beat;
	int64_t beat_mono_ms; /* writer thread; 0: it is fenced */
	bool is_beating;
	int64_t known_epoch; /* of the last STORE_NODE */
	bool was_acting;
};

/* ---- membership.c; thread: loop ---- */
void membership_start(struct store *s);
/* Notifies of STORE_NODE if something has changed. */
void membership_look(struct store *s);

void store_on_batch(struct inbox_item *item);
/* Runs the subscribers of these topics; t NULL: nothing looks different. Thread: loop. */
void store_notify(struct store *s, unsigned topics, const struct store_touched *t);
