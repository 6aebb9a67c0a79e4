#include <sys/eventfd.h>
#include <uv.h>

#include "loop/loop.h"

/* An eventfd wakes the loop instead of a uv_async_t: libuv's loop spins while the sender of a wake-up is between
 * its first and its last step, and a sender of low priority (thread_give_way()) that the loop has just
 * preempted does not get there for a long time on a busy machine. */
struct inbox {
	/* shared, under lock */
	uv_mutex_t lock;
	struct inbox_item *first, *last;

	int wake_fd; /* any thread writes, the loop reads */

	/* loop thread */
	uv_poll_t wake;
	struct inbox_item *running; /* items taken from the list that have not run yet */
	bool is_closing;
};

static void inbox_detach_all(struct inbox *in)
{
	uv_mutex_lock(&in->lock);
	in->running = in->first;
	in->first = in->last = NULL;
	uv_mutex_unlock(&in->lock);
}

/* The items that have not run are in the inbox, because an item may call inbox_close(), which runs them in order. */
static void inbox_run_detached(struct inbox *in)
{
	while (in->running) {
		struct inbox_item *item = in->running;

		in->running = item->next;
		item->on_loop(item);
	}
}

static void on_inbox_wake(uv_poll_t *handle, int status, int events)
{
	struct inbox *in = CONTAINER_OF(handle, struct inbox, wake);
	uint64_t n_wakes;

	(void)status;
	(void)events;
	/* Before the list is taken: an item that comes later wakes the loop once more. */
	(void)!read(in->wake_fd, &n_wakes, sizeof(n_wakes));
	log_hold(); /* the items of one batch may log many lines */
	inbox_detach_all(in);
	inbox_run_detached(in);
	log_release();
}

static void on_inbox_closed(uv_handle_t *handle)
{
	struct inbox *in = CONTAINER_OF(handle, struct inbox, wake);

	close(in->wake_fd);
	uv_mutex_destroy(&in->lock);
	free(in);
}

struct inbox *inbox_new(struct loop *l)
{
	struct inbox *in = xcalloc(1, sizeof(*in));
	int rc = uv_mutex_init(&in->lock);

	assert(rc == 0);
	in->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert(in->wake_fd >= 0);
	rc = uv_poll_init(loop_uv(l), &in->wake, in->wake_fd);
	assert(rc == 0);
	rc = uv_poll_start(&in->wake, UV_READABLE, on_inbox_wake);
	assert(rc == 0);
	return in;
}

void inbox_post(struct inbox *in, struct inbox_item *item)
{
	item->next = NULL;
	inbox_post_list(in, item, item);
}

/* Wakes the loop only if the list was empty: the loop always takes the whole list. */
void inbox_post_list(struct inbox *in, struct inbox_item *first, struct inbox_item *last)
{
	const uint64_t one = 1;

	uv_mutex_lock(&in->lock);
	bool was_empty = in->first == NULL;
	if (was_empty)
		in->first = first;
	else
		in->last->next = first;
	in->last = last;
	uv_mutex_unlock(&in->lock);
	if (was_empty)
		(void)!write(in->wake_fd, &one, sizeof(one));
}

void inbox_keep_loop(struct inbox *in, bool is_kept)
{
	if (is_kept)
		uv_ref((uv_handle_t *)&in->wake);
	else
		uv_unref((uv_handle_t *)&in->wake);
}

void inbox_close(struct inbox *in)
{
	if (!in)
		return;
	assert(!in->is_closing);
	in->is_closing = true;
	inbox_run_detached(in);
	inbox_detach_all(in);
	inbox_run_detached(in);
	uv_close((uv_handle_t *)&in->wake, on_inbox_closed);
}
