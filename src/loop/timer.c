#include <assert.h>
#include <uv.h>

#include "base/alloc.h"
#include "loop/loop.h"
#include "loop/loop_internal.h"

struct timer {
	uv_timer_t uv;
	timer_cb *cb;
	void *owner;
};

static void on_timer(uv_timer_t *handle)
{
	struct timer *t = CONTAINER_OF(handle, struct timer, uv);

	t->cb(t);
}

static void on_timer_closed(uv_handle_t *handle)
{
	free(CONTAINER_OF(handle, struct timer, uv));
}

struct timer *timer_new(struct loop *l, timer_cb *cb, void *owner)
{
	struct timer *t = xcalloc(1, sizeof(*t));

	uv_timer_init(&l->uv, &t->uv);
	t->cb = cb;
	t->owner = owner;
	return t;
}

void *timer_owner(const struct timer *t)
{
	return t->owner;
}

void timer_start(struct timer *t, int64_t after_ms)
{
	struct loop *l = CONTAINER_OF(t->uv.loop, struct loop, uv);

	/* Between runs the loop's clock stands still; a timer started then would count
	 * from the last turn and fire too early. */
	if (!l->is_running)
		uv_update_time(&l->uv);
	uv_timer_start(&t->uv, on_timer, after_ms > 0 ? (uint64_t)after_ms : 0, 0);
}

void timer_stop(struct timer *t)
{
	uv_timer_stop(&t->uv);
}

bool timer_is_running(const struct timer *t)
{
	return uv_is_active((const uv_handle_t *)&t->uv) != 0;
}

void timer_close(struct timer *t)
{
	if (!t)
		return;
	assert(!uv_is_closing((uv_handle_t *)&t->uv));
	uv_close((uv_handle_t *)&t->uv, on_timer_closed);
}
