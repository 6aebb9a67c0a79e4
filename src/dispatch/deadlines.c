#include "db/seats.h"
#include "dispatch/dispatch_internal.h"

#include "loop/bell.h"
#include "store/dispatches.h"
#include "store/maintenance.h"
#include "verdict/verdicts.h"

enum {
	RUNG_MS = 200,                       /* one look serves all rings of this time */
	RETENTION_FIRST_MS = 10 * 60 * 1000, /* after the start, when other work is due first */
	RETENTION_EVERY_MS = 24 * 3600 * 1000,
	AFTER_FAILURE_MS = 60 * 1000,
	NEXT_PIECE_MS = 50,
	STAGED_KEPT_MS = 3600 * 1000, /* no report takes that long */
	NODES_EVERY_MS = 2000,
};

struct deadline_watch {
	struct dispatch *d;
	struct clock_watch *clock;
	struct bell *bell; /* a look: one expire_dispatches */
	/* The clock's jump that is to be written before anything expires. Every node that notices it submits it, because while the database
	 * is away, no node has the seat; the operation makes it happen once. */
	int64_t shift_ms; /* 0: none */
	int64_t generation, epoch;
	bool is_shifting;
	struct expire_dispatches expire;
	int64_t experiments_ms;
	struct shift_clock shift;

	struct timer *next_piece; /* of retention */
	bool is_dropping;         /* the store is deleting a piece */
	bool is_drop_postponed;
	struct apply_retention drop;

	struct timer *nodes_timer; /* NULL: no other daemon uses the database */
	bool is_watching_nodes;
	struct watch_nodes nodes;
};

static void close_idle_deadlines(struct deadline_watch *dl)
{
	if (!dl->d->is_closing || bell_is_looking(dl->bell) || dl->is_shifting || dl->is_dropping ||
	    dl->is_watching_nodes)
		return;
	timer_close(dl->nodes_timer);
	timer_close(dl->next_piece);
	bell_free(dl->bell);
	dispatch_part_closed(dl->d, dl);
}

static bool has_deadlines_seat(const struct deadline_watch *dl)
{
	return store_has_seat(dl->d->deps.store, SEAT_DEADLINES);
}

/* ---- the clock jumped ---- */

static void on_shifted(struct store_op *op)
{
	struct deadline_watch *dl = CONTAINER_OF(op, struct deadline_watch, shift.op);

	dl->is_shifting = false;
	if (dl->d->is_closing) {
		close_idle_deadlines(dl);
	} else if (op->err) {
		log_event(LOG_WARN, "deadlines_unread", LOG_S("error", op->why.text));
		if (dl->generation == dl->shift.generation) /* else another node has applied it */
			dl->shift_ms += dl->shift.delta_ms;
		deadline_watch_ring(dl); /* not bell_retry(), which would end a look that is running */
	} else {
		if (dl->generation == dl->shift.generation)
			dl->generation = dl->shift.next_generation;
		bell_now(dl->bell);
	}
}

static void submit_shift(struct deadline_watch *dl)
{
	dl->shift = (struct shift_clock){
	    .op = {.done = on_shifted, .retry = {.event = "deadlines_unread", .now_ms = &dl->shift.now_ms}},
	    .delta_ms = dl->shift_ms,
	    .generation = dl->generation,
	    .epoch = dl->epoch,
	    .now_ms = clock_wall_ms(),
	};
	dl->shift_ms = 0;
	dl->is_shifting = true; /* before the submit, which calls before_submit() */
	if (store_shift_clock(dl->d->deps.store, &dl->shift)) {
		dl->is_shifting = false;
		dl->shift_ms += dl->shift.delta_ms;
		bell_retry(dl->bell);
	}
}

static void on_clock_jumped(int64_t by_ms, void *owner)
{
	struct deadline_watch *dl = owner;
	int64_t generation = store_clock_generation(dl->d->deps.store);

	dl->d->counters.n_clock_jumps++;
	/* The wall clock may be wrong: delete nothing for a day. */
	dl->is_drop_postponed = dl->is_dropping;
	timer_start(dl->next_piece, RETENTION_EVERY_MS);
	if (store_is_shared(dl->d->deps.store) && !generation) {
		log_event(LOG_WARN, "clock_jumped", LOG_I("by_ms", by_ms),
		    LOG_S("consequence", "none: this node has only begun, and the others move the stored times"));
		return;
	}
	if (generation > dl->generation) { /* another node has applied what waits here */
		dl->generation = generation;
		dl->shift_ms = 0;
	}
	dl->epoch = store_clock_epoch(dl->d->deps.store);
	dl->shift_ms += by_ms;
	log_event(LOG_WARN, "clock_jumped", LOG_I("by_ms", by_ms),
	    LOG_S("consequence", "every stored due time moves with it"));
	if (!dl->is_shifting)
		submit_shift(dl);
}

/* The caller may have its times from the new clock. Moves the times in the store first, so that the caller's do not move
 * too. */
static void before_submit(void *owner)
{
	struct deadline_watch *dl = owner;

	clock_watch_look(dl->clock);
}

/* ---- deadlines ---- */

static void on_expired(struct store_op *op)
{
	struct deadline_watch *dl = CONTAINER_OF(op, struct deadline_watch, expire.op);

	if (op->err == 0 && dl->expire.n_expired > 0) {
		dl->d->counters.n_expired += dl->expire.n_expired;
		log_event(LOG_INFO, "dispatches_expired", LOG_I("n", dl->expire.n_expired));
	}
	if (op->err && !dl->d->is_closing) {
		log_event(LOG_WARN, "deadlines_unread", LOG_S("error", op->why.text));
		bell_retry(dl->bell);
		return;
	}
	if (!op->err)
		dl->experiments_ms = dl->expire.next_experiments_ms;
	bell_by(dl->bell, dl->expire.next_due_ms);
	bell_rest(dl->bell);
	close_idle_deadlines(dl);
}

static void look_for_deadlines(void *owner)
{
	struct deadline_watch *dl = owner;

	clock_watch_look(dl->clock);
	if (dl->shift_ms && !dl->is_shifting)
		submit_shift(dl);
	if (dl->shift_ms || dl->is_shifting || !has_deadlines_seat(dl)) { /* on_shifted() looks again */
		bell_rest(dl->bell);
		return;
	}
	dl->expire = (struct expire_dispatches){
	    .op.done = on_expired, .now_ms = clock_wall_ms(), .experiments_ms = dl->experiments_ms};
	if (store_expire_dispatches(dl->d->deps.store, &dl->expire))
		bell_retry(dl->bell);
}

void deadline_watch_ring(struct deadline_watch *dl) { bell_by(dl->bell, clock_wall_ms() + RUNG_MS); }

void deadline_watch_on_seat(struct deadline_watch *dl) { bell_now(dl->bell); }

/* ---- retention: deletes old data once a day, in small pieces, so that other work does not wait ---- */

static void on_piece_dropped(struct store_op *op)
{
	struct deadline_watch *dl = CONTAINER_OF(op, struct deadline_watch, drop.op);

	dl->is_dropping = false;
	if (dl->d->is_closing) {
		close_idle_deadlines(dl);
		return;
	}
	if (op->err)
		log_event(LOG_WARN, "retention_failed", LOG_S("error", op->why.text));
	if (!dl->is_drop_postponed) /* else the timer runs already */
		timer_start(dl->next_piece, op->err             ? AFTER_FAILURE_MS
					    : dl->drop.has_more ? NEXT_PIECE_MS
								: RETENTION_EVERY_MS);
	dl->is_drop_postponed = false;
}

static void drop_piece(struct timer *t)
{
	struct deadline_watch *dl = timer_owner(t);
	const struct config *c = dl->d->config;
	int64_t now_ms = clock_wall_ms();

	if (dl->is_dropping)
		return;
	if (!store_has_seat(dl->d->deps.store, SEAT_RETENTION)) {
		timer_start(t, RETENTION_FIRST_MS);
		return;
	}
	dl->drop = (struct apply_retention){
	    .op = {.done = on_piece_dropped, .retry.event = "retention_failed"},
	    .deliveries_before_ms = now_ms - c->retention_deliveries_ms,
	    .results_before_ms = now_ms - c->retention_results_ms,
	    .days_before_ms = now_ms - c->retention_days_ms,
	    .failures_before_ms = now_ms - FAILURES_KEPT_MS,
	    .staged_before_ms = now_ms - STAGED_KEPT_MS,
	};
	dl->is_dropping = store_apply_retention(dl->d->deps.store, &dl->drop) == 0;
}

/* ---- nodes that died ---- */

static void on_nodes_watched(struct store_op *op)
{
	struct deadline_watch *dl = CONTAINER_OF(op, struct deadline_watch, nodes.op);

	dl->is_watching_nodes = false;
	if (!op->err && (dl->nodes.n_gone || dl->nodes.n_taken_over))
		log_event(LOG_WARN, "nodes_given_up", LOG_I("n", dl->nodes.n_gone), LOG_S("nodes", dl->nodes.names),
		    LOG_I("requests_taken_over", dl->nodes.n_taken_over),
		    LOG_S("consequence",
			dl->nodes.n_gone ? "these daemons have not reached the database for 25 s: the others have their"
					   " work, and one that comes back begins again as a new node"
					 : "the requests of a daemon that has ended are sent again"));
	close_idle_deadlines(dl);
}

static void on_nodes_timer(struct timer *t)
{
	struct deadline_watch *dl = timer_owner(t);

	timer_start(t, NODES_EVERY_MS);
	if (dl->is_watching_nodes || dl->shift_ms || dl->is_shifting || !has_deadlines_seat(dl))
		return;
	dl->nodes = (struct watch_nodes){.op.done = on_nodes_watched, .now_ms = clock_wall_ms()};
	dl->is_watching_nodes = store_watch_nodes(dl->d->deps.store, &dl->nodes) == 0;
}

/* ---- life ---- */

struct deadline_watch *deadline_watch_new(struct dispatch *d)
{
	struct deadline_watch *dl = xcalloc(1, sizeof(*dl));

	dl->d = d;
	dl->bell = bell_new(d->deps.loop, look_for_deadlines, dl);
	dl->clock = clock_watch_new(d->deps.loop, on_clock_jumped, dl);
	dl->next_piece = timer_new(d->deps.loop, drop_piece, dl);
	timer_start(dl->next_piece, RETENTION_FIRST_MS);
	if (store_is_shared(d->deps.store)) {
		dl->nodes_timer = timer_new(d->deps.loop, on_nodes_timer, dl);
		timer_start(dl->nodes_timer, NODES_EVERY_MS);
	}
	store_before_submit(d->deps.store, before_submit, dl);
	bell_ring(dl->bell);
	return dl;
}

void deadline_watch_close(struct deadline_watch *dl)
{
	store_before_submit(dl->d->deps.store, NULL, NULL);
	clock_watch_free(dl->clock);
	dl->clock = NULL;
	bell_stop(dl->bell);
	timer_stop(dl->next_piece);
	if (dl->nodes_timer)
		timer_stop(dl->nodes_timer);
	close_idle_deadlines(dl);
}
