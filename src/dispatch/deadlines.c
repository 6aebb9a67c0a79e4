#include "dispatch/deadlines.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "dispatch/dispatch_internal.h"
#include "dispatch/retention.h"
#include "store/changes.h"

enum {
	LOOK_EVERY_MS = 5000, /* at the clocks */
	RUNG_MS = 200,        /* several rings, one look */
	AGAIN_MS = 1000,
};

struct deadline_watch {
	struct dispatch *d;
	struct clock_watch watch;
	int64_t shift_ms;              /* to be written down before anything expires */
	int64_t due_mono_ms;           /* the next deadline; INT64_MAX: none */
	bool is_expiring, is_shifting; /* the store has it in hand */
	bool was_rung;
	struct timer *timer;
	struct expire_dispatches expire;
	struct shift_clock shift;
};

int64_t clock_watch_look(struct clock_watch *w, int64_t wall_ms, int64_t mono_ms)
{
	int64_t offset_ms = wall_ms - mono_ms, jump_ms = offset_ms - w->offset_ms;

	if (!w->is_set)
		jump_ms = 0;
	w->is_set = true;
	w->offset_ms = offset_ms;
	return jump_ms > CLOCK_JUMP_MS || jump_ms < -CLOCK_JUMP_MS ? jump_ms : 0;
}

static void go_on(struct deadline_watch *dl);
static void before_submit(void *owner);

static void on_timer(struct timer *t)
{
	go_on(timer_owner(t));
}

struct deadline_watch *deadline_watch_new(struct dispatch *d)
{
	struct deadline_watch *dl = xcalloc(1, sizeof(*dl));

	dl->d = d;
	clock_watch_look(&dl->watch, clock_wall_ms(), clock_mono_ms());
	store_before_submit(d->deps.store, before_submit, dl);
	dl->timer = timer_new(d->deps.loop, on_timer, dl);
	timer_start(dl->timer, 0);
	return dl;
}

static void arm(struct deadline_watch *dl, int64_t at_most_ms)
{
	int64_t after_ms = dl->due_mono_ms - clock_mono_ms();

	if (after_ms > at_most_ms)
		after_ms = at_most_ms;
	timer_start(dl->timer, after_ms > 0 ? after_ms : 1);
}

/* The store could not: whatever is due waits for it, too. */
static void try_again(struct deadline_watch *dl)
{
	timer_start(dl->timer, AGAIN_MS);
}

static bool is_busy(const struct deadline_watch *dl)
{
	return dl->is_expiring || dl->is_shifting;
}

void deadline_watch_ring(struct deadline_watch *dl)
{
	if (!dl->was_rung && !is_busy(dl))
		arm(dl, RUNG_MS);
	dl->was_rung = true;
}

static void finish_closing(struct deadline_watch *dl)
{
	if (is_busy(dl))
		return;
	timer_close(dl->timer);
	loop_reap(dl->d->deps.loop, free, dl);
	dispatch_part_closed(dl->d);
}

void deadline_watch_close(struct deadline_watch *dl)
{
	store_before_submit(dl->d->deps.store, NULL, NULL);
	timer_stop(dl->timer);
	finish_closing(dl);
}

/* The operation ended. False when the dispatcher closes. */
static bool is_back(struct deadline_watch *dl, const struct store_op *op)
{
	if (dl->d->is_closing) {
		finish_closing(dl);
		return false;
	}
	if (op->err)
		log_event(LOG_WARN, "deadlines_unread", LOG_S("error", op->why.text));
	return true;
}

static void on_expired(struct store_op *op)
{
	struct deadline_watch *dl = CONTAINER_OF(op, struct deadline_watch, expire.op);

	if (op->err == 0 && dl->expire.n_expired > 0) {
		dl->d->counters.n_expired += dl->expire.n_expired;
		log_event(LOG_INFO, "dispatches_expired", LOG_I("n", dl->expire.n_expired));
	}
	dl->is_expiring = false;
	if (!is_back(dl, op))
		return;
	if (op->err) {
		dl->was_rung = true;
		try_again(dl);
		return;
	}
	dl->due_mono_ms = INT64_MAX;
	if (dl->expire.next_due_ms)
		dl->due_mono_ms = clock_mono_ms() + (dl->expire.next_due_ms - clock_wall_ms());
	arm(dl, dl->was_rung ? RUNG_MS : LOOK_EVERY_MS);
}

static void on_shifted(struct store_op *op)
{
	struct deadline_watch *dl = CONTAINER_OF(op, struct deadline_watch, shift.op);

	if (op->err == 0)
		dl->shift_ms -= dl->shift.delta_ms;
	dl->is_shifting = false;
	if (!is_back(dl, op))
		return;
	dl->was_rung = true;
	if (op->err)
		try_again(dl);
	else
		go_on(dl);
}

static bool has_jumped(struct deadline_watch *dl)
{
	int64_t jump_ms = clock_watch_look(&dl->watch, clock_wall_ms(), clock_mono_ms());

	if (!jump_ms)
		return false;
	dl->shift_ms += jump_ms;
	dl->d->counters.n_clock_jumps++;
	retention_postpone(dl->d->retention);
	log_event(LOG_WARN, "clock_jumped", LOG_I("by_ms", jump_ms),
	    LOG_S("consequence", "every stored due time moves with it"));
	return true;
}

static int shift(struct deadline_watch *dl)
{
	int rc;

	dl->shift = (struct shift_clock){
	    .op.done = on_shifted,
	    .delta_ms = dl->shift_ms,
	    .now_ms = clock_wall_ms(),
	};
	dl->is_shifting = true; /* already: before_submit() comes for this one, too */
	rc = store_shift_clock(dl->d->deps.store, &dl->shift);
	dl->is_shifting = rc == 0;
	return rc;
}

/* What is written from now on has its times from the new clock: what the store holds moves first,
 * so that each due time moves once or was right already. */
static void before_submit(void *owner)
{
	struct deadline_watch *dl = owner;

	if (has_jumped(dl) && !dl->is_shifting && shift(dl))
		try_again(dl);
}

static int expire(struct deadline_watch *dl)
{
	int rc;

	dl->was_rung = false;
	dl->expire = (struct expire_dispatches){
	    .op.done = on_expired,
	    .now_ms = clock_wall_ms(),
	};
	dl->is_expiring = true;
	rc = store_expire_dispatches(dl->d->deps.store, &dl->expire);
	dl->is_expiring = rc == 0;
	dl->was_rung = rc != 0;
	return rc;
}

static void go_on(struct deadline_watch *dl)
{
	int rc = 0;

	has_jumped(dl);
	if (is_busy(dl)) /* the one that comes back goes on */
		return;
	if (dl->shift_ms)
		rc = shift(dl);
	else if (dl->was_rung || dl->due_mono_ms <= clock_mono_ms())
		rc = expire(dl);
	else
		arm(dl, LOOK_EVERY_MS);
	if (rc)
		try_again(dl);
}
