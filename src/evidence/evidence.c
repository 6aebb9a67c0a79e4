/* The pump: takes up what is due while there is room for it, and sleeps until the next is. It holds
 * nothing that the database does not have, so a crash at any point loses nothing. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "evidence/evidence_internal.h"

enum {
	STORE_AGAIN_MS = 1000,
	RING_MS = 20, /* a flood of reports, one look */
	WAKE_SOONEST_MS = 50,
	WAKE_LATEST_MS = 60 * 1000, /* the wall clock may jump */
};

static void pump(struct evidence *e);

static int64_t clamp(int64_t x, int64_t lowest, int64_t highest)
{
	return x < lowest ? lowest : x > highest ? highest : x;
}

static void tell_closed(void *arg)
{
	struct evidence *e = arg;

	e->on_closed(e->owner);
}

static void close_if_idle(struct evidence *e)
{
	if (e->is_closed || e->is_claiming || e->first)
		return;
	e->is_closed = true;
	loop_reap(e->deps.loop, tell_closed, e);
}

/* ---- what is in hand ---- */

static bool is_taken(const struct evidence *e, int64_t change_id)
{
	for (int i = 0; i < e->n_ended; i++)
		if (e->ended[i] == change_id)
			return true;
	for (const struct gathering *g = e->first; g; g = g->next)
		if (g->due.change_id == change_id)
			return true;
	return false;
}

void evidence_gathered(struct evidence *e, struct gathering *g, bool is_store_busy)
{
	struct gathering **at = &e->first;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	e->counters.n_in_hand--;
	if (e->is_claiming && e->n_ended < IN_HAND_MAX)
		e->ended[e->n_ended++] = g->due.change_id;
	gathering_free(g);
	e->is_store_busy |= is_store_busy;
	if (e->is_closing)
		close_if_idle(e);
	else if (is_store_busy)
		timer_start(e->wake, STORE_AGAIN_MS);
	else
		pump(e);
}

/* ---- claims ---- */

/* What is in hand is still due, so the claim asked for more than there is room for. */
static void take(struct evidence *e)
{
	for (size_t i = 0; i < e->claim.n; i++) {
		struct due_change *due = &e->claim.list[i];

		if (e->counters.n_in_hand == IN_HAND_MAX)
			e->wants_claim = true;
		else if (!is_taken(e, due->change_id))
			gathering_start(e, due);
	}
	if (e->n_ended)
		e->wants_claim = true;
}

static void on_claimed(struct store_query *q)
{
	struct evidence *e = CONTAINER_OF(q, struct evidence, claim.q);
	int64_t delay_ms = WAKE_LATEST_MS;

	e->is_claiming = false;
	if (e->is_closing) {
		claim_due_changes_release(&e->claim);
		close_if_idle(e);
		return;
	}
	if (q->err) {
		log_event(LOG_WARN, "evidence_unread", LOG_S("error", q->why.text));
		delay_ms = STORE_AGAIN_MS;
	} else if (e->claim.next_ms > 0) {
		delay_ms = e->claim.next_ms - e->claim.now_ms;
	}
	take(e);
	claim_due_changes_release(&e->claim);
	if (e->is_store_busy && delay_ms > STORE_AGAIN_MS)
		delay_ms = STORE_AGAIN_MS;
	/* With full hands, the next that ends looks again. */
	e->is_rung = e->wants_claim && e->counters.n_in_hand < IN_HAND_MAX;
	e->wants_claim = false;
	if (e->counters.n_in_hand < IN_HAND_MAX)
		timer_start(e->wake,
		    e->is_rung ? RING_MS : clamp(delay_ms, WAKE_SOONEST_MS, WAKE_LATEST_MS));
}

static void pump(struct evidence *e)
{
	if (e->is_closing || e->counters.n_in_hand == IN_HAND_MAX)
		return;
	if (e->is_claiming) {
		e->wants_claim = true;
		return;
	}
	e->n_ended = 0;
	e->is_store_busy = false;
	e->claim = (struct claim_due_changes){
	    .q.done = on_claimed,
	    .now_ms = clock_wall_ms(),
	    .limit = 2 * IN_HAND_MAX,
	};
	if (store_claim_due_changes(e->deps.store, &e->claim))
		timer_start(e->wake, STORE_AGAIN_MS);
	else
		e->is_claiming = true;
}

static void on_topic(unsigned topics, void *owner)
{
	struct evidence *e = owner;

	(void)topics;
	if (e->is_closing)
		return;
	/* also when a wake is near: the end of the claim sets the timer anew */
	if (e->is_claiming) {
		e->wants_claim = true;
		return;
	}
	if (e->is_rung)
		return;
	e->is_rung = true;
	timer_start(e->wake, RING_MS);
}

static void on_wake(struct timer *t)
{
	struct evidence *e = timer_owner(t);

	e->is_rung = false;
	pump(e);
}

/* ---- life ---- */

struct evidence *evidence_new(const struct evidence_deps *deps, struct config *c)
{
	struct evidence *e = xcalloc(1, sizeof(*e));

	e->deps = *deps;
	e->config = config_ref(c);
	e->wake = timer_new(deps->loop, on_wake, e);
	store_subscribe(deps->store, STORE_ATTRIBUTION, on_topic, e);
	pump(e);
	return e;
}

void evidence_configure(struct evidence *e, struct config *c)
{
	struct config *old = e->config;

	e->config = config_ref(c);
	config_unref(old);
}

void evidence_close(struct evidence *e, void (*on_closed)(void *owner), void *owner)
{
	assert(!e->is_closing);
	e->is_closing = true;
	e->on_closed = on_closed;
	e->owner = owner;
	timer_close(e->wake);
	e->wake = NULL;
	for (struct gathering *g = e->first; g; g = g->next)
		gathering_cancel(g);
	close_if_idle(e);
}

void evidence_free(struct evidence *e)
{
	if (!e)
		return;
	assert(e->is_closed);
	for (size_t i = 0; i < REFUSED_MAX; i++)
		free(e->refused[i].base_ref);
	config_unref(e->config);
	free(e);
}

void evidence_read_counters(const struct evidence *e, struct evidence_counters *ret)
{
	*ret = e->counters;
}
