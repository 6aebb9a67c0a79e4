/* Operations and queries that the store repeats (struct store_retry in store.h). Thread: loop. */
#include "base/clock.h"
#include "base/log.h"
#include "db/store_internal.h"

enum { PAUSE_FIRST_MS = 500, PAUSE_LAST_MS = 4000 };

bool store_is_passing(int err)
{
	/* ERR_DENIED: the disk was remounted read-only */
	return err == ERR_BUSY || err == ERR_FULL || err == ERR_IO || err == ERR_TIMEOUT ||
	       err == ERR_DENIED;
}

/* Submits those that are due. After store_stop_retrying() all are, and none comes back. */
static void on_retry_timer(struct timer *t)
{
	struct store *s = timer_owner(t);
	struct store_retries waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct store_retry *r;
	int64_t now_ms = clock_mono_ms();

	TAILQ_CONCAT(&waiting, &s->retries, link);
	while ((r = TAILQ_FIRST(&waiting)) != NULL) {
		TAILQ_REMOVE(&waiting, r, link);
		if (r->due_ms <= now_ms || s->has_stopped_retrying)
			r->submit(r);
		else
			TAILQ_INSERT_TAIL(&s->retries, r, link);
	}
	if (!TAILQ_EMPTY(&s->retries))
		timer_start(t, PAUSE_FIRST_MS);
}

void retries_init(struct store *s)
{
	TAILQ_INIT(&s->retries);
	s->retry_timer = timer_new(s->loop, on_retry_timer, s);
}

bool retry_later(struct store *s, struct store_retry *r, int err, const char *why)
{
	int64_t pause_ms = PAUSE_LAST_MS;

	if (!r->event || s->has_stopped_retrying || !store_is_passing(err))
		return false;
	log_event(LOG_WARN, r->event, LOG_S("error", why));
	if (r->n_failed < 3)
		pause_ms = (int64_t)PAUSE_FIRST_MS << r->n_failed;
	r->n_failed++;
	r->due_ms = clock_mono_ms() + pause_ms;
	TAILQ_INSERT_TAIL(&s->retries, r, link);
	if (!timer_is_running(s->retry_timer))
		timer_start(s->retry_timer, PAUSE_FIRST_MS);
	return true;
}

void store_stop_retrying(struct store *s)
{
	s->has_stopped_retrying = true;
	if (!TAILQ_EMPTY(&s->retries))
		timer_start(s->retry_timer, 0);
}

void retries_end(struct store *s)
{
	s->has_stopped_retrying = true;
	on_retry_timer(s->retry_timer);
}
