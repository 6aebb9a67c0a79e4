#include "dispatch/retention.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "dispatch/dispatch_internal.h"
#include "store/deliveries.h"
#include "store/failures.h"

enum {
	FIRST_MS = 10 * 60 * 1000, /* after the start, which has other things to do */
	DAY_MS = 24 * 3600 * 1000,
	NEXT_PIECE_MS = 50,
	AGAIN_MS = 60 * 1000,
};

struct retention {
	struct dispatch *d;
	bool is_busy; /* a piece is in the store's hands */
	bool is_postponed;
	struct timer *timer;
	struct apply_retention op;
};

static void drop_piece(struct timer *t);

struct retention *retention_new(struct dispatch *d)
{
	struct retention *r = xcalloc(1, sizeof(*r));

	r->d = d;
	r->timer = timer_new(d->deps.loop, drop_piece, r);
	timer_start(r->timer, FIRST_MS);
	return r;
}

void retention_postpone(struct retention *r)
{
	r->is_postponed = r->is_busy;
	timer_start(r->timer, DAY_MS);
}

static void finish_closing(struct retention *r)
{
	if (r->is_busy)
		return;
	timer_close(r->timer);
	loop_reap(r->d->deps.loop, free, r);
	dispatch_part_closed(r->d);
}

void retention_close(struct retention *r)
{
	timer_stop(r->timer);
	finish_closing(r);
}

static void on_dropped(struct store_op *op)
{
	struct retention *r = CONTAINER_OF(op, struct retention, op.op);

	r->is_busy = false;
	if (r->d->is_closing) {
		finish_closing(r);
		return;
	}
	if (op->err)
		log_event(LOG_WARN, "retention_failed", LOG_S("error", op->why.text));
	if (r->is_postponed) {
		r->is_postponed = false;
		return; /* the timer runs already */
	}
	if (op->err)
		timer_start(r->timer, AGAIN_MS);
	else
		timer_start(r->timer, r->op.has_more ? NEXT_PIECE_MS : DAY_MS);
}

static void drop_piece(struct timer *t)
{
	struct retention *r = timer_owner(t);
	const struct config *c = r->d->config;
	int64_t now_ms = clock_wall_ms();

	if (r->is_busy)
		return;
	r->op = (struct apply_retention){
	    .op.done = on_dropped,
	    .deliveries_before_ms = now_ms - c->retention_deliveries_ms,
	    .results_before_ms = now_ms - c->retention_results_ms,
	    .days_before_ms = now_ms - c->retention_days_ms,
	    .failures_before_ms = now_ms - FAILURES_KEPT_MS,
	};
	if (store_apply_retention(r->d->deps.store, &r->op))
		timer_start(r->timer, AGAIN_MS);
	else
		r->is_busy = true;
}
