#include "loop/bell.h"

#include "base/alloc.h"
#include "base/clock.h"

enum {
	RING_MS = 20, /* every commit that touches a topic rings */
	SOONEST_MS = 50,
	LATEST_MS = 60 * 1000,
};

struct bell {
	struct timer *timer;
	void (*look)(void *owner);
	void *owner;
	int64_t due_wall_ms; /* 0: nothing is known */
	bool is_looking, is_stopped;
	bool is_rung; /* the timer runs for a ring, or, during a look, has to afterwards */
};

static void arm(struct bell *b)
{
	int64_t after_ms = LATEST_MS;

	if (b->due_wall_ms) {
		after_ms = b->due_wall_ms - clock_wall_ms();
		after_ms = after_ms < SOONEST_MS ? SOONEST_MS : after_ms;
	}
	if (b->is_rung)
		after_ms = RING_MS;
	timer_start(b->timer, after_ms < LATEST_MS ? after_ms : LATEST_MS);
}

static void on_timer(struct timer *t)
{
	bell_now(timer_owner(t));
}

struct bell *bell_new(struct loop *l, void (*look)(void *owner), void *owner)
{
	struct bell *b = xcalloc(1, sizeof(*b));

	b->timer = timer_new(l, on_timer, b);
	b->look = look;
	b->owner = owner;
	return b;
}

void bell_now(struct bell *b)
{
	if (b->is_stopped)
		return;
	if (b->is_looking) {
		b->is_rung = true;
		return;
	}
	timer_stop(b->timer);
	b->is_rung = false;
	b->due_wall_ms = 0;
	b->is_looking = true;
	b->look(b->owner);
}

void bell_ring(struct bell *b)
{
	if (b->is_rung || b->is_stopped)
		return;
	b->is_rung = true;
	if (!b->is_looking)
		arm(b);
}

void bell_by(struct bell *b, int64_t wall_ms)
{
	if (!wall_ms || b->is_stopped || (b->due_wall_ms && b->due_wall_ms <= wall_ms))
		return;
	b->due_wall_ms = wall_ms;
	if (!b->is_looking && !b->is_rung)
		arm(b);
}

void bell_rest(struct bell *b)
{
	b->is_looking = false;
	if (!b->is_stopped)
		arm(b);
}

bool bell_is_looking(const struct bell *b)
{
	return b->is_looking;
}

void bell_stop(struct bell *b)
{
	if (b->is_stopped)
		return;
	b->is_stopped = true;
	timer_close(b->timer);
	b->timer = NULL;
}

void bell_free(struct bell *b)
{
	if (!b)
		return;
	bell_stop(b);
	free(b);
}
