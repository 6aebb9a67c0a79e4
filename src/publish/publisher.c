/* The pump: claims wishes while there is room for them and sleeps until the next is due. It
 * holds nothing that the database does not have, so a crash at any point loses nothing. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "publish/publish_internal.h"

enum { CLAIM_RETRY_MS = 1000, CLOSING_MS = 3000 };

static void tell_closed(void *arg)
{
	struct publisher *p = arg;

	p->on_closed(p->owner);
}

static void close_if_idle(struct publisher *p)
{
	if (p->is_closed || bell_is_looking(p->bell) || p->counters.n_writing || p->n_previews)
		return;
	p->is_closed = true;
	timer_close(p->closing);
	p->closing = NULL;
	loop_reap(p->deps.loop, tell_closed, p);
}

/* What is written, the urgent first, and how many of each may be in hand: one kind's slow rows do
 * not hold up another's. */
static const struct effect {
	enum outbox_kind kind;
	int n_max;
	void (*start)(struct publisher *p, struct outbox_row *row);
} EFFECTS[] = {
    {OUTBOX_COMMENT, WRITINGS_MAX, writing_start},
    {OUTBOX_CHECKS, CHECKINGS_MAX, checks_start},
    {OUTBOX_REACTION, ANSWERS_MAX, answer_start},
    {OUTBOX_REPLY, ANSWERS_MAX, answer_start},
    {OUTBOX_RED_ISSUE, 1, red_issue_start},
};

static int room_for(const struct publisher *p, const struct effect *e)
{
	int room = e->n_max;

	for (const struct claimed *c = p->in_hand; c; c = c->next)
		room -= c->row.kind == e->kind;
	return room;
}

static void claim_next(struct publisher *p);

static void on_claimed(struct store_op *op)
{
	struct publisher *p = CONTAINER_OF(op, struct publisher, claim.op);
	struct claim_outbox *claim = &p->claim;

	if (op->err) {
		log_event(LOG_WARN, "publish_claim_failed", LOG_S("error", op->why.text));
		bell_by(p->bell, clock_wall_ms() + CLAIM_RETRY_MS);
	} else {
		bell_by(p->bell, claim->next_due_ms);
		for (size_t i = 0; i < claim->n; i++)
			EFFECTS[p->effect].start(p, &claim->rows[i]);
		claim_outbox_release(claim);
	}
	if (p->is_closing) {
		bell_rest(p->bell);
		close_if_idle(p);
		return;
	}
	p->effect++;
	claim_next(p);
}

/* The next kind for which there is room; what has none comes back when one of it ends. */
static void claim_next(struct publisher *p)
{
	while (p->effect < ARRAY_LEN(EFFECTS) && room_for(p, &EFFECTS[p->effect]) <= 0)
		p->effect++;
	if (p->effect == ARRAY_LEN(EFFECTS)) {
		bell_rest(p->bell);
		return;
	}
	p->claim = (struct claim_outbox){.op = {.done = on_claimed},
	    .kinds = 1u << EFFECTS[p->effect].kind,
	    .limit = room_for(p, &EFFECTS[p->effect]),
	    .now_ms = clock_wall_ms()};
	if (store_claim_outbox(p->deps.store, &p->claim)) {
		bell_by(p->bell, clock_wall_ms() + CLAIM_RETRY_MS);
		bell_rest(p->bell);
	}
}

static void claim_first(void *owner)
{
	struct publisher *p = owner;

	p->effect = 0;
	claim_next(p);
}

void publisher_pump(struct publisher *p)
{
	if (p->is_closing)
		close_if_idle(p);
	else
		bell_now(p->bell);
}

static void on_topic(unsigned topics, void *owner)
{
	struct publisher *p = owner;

	(void)topics;
	bell_ring(p->bell);
}

static void on_closing_over(struct timer *t)
{
	claimed_cancel_all(timer_owner(t));
}

struct publisher *publish_new(const struct publish_deps *deps, struct config *c)
{
	struct publisher *p = xcalloc(1, sizeof(*p));

	p->deps = *deps;
	p->config = config_ref(c);
	pacing_init(&p->pacing, c->github_writes_per_minute);
	p->bell = bell_new(deps->loop, claim_first, p);
	p->closing = timer_new(deps->loop, on_closing_over, p);
	store_subscribe(deps->store, STORE_OUTBOX, on_topic, p);
	publisher_pump(p);
	return p;
}

void publish_configure(struct publisher *p, struct config *c)
{
	struct config *old = p->config;

	p->config = config_ref(c);
	config_unref(old);
	pacing_configure(&p->pacing, c->github_writes_per_minute);
	publisher_pump(p);
}

void publish_close(struct publisher *p, void (*on_closed)(void *owner), void *owner)
{
	assert(!p->is_closing);
	p->is_closing = true;
	p->on_closed = on_closed;
	p->owner = owner;
	bell_stop(p->bell);
	timer_start(p->closing, CLOSING_MS);
	publisher_pump(p);
}

void publish_free(struct publisher *p)
{
	if (!p)
		return;
	assert(p->is_closed);
	config_unref(p->config);
	pacing_release(&p->pacing);
	bell_free(p->bell);
	free(p);
}

void publish_read_counters(const struct publisher *p, struct publish_counters *ret)
{
	*ret = p->counters;
}
