/* What a comment tells and only GitHub knows: the App's name, asked once. It holds no comment up
 * when GitHub does not say. */
#include "publish/writing.h"

static void on_app(struct github_call *call)
{
	struct writing *w = call->owner;

	w->claimed.on_wire = NULL;
	github_call_release(call);
	writing_decide(w);
}

void writing_learn(struct writing *w)
{
	if (github_app_slug(w->claimed.p->deps.github))
		writing_decide(w);
	else if (claimed_begin_call(&w->claimed, &w->call, on_app, w))
		github_app_get(w->claimed.p->deps.github, &w->call);
}
