#include "daemon/known_expiry.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/wire.h"
#include "store/known_issues.h"

enum {
	SOONEST_MS = 10,
	LATEST_MS = 60 * 1000, /* the wall clock may jump */
	AGAIN_MS = 1000,
};

struct known_expiry {
	struct daemon *daemon;
	struct timer *timer;
	struct expire_known op;
	bool is_busy, is_wanted, is_stopped;
};

static void wait_for(struct known_expiry *x, int64_t wall_ms)
{
	int64_t wait_ms = wall_ms - clock_wall_ms();

	if (wait_ms < SOONEST_MS)
		wait_ms = SOONEST_MS;
	timer_start(x->timer, wait_ms < LATEST_MS ? wait_ms : LATEST_MS);
}

static void on_expired(struct store_op *op)
{
	struct known_expiry *x = CONTAINER_OF(op, struct known_expiry, op.op);

	x->is_busy = false;
	if (x->is_stopped)
		return;
	if (op->err) {
		log_event(LOG_WARN, "known_expiry_failed", LOG_S("error", op->why.text));
		timer_start(x->timer, AGAIN_MS);
		return;
	}
	if (x->op.n_expired)
		log_event(LOG_INFO, "known_issues_expired", LOG_I("n", x->op.n_expired));
	if (x->is_wanted)
		known_expiry_look(x);
	else if (x->op.next_ms)
		wait_for(x, x->op.next_ms);
}

void known_expiry_look(struct known_expiry *x)
{
	x->is_wanted = x->is_busy;
	if (x->is_busy || x->is_stopped)
		return;
	x->op = (struct expire_known){.op.done = on_expired, .now_ms = clock_wall_ms()};
	if (store_expire_known(x->daemon->store, &x->op))
		timer_start(x->timer, AGAIN_MS);
	else
		x->is_busy = true;
}

static void on_time(struct timer *t)
{
	known_expiry_look(timer_owner(t));
}

struct known_expiry *known_expiry_new(struct daemon *d)
{
	struct known_expiry *x = xcalloc(1, sizeof(*x));

	x->daemon = d;
	x->timer = timer_new(d->loop, on_time, x);
	known_expiry_look(x);
	return x;
}

void known_expiry_stop(struct known_expiry *x)
{
	if (!x)
		return;
	x->is_stopped = true;
	timer_stop(x->timer);
}

void known_expiry_free(struct known_expiry *x)
{
	if (!x)
		return;
	timer_close(x->timer);
	free(x);
}
