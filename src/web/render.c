#include "web/render.h"

#include "base/alloc.h"
#include "web/web_internal.h"

enum { ITEMS_AT_ONCE = 200 }; /* under a millisecond */

static void make_text(struct pool_work *work)
{
	struct web_render *r = CONTAINER_OF(work, struct web_render, work);
	json_t *v = r->make(r->owner);

	r->text = json_text(v);
	json_decref(v);
}

static void answer(struct pool_work *work)
{
	struct web_render *r = CONTAINER_OF(work, struct web_render, work);

	web_respond_json_text(r->request, 200, r->text);
	FREE_AND_NULL(r->text);
	r->over(r->owner);
}

void web_render(struct loop *l, struct web_render *r, size_t n_items)
{
	r->work = (struct pool_work){.work = make_text, .after = answer};
	if (n_items > ITEMS_AT_ONCE) {
		pool_submit(l, &r->work);
		return;
	}
	make_text(&r->work);
	answer(&r->work);
}
