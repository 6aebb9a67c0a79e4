/* One call on a loop of its own, for programs that have nothing else to do. */
#include "base/alloc.h"
#include "http/client.h"

struct blocking {
	struct http_call call;
	bool is_done;
};

static void on_done(struct http_call *call)
{
	struct blocking *b = CONTAINER_OF(call, struct blocking, call);

	b->is_done = true;
}

static void on_closed(void *owner)
{
	*(bool *)owner = true;
}

int http_call_blocking(struct http_call *call)
{
	struct loop *l = loop_new();
	struct http_client *c = http_client_new(l, "outpostctl");
	struct blocking b = {.call = *call};
	bool is_closed = false;

	b.call.done = on_done;
	http_call_start(c, &b.call);
	loop_run_until(l, &b.is_done);
	http_client_close(c, on_closed, &is_closed);
	loop_run_until(l, &is_closed);
	loop_free(l);
	b.call.done = call->done;
	*call = b.call;
	return call->err;
}
