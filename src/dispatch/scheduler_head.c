/* The head of upstream's first branch. */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "dispatch/scheduler_internal.h"

static void forget(struct upstream_head *u)
{
	u->etag[0] = u->sha[0] = '\0';
	FREE_AND_NULL(u->repository);
	FREE_AND_NULL(u->branch);
	FREE_AND_NULL(u->title);
	FREE_AND_NULL(u->author);
}

void upstream_head_release(struct scheduler *s)
{
	forget(&s->upstream);
}

static void learn(struct upstream_head *u, const json_t *branch)
{
	const json_t *commit = json_object_get(branch, "commit");
	const char *message = json_get_str(json_object_get(commit, "commit"), "message");
	const char *author = json_get_str(json_object_get(commit, "author"), "login");

	memcpy(u->sha, u->call.sha, sizeof(u->sha));
	memcpy(u->etag, u->call.etag, sizeof(u->etag));
	free(u->title);
	free(u->author);
	u->title = message ? xstrndup(message, strcspn(message, "\r\n")) : NULL;
	u->author = xstrdup_or_null(author);
}

/* A run that is told may wait again at once, for another answer: that is no part of this walk. */
static void tell(struct scheduler *s, const struct github_result *r)
{
	struct scheduled_run *waiting[64];
	size_t n;

	do {
		n = 0;
		for (struct scheduled_run *run = s->runs; run && n < ARRAY_LEN(waiting);
		     run = run->next)
			if (run->waits_for_upstream) {
				run->waits_for_upstream = false;
				waiting[n++] = run;
			}
		for (size_t i = 0; i < n; i++)
			scheduled_run_have_upstream(waiting[i], r->err,
			    *r->why.text ? r->why.text : err_text(r->err), r->is_final,
			    r->retry_after_ms);
	} while (n == ARRAY_LEN(waiting));
}

static void on_branch(struct github_call *call)
{
	struct scheduler *s = CONTAINER_OF(call, struct scheduler, upstream.call.call);
	struct upstream_head *u = &s->upstream;
	struct github_result result = call->result;

	u->is_asked = false;
	if (result.err == 0 && !u->call.is_unchanged)
		learn(u, call->answer);
	s->d->counters.n_upstream_heads_unchanged += result.err == 0 && u->call.is_unchanged;
	s->d->counters.n_head_failures += result.err != 0;
	github_call_release(call);
	if (s->d->is_closing)
		scheduler_settle(s);
	else
		tell(s, &result);
}

void upstream_head_ask(struct scheduler *s)
{
	const struct config *c = s->d->config;
	struct upstream_head *u = &s->upstream;

	if (u->is_asked)
		return;
	if (!str_eq(u->repository, c->upstream_repository) ||
	    !str_eq(u->branch, c->upstream_branches[0])) {
		forget(u);
		u->repository = xstrdup(c->upstream_repository);
		u->branch = xstrdup(c->upstream_branches[0]);
	}
	u->call = (struct github_branch){.call.done = on_branch};
	memcpy(u->call.etag, u->etag, sizeof(u->etag));
	u->is_asked = true;
	s->d->counters.n_upstream_heads_asked++;
	github_branch_get(s->d->deps.github, &u->call, u->repository, u->branch);
}

void upstream_head_cancel(struct scheduler *s)
{
	if (s->upstream.is_asked)
		github_cancel(s->d->deps.github, &s->upstream.call.call);
}
