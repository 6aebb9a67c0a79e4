/* When the bell makes its owner look for work: no ring is lost, whenever it comes. */
#include <setjmp.h>

#include <cmocka.h>

#include "loop/bell.h"

#define HOUR (3600 * INT64_C(1000))

static struct {
	struct loop *loop;
	struct bell *bell;
	struct timer *end; /* of a look */
	int n_looks, n_expected;
	bool is_enough;
	bool takes_time;         /* a look ends at a later turn of the loop */
	int n_failing;           /* the first looks, which end in bell_retry() */
	void (*meanwhile)(void); /* during the first look */
} w;

static void on_end(struct timer *t)
{
	(void)t;
	bell_rest(w.bell);
}

static void look(void *owner)
{
	assert_ptr_equal(owner, &w);
	assert_true(bell_is_looking(w.bell));
	w.n_looks++;
	if (w.meanwhile && w.n_looks == 1)
		w.meanwhile();
	w.is_enough = w.n_looks >= w.n_expected;
	if (w.n_looks <= w.n_failing)
		bell_retry(w.bell);
	else if (w.takes_time)
		timer_start(w.end, 0);
	else
		bell_rest(w.bell);
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.loop = loop_new();
	w.bell = bell_new(w.loop, look, &w);
	w.end = timer_new(w.loop, on_end, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	bell_free(w.bell);
	bell_free(NULL);
	timer_close(w.end);
	loop_stop(w.loop);
	loop_run(w.loop);
	loop_free(w.loop);
	return 0;
}

/* The regular look of each minute does not count as requested: if only that one came, the wait would end first. */
enum { WAIT_S = 50 };

static void wait_for_looks(int n)
{
	w.n_expected = n;
	w.is_enough = w.n_looks >= n;
	alarm(WAIT_S);
	loop_run_until(w.loop, &w.is_enough);
	alarm(0);
	assert_int_equal(w.n_looks, n);
}

static void bell_now_looks_inside_the_call(void **state)
{
	(void)state;
	bell_now(w.bell);
	assert_int_equal(w.n_looks, 1);
	assert_false(bell_is_looking(w.bell));
}

static void many_rings_cause_one_look(void **state)
{
	int64_t from_ms;

	(void)state;
	for (int i = 0; i < 100; i++)
		bell_ring(w.bell);
	assert_int_equal(w.n_looks, 0);
	wait_for_looks(1);
	from_ms = clock_mono_ms();
	bell_by(w.bell, clock_wall_ms() + 200); /* no second of the hundred comes before it */
	wait_for_looks(2);
	assert_true(clock_mono_ms() - from_ms >= 190);
}

static void ring(void) { bell_ring(w.bell); }

static void now(void)
{
	bell_now(w.bell);
	assert_int_equal(w.n_looks, 1);
}

/* The running look may have missed the work of this ring. */
static void a_ring_during_a_look_causes_another_look(void **state)
{
	(void)state;
	w.takes_time = true;
	w.meanwhile = ring;
	bell_now(w.bell);
	wait_for_looks(2);
}

static void a_request_during_a_look_causes_another_look(void **state)
{
	(void)state;
	w.takes_time = true;
	w.meanwhile = now;
	bell_now(w.bell);
	wait_for_looks(2);
}

static void due_far_and_near(void)
{
	bell_by(w.bell, clock_wall_ms() + HOUR);
	bell_by(w.bell, clock_wall_ms() + 60);
	bell_by(w.bell, clock_wall_ms() + HOUR);
	bell_by(w.bell, 0);
}

static void the_earliest_due_time_counts(void **state)
{
	(void)state;
	bell_now(w.bell);
	due_far_and_near();
	wait_for_looks(2);
}

static void a_due_time_that_is_set_during_a_look_is_kept(void **state)
{
	(void)state;
	w.takes_time = true;
	w.meanwhile = due_far_and_near;
	bell_now(w.bell);
	wait_for_looks(2);
}

static void a_ring_does_not_wait_for_the_due_time(void **state)
{
	(void)state;
	bell_by(w.bell, clock_wall_ms() + HOUR);
	bell_ring(w.bell);
	wait_for_looks(1);
	bell_ring(w.bell);
	bell_by(w.bell, clock_wall_ms() + HOUR);
	wait_for_looks(2);
}

/* The clock was set back, or the row is long due: the bell never loops without a pause. */
static void a_due_time_in_the_past_still_leaves_a_pause(void **state)
{
	int64_t from_ms = clock_mono_ms();

	(void)state;
	bell_by(w.bell, 1);
	wait_for_looks(1);
	bell_by(w.bell, 1);
	wait_for_looks(2);
	assert_true(clock_mono_ms() - from_ms >= 2 * 50);
}

/* Requests during the pause wait for its end, and the pause grows. */
static void a_failed_look_is_retried_after_a_pause(void **state)
{
	int64_t from_ms = clock_mono_ms();

	(void)state;
	w.n_failing = 2;
	bell_now(w.bell);
	assert_false(bell_is_looking(w.bell));
	bell_now(w.bell);
	bell_ring(w.bell);
	bell_by(w.bell, 1);
	assert_int_equal(w.n_looks, 1);
	wait_for_looks(2);
	assert_true(clock_mono_ms() - from_ms >= 490);
	bell_ring(w.bell);
	wait_for_looks(3);
	assert_true(clock_mono_ms() - from_ms >= 1490);
	bell_ring(w.bell); /* the third look went well */
	wait_for_looks(4);
}

static void a_failure_without_a_look_causes_one(void **state)
{
	(void)state;
	bell_retry(w.bell);
	bell_retry(w.bell);
	wait_for_looks(1);
}

static void stop(void)
{
	bell_ring(w.bell);
	bell_stop(w.bell);
	bell_stop(w.bell);
	bell_ring(w.bell);
	bell_by(w.bell, 1);
	bell_now(w.bell);
}

static void no_look_follows_the_stop(void **state)
{
	bool never = false;

	(void)state;
	w.takes_time = true;
	w.meanwhile = stop;
	bell_ring(w.bell);
	loop_run_until(w.loop, &never); /* until no event can follow */
	assert_int_equal(w.n_looks, 1);
	assert_false(bell_is_looking(w.bell));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	    TEST(bell_now_looks_inside_the_call),
	    TEST(many_rings_cause_one_look),
	    TEST(a_ring_during_a_look_causes_another_look),
	    TEST(a_request_during_a_look_causes_another_look),
	    TEST(the_earliest_due_time_counts),
	    TEST(a_due_time_that_is_set_during_a_look_is_kept),
	    TEST(a_ring_does_not_wait_for_the_due_time),
	    TEST(a_due_time_in_the_past_still_leaves_a_pause),
	    TEST(a_failed_look_is_retried_after_a_pause),
	    TEST(a_failure_without_a_look_causes_one),
	    TEST(no_look_follows_the_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
