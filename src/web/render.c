#include "web/render.h"

#include "base/alloc.h"
#include "web/web_internal.h"

enum { ITEMS_AT_ONCE = 200 }; /* under a millisecond */

static void make_text(struct pool_work *work)
{
	struct web_render *r = CONTAINER_OF(work, struct web_render, work);
	json_t *v = r->make ? r->make(r->owner) : NULL;

	web_text_write(&r->text, &r->form, 200, v ? json_text(v) : r->make_text(r->owner));
	json_decref(v);
}

static void answer(struct pool_work *work)
{
	struct web_render *r = CONTAINER_OF(work, struct web_render, work);

	web_text_send(&r->text, &r->form, r->request, 200, 0);
	web_form_release(&r->form);
	r->over(r->owner);
}

void web_render(struct loop *l, struct web_render *r, size_t n_items)
{
	web_form_take(&r->form, r->request);
	r->work = (struct pool_work){.work = make_text, .after = answer};
	if (n_items > ITEMS_AT_ONCE) {
		pool_submit(l, &r->work);
		return;
	}
	make_text(&r->work);
	answer(&r->work);
}
