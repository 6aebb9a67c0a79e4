/* A retest that nobody said in a comment: by an operator, or where a vendor's run cannot be started
 * again. */
#include "base/alloc.h"
#include "base/str.h"
#include "dispatch/asked.h"
#include "dispatch/planner.h"

static void on_done(void *owner, int err)
{
	struct retest_request *r = owner;

	r->err = err;
	if (err && !*r->why.text)
		error_set(&r->why, err, "%s", err_text(err));
	r->done(r);
}

int dispatch_retest(struct dispatch *d, struct retest_request *r)
{
	struct asked *a;

	if (d->is_closing)
		return ERR_CLOSING;
	if (!config_is_registry_loaded(d->config))
		return ERR_BUSY;
	r->err = 0;
	r->why = (struct error){0};
	r->list = NULL;
	r->n = 0;
	a = asked_new();
	a->number = r->number;
	a->sha = r->number ? NULL : xstrdup_or_null(r->sha);
	a->request = r;
	asked_add_retest(a, r->accelerator, r->runner);
	planner_take_asked(d->planner, a, on_done, r);
	return 0;
}
