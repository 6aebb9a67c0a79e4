/* What a comment tells and only GitHub knows: the App's name, asked once, and the merge base,
 * asked once per head. Neither holds a comment up when GitHub does not say. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "publish/writing.h"

#define BASELESS_RETRY_MS (INT64_C(10) * 60 * 1000)

static bool is_baseless(const struct publisher *p, int64_t change_id)
{
	for (size_t i = 0; i < BASELESS_MAX; i++)
		if (p->baseless[i].change_id == change_id)
			return p->baseless[i].until_mono_ms > clock_mono_ms();
	return false;
}

static void note_baseless(struct publisher *p, int64_t change_id, bool is_final)
{
	p->baseless[p->next_baseless] = (struct baseless){.change_id = change_id,
	    .until_mono_ms = is_final ? INT64_MAX : clock_mono_ms() + BASELESS_RETRY_MS};
	p->next_baseless = (p->next_baseless + 1) % BASELESS_MAX;
}

static void on_base_put(struct store_op *op)
{
	/* not recorded: it is asked for again with the next edit */
	writing_decide(CONTAINER_OF(op, struct writing, put_base.op));
}

static void on_compared(struct github_call *call)
{
	struct writing *w = call->owner;
	struct change_view *v = w->change.view;
	struct github_result *result = &call->result;

	w->on_wire = NULL;
	if (result->err || !is_sha1(w->compare.merge_base_sha)) {
		if (result->err != ERR_CANCELLED)
			note_baseless(w->p, v->change_id, result->err == 0 || result->is_final);
		github_call_release(call);
		writing_decide(w);
		return;
	}
	github_call_release(call);
	v->merge_base_sha = xstrdup(w->compare.merge_base_sha);
	v->merge_base_ms = w->compare.merge_base_wall_ms;
	w->put_base = (struct put_merge_base){.op = {.done = on_base_put},
	    .change_id = v->change_id,
	    .sha = w->compare.merge_base_sha,
	    .commit_ms = v->merge_base_ms};
	if (store_put_merge_base(w->p->deps.store, &w->put_base))
		writing_decide(w);
}

/* The base branch and not the base commit of the webhook: that one stays behind when the
 * author merges a newer base into the head. */
static void learn_merge_base(struct writing *w)
{
	const struct change_view *v = w->change.view;
	const char *base = v->base_ref ? v->base_ref : v->base_sha;

	if (v->merge_base_sha || !base || !is_sha1(v->head_sha) ||
	    is_baseless(w->p, v->change_id)) {
		writing_decide(w);
		return;
	}
	if (!writing_begin_call(w, &w->compare.call, on_compared))
		return;
	github_compare_get(w->p->deps.github, &w->compare, w->row.target, base, v->head_sha);
}

static void on_app(struct github_call *call)
{
	struct writing *w = call->owner;

	w->on_wire = NULL;
	github_call_release(call);
	learn_merge_base(w);
}

void writing_learn(struct writing *w)
{
	if (github_app_slug(w->p->deps.github)) {
		learn_merge_base(w);
		return;
	}
	if (writing_begin_call(w, &w->call, on_app))
		github_app_get(w->p->deps.github, &w->call);
}
