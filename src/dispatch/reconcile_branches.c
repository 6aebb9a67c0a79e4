/* The tips of upstream's branches against the pushes that are known. Of several pushes that
 * were missed only the last one is found: its commit is what a user has now. The commits of the
 * others come with it, so that the branch's history has no hole. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "dispatch/reconcile_internal.h"
#include "dispatch/synthetic.h"

static void next_branch(struct reconciler *r);

void reconcile_branches_release(struct reconciler *r)
{
	FREE_AND_NULL(r->br.tip);
	json_decref(r->br.answer);
	r->br.answer = NULL;
	r->br.i = 0;
}

static const char *name_of(const struct reconciler *r)
{
	return r->config->upstream_branches[r->br.i];
}

static struct branch_memory *memory_of(struct reconciler *r)
{
	struct branch_memory *m = r->br.memory;

	while (m && !str_eq(m->name, name_of(r)))
		m = m->next;
	if (!m) {
		m = xcalloc(1, sizeof(*m));
		m->name = xstrdup(name_of(r));
		m->next = r->br.memory;
		r->br.memory = m;
	}
	return m;
}

static char *key_of(const struct reconciler *r)
{
	return xasprintf("reconcile.branch.%s", name_of(r));
}

/* This tip is dealt with. */
static void go_on(struct reconciler *r)
{
	memcpy(memory_of(r)->etag, r->br.etag, sizeof(r->br.etag));
	r->br.i++;
	next_branch(r);
}

static void keep_tip(struct reconciler *r)
{
	char *key;

	if (str_eq(r->br.tip, r->br.sha)) {
		go_on(r);
		return;
	}
	key = key_of(r);
	reconcile_save_setting(r, key, r->br.sha, go_on);
	free(key);
}

static void on_noted(struct store_op *op)
{
	struct reconciler *r = CONTAINER_OF(op, struct reconciler, op.note.op);

	free((char *)r->op.note.ref);
	if (reconcile_is_back(r, "noting a tip", op->err, &op->why))
		keep_tip(r);
}

static void note_tip(struct reconciler *r)
{
	char *ref = xasprintf("refs/heads/%s", name_of(r));
	int rc;

	r->op.note = (struct note_head){
	    .op.done = on_noted,
	    .repository = r->config->upstream_repository,
	    .ref = ref,
	    .head_sha = r->br.sha,
	    .now_ms = clock_wall_ms(),
	};
	rc = store_note_head(r->d->deps.store, &r->op.note);
	if (rc)
		free(ref);
	reconcile_submitted(r, "noting a tip", rc);
}

static void on_commits(struct github_call *call)
{
	struct reconciler *r = CONTAINER_OF(call, struct reconciler, op.commits.call);
	const struct github_result *result = &call->result;
	bool is_known = result->err == 0 && r->op.commits.is_complete;
	/* A comparison that is too much for GitHub, or a tip that is gone, is no reason to wait. */
	bool is_hopeless = result->is_final || result->err == ERR_TOO_BIG;
	struct github_result kept = *result;
	struct missed_push m = {
	    .branch = r->br.answer,
	    .name = name_of(r),
	    .after = r->br.sha,
	    .repository = r->config->upstream_repository,
	    .before = r->br.tip,
	    .between = is_known ? json_object_get(call->answer, "commits") : NULL,
	    .is_forced = result->err == 0 && !r->op.commits.is_ahead,
	};
	char *body = synthetic_missed_push(&m);

	github_call_release(call);
	if (reconcile_is_back(
		r, "comparing commits", is_hopeless ? 0 : kept.err, is_hopeless ? NULL : &kept.why))
		reconcile_plan(r, "push", body, keep_tip);
	else
		free(body);
}

static void ask_commits(struct reconciler *r)
{
	r->op.commits = (struct github_commits){.call.done = on_commits};
	reconcile_goes_to_github(r);
	github_commits_between(r->d->deps.github, &r->op.commits, r->config->upstream_repository,
	    r->br.tip, r->br.sha);
}

static void on_has_push(struct store_query *q)
{
	struct reconciler *r = CONTAINER_OF(q, struct reconciler, op.has_push.q);
	bool is_known = r->op.has_push.is_known;

	if (!reconcile_is_back(r, "looking a push up", q->err, &q->why))
		return;
	if (is_known) {
		keep_tip(r);
	} else if (!r->br.tip) {
		note_tip(r);
	} else {
		log_event(
		    LOG_INFO, "push_found", LOG_S("branch", name_of(r)), LOG_S("head", r->br.sha));
		ask_commits(r);
	}
}

static void have_tip(struct reconciler *r)
{
	free(r->br.tip);
	r->br.tip = r->setting_value;
	r->setting_value = NULL;
	r->op.has_push = (struct has_push){
	    .q.done = on_has_push,
	    .repository = r->config->upstream_repository,
	    .head_sha = r->br.sha,
	};
	reconcile_submitted(
	    r, "looking a push up", store_has_push(r->d->deps.store, &r->op.has_push));
}

static void on_branch(struct github_call *call)
{
	struct reconciler *r = CONTAINER_OF(call, struct reconciler, op.branch.call);
	struct github_result result = call->result;
	bool is_unchanged = r->op.branch.is_unchanged, is_missing;
	char *key;

	json_decref(r->br.answer);
	r->br.answer = json_incref(call->answer);
	memcpy(r->br.etag, r->op.branch.etag, sizeof(r->br.etag));
	memcpy(r->br.sha, r->op.branch.sha, sizeof(r->br.sha));
	github_call_release(call);
	/* One that is not there is a mistake in the configuration; the others are looked at. */
	is_missing = result.err == ERR_NOT_FOUND;
	if (!reconcile_is_back(r, "reading a branch", is_missing ? 0 : result.err, &result.why))
		return;
	if (is_missing)
		log_event(LOG_WARN, "branch_missing", LOG_S("branch", name_of(r)),
		    LOG_S("error", result.why.text));
	if (is_missing || is_unchanged || !is_sha1(r->br.sha)) {
		r->br.i++;
		next_branch(r);
		return;
	}
	key = key_of(r);
	reconcile_load_setting(r, key, have_tip);
	free(key);
}

static void next_branch(struct reconciler *r)
{
	if (!name_of(r)) {
		reconcile_part_done(r);
		return;
	}
	r->op.branch = (struct github_branch){.call.done = on_branch};
	memcpy(r->op.branch.etag, memory_of(r)->etag, sizeof(r->op.branch.etag));
	reconcile_goes_to_github(r);
	github_branch_get(
	    r->d->deps.github, &r->op.branch, r->config->upstream_repository, name_of(r));
}

void reconcile_branches(struct reconciler *r)
{
	next_branch(r);
}
