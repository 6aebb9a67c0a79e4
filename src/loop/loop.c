/* The loop's life. It is kept alive by a handle of its own until loop_stop(), so that a
 * daemon with nothing to do waits, and it ends only when every owner has closed what it
 * opened: a leak shows as an assertion in loop_free(), not as a crash later. */
#include "loop/loop.h"

#include <assert.h>
#include <signal.h>
#include <uv.h>

#include "base/alloc.h"
#include "loop/loop_internal.h"

static void on_keep_alive(uv_async_t *handle)
{
	(void)handle; /* never sent */
}

/* A timer that is due when a turn begins runs before the poll: without this a turn whose
 * timer sets is_done would still wait for whatever comes next. */
static void on_before_poll(uv_prepare_t *handle)
{
	struct loop *l = CONTAINER_OF(handle, struct loop, before_poll);

	if (*l->is_done)
		uv_stop(&l->uv);
}

struct loop *loop_new(void)
{
	struct loop *l = xcalloc(1, sizeof(*l));
	int rc;

	signal(SIGPIPE, SIG_IGN);
	rc = uv_loop_init(&l->uv);
	assert(rc == 0);
	rc = uv_async_init(&l->uv, &l->keep_alive, on_keep_alive);
	assert(rc == 0);
	uv_prepare_init(&l->uv, &l->before_poll);
	uv_unref((uv_handle_t *)&l->before_poll);
	reaper_init(l);
	l->thread = uv_thread_self();
	return l;
}

void loop_run(struct loop *l)
{
	l->thread = uv_thread_self();
	l->is_running = true;
	uv_run(&l->uv, UV_RUN_DEFAULT);
	l->is_running = false;
}

void loop_run_until(struct loop *l, const bool *is_done)
{
	l->thread = uv_thread_self();
	l->is_running = true;
	if (!l->is_stopping)
		uv_unref((uv_handle_t *)&l->keep_alive);
	l->is_done = is_done;
	uv_prepare_start(&l->before_poll, on_before_poll);
	while (!*is_done && uv_run(&l->uv, UV_RUN_ONCE))
		continue;
	uv_prepare_stop(&l->before_poll);
	if (!l->is_stopping)
		uv_ref((uv_handle_t *)&l->keep_alive);
	l->is_running = false;
}

void loop_stop(struct loop *l)
{
	if (l->is_stopping)
		return;
	l->is_stopping = true;
	uv_close((uv_handle_t *)&l->keep_alive, NULL);
}

void loop_free(struct loop *l)
{
	int rc;

	if (!l)
		return;
	loop_stop(l);
	reaper_close(l);
	uv_close((uv_handle_t *)&l->before_poll, NULL);
	/* A turn for the close callbacks, those of the caller's handles included. */
	uv_run(&l->uv, UV_RUN_NOWAIT);
	rc = uv_loop_close(&l->uv);
	assert(rc == 0);
	reaper_release(l);
	free(l);
}

struct uv_loop_s *loop_uv(struct loop *l)
{
	return &l->uv;
}

int64_t loop_now_ms(const struct loop *l)
{
	return (int64_t)uv_now(&l->uv);
}

bool loop_is_this_thread(const struct loop *l)
{
	uv_thread_t self = uv_thread_self();

	return uv_thread_equal(&l->thread, &self) != 0;
}
