#include <assert.h>
#include <uv.h>

#include "base/alloc.h"
#include "loop/loop.h"
#include "loop/loop_internal.h"

struct signal_watch {
	uv_signal_t uv;
	signal_cb *cb;
	void *owner;
	struct signal_watch *next;
};

static void on_signal(uv_signal_t *handle, int signum)
{
	struct signal_watch *w = CONTAINER_OF(handle, struct signal_watch, uv);

	w->cb(signum, w->owner);
}

static void on_signal_closed(uv_handle_t *handle)
{
	free(CONTAINER_OF(handle, struct signal_watch, uv));
}

void loop_on_signal(struct loop *l, int signum, signal_cb *cb, void *owner)
{
	struct signal_watch *w = xcalloc(1, sizeof(*w));
	int rc;

	w->cb = cb;
	w->owner = owner;
	rc = uv_signal_init(&l->uv, &w->uv);
	assert(rc == 0);
	rc = uv_signal_start(&w->uv, on_signal, signum);
	assert(rc == 0);
	w->next = l->signals;
	l->signals = w;
}

void loop_close_signals(struct loop *l)
{
	while (l->signals) {
		struct signal_watch *w = l->signals;

		l->signals = w->next;
		uv_close((uv_handle_t *)&w->uv, on_signal_closed);
	}
}
