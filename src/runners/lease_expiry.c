#include "runners/lease_expiry.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "store/leases.h"

enum {
	LOOK_EVERY_MS = 10 * 1000, /* at most, while there are leases */
	AGAIN_MS = 1000,
	/* A wall clock that moved by more than it: the stored times are moved with it first, which
	 * dispatch/deadlines.c sees to within seconds. */
	JUMP_MS = 2000,
	AFTER_JUMP_MS = 10 * 1000,
};

struct lease_expiry {
	struct runners *runners;
	struct timer *timer;
	int64_t due_ms;    /* mono, of the timer; 0: it does not run */
	int64_t offset_ms; /* wall - mono at the last look */
	struct expire_leases op;
	bool is_looking;
};

static void arm(struct lease_expiry *x, int64_t after_ms)
{
	int64_t due_ms;

	if (x->runners->is_stopping)
		return;
	if (after_ms > LOOK_EVERY_MS)
		after_ms = LOOK_EVERY_MS;
	if (after_ms < 1)
		after_ms = 1;
	due_ms = loop_now_ms(x->runners->loop) + after_ms;
	if (x->due_ms && x->due_ms <= due_ms)
		return;
	x->due_ms = due_ms;
	timer_start(x->timer, after_ms);
}

static void on_looked(struct store_op *op)
{
	struct lease_expiry *x = CONTAINER_OF(op, struct lease_expiry, op.op);
	struct runners *r = x->runners;

	x->is_looking = false;
	if (op->err) {
		log_event(LOG_WARN, "leases_unread", LOG_S("why", op->why.text));
		arm(x, AGAIN_MS);
	} else {
		if (x->op.n_expired > 0)
			log_event(LOG_WARN, "leases_expired", LOG_I("n", x->op.n_expired));
		r->counters.n_leases_expired += x->op.n_expired;
		if (x->op.next_due_ms)
			arm(x, x->op.next_due_ms - clock_wall_ms());
	}
	runners_let_go(r);
}

static bool has_jumped(struct lease_expiry *x)
{
	int64_t offset_ms = clock_wall_ms() - clock_mono_ms(), by_ms = offset_ms - x->offset_ms;

	x->offset_ms = offset_ms;
	return by_ms > JUMP_MS || by_ms < -JUMP_MS;
}

static void look(struct lease_expiry *x)
{
	if (x->is_looking)
		return;
	if (has_jumped(x)) {
		arm(x, AFTER_JUMP_MS);
		return;
	}
	x->op = (struct expire_leases){.op.done = on_looked, .now_ms = clock_wall_ms()};
	if (store_expire_leases(x->runners->store, &x->op)) {
		arm(x, AGAIN_MS);
		return;
	}
	x->is_looking = true;
	runners_hold(x->runners);
}

static void on_timer(struct timer *t)
{
	struct lease_expiry *x = timer_owner(t);

	x->due_ms = 0;
	look(x);
}

struct lease_expiry *lease_expiry_new(struct runners *r)
{
	struct lease_expiry *x = xcalloc(1, sizeof(*x));

	x->runners = r;
	x->offset_ms = clock_wall_ms() - clock_mono_ms();
	x->timer = timer_new(r->loop, on_timer, x);
	look(x);
	return x;
}

void lease_expiry_note(struct lease_expiry *x, int64_t lease_ms)
{
	arm(x, lease_ms);
}

void lease_expiry_stop(struct lease_expiry *x)
{
	timer_stop(x->timer);
}

void lease_expiry_free(struct lease_expiry *x)
{
	if (!x)
		return;
	timer_close(x->timer);
	free(x);
}
