/* The reader threads: each with a read-only connection, each query in one snapshot. A slow query (a backup) holds one
 * thread; the others go on. */

#include "db/store_internal.h"
#include "loop/loop.h"

struct readers {
	/* shared, under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;     /* something queued, or stopping */
	pthread_cond_t all_gone; /* n_open became 0 */
	STAILQ_HEAD(, store_query) queue;
	bool is_stopping;
	int n_open;

	struct store *store;
	int n;
	struct reader {
		struct readers *all;
		struct db *db; /* its own thread's */
		pthread_t thread;
	} list[READERS_MAX];
};

static void *reader_main(void *p)
{
	struct reader *self = p;
	struct readers *r = self->all;
	struct db *d = self->db;

	thread_give_way(); /* webhooks come before pages */
	pthread_mutex_lock(&r->lock);
	for (;;) {
		struct store_query *q;

		while (STAILQ_EMPTY(&r->queue) && !r->is_stopping)
			pthread_cond_wait(&r->wake, &r->lock);
		q = STAILQ_FIRST(&r->queue);
		if (!q)
			break;
		STAILQ_REMOVE_HEAD(&r->queue, link);
		pthread_mutex_unlock(&r->lock);
		if (db_begin(d, DB_READER) == 0)
			q->err = q->run(q, db_view(d));
		/* The result of a query that could not read its rows ("not found") does not count. */
		if (db_status(d)) {
			q->err = db_status(d);
			error_set(&q->why, q->err, "%s", db_why(d)->text);
		} else if (q->err) {
			error_set(&q->why, q->err, "%s", err_text(q->err));
		}
		db_rollback(d);
		db_forget_failure(d);
		inbox_post(r->store->inbox, &q->item);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	db_close(d);
	pthread_mutex_lock(&r->lock);
	if (--r->n_open == 0)
		pthread_cond_signal(&r->all_gone);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int readers_start(struct store *s, const char *path, int n, struct readers **ret, struct error *e)
{
	struct readers *r = xcalloc(1, sizeof(*r));
	int rc = 0;

	assert(n > 0 && n <= READERS_MAX);
	STAILQ_INIT(&r->queue);
	r->store = s;
	r->n = r->n_open = n;
	for (int i = 0; i < n && !rc; i++) {
		r->list[i].all = r;
		rc = db_open(path, DB_READER, &r->list[i].db, e);
	}
	if (rc) {
		for (int i = 0; i < n; i++)
			db_close(r->list[i].db);
		free(r);
		return rc;
	}
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	pthread_cond_init(&r->all_gone, NULL);
	for (int i = 0; i < n; i++)
		thread_start(&r->list[i].thread, reader_main, &r->list[i]);
	*ret = r;
	return 0;
}

void readers_push(struct readers *r, struct store_query *q)
{
	pthread_mutex_lock(&r->lock);
	STAILQ_INSERT_TAIL(&r->queue, q, link);
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
}

void readers_stop(struct readers *r)
{
	pthread_mutex_lock(&r->lock);
	r->is_stopping = true;
	pthread_cond_broadcast(&r->wake);
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
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
