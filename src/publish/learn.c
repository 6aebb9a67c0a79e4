/* What a comment tells and only GitHub knows: the App's name, asked once, and the merge base,
 * asked once per head. Neither holds a comment up when GitHub does not say. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "model/backoff.h"
#include "publish/writing.h"

enum { BASELESS_TRIES = 9 }; /* four minutes in all: some comparisons are too much for GitHub */

static struct baseless *find_baseless(struct publisher *p, int64_t change_id)
{
	for (size_t i = 0; i < BASELESS_MAX; i++)
		if (p->baseless[i].change_id == change_id)
			return &p->baseless[i];
	return NULL;
}

static void note_baseless(struct writing *w, int64_t change_id, bool is_final)
{
	struct publisher *p = w->p;
	struct baseless *b = find_baseless(p, change_id);
	int64_t delay_ms;

	if (!b) {
		b = &p->baseless[p->next_baseless];
		p->next_baseless = (p->next_baseless + 1) % BASELESS_MAX;
		*b = (struct baseless){.change_id = change_id};
	}
	if (is_final || ++b->n_tries == BASELESS_TRIES) {
		b->until_mono_ms = INT64_MAX;
		return;
	}
	delay_ms = backoff_delay_ms(b->n_tries - 1, 0, 1);
	b->until_mono_ms = clock_mono_ms() + delay_ms;
	w->again_ms = clock_wall_ms() + delay_ms;
}

/* Not asked for now; when GitHub may yet say it, the row comes back for it. */
static bool is_baseless(struct writing *w, int64_t change_id)
{
	const struct baseless *b = find_baseless(w->p, change_id);
	int64_t left_ms = b ? b->until_mono_ms - clock_mono_ms() : 0;

	if (left_ms <= 0)
		return false;
	if (b->until_mono_ms != INT64_MAX)
		w->again_ms = clock_wall_ms() + left_ms;
	return true;
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
			note_baseless(w, v->change_id, result->err == 0 || result->is_final);
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

	if (v->merge_base_sha || !base || !is_sha1(v->head_sha) || is_baseless(w, v->change_id)) {
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
