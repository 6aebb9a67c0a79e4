/* The pump: takes up what is due while there is room for it, and sleeps until the next is. It holds
 * nothing that the database does not have, so a crash at any point loses nothing. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "evidence/evidence_internal.h"

enum { STORE_AGAIN_MS = 1000 };

static void tell_closed(void *arg)
{
	struct evidence *e = arg;

	e->on_closed(e->owner);
}

static void close_if_idle(struct evidence *e)
{
	if (e->is_closed || bell_is_looking(e->bell) || e->first)
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
	if (bell_is_looking(e->bell) && !is_store_busy && e->n_ended < IN_HAND_MAX)
		e->ended[e->n_ended++] = g->due.change_id;
	gathering_free(g);
	if (e->is_closing)
		close_if_idle(e);
	else if (is_store_busy)
		bell_by(e->bell, clock_wall_ms() + STORE_AGAIN_MS);
	else
		bell_now(e->bell);
}

/* ---- claims ---- */

/* What is in hand is still due, so the claim asked for more than there is room for. */
static void take(struct evidence *e)
{
	for (size_t i = 0; i < e->claim.n; i++) {
		struct due_change *due = &e->claim.list[i];

		if (e->counters.n_in_hand == IN_HAND_MAX)
			bell_ring(e->bell);
		else if (!is_taken(e, due->change_id))
			gathering_start(e, due);
	}
	if (e->n_ended)
		bell_ring(e->bell);
}

static void on_claimed(struct store_query *q)
{
	struct evidence *e = CONTAINER_OF(q, struct evidence, claim.q);

	if (e->is_closing) {
		bell_rest(e->bell);
		claim_due_changes_release(&e->claim);
		close_if_idle(e);
		return;
	}
	if (q->err) {
		log_event(LOG_WARN, "evidence_unread", LOG_S("error", q->why.text));
		bell_by(e->bell, clock_wall_ms() + STORE_AGAIN_MS);
	} else {
		bell_by(e->bell, e->claim.next_ms);
	}
	take(e);
	claim_due_changes_release(&e->claim);
	bell_rest(e->bell);
}

static void claim(void *owner)
{
	struct evidence *e = owner;

	e->n_ended = 0;
	if (e->counters.n_in_hand == IN_HAND_MAX) { /* the next that ends looks again */
		bell_rest(e->bell);
		return;
	}
	e->claim = (struct claim_due_changes){
	    .q.done = on_claimed,
	    .now_ms = clock_wall_ms(),
	    .limit = 2 * IN_HAND_MAX,
	};
	if (store_claim_due_changes(e->deps.store, &e->claim)) {
		bell_by(e->bell, clock_wall_ms() + STORE_AGAIN_MS);
		bell_rest(e->bell);
	}
}

static void on_topic(unsigned topics, void *owner)
{
	struct evidence *e = owner;

	(void)topics;
	bell_ring(e->bell);
}

/* ---- life ---- */

struct evidence *evidence_new(const struct evidence_deps *deps, struct config *c)
{
	struct evidence *e = xcalloc(1, sizeof(*e));

	e->deps = *deps;
	e->config = config_ref(c);
	e->bell = bell_new(deps->loop, claim, e);
	store_subscribe(deps->store, STORE_ATTRIBUTION, on_topic, e);
	bell_now(e->bell);
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
	bell_stop(e->bell);
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
	bell_free(e->bell);
	free(e);
}

void evidence_read_counters(const struct evidence *e, struct evidence_counters *ret)
{
	*ret = e->counters;
}
