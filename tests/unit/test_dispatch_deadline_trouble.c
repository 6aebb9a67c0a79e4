/* Deadlines while the store is busy: the pause between two attempts grows. */
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
REPLACES(dispatch_part_closed);

enum { TRIES = 3, PAUSES_MS = 500 + 1000 };

static struct world {
	struct dispatch d;
	struct deadline_watch *watch;
	int err;          /* the store's result of each operation */
	bool is_refusing; /* the store does not accept the operation */
	int n_tries;
	int64_t first_ms, last_ms;
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
	return false;
}

int store_shift_clock(struct store *s, struct shift_clock *op)
{
	(void)s;
	(void)op;
	fail_msg("no clock jumped");
	return 0;
}

void store_before_submit(struct store *s, void (*fn)(void *owner), void *owner)
{
	(void)s;
	(void)fn;
	(void)owner;
}

bool store_has_seat(const struct store *s, enum seat seat)
{
	(void)s;
	(void)seat;
	return true;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_full_disk_is_retried_with_back_off),
	    cmocka_unit_test(a_full_queue_is_retried_with_back_off),
	};

	log_setup(LOG_ERROR, LOG_TEXT);
	return cmocka_run_group_tests_name("dispatch_deadline_trouble", tests, NULL, NULL);
}
