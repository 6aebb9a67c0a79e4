/* The inbox under threads: every item arrives once, each thread's in its order. */
#include <pthread.h>
#include <setjmp.h>

#include <cmocka.h>

#include "loop/loop.h"

#define N_THREADS 4
#define N_ITEMS   2000

struct note {
	struct inbox_item item;
	struct desk *desk;
	int thread, number;
};

struct desk {
	struct loop *loop;
	struct inbox *inbox;
	int next[N_THREADS]; /* number that must come next */
	int n_arrived;
	bool is_done;
	struct note notes[N_THREADS][N_ITEMS];
};

static void on_note(struct inbox_item *item)
{
	struct note *n = CONTAINER_OF(item, struct note, item);
	struct desk *d = n->desk;

	assert_true(loop_is_this_thread(d->loop));
	assert_int_equal(n->number, d->next[n->thread]++);
	d->n_arrived++;
	d->is_done = d->n_arrived == N_THREADS * N_ITEMS;
}

static struct desk *desk_new(void)
{
	struct desk *d = xcalloc(1, sizeof(*d));

	d->loop = loop_new();
	d->inbox = inbox_new(d->loop);
	for (int t = 0; t < N_THREADS; t++)
		for (int i = 0; i < N_ITEMS; i++)
			d->notes[t][i] = (struct note){.item.on_loop = on_note, .desk = d, .thread = t, .number = i};
	return d;
}

static void desk_free(struct desk *d)
{
	inbox_close(d->inbox);
	loop_stop(d->loop);
	loop_run(d->loop);
	loop_free(d->loop);
	free(d);
}

static void *post_all(void *arg)
{
	struct note *notes = arg;

	for (int i = 0; i < N_ITEMS;) {
		if (i % 3 == 0 && i + 2 < N_ITEMS) {
			notes[i].item.next = &notes[i + 1].item;
			notes[i + 1].item.next = NULL;
			inbox_post_list(notes->desk->inbox, &notes[i].item, &notes[i + 1].item);
			i += 2;
		} else {
			inbox_post(notes->desk->inbox, &notes[i].item);
			i++;
		}
	}
	return NULL;
}

static void items_of_all_threads_arrive_once(void **state)
{
	struct desk *d = desk_new();
	pthread_t threads[N_THREADS];

	(void)state;
	for (int t = 0; t < N_THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, post_all, d->notes[t]), 0);
	loop_run_until(d->loop, &d->is_done);
	for (int t = 0; t < N_THREADS; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(d->n_arrived, N_THREADS * N_ITEMS);
	desk_free(d);
}

static void closing_runs_queued_items(void **state)
{
	struct desk *d = desk_new();

	(void)state;
	post_all(d->notes[0]);
	assert_int_equal(d->n_arrived, 0);
	inbox_close(d->inbox);
	assert_int_equal(d->n_arrived, N_ITEMS);
	d->inbox = NULL;
	desk_free(d);
}

static void close_from_item(struct inbox_item *item)
{
	struct note *n = CONTAINER_OF(item, struct note, item);

	on_note(item);
	inbox_close(n->desk->inbox);
	n->desk->inbox = NULL;
	assert_int_equal(n->desk->n_arrived, N_ITEMS);
	loop_stop(n->desk->loop);
}

static void an_item_may_close_the_inbox_and_the_order_stays(void **state)
{
	struct desk *d = desk_new();

	(void)state;
	d->notes[0][5].item.on_loop = close_from_item;
	post_all(d->notes[0]);
	loop_run(d->loop);
	assert_int_equal(d->n_arrived, N_ITEMS);
	desk_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(items_of_all_threads_arrive_once),
	    cmocka_unit_test(closing_runs_queued_items),
	    cmocka_unit_test(an_item_may_close_the_inbox_and_the_order_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
