/* Keeps the write-ahead log of SQLite's file small without making the writer wait.
 *
 * A thread with its own connection moves committed pages into the file. When the log has grown past a limit, the writer
 * moves the rest, because then nothing is appended meanwhile and the log starts again from its beginning. */
#include "db/store_internal.h"

/* Measured: the log is reused at 6 to 7 MB. */
static const int64_t WAKE_BYTES = 2 << 20;    /* the thread starts */
static const int64_t FINISH_BYTES = 6 << 20;  /* the writer helps when the file is free */
static const int64_t INSIST_BYTES = 64 << 20; /* and waits until it is */

struct checkpointer {
	/* shared, under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool is_requested, is_stopping;

	pthread_mutex_t running; /* held during a checkpoint */
	pthread_t thread;

	/* checkpointer's thread */
	struct db *db;

	/* writer thread */
	int64_t waked_at_bytes; /* size of the log at the last wake-up */
};

static void run_checkpoint(struct db *d)
{
	int64_t left;
	int rc = db_checkpoint(d, CHECKPOINT_PASSIVE, &left);

	if (rc && rc != ERR_BUSY)
		log_event(LOG_WARN, "store_checkpoint_failed", LOG_S("code", err_name(rc)));
}

static void *checkpointer_main(void *p)
{
	struct checkpointer *c = p;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (!c->is_requested && !c->is_stopping)
			pthread_cond_wait(&c->wake, &c->lock);
		if (c->is_stopping)
			break;
		c->is_requested = false;
		pthread_mutex_unlock(&c->lock);
		pthread_mutex_lock(&c->running);
		run_checkpoint(c->db);
		pthread_mutex_unlock(&c->running);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	db_close(c->db);
	return NULL;
}

int checkpointer_start(const char *path, struct checkpointer **ret, struct error *e)
{
	struct checkpointer *c = xcalloc(1, sizeof(*c));
	int rc = db_open(path, DB_CHECKPOINTER, &c->db, e);

	if (rc) {
		free(c);
		return rc;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->running, NULL);
	pthread_cond_init(&c->wake, NULL);
	thread_start(&c->thread, checkpointer_main, c);
	*ret = c;
	return 0;
}

void checkpointer_on_commit(struct checkpointer *c, struct db *writer, int64_t wal_bytes)
{
	bool may_finish = wal_bytes >= FINISH_BYTES;

	if (wal_bytes < c->waked_at_bytes)
		c->waked_at_bytes = 0; /* the log began again */
	/* Only a log that is large enough to insist waits for the thread. */
	if (may_finish && pthread_mutex_trylock(&c->running)) {
		may_finish = wal_bytes >= INSIST_BYTES;
		if (may_finish)
			pthread_mutex_lock(&c->running);
	}
	if (may_finish) {
		run_checkpoint(writer);
		pthread_mutex_unlock(&c->running);
		return;
	}
	if (wal_bytes - c->waked_at_bytes < WAKE_BYTES)
		return;
	c->waked_at_bytes = wal_bytes;
	pthread_mutex_lock(&c->lock);
	c->is_requested = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

void checkpointer_stop(struct checkpointer *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->is_stopping = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->running);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
