/* Memory that a callback further up the stack may still touch is released behind the poll
 * of the turn, when no callback is on the stack. */
#include <uv.h>

#include "base/alloc.h"
#include "loop/loop.h"
#include "loop/loop_internal.h"

static void release_all(struct reaper *r)
{
	struct reap_list batch = r->waiting;

	/* What is reaped by a release waits for the next round. */
	r->waiting = r->spare;
	r->spare = (struct reap_list){0};
	for (size_t i = 0; i < batch.n; i++)
		batch.at[i].release(batch.at[i].p);
	batch.n = 0;
	r->spare = batch;
}

static void on_idle(uv_idle_t *handle)
{
	(void)handle; /* only keeps the poll from blocking */
}

static void on_check(uv_check_t *handle)
{
	struct loop *l = CONTAINER_OF(handle, struct loop, reaper.check);

	if (l->reaper.waiting.n == 0)
		return;
	release_all(&l->reaper);
	if (l->reaper.waiting.n == 0)
		uv_idle_stop(&l->reaper.idle);
}

void reaper_init(struct loop *l)
{
	uv_check_init(&l->uv, &l->reaper.check);
	uv_check_start(&l->reaper.check, on_check);
	uv_unref((uv_handle_t *)&l->reaper.check);
	uv_idle_init(&l->uv, &l->reaper.idle);
}

void reaper_close(struct loop *l)
{
	while (l->reaper.waiting.n)
		release_all(&l->reaper);
	l->reaper.is_closing = true;
	uv_close((uv_handle_t *)&l->reaper.check, NULL);
	uv_close((uv_handle_t *)&l->reaper.idle, NULL);
}

void reaper_release(struct loop *l)
{
	while (l->reaper.waiting.n)
		release_all(&l->reaper);
	free(l->reaper.waiting.at);
	free(l->reaper.spare.at);
}

void loop_reap(struct loop *l, void (*release)(void *p), void *p)
{
	struct reap_list *w = &l->reaper.waiting;

	if (w->n == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 16;
		w->at = xrealloc(w->at, w->cap * sizeof(*w->at));
	}
	w->at[w->n++] = (struct reap){release, p};
	if (w->n == 1 && !l->reaper.is_closing)
		uv_idle_start(&l->reaper.idle, on_idle);
}
