/* Retried operations and queries: the store repeats them until they succeed, or until it stops retrying. */
#include "store_rig.h"

enum { QUEUE_MAX = 4, N_OPS = 12 };

struct patient {
	struct store_op op;
	struct store_query q;
	int n_runs, n_failing, err; /* the first n_failing runs fail with err */
	bool is_done;
};
static int n_done;
static bool are_done;

static int fail_first(struct patient *p) { return p->n_runs++ < p->n_failing ? p->err : 0; }

static int run_op(struct store_op *op, struct txn *d)
{
	(void)d;
	return fail_first(CONTAINER_OF(op, struct patient, op));
}

static int run_query(struct store_query *q, const struct view *d)
{
	(void)d;
	return fail_first(CONTAINER_OF(q, struct patient, q));
}

static void count(struct patient *p)
{
	assert_false(p->is_done); /* once */
	p->is_done = true;
	are_done = --n_done == 0;
}

static void op_done(struct store_op *op) { count(CONTAINER_OF(op, struct patient, op)); }

static void query_done(struct store_query *q) { count(CONTAINER_OF(q, struct patient, q)); }

static int submit(struct patient *p, const char *event)
{
	p->op = (struct store_op){.run = run_op, .done = op_done, .retry.event = event};
	n_done++;
	are_done = false;
	return store_submit(rig_store, &p->op);
}

/* Operations run in order, so all earlier ones have been tried when this returns. */
static void wait_for_one_more(void)
{
	struct patient last = {0};

	assert_int_equal(submit(&last, NULL), 0);
	while (!last.is_done) {
		are_done = false;
		n_done = 1;
		loop_run_until(rig_loop, &are_done);
	}
	n_done = 1;
	are_done = false;
}

static int set_up(void **state)
{
	n_done = 0;
	return rig_setup(state);
}

static void a_passing_failure_is_retried(void **state)
{
	struct patient p = {.n_failing = 2, .err = ERR_FULL};
	int64_t from_ms = clock_mono_ms();

	(void)state;
	assert_int_equal(submit(&p, "test_retried"), 0);
	loop_run_until(rig_loop, &are_done);
	assert_int_equal(p.op.err, 0);
	assert_int_equal(p.n_runs, 3);
	assert_true(clock_mono_ms() - from_ms >= 500 + 1000 - 50);
}

/* Deadlines count from it, and the disk may be full for hours. */
static void an_attempt_has_its_own_time(void **state)
{
	struct patient p = {.n_failing = 1, .err = ERR_FULL};
	int64_t now_ms = 1;

	(void)state;
	p.op = (struct store_op){.run = run_op, .done = op_done, .retry = {.event = "test_retried", .now_ms = &now_ms}};
	n_done = 1;
	are_done = false;
	assert_int_equal(store_submit(rig_store, &p.op), 0);
	loop_run_until(rig_loop, &are_done);
	assert_int_equal(p.n_runs, 2);
	assert_true(now_ms > T0);
}

static void a_query_is_retried_too(void **state)
{
	struct patient p = {.n_failing = 1, .err = ERR_IO};

	(void)state;
	p.q = (struct store_query){.run = run_query, .done = query_done, .retry.event = "test_retried"};
	n_done = 1;
	are_done = false;
	assert_int_equal(store_query(rig_store, &p.q), 0);
	loop_run_until(rig_loop, &are_done);
	assert_int_equal(p.q.err, 0);
	assert_int_equal(p.n_runs, 2);
}

static void other_failures_are_not_retried(void **state)
{
	struct patient patient = {.n_failing = 1, .err = ERR_NOT_FOUND};
	struct patient plain = {.n_failing = 1, .err = ERR_FULL};

	(void)state;
	assert_int_equal(submit(&patient, "test_retried"), 0);
	assert_int_equal(submit(&plain, NULL), 0);
	loop_run_until(rig_loop, &are_done);
	assert_int_equal(patient.op.err, ERR_NOT_FOUND);
	assert_int_equal(plain.op.err, ERR_FULL);
	assert_int_equal(patient.n_runs + plain.n_runs, 2);
}

static void a_full_queue_accepts_retried_operations(void **state)
{
	struct patient list[N_OPS] = {0}, plain = {0};
	struct error e = {0};

	(void)state;
	rig_close();
	assert_int_equal(rig_open_with(&(struct store_options){.max_queue_ops = QUEUE_MAX}, &e), 0);
	for (int i = 0; i < N_OPS; i++)
		assert_int_equal(submit(&list[i], "test_retried"), 0);
	assert_int_equal(submit(&plain, NULL), ERR_BUSY);
	n_done--;
	loop_run_until(rig_loop, &are_done);
	for (int i = 0; i < N_OPS; i++)
		assert_int_equal(list[i].op.err, 0);
}

static void nothing_is_retried_after_the_stop(void **state)
{
	struct patient waiting = {.n_failing = 99, .err = ERR_FULL}, later = waiting;

	(void)state;
	assert_int_equal(submit(&waiting, "test_retried"), 0);
	wait_for_one_more();
	store_stop_retrying(rig_store);
	assert_int_equal(submit(&later, "test_retried"), 0);
	loop_run_until(rig_loop, &are_done);
	assert_int_equal(waiting.op.err, ERR_FULL);
	assert_int_equal(later.op.err, ERR_FULL);
}

static void closing_ends_waiting_operations(void **state)
{
	struct patient waiting = {.n_failing = 99, .err = ERR_FULL};
	struct error e = {0};

	(void)state;
	assert_int_equal(submit(&waiting, "test_retried"), 0);
	wait_for_one_more();
	rig_close();
	assert_true(waiting.is_done);
	assert_int_equal(waiting.op.err, ERR_CLOSING);
	assert_int_equal(rig_open_with(&(struct store_options){0}, &e), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_passing_failure_is_retried),
	    TEST(an_attempt_has_its_own_time),
	    TEST(a_query_is_retried_too),
	    TEST(other_failures_are_not_retried),
	    TEST(a_full_queue_accepts_retried_operations),
	    TEST(nothing_is_retried_after_the_stop),
	    TEST(closing_ends_waiting_operations),
	};

	log_setup(LOG_ERROR, LOG_TEXT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
