/* The reader threads: each with a read-only connection, each query in one snapshot. Each kind of queries has its own threads, so that
 * a query waits only for others like it: two run those of pages; one runs the urgent ones, with the priority of the loop, because on a
 * busy machine the others hardly run, and dispatches would wait for them; and one runs the long ones, which read the whole file. */

#include "db/store_internal.h"
#include "loop/loop.h"

struct readers {
	/* shared, under lock */
	pthread_mutex_t lock;
	struct reader_queue {
		pthread_cond_t wake; /* something queued, or stopping */
		STAILQ_HEAD(, store_query) list;
	} queues[N_QUERY_KINDS];
	pthread_cond_t all_gone; /* n_open became 0 */
	bool is_stopping;
	int n_open;

	struct store *store;
	int n;
	struct reader {
		struct readers *all;
		enum query_kind kind;
		struct db *db; /* its own thread's; a long query opens and closes it */
		pthread_t thread;
	} list[READERS_MAX + 2];
};

/* 0 too if it is open already. */
static int open_reader(struct reader *self, struct error *e)
{
	const struct store *s = self->all->store;
	int rc = self->db ? 0 : db_open_with_password(s->path, s->password, DB_READER, &self->db, e);

	if (!rc)
		db_limit_silence(self->db, NODE_ANSWER_MS);
	return rc;
}

/* A failure of the connection replaces the query's own result: "not found" does not count if it could not read its rows. */
static void run_query(struct reader *self, struct store_query *q)
{
	struct db *d;

	q->err = open_reader(self, &q->why);
	if (q->err)
		return;
	d = self->db;
	if (db_begin(d, DB_READER) == 0)
		q->err = q->run(q, db_view(d));
	if (db_status(d)) {
		q->err = db_status(d);
		error_set(&q->why, q->err, "%s", db_why(d)->text);
	} else if (q->err) {
		error_set(&q->why, q->err, "%s", err_text(q->err));
	}
	db_rollback(d);
	db_forget_failure(d);
	if (self->kind == QUERY_LONG) {
		db_close(d);
		self->db = NULL;
	}
}

static void *reader_main(void *p)
{
	struct reader *self = p;
	struct readers *r = self->all;
	struct reader_queue *queue = &r->queues[self->kind];
	struct error ignored = {0};

	if (self->kind != QUERY_URGENT)
		thread_give_way(); /* webhooks come before pages */
	/* Reading the schema takes a millisecond for each connection, and the start does not wait for it. If it fails, each query says why. */
	if (self->kind != QUERY_LONG && open_reader(self, &ignored))
		self->db = NULL;
	pthread_mutex_lock(&r->lock);
	for (;;) {
		struct store_query *q;

		while (STAILQ_EMPTY(&queue->list) && !r->is_stopping)
			pthread_cond_wait(&queue->wake, &r->lock);
		q = STAILQ_FIRST(&queue->list);
		if (!q)
			break;
		STAILQ_REMOVE_HEAD(&queue->list, link);
		pthread_mutex_unlock(&r->lock);
		run_query(self, q);
		inbox_post(r->store->inbox, &q->item);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	db_close(self->db);
	pthread_mutex_lock(&r->lock);
	if (--r->n_open == 0)
		pthread_cond_signal(&r->all_gone);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

void readers_start(struct store *s, int n, struct readers **ret)
{
	struct readers *r = xcalloc(1, sizeof(*r));

	assert(n > 0 && n <= READERS_MAX);
	r->store = s;
	r->n = r->n_open = n + 2;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->all_gone, NULL);
	for (int i = 0; i < N_QUERY_KINDS; i++) {
		STAILQ_INIT(&r->queues[i].list);
		pthread_cond_init(&r->queues[i].wake, NULL);
	}
	for (int i = 0; i < r->n; i++) {
		r->list[i].all = r;
		r->list[i].kind = i == 0 ? QUERY_URGENT : i == 1 ? QUERY_LONG : QUERY_OF_PAGE;
		thread_start(&r->list[i].thread, reader_main, &r->list[i]);
	}
	*ret = r;
}

void readers_push(struct readers *r, struct store_query *q)
{
	struct reader_queue *queue = &r->queues[q->kind];

	pthread_mutex_lock(&r->lock);
	STAILQ_INSERT_TAIL(&queue->list, q, link);
	/* All of the queue's two threads: glibc's pthread_cond_signal() sometimes wakes none of several waiters (bug 25847). */
	pthread_cond_broadcast(&queue->wake);
	pthread_mutex_unlock(&r->lock);
}

void readers_stop(struct readers *r)
{
	pthread_mutex_lock(&r->lock);
	r->is_stopping = true;
	for (int i = 0; i < N_QUERY_KINDS; i++)
		pthread_cond_broadcast(&r->queues[i].wake);
	pthread_mutex_unlock(&r->lock);
}

void readers_wait(void *readers)
{
	struct readers *r = readers;

	pthread_mutex_lock(&r->lock);
	while (r->n_open)
		pthread_cond_wait(&r->all_gone, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

bool readers_go_on(void *readers)
{
	struct readers *r = readers;
	bool go_on;

	pthread_mutex_lock(&r->lock);
	go_on = !r->is_stopping;
	pthread_mutex_unlock(&r->lock);
	return go_on;
}

void readers_join(struct readers *r)
{
	for (int i = 0; i < r->n; i++)
		pthread_join(r->list[i].thread, NULL);
	pthread_cond_destroy(&r->all_gone);
	for (int i = 0; i < N_QUERY_KINDS; i++)
		pthread_cond_destroy(&r->queues[i].wake);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
