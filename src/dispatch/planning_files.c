/* The changed files of a pull request: from the store's cache, else from GitHub. When GitHub
 * cannot tell within a few seconds the change is planned as if every path matched: a run
 * too many is better than a change that nobody tested, or one that waits. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strv.h"
#include "dispatch/planning.h"
#include "model/trigger.h"

enum { TRIES_MAX = 3, TRY_AGAIN_MS = 1000, WAIT_MAX_MS = 5000 };

static void ask_github(struct planning *p);

static void on_put(struct store_op *op)
{
	struct planning *p = CONTAINER_OF(op, struct planning, op.put_files.op);

	if (op->err) /* it is only a cache */
		log_event(LOG_WARN, "files_uncached", LOG_S("delivery", p->guid),
		    LOG_S("error", op->why.text));
	p->then(p);
}

static void keep_files(struct planning *p)
{
	p->op.put_files = (struct put_files){
	    .op.done = on_put,
	    .repository = p->event.repository,
	    .head_sha = p->event.pull.head_sha,
	    .number = p->event.pull.number,
	    .files = (const char *const *)p->files,
	    .now_ms = clock_wall_ms(),
	};
	if (store_put_files(p->d->deps.store, &p->op.put_files))
		p->then(p);
}

static void take_names(struct planning *p)
{
	struct github_pull_files *got = &p->op.pull_files;
	size_t n = got->n_names;

	p->files = xcalloc(n + 2, sizeof(*p->files));
	for (size_t i = 0; i < n; i++)
		p->files[i] = xstrdup(got->names[i]);
	if (got->is_incomplete)
		p->files[n] = xstrdup(FILES_INCOMPLETE);
}

static void do_without(struct planning *p, const struct github_result *why)
{
	p->d->counters.n_files_unread++;
	log_event(LOG_WARN, "files_unread", LOG_S("delivery", p->guid),
	    LOG_I("pr", p->event.pull.number), LOG_S("error", why->why.text),
	    LOG_S("consequence", "planned as if every path matched"));
	p->files = xcalloc(2, sizeof(*p->files));
	p->files[0] = xstrdup(FILES_INCOMPLETE);
}

static void on_github(struct github_call *call)
{
	struct planning *p = CONTAINER_OF(call, struct planning, op.pull_files.call);
	const struct github_result *r = &call->result;
	bool is_hopeless =
	    r->is_final || ++p->n_tries >= TRIES_MAX || r->retry_after_ms > WAIT_MAX_MS;
	bool is_known = r->err == 0;
	int64_t pause_ms = TRY_AGAIN_MS * p->n_tries;

	p->is_on_github = false;
	if (is_known)
		take_names(p);
	else if (is_hopeless && !p->d->is_closing)
		do_without(p, r);
	if (pause_ms < r->retry_after_ms)
		pause_ms = r->retry_after_ms;
	github_pull_files_release(&p->op.pull_files);

	if (is_known)
		keep_files(p);
	else if (p->files)
		p->then(p);
	else
		planning_again(p, ask_github, pause_ms);
}

static void ask_github(struct planning *p)
{
	if (p->d->is_closing) { /* nobody would cancel it any more */
		planning_end(p, ERR_CLOSING);
		return;
	}
	p->is_on_github = true;
	p->op.pull_files = (struct github_pull_files){.call.done = on_github};
	github_pull_files_get(
	    p->d->deps.github, &p->op.pull_files, p->event.repository, p->event.pull.number);
}

static void on_get(struct store_query *q)
{
	struct planning *p = CONTAINER_OF(q, struct planning, op.get_files.q);

	if (q->err == 0 && p->op.get_files.files) {
		p->files = p->op.get_files.files;
		p->then(p);
	} else {
		ask_github(p);
	}
}

void planning_get_files(struct planning *p, void (*then)(struct planning *p))
{
	p->then = then;
	p->op.get_files = (struct get_files){
	    .q.done = on_get,
	    .repository = p->event.repository,
	    .head_sha = p->event.pull.head_sha,
	};
	if (store_get_files(p->d->deps.store, &p->op.get_files))
		ask_github(p);
}
