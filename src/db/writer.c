/* A writer's thread: the operations that were queued during the last sync become one transaction with one commit. Each
 * operation has a savepoint of its own, unless it is independent.
 *
 * Rule: an operation's done is posted only after the commit that holds it is on disk. A failed commit fails every operation
 * of its batch with the same code.
 *
 * On a server's database there are two writers, each with a connection: one waits for its turn among the daemons before each
 * transaction, the other one has the independent operations and never waits. A transaction that failed because of others, or whose
 * connection ended, is repeated; if the answer to its COMMIT was lost, the writer first finds out whether it happened. */
#include <signal.h>

#include "db/copy.h"
#include "db/counters.h"
#include "db/notes.h"
#include "db/seats.h"
#include "db/store_internal.h"

void thread_start(pthread_t *ret, void *(*run)(void *owner), void *owner)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(ret, NULL, run, owner);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert(rc == 0);
}

enum { ATTEMPTS_MAX = 5, AWAY_PAUSE_MS = 250, AWAY_MAX_MS = 5000 };

struct writer {
	/* shared, under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct op_queue queue;
	int n_queued; /* in it */
	bool is_stopping;

	/* set before the thread starts, or by writer_stop() under the lock */
	struct store *store;
	void (*wait_first)(void *owner);
	void *owner;
	struct inbox_item *gone;
	pthread_t thread;
	enum op_class class;
	bool gathers; /* false: operations gather anyway while it waits for its turn among the daemons */

	/* writer thread */
	struct db *db;
	struct checkpointer *checkpointer; /* NULL: the database is a server's */
	struct node_batch batch;
	bool is_committing; /* the COMMIT was sent */
	bool is_fenced;     /* node_begin() said so */
	bool is_away;       /* the server, for longer than a batch waits */
	int n_last;         /* operations of the last batch */
	int64_t commit_us;  /* how long the last commit took */
	struct log_limit failed_lines, fenced_lines;
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* For pthread_cond_timedwait() on w->wake. Less than a second. */
static struct timespec time_after(int64_t us)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += us * 1000;
	t.tv_sec += t.tv_nsec / 1000000000L;
	t.tv_nsec %= 1000000000L;
	return t;
}

enum { BUSY_OPS = 8, GATHERED_OPS = 20, GATHER_MAX_US = 2000 };

/* Waits for more operations, under the lock, but no longer than the last commit took: a commit costs as much as many rows, so under load larger
 * transactions pay. Under low load, after a small batch, nothing waits. */
static void gather_more(struct writer *w)
{
	struct timespec until;

	if (!w->gathers || w->n_last < BUSY_OPS)
		return;
	until = time_after(w->commit_us < GATHER_MAX_US ? w->commit_us : GATHER_MAX_US);
	while (w->n_queued < GATHERED_OPS && !w->is_stopping && pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
		continue;
}

/* Waits for operations and moves as many of them to `batch` as are worth one transaction. False: the queue is empty and the writer stops. */
static bool collect_batch(struct writer *w, struct op_queue *batch)
{
	int n_max = db_batch_max_ops(w->db);
	struct store_op *op;

	STAILQ_INIT(batch);
	pthread_mutex_lock(&w->lock);
	while (STAILQ_EMPTY(&w->queue) && !w->is_stopping)
		pthread_cond_wait(&w->wake, &w->lock);
	gather_more(w);
	w->n_last = 0;
	for (int n = 0; n < n_max && (op = STAILQ_FIRST(&w->queue)) != NULL; n++) {
		STAILQ_REMOVE_HEAD(&w->queue, link);
		STAILQ_INSERT_TAIL(batch, op, link);
		w->n_last++;
	}
	w->n_queued -= w->n_last;
	pthread_mutex_unlock(&w->lock);
	return !STAILQ_EMPTY(batch);
}

/* ---- one attempt ---- */

/* A failure of the disk or of SQLite's file fails the whole batch, not only one operation. A server can still run the others after an operation
 * has read a damaged page. */
static bool is_failure_of_all(const struct db *d, int code)
{
	return store_is_passing(code) || (code == ERR_CORRUPT && db_survives_failure(d));
}

/* Nonzero: the whole batch is lost, with that code. */
static int run_op(struct writer *w, struct store_op *op, const int64_t *counts_before, bool has_savepoint)
{
	struct store_touched touched_before = *db_touched(w->db);
	struct db *d = w->db;
	int stuck;

	if (has_savepoint)
		db_savepoint(d);
	op->is_unfinished = false;
	op->err = op->run(op, db_txn(d));
	assert(
	    op->class == OP_DECIDES || memcmp(counts_before, db_counts(db_txn(d)), sizeof(int64_t[N_COUNTERS])) == 0);
	stuck = db_status(d);
	if (stuck == ERR_IO && db_may_repeat(d) == DB_REFUSED)
		stuck = ERR_REFUSED;
	op->topics |= db_drain_topics(d);
	if (!op->err && !stuck) {
		if (has_savepoint)
			db_savepoint_release(d);
		return db_why(d)->code; /* without a wait: the next statement that waits reports a failure */
	}
	/* The result of an operation that could not read its rows does not count. */
	if (stuck)
		op->err = stuck;
	error_set(&op->why, op->err, "%s", stuck ? db_why(d)->text : err_text(op->err));
	op->topics = 0;
	*db_touched(d) = touched_before;
	if (stuck &&
	    (is_failure_of_all(d, stuck) || !db_is_in_transaction(d) || (!has_savepoint && !db_survives_failure(d))))
		return stuck;
	db_forget_failure(d);
	memcpy(db_counts(db_txn(d)), counts_before, N_COUNTERS * sizeof(*counts_before));
	if (has_savepoint)
		db_savepoint_undo(d);
	return db_status(d);
}

/* The operations in one transaction. has_savepoints: also those that are independent have one. */
static int try_batch(struct writer *w, struct op_queue *batch, bool has_savepoints)
{
	struct db *d = w->db;
	struct store_op *op;
	int64_t counts_before[N_COUNTERS];
	unsigned topics = 0;
	int rc = db_begin(d, DB_WRITER);

	w->is_committing = w->is_fenced = false;
	w->batch.is_independent = w->class == OP_INDEPENDENT;
	if (!rc) {
		w->is_fenced = node_begin(&w->store->node, d, &w->batch);
		rc = w->is_fenced && w->class == OP_DECIDES ? ERR_DENIED : db_status(d);
	}
	STAILQ_FOREACH (op, batch, link) {
		enum op_class class;

		if (rc)
			break;
		if (w->is_fenced) /* the writer that decides registers the node again */
			op->class = OP_DECIDES;
		class = op->class;
		if (class != OP_INDEPENDENT && w->class == OP_INDEPENDENT) /* it said so in an earlier attempt */
			continue;
		memcpy(counts_before, db_counts(db_txn(d)), sizeof(counts_before));
		rc = run_op(w, op, counts_before, has_savepoints || class != OP_INDEPENDENT);
		if (!rc && !op->err && op->class != class && w->class == OP_DECIDES)
			rc = run_op(w, op, counts_before, true);
		topics |= op->err ? 0 : op->topics;
	}
	if (!rc) {
		notes_send(w->store->notes, d, topics);
		counters_write(db_txn(d));
		rc = db_why(d)->code;
	}
	if (!rc) {
		int64_t begun_us = now_us();

		w->is_committing = true;
		rc = db_commit(d);
		w->commit_us = now_us() - begun_us;
	}
	if (!rc)
		node_committed(&w->store->node, &w->batch);
	return rc;
}

static void undo_batch(struct writer *w)
{
	struct db *d = w->db;

	db_rollback(d);
	db_forget_failure(d);
	db_drain_topics(d);
	*db_touched(d) = (struct store_touched){0};
	memset(db_counts(db_txn(d)), 0, N_COUNTERS * sizeof(int64_t));
}

/* ---- what follows a failure ---- */

static struct batch_note *note_new(struct writer *w, int err, const char *why)
{
	struct batch_note *note = xcalloc(1, sizeof(*note));
	int64_t n_skipped;

	note->store = w->store;
	note->err = err;
	error_set(&note->why, err, "%s", why);
	note->class = w->class;
	note->item.on_loop = store_on_batch;
	if (err && log_limit_pass(&w->failed_lines, clock_mono_ms(), &n_skipped))
		log_event(LOG_ERROR, "store_commit_failed", LOG_S("code", err_name(err)), LOG_S("error", why),
		    LOG_I("more", n_skipped));
	return note;
}

/* False: the writer stops. */
static bool pause_writer(struct writer *w)
{
	const struct timespec until = time_after(AWAY_PAUSE_MS * 1000L);
	bool is_stopping;

	pthread_mutex_lock(&w->lock);
	/* new operations wake it, too */
	while (!w->is_stopping && pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
		continue;
	is_stopping = w->is_stopping;
	pthread_mutex_unlock(&w->lock);
	return !is_stopping;
}

/* The answer to COMMIT was lost. Asks until the server answers whether it happened, because neither answer to the operations would be
 * right before. Meanwhile the queue fills up, so intake refuses. Nonzero: the writer stops without an answer. */
static int find_outcome(struct writer *w, bool *ret_has_happened)
{
	struct db *d = w->db;
	struct batch_note *note = note_new(w, db_why(d)->code, db_why(d)->text);
	struct store_touched touched = *db_touched(d);
	bool has_happened = false;
	int rc;

	inbox_post(w->store->inbox, &note->item);
	do {
		undo_batch(w);
		rc = db_begin(d, DB_WRITER);
		if (!rc) {
			has_happened = node_has_committed(d, &w->batch);
			/* Not a rollback: the standby must have what this connection sees. */
			rc = db_status(d) ? db_status(d) : db_commit(d);
		}
	} while (rc && pause_writer(w));
	if (!rc)
		undo_batch(w);
	if (has_happened)
		*db_touched(d) = touched;
	log_event(LOG_WARN, "store_commit_unknown",
	    LOG_S("outcome", rc             ? "unknown"
			     : has_happened ? "it happened"
					    : "it did not happen"));
	*ret_has_happened = has_happened;
	return rc;
}

/* After a failed attempt. True: the batch is to be repeated. Else *rc is the final code. */
static bool may_repeat(struct writer *w, int n_attempts, int64_t start_us, bool had_savepoints, int *rc)
{
	struct error why = {0}, lost;
	int64_t n_skipped;
	bool has_happened;

	if (w->is_fenced && w->class == OP_DECIDES) {
		if (log_limit_pass(&w->fenced_lines, clock_mono_ms(), &n_skipped))
			log_event(LOG_WARN, "node_fenced", LOG_I("more", n_skipped), LOG_S("node", w->store->node_name),
			    LOG_I("epoch", w->batch.epoch),
			    LOG_S("why", "the other daemons have given this one up: it did not reach the database for "
					 "25 s, another"
					 " outpostd has the same `node`, or a newer release has changed the tables"),
			    LOG_S("consequence",
				"the others have its unfinished work, and it begins again as a new node"));
		db_rollback(w->db);
		*rc = node_register(&w->store->node, w->db, &why);
		if (*rc)
			db_fail(w->db, *rc, "%s", why.text);
		else
			log_event(LOG_INFO, "node_registered", LOG_I("epoch", store_epoch(w->store)));
		return !*rc;
	}
	switch (db_may_repeat(w->db)) {
	case DB_AGAIN:
		return n_attempts < ATTEMPTS_MAX;
	case DB_LOST:
		if (w->is_committing) {
			lost = *db_why(w->db);
			*rc = find_outcome(w, &has_happened);
			if (*rc || has_happened)
				return false;
			*rc = lost.code;
			db_fail(w->db, lost.code, "%s", lost.text);
		}
		/* A restart or a failover takes a few seconds. If the server is away for longer, the operations' owners know what to
		 * do, and the next batches do not wait again. */
		w->is_away |= n_attempts > 1 && (now_us() - start_us >= AWAY_MAX_MS * 1000L || !pause_writer(w));
		return n_attempts == 1 || !w->is_away;
	case DB_REFUSED:
	case DB_FINAL:
		break;
	}
	/* Without savepoints one bad operation fails all of them. */
	return w->class == OP_INDEPENDENT && !had_savepoints;
}

/* Runs the batch until it is committed or has failed for good, and returns the code. */
static int commit_batch(struct writer *w, struct op_queue *batch)
{
	int64_t start_us = now_us();
	bool has_savepoints = false;
	struct store_op *op;

	for (int n_attempts = 1;; n_attempts++) {
		int rc = try_batch(w, batch, has_savepoints);
		enum db_repeat why = db_may_repeat(w->db);

		w->is_away &= rc != 0;
		if (!rc || !may_repeat(w, n_attempts, start_us, has_savepoints, &rc))
			return rc;
		has_savepoints |= !w->is_fenced && (why == DB_FINAL || why == DB_REFUSED);
		if (db_status(w->db) && n_attempts == 1 && !w->is_away)
			log_event(LOG_INFO, "store_batch_repeated", LOG_S("error", db_why(w->db)->text));
		undo_batch(w);
		STAILQ_FOREACH (op, batch, link) {
			op->err = 0;
			op->why = (struct error){0};
			op->topics = 0;
			op->n_parts = 0; /* its earlier parts too, because it may have forgotten where it was */
		}
	}
}

/* ---- the end of a batch ---- */

static void do_batch(struct writer *w, struct op_queue *batch)
{
	struct store_op *op;
	struct db *d = w->db;
	struct batch_note *note;
	struct inbox_item *head = NULL, **tail = &head;
	struct op_queue here = STAILQ_HEAD_INITIALIZER(here), deciding = STAILQ_HEAD_INITIALIZER(deciding);
	int64_t start_us = now_us(), changes = db_total_changes(d);
	int rc = commit_batch(w, batch);
	bool did_write = !rc && db_total_changes(d) != changes;

	note = note_new(w, rc, db_why(d)->text);
	note->did_write = did_write;
	note->commit_us = now_us() - start_us;
	note->touched = rc ? (struct store_touched){0} : *db_touched(d);
	*db_touched(d) = (struct store_touched){0};
	/* The operations' items in their order, then the note: one wake-up for all of them. */
	while ((op = STAILQ_FIRST(batch)) != NULL) {
		STAILQ_REMOVE_HEAD(batch, link);
		if (rc) {
			op->err = rc;
			op->topics = 0;
			op->why = (struct error){0};
			error_set(&op->why, rc, "%s", db_why(d)->text);
		}
		if (!op->err)
			note->topics |= op->topics;
		if (!op->err && (op->is_unfinished || (op->class == OP_DECIDES && w->class == OP_INDEPENDENT))) {
			op->n_parts += op->is_unfinished;
			op->topics = 0;
			if (op->class == OP_DECIDES)
				STAILQ_INSERT_TAIL(&deciding, op, link);
			else
				STAILQ_INSERT_TAIL(&here, op, link);
			continue;
		}
		note->n_ops++;
		*tail = &op->item;
		tail = &op->item.next;
	}
	if (rc)
		undo_batch(w);
	writer_push(w, &here);
	writer_push(w->store->writer, &deciding);
	*tail = &note->item;
	note->item.next = NULL;
	inbox_post_list(w->store->inbox, head, &note->item); /* the loop frees the note */
	if (did_write && w->checkpointer)
		checkpointer_on_commit(w->checkpointer, d, db_wal_bytes(d));
}

static void *writer_main(void *p)
{
	struct writer *w = p;
	struct op_queue batch;
	int64_t left;
	bool has_log = w->checkpointer != NULL;

	while (collect_batch(w, &batch))
		do_batch(w, &batch);
	if (w->wait_first)
		w->wait_first(w->owner);
	checkpointer_stop(w->checkpointer);
	if (has_log && db_checkpoint(w->db, CHECKPOINT_TRUNCATE, &left))
		log_event(LOG_WARN, "store_checkpoint_failed", LOG_I("left_bytes", left));
	if (w->class == OP_DECIDES)
		node_leave(&w->store->node, w->db);
	db_close(w->db);
	if (w->gone)
		inbox_post(w->store->inbox, w->gone);
	return NULL;
}

/* Prepares the database, before any thread has its connection. */
static int open_database(struct store *s, struct writer *w, const struct store_options *o, struct error *e)
{
	int rc = db_lock(w->db, o->has_others, e);

	if (!rc)
		rc = db_migrate(w->db, e);
	if (!rc && db_copy_is_unfinished(db_view(w->db)))
		rc = error_set(e, ERR_INVALID,
		    "%s: the database is an incomplete copy: run the same `outpostctl store copy` again, which goes on "
		    "where it stopped",
		    db_is_server(s->path) ? "PostgreSQL" : s->path);
	if (!rc) {
		s->node.is_shared = db_is_shared(w->db);
		rc = node_register(&s->node, w->db, e);
	}
	if (!rc)
		seats_learn_time(w->db);
	if (!rc && o->recover)
		rc = o->recover(w->db, e);
	if (!rc && !db_is_server(s->path))
		rc = checkpointer_start(s->path, &w->checkpointer, e);
	return rc;
}

int writer_start(
    struct store *s, enum op_class class, const struct store_options *o, struct writer **ret, struct error *e)
{
	struct writer *w = xcalloc(1, sizeof(*w));
	pthread_condattr_t monotonic;
	int rc = db_open_with_password(s->path, s->password, DB_WRITER, &w->db, e);

	if (!rc && class == OP_DECIDES)
		rc = open_database(s, w, o, e);
	else if (!rc && o->has_others)
		rc = db_lock(w->db, true, e);
	if (rc) {
		db_close(w->db);
		free(w);
		return rc;
	}
	db_limit_silence(w->db, NODE_ANSWER_MS);
	w->store = s;
	w->class = class;
	w->gathers = class == OP_INDEPENDENT || !db_is_server(s->path);
	w->failed_lines.longest_ms = w->fenced_lines.longest_ms = LOG_LONGEST_PAUSE_MS;
	STAILQ_INIT(&w->queue);
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	thread_start(&w->thread, writer_main, w);
	*ret = w;
	return 0;
}

void writer_push(struct writer *w, struct op_queue *ops)
{
	struct store_op *op;
	int n = 0;

	STAILQ_FOREACH (op, ops, link)
		n++;
	pthread_mutex_lock(&w->lock);
	STAILQ_CONCAT(&w->queue, ops);
	/* Otherwise the writer is at work, or it gathers and has too few. */
	if (w->n_queued == 0 || (w->n_queued < GATHERED_OPS && w->n_queued + n >= GATHERED_OPS))
		pthread_cond_signal(&w->wake);
	w->n_queued += n;
	pthread_mutex_unlock(&w->lock);
}

void writer_stop(struct writer *w, void (*wait_first)(void *owner), void *owner, struct inbox_item *gone)
{
	pthread_mutex_lock(&w->lock);
	w->wait_first = wait_first;
	w->owner = owner;
	w->gone = gone;
	w->is_stopping = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

void writer_join(struct writer *w)
{
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
