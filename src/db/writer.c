/* The writer thread: the operations that were queued during the last sync become one transaction with one commit. Each
 * operation has a savepoint of its own, unless it is one statement.
 *
 * Rule: an operation's done is posted only after the commit that holds it is on disk. A failed commit fails every operation
 * of its batch with the same code. */
#include <signal.h>

#include "db/counters.h"
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

struct writer {
	/* shared, under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct op_queue queue;
	bool is_stopping;

	/* set before the thread starts, or by writer_stop() under the lock */
	struct store *store;
	void (*wait_first)(void *owner);
	void *owner;
	struct inbox_item *gone;
	pthread_t thread;

	/* writer thread */
	struct db *db;
	struct checkpointer *checkpointer; /* NULL: the database is a server's */
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
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
	for (int n = 0; n < n_max && (op = STAILQ_FIRST(&w->queue)) != NULL; n++) {
		STAILQ_REMOVE_HEAD(&w->queue, link);
		STAILQ_INSERT_TAIL(batch, op, link);
	}
	pthread_mutex_unlock(&w->lock);
	return !STAILQ_EMPTY(batch);
}

/* A failure of the disk or of the file fails the whole batch, not only one operation. */
static bool is_failure_of_all(int code)
{
	return code == ERR_FULL || code == ERR_IO || code == ERR_CORRUPT || code == ERR_BUSY || code == ERR_DENIED;
}

/* Nonzero: the whole batch is lost, with that code. */
static int run_op(struct writer *w, struct store_op *op, const int64_t *counts_before)
{
	struct store_touched touched_before = *db_touched(w->db);
	struct db *d = w->db;
	bool has_savepoint = !op->is_one_statement || !db_survives_failure(d);
	int stuck;

	if (has_savepoint)
		db_savepoint(d);
	op->is_unfinished = false;
	op->err = op->run(op, db_txn(d));
	stuck = db_status(d);
	op->topics |= db_drain_topics(d);
	if (!op->err && !stuck) {
		if (has_savepoint)
			db_savepoint_release(d);
		return db_status(d);
	}
	/* The result of an operation that could not read its rows does not count. */
	if (stuck)
		op->err = stuck;
	error_set(&op->why, op->err, "%s", stuck ? db_why(d)->text : err_text(op->err));
	op->topics = 0;
	*db_touched(d) = touched_before;
	if (stuck && (is_failure_of_all(stuck) || !db_is_in_transaction(d)))
		return stuck;
	db_forget_failure(d);
	memcpy(db_counts(db_txn(d)), counts_before, N_COUNTERS * sizeof(*counts_before));
	if (has_savepoint)
		db_savepoint_undo(d);
	return db_status(d);
}

static void do_batch(struct writer *w, struct op_queue *batch)
{
	struct store_op *op;
	struct db *d = w->db;
	struct batch_note *note = xcalloc(1, sizeof(*note));
	struct inbox_item *head = NULL, **tail = &head;
	struct op_queue unfinished = STAILQ_HEAD_INITIALIZER(unfinished);
	int64_t start_us = now_us(), changes = db_total_changes(d), counts_before[N_COUNTERS];
	int rc = db_begin(d, DB_WRITER);
	bool did_write;

	STAILQ_FOREACH (op, batch, link) {
		if (rc)
			break;
		memcpy(counts_before, db_counts(db_txn(d)), sizeof(counts_before));
		rc = run_op(w, op, counts_before);
	}
	if (!rc) {
		counters_write(db_txn(d));
		rc = db_status(d) ? db_status(d) : db_commit(d);
	}
	did_write = !rc && db_total_changes(d) != changes;
	note->did_write = did_write;
	note->store = w->store;
	note->err = rc;
	note->commit_us = now_us() - start_us;
	note->touched = rc ? (struct store_touched){0} : *db_touched(d);
	*db_touched(d) = (struct store_touched){0};
	if (rc) {
		snprintf(note->error, sizeof(note->error), "%.199s", db_why(d)->text);
		log_event(LOG_ERROR, "store_commit_failed", LOG_S("code", err_name(rc)), LOG_S("error", note->error));
	}
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
		if (!op->err && op->is_unfinished) {
			op->n_parts++;
			op->topics = 0;
			STAILQ_INSERT_TAIL(&unfinished, op, link);
			continue;
		}
		note->n_ops++;
		*tail = &op->item;
		tail = &op->item.next;
	}
	if (rc) {
		db_rollback(d);
		db_forget_failure(d);
		db_drain_topics(d);
		memset(db_counts(db_txn(d)), 0, N_COUNTERS * sizeof(int64_t));
	}
	pthread_mutex_lock(&w->lock);
	STAILQ_CONCAT(&w->queue, &unfinished);
	pthread_mutex_unlock(&w->lock);
	*tail = &note->item;
	note->item.on_loop = store_on_batch;
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
	db_close(w->db);
	inbox_post(w->store->inbox, w->gone);
	return NULL;
}

int writer_start(struct store *s, const char *path, const struct store_options *o, struct writer **ret, struct error *e)
{
	struct writer *w = xcalloc(1, sizeof(*w));
	int rc = db_open_with_password(path, s->password, DB_WRITER, &w->db, e);

	/* Before the thread runs, because it owns the connection then. */
	if (!rc)
		rc = db_lock(w->db, e);
	if (!rc)
		rc = db_migrate(w->db, e);
	if (!rc && o->recover)
		rc = o->recover(w->db, e);
	if (!rc && !db_is_server(path))
		rc = checkpointer_start(path, &w->checkpointer, e);
	if (rc) {
		db_close(w->db);
		free(w);
		return rc;
	}
	w->store = s;
	STAILQ_INIT(&w->queue);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	thread_start(&w->thread, writer_main, w);
	*ret = w;
	return 0;
}

void writer_push(struct writer *w, struct op_queue *ops)
{
	pthread_mutex_lock(&w->lock);
	STAILQ_CONCAT(&w->queue, ops);
	pthread_cond_signal(&w->wake);
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
