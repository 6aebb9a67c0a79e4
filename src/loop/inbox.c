/* A mutex, a list and one wake-up. The wake-up is sent only when the list was empty: the
 * loop always takes the whole list, so a second one would say nothing new. */
#include <assert.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"
#include "loop/loop_internal.h"

struct inbox {
	/* shared, under lock */
	uv_mutex_t lock;
	struct inbox_item *first, *last;

	/* any thread, libuv's own synchronisation */
	uv_async_t wake;

	/* loop thread */
	struct inbox_item *running; /* rest of the batch in hand */
	bool is_closing;
};

static void take(struct inbox *in)
{
	struct inbox_item *batch;

	uv_mutex_lock(&in->lock);
	batch = in->first;
	in->first = NULL;
	in->last = NULL;
	uv_mutex_unlock(&in->lock);
	in->running = batch;
}

/* The rest of the batch is kept in the inbox, so that inbox_close() called by an item
 * runs it in order. */
static void run_batch(struct inbox *in)
{
	while (in->running) {
		struct inbox_item *item = in->running;

		in->running = item->next;
		item->on_loop(item);
	}
}

static void on_wake(uv_async_t *handle)
{
	struct inbox *in = CONTAINER_OF(handle, struct inbox, wake);

	log_hold(); /* a batch is where many lines come at once */
	take(in);
	run_batch(in);
	log_release();
}

static void on_inbox_closed(uv_handle_t *handle)
{
	struct inbox *in = CONTAINER_OF(handle, struct inbox, wake);

	uv_mutex_destroy(&in->lock);
	free(in);
}

struct inbox *inbox_new(struct loop *l)
{
	struct inbox *in = xcalloc(1, sizeof(*in));
	int rc = uv_mutex_init(&in->lock);

	assert(rc == 0);
	rc = uv_async_init(&l->uv, &in->wake, on_wake);
	assert(rc == 0);
	return in;
}

void inbox_post(struct inbox *in, struct inbox_item *item)
{
	item->next = NULL;
	inbox_post_list(in, item, item);
}

void inbox_post_list(struct inbox *in, struct inbox_item *first, struct inbox_item *last)
{
	bool was_empty;

	uv_mutex_lock(&in->lock);
	was_empty = in->first == NULL;
	if (was_empty)
		in->first = first;
	else
		in->last->next = first;
	in->last = last;
	uv_mutex_unlock(&in->lock);
	if (was_empty)
		uv_async_send(&in->wake);
}

void inbox_close(struct inbox *in)
{
	if (!in)
		return;
	assert(!in->is_closing);
	in->is_closing = true;
	run_batch(in);
	take(in);
	run_batch(in);
	uv_close((uv_handle_t *)&in->wake, on_inbox_closed);
}
