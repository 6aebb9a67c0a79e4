/* Deadlines while the store is busy: the pause between two attempts grows. And which jumps of the clock a node applies. */
#include <setjmp.h>

#include <cmocka.h>

#include "db/seats.h"
#include "dispatch/dispatch_internal.h"
#include "replaces.h"
#include "store/dispatches.h"
#include "store/maintenance.h"

REPLACES(store_expire_dispatches);
REPLACES(store_shift_clock);
REPLACES(store_before_submit);
REPLACES(store_is_shared);
REPLACES(store_has_seat);
REPLACES(store_clock_generation);
REPLACES(store_clock_epoch);
REPLACES(dispatch_part_closed);

enum { TRIES = 3, PAUSES_MS = 500 + 1000, HOUR_MS = 3600 * 1000 };

static struct world {
	struct dispatch d;
	struct deadline_watch *watch;
	int err;          /* the store's result of each operation */
	bool is_refusing; /* the store does not accept the operation */
	int n_tries;
	int64_t first_ms, last_ms;
	bool has_no_seat, is_shared;
	void (*before_submit)(void *owner);
	int64_t generation, ahead_ms;
	struct shift_clock *shift; /* that was submitted */
} w;

static void close_all(void *p)
{
	(void)p;
	w.d.is_closing = true;
	deadline_watch_close(w.watch);
}

static void op_done(void *p)
{
	struct store_op *op = p;

	op->err = w.err;
	op->done(op);
}

int store_expire_dispatches(struct store *s, struct expire_dispatches *op)
{
	(void)s;
	w.last_ms = clock_mono_ms();
	if (w.n_tries++ == 0)
		w.first_ms = w.last_ms;
	if (w.n_tries == TRIES)
		loop_reap(w.d.deps.loop, close_all, NULL);
	if (w.is_refusing)
		return w.err;
	loop_reap(w.d.deps.loop, op_done, &op->op);
	return 0;
}

bool store_is_shared(const struct store *s)
{
	(void)s;
	return w.is_shared;
}

int store_shift_clock(struct store *s, struct shift_clock *op)
{
	(void)s;
	assert_true(w.has_no_seat); /* else no clock jumped */
	w.shift = op;
	return 0;
}

int64_t store_clock_generation(const struct store *s)
{
	(void)s;
	return w.generation;
}

int64_t store_clock_epoch(const struct store *s)
{
	(void)s;
	return 7;
}

void store_before_submit(struct store *s, void (*fn)(void *owner), void *owner)
{
	(void)s;
	(void)owner;
	w.before_submit = fn;
}

bool store_has_seat(const struct store *s, enum seat seat)
{
	(void)s;
	(void)seat;
	return !w.has_no_seat;
}

void dispatch_part_closed(struct dispatch *d, void *part)
{
	loop_reap(d->deps.loop, free, part);
	loop_stop(d->deps.loop);
}

static void expect_patience(void)
{
	w.d.deps.loop = loop_new();
	w.watch = deadline_watch_new(&w.d);
	loop_run(w.d.deps.loop);
	loop_free(w.d.deps.loop);
	assert_true(w.last_ms - w.first_ms >= PAUSES_MS - 50);
}

static void a_full_disk_is_retried_with_back_off(void **state)
{
	(void)state;
	w = (struct world){.err = ERR_FULL};
	expect_patience();
}

static void a_full_queue_is_retried_with_back_off(void **state)
{
	(void)state;
	w = (struct world){.err = ERR_BUSY, .is_refusing = true};
	expect_patience();
}

/* The time of the database jumps, and this node notices it. */
static void notice_jump(int64_t by_ms)
{
	w.shift = NULL;
	w.ahead_ms += by_ms;
	clock_follow(w.ahead_ms);
	w.before_submit(w.watch);
}

/* Returns the operation that it submits. */
static struct shift_clock *jump(int64_t by_ms)
{
	notice_jump(by_ms);
	assert_non_null(w.shift);
	assert_in_range(w.shift->delta_ms, by_ms - 1000, by_ms + 1000);
	assert_int_equal(w.shift->epoch, 7);
	return w.shift;
}

static void end_shift(struct shift_clock *op, int err, int64_t n_applied)
{
	op->next_generation = op->generation + n_applied;
	op->op.err = err;
	op->op.done(&op->op);
}

/* After a failover to a machine with another clock, no node has the seat yet. Each one submits the jump with the number of those that it
 * knows, which lets only one of them through. */
static void every_node_that_notices_a_jump_applies_it(void **state)
{
	(void)state;
	w = (struct world){.has_no_seat = true, .is_shared = true, .ahead_ms = clock_wall_ms() - clock_mono_ms()};
	clock_follow(w.ahead_ms);
	w.d.deps.loop = loop_new();
	w.watch = deadline_watch_new(&w.d);
	notice_jump(HOUR_MS); /* before it knows of any */
	assert_null(w.shift);
	w.generation = 3;
	assert_int_equal(jump(HOUR_MS)->generation, 3);
	end_shift(w.shift, ERR_IO, 0);
	w.generation = 4; /* another node has applied it */
	assert_int_equal(jump(-2 * HOUR_MS)->generation, 4);
	end_shift(w.shift, 0, 1);
	assert_int_equal(jump(HOUR_MS)->generation, 5); /* this node knows what it has applied itself, */
	end_shift(w.shift, 0, 0);
	assert_int_equal(jump(HOUR_MS)->generation, 5); /* and that this was left out */
	end_shift(w.shift, 0, 1);
	assert_int_equal(w.d.counters.n_clock_jumps, 5);
	close_all(NULL);
	loop_run(w.d.deps.loop);
	loop_free(w.d.deps.loop);
	clock_follow(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_full_disk_is_retried_with_back_off),
	    cmocka_unit_test(a_full_queue_is_retried_with_back_off),
	    cmocka_unit_test(every_node_that_notices_a_jump_applies_it),
	};

	log_setup(LOG_ERROR, LOG_TEXT);
	return cmocka_run_group_tests_name("dispatch_deadline_trouble", tests, NULL, NULL);
}
