/* Timers, the reaper, signals, pool work and the lifetime of the loop. */
#include <setjmp.h>
#include <signal.h>

#include <cmocka.h>

#include "loop/loop.h"

struct probe {
	struct loop *loop;
	struct timer *timer;
	int n_fired;
	bool is_done;
	char order[16];
	int n_order;
};

static void end(struct loop *l)
{
	loop_stop(l);
	loop_run(l);
	loop_free(l);
}

static void on_fire(struct timer *t)
{
	struct probe *p = timer_owner(t);

	p->n_fired++;
	p->is_done = true;
}

static void fires_once_and_not_early(void **state)
{
	struct probe p = {.loop = loop_new()};
	int64_t from_ms;

	(void)state;
	p.timer = timer_new(p.loop, on_fire, &p);
	assert_false(timer_is_running(p.timer));
	from_ms = clock_mono_ms();
	timer_start(p.timer, 20);
	assert_true(timer_is_running(p.timer));
	loop_run_until(p.loop, &p.is_done);
	assert_true(clock_mono_ms() - from_ms >= 20);
	assert_int_equal(p.n_fired, 1);
	assert_false(timer_is_running(p.timer));
	timer_close(p.timer);
	timer_close(NULL);
	end(p.loop);
}

static void restart_replaces_and_stop_stops(void **state)
{
	struct probe p = {.loop = loop_new()}, stopped = {0};
	struct timer *other = timer_new(p.loop, on_fire, &stopped);

	(void)state;
	p.timer = timer_new(p.loop, on_fire, &p);
	timer_start(other, 0);
	timer_stop(other);
	timer_start(p.timer, 100000);
	timer_start(p.timer, -5);
	loop_run_until(p.loop, &p.is_done);
	assert_int_equal(p.n_fired, 1);
	assert_int_equal(stopped.n_fired, 0);
	timer_close(p.timer);
	timer_close(other);
	end(p.loop);
}

static void close_in_own_callback(struct timer *t)
{
	struct probe *p = timer_owner(t);

	p->n_fired++;
	timer_close(t);
	loop_stop(p->loop);
}

static void timer_may_close_itself(void **state)
{
	struct probe p = {.loop = loop_new()};

	(void)state;
	timer_start(timer_new(p.loop, close_in_own_callback, &p), 0);
	loop_run(p.loop);
	assert_int_equal(p.n_fired, 1);
	loop_free(p.loop);
}

static void release_second(void *arg)
{
	struct probe *p = arg;

	p->order[p->n_order++] = '3';
	p->is_done = true;
}

static void release_first(void *arg)
{
	struct probe *p = arg;

	p->order[p->n_order++] = '2';
	loop_reap(p->loop, release_second, p);
}

static void reap_from_timer(struct timer *t)
{
	struct probe *p = timer_owner(t);

	loop_reap(p->loop, release_first, p);
	p->order[p->n_order++] = '1';
}

static void the_reaper_runs_after_the_callback(void **state)
{
	struct probe p = {.loop = loop_new()};

	(void)state;
	p.timer = timer_new(p.loop, reap_from_timer, &p);
	timer_start(p.timer, 0);
	loop_run_until(p.loop, &p.is_done);
	assert_string_equal(p.order, "123");
	timer_close(p.timer);
	end(p.loop);
}

static void the_reaper_runs_at_the_end_of_the_loop(void **state)
{
	struct loop *l = loop_new();

	(void)state;
	for (int i = 0; i < 100; i++)
		loop_reap(l, free, xmalloc(10));
	loop_free(l);
	loop_free(NULL);
}

static void on_signal(int signum, void *owner)
{
	struct probe *p = owner;

	assert_int_equal(signum, SIGUSR1);
	p->n_fired++;
	loop_close_signals(p->loop);
	loop_stop(p->loop);
}

static void a_signal_arrives_on_the_loop(void **state)
{
	struct probe p = {.loop = loop_new()};

	(void)state;
	loop_on_signal(p.loop, SIGUSR1, on_signal, &p);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	loop_run(p.loop);
	assert_int_equal(p.n_fired, 1);
	loop_free(p.loop);
}

struct sum {
	struct pool_work work;
	struct loop *loop;
	int in, out;
	int *n_left;
	bool was_elsewhere;
};

static void do_sum(struct pool_work *w)
{
	struct sum *s = CONTAINER_OF(w, struct sum, work);

	s->out = s->in * 2;
	s->was_elsewhere = !loop_is_this_thread(s->loop);
}

static void after_sum(struct pool_work *w)
{
	struct sum *s = CONTAINER_OF(w, struct sum, work);

	assert_true(loop_is_this_thread(s->loop));
	if (--*s->n_left == 0)
		loop_stop(s->loop);
}

static void the_pool_works_on_another_thread_and_returns(void **state)
{
	struct loop *l = loop_new();
	struct sum sums[32];
	int n_left = ARRAY_LEN(sums);

	(void)state;
	for (int i = 0; i < (int)ARRAY_LEN(sums); i++) {
		sums[i] = (struct sum){.loop = l, .in = i, .n_left = &n_left};
		sums[i].work.work = do_sum;
		sums[i].work.after = after_sum;
		pool_submit(l, &sums[i].work);
	}
	loop_run(l);
	for (int i = 0; i < (int)ARRAY_LEN(sums); i++) {
		assert_int_equal(sums[i].out, 2 * i);
		assert_true(sums[i].was_elsewhere);
	}
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fires_once_and_not_early),
	    cmocka_unit_test(restart_replaces_and_stop_stops),
	    cmocka_unit_test(timer_may_close_itself),
	    cmocka_unit_test(the_reaper_runs_after_the_callback),
	    cmocka_unit_test(the_reaper_runs_at_the_end_of_the_loop),
	    cmocka_unit_test(a_signal_arrives_on_the_loop),
	    cmocka_unit_test(the_pool_works_on_another_thread_and_returns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
