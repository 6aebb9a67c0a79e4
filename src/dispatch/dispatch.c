#include "db/seats.h"
#include "dispatch/dispatch_internal.h"

static void on_dispatch_topic(unsigned topics, void *owner)
{
	struct dispatch *d = owner;

	if (d->is_closing)
		return;
	if (topics & STORE_DELIVERIES)
		planner_ring(d->planner);
	if (topics & STORE_OUTBOX)
		sender_ring(d->sender);
	if (topics & STORE_NODE)
		sender_follow_node(d->sender);
	if (topics & STORE_DISPATCHES)
		deadline_watch_ring(d->deadlines);
	if (topics & STORE_SCHEDULES)
		scheduler_ring(d->scheduler);
	if (topics & STORE_NODE)
		sender_configure(d->sender);
}

static const enum seat DISPATCH_SEATS[] = {SEAT_PLANNER, SEAT_SCHEDULER, SEAT_DEADLINES, SEAT_RECONCILER};

static void on_dispatch_seat(enum seat seat, bool has_seat, void *owner)
{
	struct dispatch *d = owner;

	if (d->is_closing)
		return;
	if (seat == SEAT_SCHEDULER)
		scheduler_on_seat(d->scheduler, has_seat);
	if (has_seat && seat == SEAT_PLANNER)
		planner_on_seat(d->planner);
	if (has_seat && seat == SEAT_DEADLINES)
		deadline_watch_on_seat(d->deadlines);
	if (has_seat && seat == SEAT_RECONCILER)
		reconciler_on_seat(d->reconciler);
}

static bool is_dispatch_idle(enum seat seat, void *owner)
{
	const struct dispatch *d = owner;

	if (d->is_closing)
		return false;
	return seat == SEAT_PLANNER     ? planner_is_idle(d->planner)
	       : seat == SEAT_SCHEDULER ? scheduler_is_idle(d->scheduler)
					: seat != SEAT_RECONCILER || reconciler_is_idle(d->reconciler);
}

struct dispatch *dispatch_new(const struct dispatch_deps *deps, struct config *c)
{
	struct dispatch *d = xcalloc(1, sizeof(*d));

	d->deps = *deps;
	d->config = config_ref(c);
	d->planner = planner_new(d);
	d->sender = sender_new(d);
	d->deadlines = deadline_watch_new(d);
	d->reconciler = reconciler_new(d);
	d->scheduler = scheduler_new(d);
	d->n_open_parts = 5;
	store_subscribe(deps->store, STORE_DELIVERIES | STORE_OUTBOX | STORE_DISPATCHES | STORE_SCHEDULES | STORE_NODE,
	    on_dispatch_topic, d);
	for (size_t i = 0; i < ARRAY_LEN(DISPATCH_SEATS); i++)
		store_add_part(
		    deps->store, &(struct seat_part){DISPATCH_SEATS[i], on_dispatch_seat, is_dispatch_idle, d});
	return d;
}

void dispatch_configure(struct dispatch *d, struct config *c)
{
	struct config *old = d->config;

	d->config = config_ref(c);
	config_unref(old);
	if (d->is_closing)
		return;
	planner_ring(d->planner);
	sender_configure(d->sender);
	reconciler_configure(d->reconciler);
	scheduler_ring(d->scheduler);
}

void dispatch_accept(struct dispatch *d, struct delivery *delivery)
{
	if (!d->is_closing)
		planner_accept(d->planner, delivery);
}

void dispatch_reconcile_now(struct dispatch *d)
{
	if (!d->is_closing)
		reconciler_ring(d->reconciler);
}

void dispatch_part_closed(struct dispatch *d, void *part)
{
	assert(d->is_closing && d->n_open_parts > 0);
	loop_reap(d->deps.loop, free, part);
	if (--d->n_open_parts == 0)
		loop_reap(d->deps.loop, d->on_closed, d->owner);
}

void dispatch_close(struct dispatch *d, void (*on_closed)(void *owner), void *owner)
{
	assert(!d->is_closing);
	d->is_closing = true;
	d->on_closed = on_closed;
	d->owner = owner;
	reconciler_close(d->reconciler);
	scheduler_close(d->scheduler);
	deadline_watch_close(d->deadlines);
	planner_close(d->planner);
	sender_close(d->sender);
}

void dispatch_free(struct dispatch *d)
{
	if (!d)
		return;
	assert(d->is_closing && d->n_open_parts == 0);
	config_unref(d->config);
	free(d);
}

void dispatch_read_counters(const struct dispatch *d, struct dispatch_counters *ret)
{
	*ret = d->counters;
	ret->n_sending = d->sender ? sender_n_claimed(d->sender) : 0;
}
