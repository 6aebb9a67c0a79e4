#include "outbox/engine.h"

#include "loop/bell.h"
#include "model/schedule.h"
#include "outbox/lane.h"

enum {
	NO_ROOM_MS = 3000, /* and up to as much again */
	NO_ROOM_SHORT_MS = 100,
	SETTLE_RETRY_MS = 500,
	SETTLE_REPAIR_MS = 10 * 1000, /* when the store fails until an operator repairs it */
};

struct engine {
	struct engine_options options;
	struct pacing pacing;
	int64_t n_paced;
	struct engine_lane *lanes;
	TAILQ_HEAD(, effect) claimed;
	int n_claimed;
	struct timer *grace;
	bool is_closing, is_cancelling, is_closed, is_paused;
	void (*on_closed)(void *owner);
	void *closed_owner;
	struct log_limit claim_lines;
};

struct engine_lane {
	struct engine *engine;
	struct lane places;
	struct bell *bell; /* a look is one claim */
	unsigned kinds;    /* bits 1 << OUTBOX_… */
	struct claim_outbox claim;
	bool is_look_pending; /* engine_look() came during a claim, which may be too late for it */
	bool may_have_more;   /* the last claim did not see every due row, or there was no room for one */
	bool is_filling;      /* inside begin_parked() */
};

/* ---- closing ---- */

static void close_engine_if_idle(struct engine *n)
{
	if (!n->is_closing || n->is_closed || n->n_claimed > 0)
		return;
	for (size_t i = 0; i < n->options.n_lanes; i++)
		if (bell_is_looking(n->lanes[i].bell) || n->lanes[i].places.n_reserved > 0)
			return;
	n->is_closed = true;
	timer_close(n->grace);
	loop_reap(n->options.loop, n->on_closed, n->closed_owner);
}

static void cut_off_requests(struct engine *n)
{
	struct effect *e, *next;

	for (e = TAILQ_FIRST(&n->claimed); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->step == EFFECT_BEGUN && !effect_may_go_on(e))
			e->kind->cancel(e);
	}
}

static void on_grace_over(struct timer *t)
{
	struct engine *n = timer_owner(t);

	n->is_cancelling = true;
	cut_off_requests(n);
}

/* Puts the rows back that were not begun, at once those that were only to be recorded. */
static void put_back_parked(struct engine *n)
{
	struct effect *e, *next;

	for (e = TAILQ_FIRST(&n->claimed); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->step == EFFECT_PARKED) {
			lane_unpark(e);
			effect_put_off(e, 0);
		} else if (e->timer && timer_is_running(e->timer)) {
			timer_start(e->timer, 0);
		}
	}
}

void engine_pause(struct engine *n, bool is_paused)
{
	if (n->is_closing)
		return;
	n->is_paused = is_paused;
	if (is_paused)
		put_back_parked(n);
	else
		engine_look(n);
}

void engine_close(struct engine *n, int64_t grace_ms, void (*on_closed)(void *owner), void *owner)
{
	assert(!n->is_closing);
	n->is_closing = true;
	n->on_closed = on_closed;
	n->closed_owner = owner;
	timer_start(n->grace, grace_ms);
	for (size_t i = 0; i < n->options.n_lanes; i++)
		bell_stop(n->lanes[i].bell);
	put_back_parked(n);
	close_engine_if_idle(n);
}

/* ---- how an effect ends ---- */

static bool lane_may_claim(const struct engine_lane *l)
{
	const char *past;

	return l->may_have_more && lane_room(&l->places, &past) > 0;
}

static void effect_free(void *p)
{
	struct effect *e = p;
	struct engine *n = e->engine;
	struct engine_lane *l = e->lane;

	if (e->result == OUTBOX_RETRY || e->result == OUTBOX_NOT_YET || e->result == OUTBOX_AGAIN)
		bell_by(l->bell, e->next_ms);
	e->kind->release(e);
	TAILQ_REMOVE(&n->claimed, e, link);
	n->n_claimed--;
	lane_remove(&l->places, e);
	timer_close(e->timer);
	outbox_row_release(&e->row);
	free(e);
	if (n->is_closing)
		close_engine_if_idle(n);
	else if (lane_may_claim(l))
		bell_now(l->bell);
}

static void settle_effect(struct effect *e);

static void on_settle_timer(struct timer *t) { settle_effect(timer_owner(t)); }

/* A row that stayed `sending` would keep its successors waiting as long as this node lives, so the engine does not give up before
 * the service stops. */
static void settle_effect_later(struct effect *e, int err, const char *why)
{
	struct engine *n = e->engine;

	if (n->options.settle_failed_event)
		log_event(LOG_WARN, n->options.settle_failed_event, LOG_S("dispatch", e->row.dispatch_id),
		    LOG_S("error", why));
	if (n->is_closing || err == ERR_CLOSING) {
		loop_reap(n->options.loop, effect_free, e); /* callers of effect_end() may hold it */
		return;
	}
	if (!e->timer)
		e->timer = timer_new(n->options.loop, on_settle_timer, e);
	timer_start(e->timer, store_is_passing(err) ? SETTLE_RETRY_MS : SETTLE_REPAIR_MS);
}

static void on_settled(struct store_op *op)
{
	struct effect *e = CONTAINER_OF(op, struct effect, done.op);

	if (op->err && op->err != ERR_NOT_FOUND)
		settle_effect_later(e, op->err, op->why.text);
	else
		effect_free(e);
}

static void settle_effect(struct effect *e)
{
	e->done = (struct outbox_done){
	    .op.done = on_settled,
	    .id = e->row.id,
	    .result = e->result,
	    .epoch = e->row.epoch,
	    .generation = e->row.generation,
	    .is_uncertain = e->is_uncertain,
	    .n_writes = e->n_writes,
	    .next_ms = e->next_ms,
	    .now_ms = clock_wall_ms(),
	    .error = *e->why.text ? e->why.text : NULL,
	};
	int rc = store_outbox_done(e->engine->options.store, &e->done);
	if (rc)
		settle_effect_later(e, rc, err_text(rc));
}

static void begin_parked(struct engine_lane *l)
{
	struct effect *e;

	if (l->is_filling) /* an effect ended inside its begin(): the loop below goes on */
		return;
	l->is_filling = true;
	while (!l->engine->is_closing && store_is_acting(l->engine->options.store) &&
	       (e = lane_next(&l->places)) != NULL) {
		e->step = EFFECT_BEGUN;
		if (effect_may_go_on(e))
			e->kind->begin(e);
		else
			effect_put_off(e, 0);
	}
	l->is_filling = false;
}

void effect_end(struct effect *e, enum outbox_result result, int64_t next_ms)
{
	assert(e->step != EFFECT_ENDED);
	if (e->step == EFFECT_BEGUN)
		lane_end(&e->lane->places, e, result == OUTBOX_OK);
	e->step = EFFECT_ENDED;
	e->result = result;
	e->next_ms = next_ms;
	if (e->engine->options.on_end)
		e->engine->options.on_end(e);
	settle_effect(e);
	begin_parked(e->lane);
}

bool effect_is_too_late(const struct effect *e, int64_t at_wall_ms)
{
	return backoff_is_over(e->first_mono_ms, clock_mono_ms() + (at_wall_ms - clock_wall_ms()));
}

void effect_put_off(struct effect *e, int64_t after_ms)
{
	int64_t next_ms = clock_wall_ms() + after_ms;

	if (!e->engine->is_closing && effect_is_too_late(e, next_ms)) {
		error_set(&e->why, ERR_TIMEOUT, "it could not be sent within a day");
		effect_end(e, OUTBOX_DEAD, 0);
	} else {
		effect_end(e, OUTBOX_NOT_YET, next_ms);
	}
}

bool effect_back_off(const struct effect *e, int64_t retry_after_ms, int64_t *ret_next_ms)
{
	*ret_next_ms = clock_wall_ms() + backoff_delay_ms(e->row.n_attempts + 1, retry_after_ms, random_fraction());
	return !effect_is_too_late(e, *ret_next_ms);
}

bool effect_may_write(struct effect *e, enum write_class class)
{
	int64_t now_ms = clock_wall_ms();
	int64_t wait_ms = pacing_reserve(&e->engine->pacing,
	    &(struct pacing_request){.class = class, .age_ms = now_ms - e->row.first_ms, .now_ms = clock_mono_ms()});

	e->n_writes += wait_ms == 0;
	if (wait_ms == 0)
		return true;
	e->engine->n_paced++;
	effect_end(e, OUTBOX_NOT_YET, now_ms + wait_ms);
	return false;
}

const char *effect_target(const struct effect *e) { return e->target->name; }

/* ---- claims ---- */

static void effect_put_off_for_room(struct effect *e)
{
	int64_t pause_ms = lane_target_may_answer(e->target) ? NO_ROOM_SHORT_MS : NO_ROOM_MS;

	effect_put_off(e, pause_ms + (int64_t)(random_fraction() * (double)pause_ms));
}

static const struct effect_kind *engine_kind(const struct engine *n, enum outbox_kind kind)
{
	const struct effect_kind *const *k = n->options.kinds;

	while ((*k)->kind != kind)
		k++;
	return *k;
}

/* The row moves into an effect, which begins or waits for its turn. */
static void adopt_row(struct engine *n, struct outbox_row *row)
{
	const struct effect_kind *kind = engine_kind(n, row->kind);
	struct engine_lane *l = &n->lanes[kind->lane];
	struct effect *e = xcalloc(1, kind->bytes);

	e->engine = n;
	e->row = *row;
	memset(row, 0, sizeof(*row));
	e->is_uncertain = e->row.is_uncertain;
	e->first_mono_ms = clock_mono_ms() - (clock_wall_ms() - e->row.first_ms);
	e->kind = kind;
	e->lane = l;
	TAILQ_INSERT_HEAD(&n->claimed, e, link);
	n->n_claimed++;
	lane_add(&l->places, e, kind->target_name ? kind->target_name(e) : xstrdup(""));
	if (n->is_closing || n->is_paused)
		effect_put_off(e, 0);
	else if (lane_park(&l->places, e))
		begin_parked(l);
	else
		effect_put_off_for_room(e);
}

void engine_offer(struct engine *n, enum outbox_kind kind, int n_rows, struct outbox_offer *offer)
{
	struct engine_lane *l = &n->lanes[engine_kind(n, kind)->lane];
	const char *past;

	/* Rows that wait in the database come first. */
	if (n->is_closing || n->is_paused || l->may_have_more || lane_room(&l->places, &past) < n_rows || past)
		return;
	l->places.n_reserved += n_rows;
	offer->places[kind] += n_rows;
}

void engine_adopt(struct engine *n, struct outbox_offer *offer)
{
	for (size_t i = 0; i < offer->n; i++)
		n->lanes[engine_kind(n, offer->rows[i].kind)->lane].places.n_reserved--;
	for (size_t i = 0; i < n->options.n_kinds; i++) {
		const struct effect_kind *kind = n->options.kinds[i];

		n->lanes[kind->lane].places.n_reserved -= offer->places[kind->kind];
		offer->places[kind->kind] = 0;
	}
	for (size_t i = 0; i < offer->n; i++)
		adopt_row(n, &offer->rows[i]);
	outbox_offer_release(offer);
	close_engine_if_idle(n);
}

static void on_rows_claimed(struct store_op *op)
{
	struct engine_lane *l = CONTAINER_OF(op, struct engine_lane, claim.op);
	int64_t n_skipped;

	if (op->err) {
		if (log_limit_pass(&l->engine->claim_lines, clock_mono_ms(), &n_skipped))
			log_event(LOG_WARN, l->engine->options.claim_failed_event, LOG_S("error", op->why.text),
			    LOG_I("more", n_skipped));
		claim_outbox_release(&l->claim);
		bell_retry(l->bell);
		close_engine_if_idle(l->engine);
		return;
	}
	l->may_have_more = l->claim.past || (l->claim.n > 0 && (int)l->claim.n >= l->claim.limit);
	bell_by(l->bell, l->claim.next_due_ms);
	if (l->claim.past)
		bell_by(l->bell, clock_wall_ms() + LANE_LOOK_PAST_MS);
	for (size_t i = 0; i < l->claim.n; i++)
		adopt_row(l->engine, &l->claim.rows[i]);
	claim_outbox_release(&l->claim);
	bell_rest(l->bell);
	if (l->is_look_pending || lane_may_claim(l))
		bell_now(l->bell);
	close_engine_if_idle(l->engine);
}

static void claim_due_rows(void *owner)
{
	struct engine_lane *l = owner;
	const char *past;
	int room = lane_room(&l->places, &past);

	l->is_look_pending = false;
	if (l->engine->is_paused) { /* engine_pause() looks again */
		l->may_have_more = false;
		bell_rest(l->bell);
		return;
	}
	l->may_have_more = room == 0;
	if (room == 0) { /* effect_free() looks again, or, when the target that fills the lane hangs, this bell */
		bell_by(l->bell, clock_wall_ms() + LANE_LOOK_PAST_MS);
		bell_rest(l->bell);
		return;
	}
	l->claim = (struct claim_outbox){
	    .op.done = on_rows_claimed,
	    .kinds = l->kinds,
	    .limit = room,
	    .now_ms = clock_wall_ms(),
	    .past = xstrdup_or_null(past),
	};
	if (past)
		l->places.looked_past_mono_ms = clock_mono_ms();
	if (store_claim_outbox(l->engine->options.store, &l->claim)) {
		claim_outbox_release(&l->claim);
		bell_retry(l->bell);
	}
}

/* ---- life ---- */

struct engine *engine_new(const struct engine_options *options)
{
	struct engine *n = xcalloc(1, sizeof(*n));

	n->options = *options;
	n->claim_lines.longest_ms = LOG_LONGEST_PAUSE_MS;
	pacing_init(&n->pacing, options->writes_per_minute);
	TAILQ_INIT(&n->claimed);
	n->lanes = xcalloc(options->n_lanes, sizeof(*n->lanes));
	for (size_t i = 0; i < options->n_lanes; i++) {
		struct engine_lane *l = &n->lanes[i];

		l->engine = n;
		lane_init(&l->places, options->lanes[i]);
		l->bell = bell_new(options->loop, claim_due_rows, l);
	}
	for (size_t i = 0; i < options->n_kinds; i++)
		n->lanes[options->kinds[i]->lane].kinds |= 1u << options->kinds[i]->kind;
	n->grace = timer_new(options->loop, on_grace_over, n);
	engine_ring(n);
	return n;
}

void *engine_owner(const struct engine *n) { return n->options.owner; }

void engine_limit_lane(struct engine *n, int lane, struct lane_limits limits) { n->lanes[lane].places.limits = limits; }

void engine_limit_writes(struct engine *n, int writes_per_minute) { pacing_configure(&n->pacing, writes_per_minute); }

void engine_forget_writes(struct engine *n) { pacing_forget(&n->pacing); }

void engine_note_writes(struct engine *n, int64_t ago_ms, int n_writes)
{
	for (int i = 0; i < n_writes; i++)
		pacing_note(&n->pacing, clock_mono_ms() - (ago_ms > 0 ? ago_ms : 0));
}

void engine_ring(struct engine *n)
{
	for (size_t i = 0; i < n->options.n_lanes; i++)
		bell_ring(n->lanes[i].bell);
}

void engine_follow_node(struct engine *n)
{
	cut_off_requests(n);
	for (size_t i = 0; i < n->options.n_lanes; i++)
		begin_parked(&n->lanes[i]);
	if (!n->is_closing)
		engine_look(n);
}

void engine_look(struct engine *n)
{
	for (size_t i = 0; i < n->options.n_lanes; i++) {
		n->lanes[i].is_look_pending = true;
		bell_now(n->lanes[i].bell);
	}
}

bool engine_is_closing(const struct engine *n) { return n->is_closing; }

bool effect_may_go_on(const struct effect *e)
{
	const struct engine *n = e->engine;

	return !n->is_cancelling && store_is_acting(n->options.store) && e->row.epoch == store_epoch(n->options.store);
}

bool effect_may_go_out(const void *effect) { return effect_may_go_on(effect); }

struct effect *engine_next(const struct engine *n, const struct effect *e)
{
	return e ? TAILQ_NEXT(e, link) : TAILQ_FIRST(&n->claimed);
}

int engine_n_claimed(const struct engine *n) { return n->n_claimed; }

int64_t engine_n_paced(const struct engine *n) { return n->n_paced; }

void engine_free(struct engine *n)
{
	if (!n)
		return;
	assert(n->is_closed);
	for (size_t i = 0; i < n->options.n_lanes; i++)
		bell_free(n->lanes[i].bell);
	pacing_release(&n->pacing);
	FREE_ALL(n->lanes, n);
}
