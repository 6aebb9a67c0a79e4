#include "daemon/log_retention.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/wire.h"

enum {
	EVERY_MS = 10 * 60 * 1000,
	/* How far the two clocks may drift apart between two looks. */
	DOUBT_MS = 60 * 1000,
	DAY_MS = 24 * 3600 * 1000,
};

struct log_retention {
	struct daemon *daemon;
	struct timer *timer;
	bool is_stopped;
	int64_t ahead_ms; /* the wall clock's, of the loop's, at the last look */
};

static int64_t ahead_ms(const struct log_retention *r)
{
	return clock_wall_ms() - loop_now_ms(r->daemon->loop);
}

static void on_dropped(int64_t n, void *owner)
{
	struct log_retention *r = owner;

	if (n > 0)
		log_event(LOG_INFO, "logs_dropped", LOG_I("n", n));
	if (!r->is_stopped)
		timer_start(r->timer, EVERY_MS);
}

static void on_time(struct timer *t)
{
	struct log_retention *r = timer_owner(t);
	int64_t was_ahead_ms = r->ahead_ms, moved_ms;

	r->ahead_ms = ahead_ms(r);
	moved_ms = r->ahead_ms - was_ahead_ms;
	if (moved_ms > DOUBT_MS || moved_ms < -DOUBT_MS) {
		timer_start(t, DAY_MS);
		return;
	}
	logs_drop_older(
	    r->daemon->logs, clock_wall_ms() - r->daemon->config->retention_logs_ms, on_dropped, r);
}

struct log_retention *log_retention_new(struct daemon *d)
{
	struct log_retention *r = xcalloc(1, sizeof(*r));

	r->daemon = d;
	r->timer = timer_new(d->loop, on_time, r);
	r->ahead_ms = ahead_ms(r);
	timer_start(r->timer, EVERY_MS);
	return r;
}

void log_retention_stop(struct log_retention *r)
{
	if (!r)
		return;
	r->is_stopped = true;
	timer_stop(r->timer);
}

void log_retention_free(struct log_retention *r)
{
	if (!r)
		return;
	timer_close(r->timer);
	free(r);
}
