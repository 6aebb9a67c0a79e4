#include "loop/bell.h"

enum {
	RING_MS = 20, /* each commit that changes a topic rings */
	SOONEST_MS = 50,
	LATEST_MS = 60 * 1000,
	RETRY_FIRST_MS = 500,
	RETRY_LAST_MS = 4000,
	COMPARE_EVERY_MS = 5000, /* the two clocks */
};

struct bell {
	struct timer *timer;
	void (*look)(void *owner);
	void *owner;
	int64_t due_wall_ms; /* the earliest request of bell_by(); 0: none */
	int n_failed;        /* looks in a row */
	bool is_looking, is_stopped;
	bool is_pausing; /* the timer runs for the look after a failed one */
	bool is_rung;    /* the timer runs for a ring; during a look: it will, after the look */
};

static void bell_arm(struct bell *b)
{
	int64_t after_ms = b->due_wall_ms ? b->due_wall_ms - clock_wall_ms() : LATEST_MS;

	after_ms = b->is_rung ? RING_MS : after_ms < SOONEST_MS ? SOONEST_MS : after_ms;
	timer_start(b->timer, after_ms < LATEST_MS ? after_ms : LATEST_MS);
}

static void on_bell_timer(struct timer *t)
{
	struct bell *b = timer_owner(t);

	b->is_pausing = false;
	bell_now(b);
}

struct bell *bell_new(struct loop *l, void (*look)(void *owner), void *owner)
{
	struct bell *b = xcalloc(1, sizeof(*b));

	b->timer = timer_new(l, on_bell_timer, b);
	b->look = look;
	b->owner = owner;
	return b;
}

void bell_now(struct bell *b)
{
	if (b->is_stopped)
		return;
	if (b->is_looking || b->is_pausing) {
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
	if (!b->is_looking && !b->is_pausing)
		bell_arm(b);
}

void bell_by(struct bell *b, int64_t wall_ms)
{
	if (!wall_ms || b->is_stopped || (b->due_wall_ms && b->due_wall_ms <= wall_ms))
		return;
	b->due_wall_ms = wall_ms;
	if (!b->is_looking && !b->is_pausing && !b->is_rung)
		bell_arm(b);
}

void bell_rest(struct bell *b)
{
	b->is_looking = false;
	b->n_failed = 0;
	if (!b->is_stopped && !b->is_pausing)
		bell_arm(b);
}

void bell_retry(struct bell *b)
{
	b->is_looking = false;
	if (b->is_stopped || b->is_pausing)
		return;
	timer_start(b->timer, b->n_failed < 3 ? RETRY_FIRST_MS << b->n_failed : RETRY_LAST_MS);
	b->n_failed++;
	b->is_pausing = true;
}

bool bell_is_looking(const struct bell *b) { return b->is_looking; }

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

/* ---- the clock watch ---- */

struct clock_watch {
	struct timer *timer;
	struct clock_offset offset;
	void (*on_jump)(int64_t by_ms, void *owner);
	void *owner;
};

int64_t clock_offset_jump(struct clock_offset *o, int64_t wall_ms, int64_t mono_ms)
{
	int64_t ahead_ms = wall_ms - mono_ms, jump_ms = o->is_set ? ahead_ms - o->ahead_ms : 0;

	o->is_set = true;
	o->ahead_ms = ahead_ms;
	return jump_ms > CLOCK_JUMP_MS || jump_ms < -CLOCK_JUMP_MS ? jump_ms : 0;
}

void clock_watch_look(struct clock_watch *w)
{
	int64_t jump_ms = clock_offset_jump(&w->offset, clock_wall_ms(), clock_mono_ms());

	if (jump_ms)
		w->on_jump(jump_ms, w->owner);
}

static void on_clock_timer(struct timer *t)
{
	timer_start(t, COMPARE_EVERY_MS);
	clock_watch_look(timer_owner(t)); /* on_jump may free the watch */
}

struct clock_watch *clock_watch_new(struct loop *l, void (*on_jump)(int64_t by_ms, void *owner), void *owner)
{
	struct clock_watch *w = xcalloc(1, sizeof(*w));

	w->on_jump = on_jump;
	w->owner = owner;
	w->timer = timer_new(l, on_clock_timer, w);
	clock_watch_look(w);
	timer_start(w->timer, COMPARE_EVERY_MS);
	return w;
}

void clock_watch_free(struct clock_watch *w)
{
	if (!w)
		return;
	timer_close(w->timer);
	free(w);
}
