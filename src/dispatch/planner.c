#include "dispatch/planner.h"

#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "dispatch/dispatch_internal.h"
#include "dispatch/planning.h"
#include "store/deliveries.h"

enum {
	IN_HAND_MAX = 64,
	GULP = 8, /* deliveries a read: about a millisecond of the loop's time */
	SIP = 1,
	INTAKE_IS_BUSY_OPS = 32, /* queued writes; one connection of GitHub's has one */
	SIP_PAUSE_MS = 50,
	READ_AGAIN_MS = 500,
};

struct planner {
	struct dispatch *d;
	struct planning *first; /* in hand, by arrival; n of them */
	int n;
	int64_t after_id; /* those up to it were read in this sweep */
	bool may_have_more;
	bool was_rung; /* since this sweep began */
	bool is_reading;
	/* What ended while a read was under way: the read may still see it as accepted. */
	int64_t ended[IN_HAND_MAX];
	int n_ended;
	bool has_paused; /* for the read that comes next */
	struct timer *timer;
	struct next_deliveries read;
};

static void pump(struct planner *pl);

static void on_timer(struct timer *t)
{
	pump(timer_owner(t));
}

struct planner *planner_new(struct dispatch *d)
{
	struct planner *pl = xcalloc(1, sizeof(*pl));

	pl->d = d;
	pl->may_have_more = true;
	pl->timer = timer_new(d->deps.loop, on_timer, pl);
	timer_start(pl->timer, 0);
	return pl;
}

void planner_ring(struct planner *pl)
{
	pl->may_have_more = true;
	pl->was_rung = true;
	pump(pl);
}

bool planner_is_idle(const struct planner *pl)
{
	return pl->n == 0 && !pl->may_have_more && !pl->is_reading;
}

/* ---- what is in hand ---- */

/* Nobody before it in the list belongs to the same line. */
static bool is_first_of_line(const struct planner *pl, const struct planning *p)
{
	for (const struct planning *q = pl->first; q != p; q = q->next)
		if (p->line && str_eq(q->line, p->line))
			return false;
	return true;
}

static void take(struct planner *pl, struct planning *p)
{
	struct planning **end = &pl->first;

	while (*end)
		end = &(*end)->next;
	*end = p;
	pl->n++;
	pl->d->counters.n_planning = pl->n;
	if (is_first_of_line(pl, p))
		planning_begin(p);
}

static bool is_taken(const struct planner *pl, int64_t delivery_id)
{
	for (int i = 0; i < pl->n_ended; i++)
		if (pl->ended[i] == delivery_id)
			return true;
	for (const struct planning *p = pl->first; p; p = p->next)
		if (p->delivery_id == delivery_id)
			return true;
	return false;
}

static void let_next_begin(struct planner *pl, const char *line)
{
	for (struct planning *p = pl->first; p; p = p->next) {
		if (!str_eq(p->line, line))
			continue;
		if (!p->is_begun)
			planning_begin(p);
		return;
	}
}

static void finish_closing(struct planner *pl)
{
	if (pl->n > 0 || pl->is_reading)
		return;
	timer_close(pl->timer);
	loop_reap(pl->d->deps.loop, free, pl);
	dispatch_part_closed(pl->d);
}

void planner_finished(struct planner *pl, struct planning *p)
{
	struct planning **link = &pl->first;

	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	pl->n--;
	pl->d->counters.n_planning = pl->n;
	if (pl->is_reading && p->delivery_id && pl->n_ended < IN_HAND_MAX)
		pl->ended[pl->n_ended++] = p->delivery_id;
	if (pl->d->is_closing) {
		planning_free(p);
		finish_closing(pl);
		return;
	}
	if (p->line)
		let_next_begin(pl, p->line);
	planning_free(p);
	pump(pl);
}

/* ---- reading ---- */

static void on_read(struct store_query *q)
{
	struct planner *pl = CONTAINER_OF(q, struct planner, read.q);
	struct next_deliveries read = pl->read;

	pl->is_reading = false;
	if (pl->d->is_closing) {
		next_deliveries_release(&read);
		finish_closing(pl);
		return;
	}
	if (q->err) {
		log_event(LOG_WARN, "deliveries_unread", LOG_S("error", q->why.text));
		timer_start(pl->timer, READ_AGAIN_MS);
		return;
	}
	if (read.n > 0)
		pl->after_id = read.list[read.n - 1].id;
	if (read.n == 0) {
		/* The end. What is accepted later starts a new sweep from the beginning, because
		 * a replayed delivery keeps its old place. */
		pl->after_id = 0;
		pl->may_have_more = pl->was_rung;
	}
	for (size_t i = 0; i < read.n; i++) {
		struct delivery *dl = &read.list[i];
		struct planning *p;

		if (is_taken(pl, dl->id))
			continue;
		p = planning_new(pl->d, dl->id, dl->guid, dl->event, dl->body, dl->body_len);
		p->received_ms = dl->received_ms;
		take(pl, p);
		dl->guid = NULL;
		dl->event = NULL;
		dl->body = NULL;
	}
	next_deliveries_release(&read);
	pump(pl);
}

static void pump(struct planner *pl)
{
	struct store_stats stats;
	int room = IN_HAND_MAX - pl->n, rc;

	/* While nobody knows who takes part, deliveries wait where they are: on disk. */
	if (!config_is_registry_loaded(pl->d->config))
		return;
	if (pl->d->is_closing || pl->is_reading || !pl->may_have_more || room <= 0 ||
	    timer_is_running(pl->timer))
		return;
	store_stats(pl->d->deps.store, &stats);
	if (stats.n_queued_ops > INTAKE_IS_BUSY_OPS && !pl->has_paused) {
		pl->has_paused = true;
		timer_start(pl->timer, SIP_PAUSE_MS);
		return;
	}
	pl->read = (struct next_deliveries){
	    .q.done = on_read,
	    .after_id = pl->after_id,
	    .limit = pl->has_paused ? SIP : GULP,
	};
	if (pl->read.limit > room)
		pl->read.limit = room;
	pl->has_paused = false;
	pl->n_ended = 0;
	if (pl->after_id == 0)
		pl->was_rung = false;
	rc = store_next_deliveries(pl->d->deps.store, &pl->read);
	if (rc == 0)
		pl->is_reading = true;
	else if (rc == ERR_BUSY)
		timer_start(pl->timer, READ_AGAIN_MS);
}

/* ---- others ---- */

void planner_take_synthetic(struct planner *pl, const char *event_name, char *body,
    void (*on_done)(void *owner, int err), void *owner)
{
	char guid[UUID_BYTES];
	struct planning *p = planning_new(
	    pl->d, 0, xstrdup(uuid_new(guid)), xstrdup(event_name), body, strlen(body));

	p->on_done = on_done;
	p->owner = owner;
	take(pl, p);
}

void planner_take_asked(
    struct planner *pl, struct asked *asked, void (*on_done)(void *owner, int err), void *owner)
{
	struct planning *p = planning_new_asked(pl->d, asked);

	p->on_done = on_done;
	p->owner = owner;
	take(pl, p);
}

void planner_close(struct planner *pl)
{
	struct planning *next;

	if (pl->n == 0) {
		finish_closing(pl);
		return;
	}
	/* The last one that ends lets the planner go, so keep off it after that. */
	for (struct planning *p = pl->first; p; p = next) {
		next = p->next;
		planning_cancel(p);
	}
}
