/* Keeps the write-ahead log small without making the writer wait: a thread with its own
 * connection moves what is committed into the file; only when the log has grown past a
 * limit does the writer move the rest, because then nothing is appended meanwhile and the
 * log starts again from its beginning. */
#include <assert.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/log.h"
#include "db/store_internal.h"

/* Measured: the log is reused at 6 to 7 MB. */
static const int64_t WAKE_BYTES = 2 << 20;    /* the thread starts */
static const int64_t FINISH_BYTES = 6 << 20;  /* the writer helps when the file is free */
static const int64_t INSIST_BYTES = 64 << 20; /* and waits until it is */

struct checkpointer {
	/* shared, under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool is_wanted, is_stopping;

	pthread_mutex_t running; /* held by whoever runs a checkpoint */
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

static bool wait_until_wanted(struct checkpointer *c)
{
	bool go_on;

	pthread_mutex_lock(&c->lock);
	while (!c->is_wanted && !c->is_stopping)
		pthread_cond_wait(&c->wake, &c->lock);
	go_on = !c->is_stopping;
	c->is_wanted = false;
	pthread_mutex_unlock(&c->lock);
	return go_on;
}

static void *checkpointer_main(void *p)
{
	struct checkpointer *c = p;

	while (wait_until_wanted(c)) {
		pthread_mutex_lock(&c->running);
		run_checkpoint(c->db);
		pthread_mutex_unlock(&c->running);
	}
	db_close(c->db);
	return NULL;
}

int checkpointer_start(const char *path, struct checkpointer **ret, struct error *e)
{
	struct checkpointer *c = xcalloc(1, sizeof(*c));
	sigset_t all, before;
	int rc = db_open(path, DB_CHECKPOINTER, &c->db, e);

	if (rc) {
		free(c);
		return rc;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->running, NULL);
	pthread_cond_init(&c->wake, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&c->thread, NULL, checkpointer_main, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert(rc == 0);
	*ret = c;
	return 0;
}

/* Returns false when the thread is at it and the log is not yet so large as to wait. */
static bool finish_tail(struct checkpointer *c, struct db *writer, int64_t wal_bytes)
{
	if (pthread_mutex_trylock(&c->running)) {
		if (wal_bytes < INSIST_BYTES)
			return false;
		pthread_mutex_lock(&c->running);
	}
	run_checkpoint(writer);
	pthread_mutex_unlock(&c->running);
	return true;
}

void checkpointer_on_commit(struct checkpointer *c, struct db *writer, int64_t wal_bytes)
{
	if (wal_bytes < c->waked_at_bytes)
		c->waked_at_bytes = 0; /* the log began again */
	if (wal_bytes >= FINISH_BYTES && finish_tail(c, writer, wal_bytes))
		return;
	if (wal_bytes - c->waked_at_bytes < WAKE_BYTES)
		return;
	c->waked_at_bytes = wal_bytes;
	pthread_mutex_lock(&c->lock);
	c->is_wanted = true;
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
