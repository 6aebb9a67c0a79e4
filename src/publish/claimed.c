#include "publish/claimed.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "model/backoff.h"
#include "publish/publish_internal.h"

enum { GIVE_BACK_RETRY_MS = 1000 };

static void end(struct claimed *c)
{
	struct publisher *p = c->p;
	struct claimed **at = &p->in_hand;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	p->counters.n_writing--;
	timer_close(c->timer);
	outbox_row_release(&c->row);
	config_unref(c->config);
	c->release(c);
	publisher_pump(p);
}

static void submit_done(struct claimed *c)
{
	int rc = store_outbox_done(c->p->deps.store, &c->done);

	if (rc == ERR_BUSY)
		timer_start(c->timer, GIVE_BACK_RETRY_MS);
	else if (rc)
		end(c); /* the store is closing: the row is found again at the next start */
}

static void on_timer(struct timer *t)
{
	submit_done(timer_owner(t));
}

static void on_given_back(struct store_op *op)
{
	struct claimed *c = CONTAINER_OF(op, struct claimed, done.op);

	/* a row that stays `sending` is nobody's until the next start, so this is not given up,
	 * except when there is no such row any more */
	if (op->err && op->err != ERR_NOT_FOUND && !c->p->is_closing)
		timer_start(c->timer, GIVE_BACK_RETRY_MS);
	else
		end(c);
}

void claimed_give_back(
    struct claimed *c, enum outbox_result result, int64_t next_ms, const char *error)
{
	if (result == OUTBOX_OK && c->again_ms) {
		result = OUTBOX_AGAIN;
		next_ms = c->again_ms;
	}
	c->done = (struct outbox_done){.op = {.done = on_given_back},
	    .id = c->row.id,
	    .result = result,
	    .generation = c->row.generation,
	    .is_uncertain = c->is_uncertain,
	    .next_ms = next_ms,
	    .now_ms = clock_wall_ms(),
	    .error = error};
	submit_done(c);
}

void claimed_give_back_soon(struct claimed *c)
{
	claimed_give_back(c, OUTBOX_NOT_YET, clock_wall_ms() + GIVE_BACK_RETRY_MS, NULL);
}

static void note_failure(
    struct claimed *c, enum log_level level, const char *what, const struct error *why)
{
	struct publish_counters *counters = &c->p->counters;
	char ev[64];

	snprintf(ev, sizeof(ev), "%s_%s", c->events, what);
	snprintf(counters->last_error, sizeof(counters->last_error), "%s", why->text);
	counters->last_error_wall_ms = clock_wall_ms();
	log_event(level, ev, LOG_S("repository", c->row.target), LOG_I("pr", c->row.number),
	    LOG_I("attempt", c->row.n_attempts + 1), LOG_S("error", why->text));
}

void claimed_retry(struct claimed *c, const struct error *why, int64_t retry_after_ms)
{
	uint32_t random;
	int64_t delay_ms;

	random_bytes(&random, sizeof(random));
	delay_ms = backoff_delay_ms(
	    c->row.n_attempts + 1, retry_after_ms, (double)random / ((double)UINT32_MAX + 1));
	if (backoff_is_over(c->first_mono_ms, clock_mono_ms() + delay_ms)) {
		c->p->counters.n_dead++;
		note_failure(c, LOG_ERROR, "given_up", why);
		claimed_give_back(c, OUTBOX_DEAD, 0, why->text);
		return;
	}
	c->p->counters.n_retries++;
	note_failure(c, LOG_WARN, "retry", why);
	claimed_give_back(c, OUTBOX_RETRY, clock_wall_ms() + delay_ms, why->text);
}

void claimed_fail(struct claimed *c, const struct github_result *result)
{
	if (!result->was_sent || result->is_final) /* it changed nothing; one before it may have */
		c->is_uncertain = c->was_uncertain;
	if (result->err == ERR_CANCELLED) {
		claimed_give_back(c, OUTBOX_NOT_YET, clock_wall_ms(), NULL);
	} else if (result->is_final) {
		c->p->counters.n_dead++;
		note_failure(c, LOG_ERROR, "refused", &result->why);
		claimed_give_back(c, OUTBOX_DEAD, 0, result->why.text);
	} else if (result->err == ERR_BUSY && !result->was_sent && result->retry_after_ms > 0) {
		claimed_give_back(
		    c, OUTBOX_NOT_YET, clock_wall_ms() + result->retry_after_ms, NULL);
	} else {
		claimed_retry(c, &result->why, result->retry_after_ms);
	}
}

bool claimed_start(struct claimed *c, struct publisher *p, struct outbox_row *row,
    const char *events, void (*release)(struct claimed *c))
{
	c->p = p;
	c->row = *row;
	c->is_uncertain = row->is_uncertain;
	c->first_mono_ms = clock_mono_ms() - (clock_wall_ms() - c->row.first_ms);
	*row = (struct outbox_row){.id = 0};
	c->events = events;
	c->release = release;
	c->config = config_ref(p->config);
	c->timer = timer_new(p->deps.loop, on_timer, c);
	c->next = p->in_hand;
	p->in_hand = c;
	p->counters.n_writing++;
	if (p->is_closing)
		claimed_give_back(c, OUTBOX_NOT_YET, clock_wall_ms(), NULL);
	return !p->is_closing;
}

bool claimed_begin_call(struct claimed *c, struct github_call *call,
    void (*done)(struct github_call *call), void *owner)
{
	if (c->p->is_cancelling) {
		claimed_give_back(c, OUTBOX_NOT_YET, clock_wall_ms(), NULL);
		return false;
	}
	github_call_release(call);
	*call = (struct github_call){.done = done, .owner = owner};
	c->on_wire = call;
	c->was_uncertain = c->is_uncertain;
	return true;
}

bool claimed_may_write(struct claimed *c, enum write_class class)
{
	int64_t now_ms = clock_wall_ms();
	int64_t wait_ms = pacing_ask(&c->p->pacing,
	    &(struct pacing_question){
		.class = class, .age_ms = now_ms - c->row.first_ms, .now_ms = clock_mono_ms()});

	if (wait_ms == 0)
		return true;
	c->p->counters.n_paced++;
	claimed_give_back(c, OUTBOX_NOT_YET, now_ms + wait_ms, NULL);
	return false;
}

void claimed_cancel_all(struct publisher *p)
{
	p->is_cancelling = true;
	for (struct claimed *c = p->in_hand; c; c = c->next)
		if (c->on_wire)
			github_cancel(p->deps.github, c->on_wire);
}
