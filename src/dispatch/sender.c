#include "dispatch/sender.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "dispatch/attempt.h"
#include "dispatch/dispatch_internal.h"
#include "dispatch/lane.h"
#include "store/outbox.h"

enum {
	LOOK_AT_LEAST_MS = 60 * 1000, /* also when nobody rings */
	CLAIM_AGAIN_MS = 500,
	SETTLE_AGAIN_MS = 500,
	SETTLE_LATER_MS = 10 * 1000, /* where waiting helps only once somebody has repaired it */
	NO_ROOM_MS = 3000,           /* and up to as much again */
	GRACE_MS = 2000,
	VENDOR_IN_HAND_MAX = 256,
	VENDOR_WIRE_MAX = 64,
	VENDOR_TARGET_WIRE_MAX = 4,
	GITHUB_TARGET_WIRE_MAX = 16,
};

/* A lane and what claims rows for it. */
struct claimer {
	struct lane lane;
	struct sender *s;
	unsigned kinds; /* 1 << OUTBOX_… */
	struct claim_outbox claim;
	bool is_claiming, was_rung;
	bool may_have_more;  /* the last claim was filled to its limit */
	int64_t due_wall_ms; /* when a row that waits is due; 0: none known */
	struct timer *timer;
};

struct sender {
	struct dispatch *d;
	struct payloads *payloads;
	struct claimer github, vendors;
	struct timer *grace;
};

static void claim(struct claimer *c);

static void on_timer(struct timer *t)
{
	struct claimer *c = timer_owner(t);

	c->was_rung = true;
	claim(c);
}

static void claimer_init(struct claimer *c, struct sender *s, unsigned kinds)
{
	c->s = s;
	c->kinds = kinds;
	c->timer = timer_new(s->d->deps.loop, on_timer, c);
	timer_start(c->timer, 0);
}

static void on_grace_over(struct timer *t)
{
	struct sender *s = timer_owner(t);

	for (struct attempt *a = s->github.lane.first; a; a = a->next)
		attempt_cancel(a);
	for (struct attempt *a = s->vendors.lane.first; a; a = a->next)
		attempt_cancel(a);
}

struct sender *sender_new(struct dispatch *d)
{
	struct sender *s = xcalloc(1, sizeof(*s));

	s->d = d;
	s->payloads = payloads_new(d->deps.store);
	s->grace = timer_new(d->deps.loop, on_grace_over, s);
	claimer_init(&s->github, s,
	    1U << OUTBOX_GITHUB_DISPATCH | 1U << OUTBOX_GITHUB_CLOSED | 1U << OUTBOX_RERUN);
	claimer_init(&s->vendors, s,
	    1U << OUTBOX_WEBHOOK_DISPATCH | 1U << OUTBOX_WEBHOOK_CANCEL |
		1U << OUTBOX_WEBHOOK_NOTICE);
	return s;
}

struct payloads *sender_payloads(struct sender *s)
{
	return s->payloads;
}

void sender_ring(struct sender *s)
{
	s->github.was_rung = true;
	s->vendors.was_rung = true;
	claim(&s->github);
	claim(&s->vendors);
}

/* ---- closing ---- */

static void free_sender(void *p)
{
	struct sender *s = p;

	payloads_free(s->payloads);
	free(s);
}

static void finish_closing(struct sender *s)
{
	if (s->github.is_claiming || s->vendors.is_claiming || s->github.lane.n_in_hand > 0 ||
	    s->vendors.lane.n_in_hand > 0)
		return;
	timer_close(s->github.timer);
	timer_close(s->vendors.timer);
	timer_close(s->grace);
	loop_reap(s->d->deps.loop, free_sender, s);
	dispatch_part_closed(s->d);
}

static void put_back_parked(struct claimer *c)
{
	struct attempt *a;

	while ((a = lane_unpark_any(&c->lane)) != NULL)
		attempt_put_back(a, 0);
}

void sender_close(struct sender *s)
{
	timer_stop(s->github.timer);
	timer_stop(s->vendors.timer);
	timer_start(s->grace, GRACE_MS);
	put_back_parked(&s->github);
	put_back_parked(&s->vendors);
	finish_closing(s);
}

/* ---- writing down how it ended ---- */

static void settle(struct attempt *a);

static void log_settled(const struct attempt *a)
{
	static const char *const words[] = {
	    [OUTBOX_OK] = "dispatch_sent",
	    [OUTBOX_RETRY] = "dispatch_retried",
	    [OUTBOX_DEAD] = "dispatch_dead",
	    [OUTBOX_NOT_YET] = "dispatch_put_off",
	};
	static const enum log_level levels[] = {
	    [OUTBOX_OK] = LOG_INFO,
	    [OUTBOX_RETRY] = LOG_WARN,
	    [OUTBOX_DEAD] = LOG_ERROR,
	    [OUTBOX_NOT_YET] = LOG_DEBUG,
	};

	log_event(levels[a->result], words[a->result], LOG_S("dispatch", a->row.dispatch_id),
	    LOG_S("delivery", a->row.delivery_guid), LOG_S("kind", outbox_kind_name(a->row.kind)),
	    LOG_S("target", a->target->name), LOG_I("pr", a->row.number),
	    LOG_S("head", a->row.head_sha), LOG_I("attempts", a->row.n_attempts + 1),
	    LOG_S("error", a->why.text));
}

static void count_settled(struct dispatch *d, const struct attempt *a)
{
	struct dispatch_counters *n = &d->counters;

	switch (a->result) {
	case OUTBOX_OK:
		n->n_github_sent += attempt_is_github(a);
		n->n_webhooks_sent += !attempt_is_github(a);
		if (a->row.kind == OUTBOX_GITHUB_DISPATCH || a->row.kind == OUTBOX_WEBHOOK_DISPATCH)
			histogram_add(&n->send_times, (clock_wall_ms() - a->row.first_ms) * 1000);
		break;
	case OUTBOX_RETRY:
		n->n_retries++;
		break;
	case OUTBOX_DEAD:
		n->n_dead++;
		break;
	case OUTBOX_NOT_YET:
	case OUTBOX_AGAIN: /* only comments */
		break;
	}
}

static struct claimer *claimer_of(struct attempt *a)
{
	return CONTAINER_OF(a->lane, struct claimer, lane);
}

static void arm(struct claimer *c)
{
	int64_t after_ms = LOOK_AT_LEAST_MS;

	if (c->s->d->is_closing)
		return;
	if (c->due_wall_ms) {
		int64_t due_ms = c->due_wall_ms - clock_wall_ms();

		if (due_ms < after_ms)
			after_ms = due_ms > 0 ? due_ms : 1;
	}
	timer_start(c->timer, after_ms);
}

static void be_done_with(struct attempt *a)
{
	struct claimer *c = claimer_of(a);

	int64_t due_ms = 0;

	if (a->result == OUTBOX_RETRY || a->result == OUTBOX_NOT_YET)
		due_ms = a->next_ms;
	lane_remove(a->lane, a);
	c->s->d->counters.n_sending--;
	attempt_free(a);
	if (c->s->d->is_closing) {
		finish_closing(c->s);
		return;
	}
	if (due_ms && (!c->due_wall_ms || due_ms < c->due_wall_ms)) {
		c->due_wall_ms = due_ms;
		arm(c);
	}
	claim(c);
}

static void on_settle_timer(struct timer *t)
{
	settle(timer_owner(t));
}

static void settle_again(struct attempt *a, int err, const char *error)
{
	struct dispatch *d = a->d;

	log_event(LOG_WARN, "dispatch_unsettled", LOG_S("dispatch", a->row.dispatch_id),
	    LOG_S("error", error));
	if (d->is_closing) { /* it stays claimed, and is sent again after the next start */
		be_done_with(a);
		return;
	}
	if (!a->timer)
		a->timer = timer_new(d->deps.loop, on_settle_timer, a);
	timer_start(a->timer, dispatch_is_passing(err) ? SETTLE_AGAIN_MS : SETTLE_LATER_MS);
}

static void on_settled(struct store_op *op)
{
	struct attempt *a = CONTAINER_OF(op, struct attempt, done.op);

	/* A row that stayed `sending` would keep its lane shut until the next start. */
	if (op->err && op->err != ERR_NOT_FOUND)
		settle_again(a, op->err, op->why.text);
	else
		be_done_with(a);
}

static void settle(struct attempt *a)
{
	int rc;

	a->done = (struct outbox_done){
	    .op.done = on_settled,
	    .id = a->row.id,
	    .result = a->result,
	    .generation = a->row.generation,
	    .next_ms = a->next_ms,
	    .now_ms = clock_wall_ms(),
	    .error = *a->why.text ? a->why.text : NULL,
	};
	rc = store_outbox_done(a->d->deps.store, &a->done);
	if (rc)
		settle_again(a, rc, err_text(rc));
}

/* ---- the wire ---- */

static void fill_wire(struct claimer *c)
{
	struct attempt *a;

	while (!c->s->d->is_closing && (a = lane_next(&c->lane)) != NULL)
		attempt_begin(a);
}

void sender_attempt_over(struct sender *s, struct attempt *a)
{
	struct claimer *c = claimer_of(a);

	(void)s;
	if (a->is_begun)
		lane_leave_wire(a->lane, a);
	log_settled(a);
	count_settled(a->d, a);
	settle(a);
	fill_wire(c);
}

static void take(struct claimer *c, struct outbox_row *row)
{
	struct dispatch *d = c->s->d;
	struct attempt *a = attempt_new(d, row);

	a->lane = &c->lane;
	lane_add(&c->lane, a, attempt_target_name(a));
	d->counters.n_sending++;
	if (d->is_closing)
		attempt_put_back(a, 0);
	else if (lane_enter_wire(&c->lane, a))
		attempt_begin(a);
	else if (!lane_park(&c->lane, a))
		attempt_put_back(a, NO_ROOM_MS + (int64_t)(dispatch_random01() * NO_ROOM_MS));
}

/* ---- claiming ---- */

static void on_claimed(struct store_op *op)
{
	struct claimer *c = CONTAINER_OF(op, struct claimer, claim.op);
	struct claim_outbox got = c->claim;

	c->is_claiming = false;
	if (op->err) {
		log_event(LOG_WARN, "outbox_unclaimed", LOG_S("error", op->why.text));
		c->was_rung = false;
		if (c->s->d->is_closing)
			finish_closing(c->s);
		else
			timer_start(c->timer, CLAIM_AGAIN_MS);
		return;
	}
	c->may_have_more = got.n > 0 && (int)got.n >= got.limit;
	if (got.next_due_ms)
		c->due_wall_ms = got.next_due_ms;
	for (size_t i = 0; i < got.n; i++)
		take(c, &got.rows[i]);
	claim_outbox_release(&got);
	if (c->s->d->is_closing) {
		finish_closing(c->s);
		return;
	}
	arm(c);
	claim(c);
}

/* The room follows the configuration. */
static void set_limits(struct claimer *c)
{
	int n = c->s->d->config->github_max_concurrent;

	if (c == &c->s->vendors)
		c->lane.limits = (struct lane_limits){
		    .in_hand = VENDOR_IN_HAND_MAX,
		    .wire = VENDOR_WIRE_MAX,
		    .target_wire = VENDOR_TARGET_WIRE_MAX,
		};
	else /* a few more than GitHub may get at once, so that a free place is filled at once */
		c->lane.limits = (struct lane_limits){
		    .in_hand = 2 * n + 16,
		    .wire = n + 16,
		    .target_wire = GITHUB_TARGET_WIRE_MAX,
		};
}

static void claim(struct claimer *c)
{
	int rc, room;

	if (c->s->d->is_closing || c->is_claiming || !(c->was_rung || c->may_have_more))
		return;
	set_limits(c);
	room = c->lane.limits.in_hand - c->lane.n_in_hand;
	/* Not row by row while the lane is full, but before it runs dry. */
	if (room < c->lane.limits.in_hand / 4)
		return;
	c->claim = (struct claim_outbox){
	    .op.done = on_claimed,
	    .kinds = c->kinds,
	    .limit = room,
	    .now_ms = clock_wall_ms(),
	};
	rc = store_claim_outbox(c->s->d->deps.store, &c->claim);
	if (rc) {
		timer_start(c->timer, CLAIM_AGAIN_MS);
		return;
	}
	c->is_claiming = true;
	c->was_rung = false;
	c->may_have_more = false;
	c->due_wall_ms = 0;
}
