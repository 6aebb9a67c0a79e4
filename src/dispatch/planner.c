#include "db/notes.h"
#include "db/seats.h"
#include "dispatch/planning.h"

enum {
	PLANNINGS_MAX = 64,
	READ_MAX = 8,            /* deliveries a read: about a millisecond of the loop's time */
	READ_BUSY_MAX = 1,       /* a read while intake is busy */
	INTAKE_IS_BUSY_OPS = 32, /* queued deliveries; one connection of GitHub's has one */
	BUSY_PAUSE_MS = 50,
	READ_AGAIN_MS = 500,
	SWEEP_EVERY_MS = 60 * 1000,
};

struct planner {
	struct dispatch *d;
	TAILQ_HEAD(, planning)
	plannings; /* begun or waiting for their line, by arrival; n of them */
	int n;
	int64_t after_id; /* this sweep has read the deliveries up to it */
	int64_t read_id;  /* the highest one that any sweep has read */
	bool may_have_more;
	bool was_rung; /* since this sweep began */
	bool is_reading;
	/* Deliveries whose planning ended during a read, which may still return them as accepted. */
	int64_t ended[PLANNINGS_MAX];
	int n_ended;
	bool has_paused; /* before the next read */
	struct timer *timer;
	struct timer *sweep_timer; /* for a delivery whose node ended before it announced it */
	struct next_deliveries read;
};

static void planner_pump(struct planner *pl);

static void on_planner_timer(struct timer *t) { planner_pump(timer_owner(t)); }

static void on_sweep_timer(struct timer *t)
{
	timer_start(t, SWEEP_EVERY_MS);
	planner_ring(timer_owner(t));
}

struct planner *planner_new(struct dispatch *d)
{
	struct planner *pl = xcalloc(1, sizeof(*pl));

	pl->d = d;
	pl->may_have_more = true;
	TAILQ_INIT(&pl->plannings);
	pl->timer = timer_new(d->deps.loop, on_planner_timer, pl);
	timer_start(pl->timer, 0);
	pl->sweep_timer = timer_new(d->deps.loop, on_sweep_timer, pl);
	timer_start(pl->sweep_timer, SWEEP_EVERY_MS);
	return pl;
}

void planner_ring(struct planner *pl)
{
	pl->may_have_more = true;
	pl->was_rung = true;
	planner_pump(pl);
}

static bool has_planner_seat(const struct planner *pl) { return store_has_seat(pl->d->deps.store, SEAT_PLANNER); }

bool planner_is_idle(const struct planner *pl)
{
	return pl->n == 0 && !pl->is_reading && (!pl->may_have_more || !has_planner_seat(pl));
}

void planner_on_seat(struct planner *pl)
{
	pl->after_id = 0;
	planner_ring(pl);
}

/* ---- plannings ---- */

void planner_start(struct planner *pl, struct planning *p, void (*on_done)(void *owner, int err), void *owner)
{
	const struct planning *other;
	bool is_first = true; /* of its line */

	p->on_done = on_done;
	p->owner = owner;
	TAILQ_FOREACH (other, &pl->plannings, link)
		if (p->line && str_eq(other->line, p->line))
			is_first = false;
	TAILQ_INSERT_TAIL(&pl->plannings, p, link);
	pl->n++;
	pl->d->counters.n_planning = pl->n;
	if (is_first)
		planning_begin(p);
}

static bool is_delivery_taken(const struct planner *pl, int64_t delivery_id)
{
	const struct planning *p;

	for (int i = 0; i < pl->n_ended; i++)
		if (pl->ended[i] == delivery_id)
			return true;
	TAILQ_FOREACH (p, &pl->plannings, link)
		if (p->delivery_id == delivery_id)
			return true;
	return false;
}

static void finish_closing_planner(struct planner *pl)
{
	if (pl->n > 0 || pl->is_reading)
		return;
	timer_close(pl->timer);
	timer_close(pl->sweep_timer);
	dispatch_part_closed(pl->d, pl);
}

void planner_finished(struct planner *pl, struct planning *p)
{
	struct planning *next;

	TAILQ_REMOVE(&pl->plannings, p, link);
	pl->n--;
	pl->d->counters.n_planning = pl->n;
	if (pl->is_reading && p->delivery_id && pl->n_ended < PLANNINGS_MAX)
		pl->ended[pl->n_ended++] = p->delivery_id;
	if (pl->d->is_closing) {
		planning_free(p);
		finish_closing_planner(pl);
		return;
	}
	/* The next one of the same line begins, unless it has begun already. */
	TAILQ_FOREACH (next, &pl->plannings, link)
		if (p->line && str_eq(next->line, p->line))
			break;
	if (next && !next->is_begun)
		planning_begin(next);
	planning_free(p);
	planner_pump(pl);
}

/* ---- reading ---- */

/* Takes the delivery over, except what it does not need. */
static void plan_delivery(struct planner *pl, struct delivery *dl)
{
	struct planning *p = planning_new(pl->d, dl->id, dl->guid, dl->event, dl->body, dl->body_len);

	p->received_ms = dl->received_ms;
	planner_start(pl, p, NULL, NULL);
	dl->guid = NULL;
	dl->event = NULL;
	dl->body = NULL;
}

/* Intake comes first: while many of its writes are queued, planning gives way. */
static bool intake_is_busy(const struct planner *pl)
{
	struct store_stats stats;

	store_stats(pl->d->deps.store, &stats);
	return stats.n_queued_intake > INTAKE_IS_BUSY_OPS;
}

void planner_accept(struct planner *pl, struct delivery *delivery)
{
	/* A sweep may already have read this delivery, because the commit is visible before intake learns of it. */
	bool is_next = config_is_registry_loaded(pl->d->config) && !pl->may_have_more && !pl->is_reading &&
		       delivery->id > pl->read_id;

	if (!has_planner_seat(pl)) { /* the seat went during the commit: another node plans it */
		store_announce(pl->d->deps.store, STORE_DELIVERIES);
		return;
	}
	if (is_delivery_taken(pl, delivery->id))
		return;
	if (is_next && pl->n < PLANNINGS_MAX && !intake_is_busy(pl))
		plan_delivery(pl, delivery);
	else
		planner_ring(pl);
}

static void on_deliveries_read(struct store_query *q)
{
	struct planner *pl = CONTAINER_OF(q, struct planner, read.q);
	struct next_deliveries read = pl->read;

	pl->is_reading = false;
	if (pl->d->is_closing) {
		next_deliveries_release(&read);
		finish_closing_planner(pl);
		return;
	}
	if (q->err) {
		log_event(LOG_WARN, "deliveries_unread", LOG_S("error", q->why.text));
		timer_start(pl->timer, READ_AGAIN_MS);
		return;
	}
	if (read.n > 0)
		pl->after_id = read.list[read.n - 1].id;
	if (pl->after_id > pl->read_id)
		pl->read_id = pl->after_id;
	if (read.n == 0) {
		/* The end. A delivery that is accepted later starts a new sweep from the beginning,
		 * because a replayed delivery keeps its old place. */
		pl->after_id = 0;
		pl->may_have_more = pl->was_rung;
	}
	for (size_t i = 0; i < read.n; i++)
		if (!is_delivery_taken(pl, read.list[i].id))
			plan_delivery(pl, &read.list[i]);
	next_deliveries_release(&read);
	planner_pump(pl);
}

static void planner_pump(struct planner *pl)
{
	int room = PLANNINGS_MAX - pl->n;

	/* Until the registry has been read, deliveries wait on disk. */
	if (!config_is_registry_loaded(pl->d->config))
		return;
	if (!has_planner_seat(pl))
		return;
	if (pl->d->is_closing || pl->is_reading || !pl->may_have_more || room <= 0 || timer_is_running(pl->timer))
		return;
	if (intake_is_busy(pl) && !pl->has_paused) {
		pl->has_paused = true;
		timer_start(pl->timer, BUSY_PAUSE_MS);
		return;
	}
	pl->read = (struct next_deliveries){
	    .q = {.done = on_deliveries_read, .kind = QUERY_URGENT, .retry.event = "deliveries_unread"},
	    .after_id = pl->after_id,
	    .limit = pl->has_paused ? READ_BUSY_MAX : READ_MAX,
	};
	if (pl->read.limit > room)
		pl->read.limit = room;
	pl->has_paused = false;
	pl->n_ended = 0;
	if (pl->after_id == 0)
		pl->was_rung = false;
	pl->is_reading = store_next_deliveries(pl->d->deps.store, &pl->read) == 0;
}

/* ---- events without a delivery ---- */

void planner_start_event(
    struct planner *pl, const char *event_name, char *body, void (*on_done)(void *owner, int err), void *owner)
{
	char guid[UUID_BYTES];

	planner_start(pl, planning_new(pl->d, 0, xstrdup(uuid_new(guid)), xstrdup(event_name), body, strlen(body)),
	    on_done, owner);
}

void planner_close(struct planner *pl)
{
	struct planning *next;

	if (pl->n == 0) {
		finish_closing_planner(pl);
		return;
	}
	/* The last one that ends frees the planner, so this loop must not use it after that. */
	for (struct planning *p = TAILQ_FIRST(&pl->plannings); p; p = next) {
		next = TAILQ_NEXT(p, link);
		planning_cancel(p);
	}
}
