/* A comment on a pull request that releases what is held, or declines it (contract: ok-to-test).
 * Everything else in comments is ignored. */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "dispatch/command.h"
#include "dispatch/planning.h"
#include "model/backoff.h"
#include "model/trigger.h"

enum { TRIES_MAX = 10 };

static void release_held(struct planning *p);

static void on_released(struct store_op *op)
{
	struct planning *p = CONTAINER_OF(op, struct planning, op.release.op);

	if (op->err == ERR_NOT_FOUND) {
		planning_ignore(p, "ok-to-test, but nothing is held");
		return;
	}
	if (!planning_went_well(p, &op->why, op->err, release_held))
		return;
	p->d->counters.n_deliveries_planned++;
	log_event(LOG_INFO, "change_released", LOG_S("delivery", p->guid),
	    LOG_I("pr", p->event.pull.number), LOG_S("by", p->event.comment_author),
	    LOG_I("dispatches", p->op.release.n_released));
	planning_end(p, 0);
}

static void release_held(struct planning *p)
{
	p->op.release = (struct release_held){
	    .op.done = on_released,
	    .delivery_id = p->delivery_id,
	    .repository = p->event.repository,
	    .number = p->event.pull.number,
	    .head_sha = p->sha[0] ? p->sha : NULL,
	    .comment_ms = p->event.comment_created_ms,
	    .now_ms = clock_wall_ms(),
	};
	planning_submitted(p, store_release_held(p->d->deps.store, &p->op.release), release_held);
}

static void decline_held(struct planning *p);

static void on_declined(struct store_op *op)
{
	struct planning *p = CONTAINER_OF(op, struct planning, op.decline.op);

	if (op->err == ERR_NOT_FOUND) {
		planning_ignore(p, "ok-to-test cancel, but nothing is held or released");
		return;
	}
	if (!planning_went_well(p, &op->why, op->err, decline_held))
		return;
	p->d->counters.n_deliveries_planned++;
	log_event(LOG_INFO, "change_declined", LOG_S("delivery", p->guid),
	    LOG_I("pr", p->event.pull.number), LOG_S("by", p->event.comment_author),
	    LOG_I("dispatches", p->op.decline.n_declined));
	planning_end(p, 0);
}

static void decline_held(struct planning *p)
{
	p->op.decline = (struct decline_held){
	    .op.done = on_declined,
	    .delivery_id = p->delivery_id,
	    .repository = p->event.repository,
	    .number = p->event.pull.number,
	    .by = p->event.comment_author,
	    .comment_ms = p->event.comment_created_ms,
	    .now_ms = clock_wall_ms(),
	};
	planning_submitted(p, store_decline_held(p->d->deps.store, &p->op.decline), decline_held);
}

static void ask_slug(struct planning *p);

static void read_command(struct planning *p)
{
	const char *slug = github_app_slug(p->d->deps.github);
	struct command c;

	if (!slug) {
		ask_slug(p);
		return;
	}
	c = command_find(p->event.comment_body, slug);
	if (c.kind == COMMAND_OK_TO_TEST) {
		memcpy(p->sha, c.sha, sizeof(p->sha));
		release_held(p);
	} else if (c.kind == COMMAND_DECLINE) {
		decline_held(p);
	} else {
		planning_ignore(p, c.kind == COMMAND_NONE ? "no command" : "not a known command");
	}
}

static void on_app(struct github_call *call)
{
	struct planning *p = CONTAINER_OF(call, struct planning, op.call);
	struct github_result r = call->result;

	p->is_on_github = false;
	github_call_release(call);
	if (r.err == 0 && github_app_slug(p->d->deps.github))
		read_command(p);
	else if (p->d->is_closing)
		planning_end(p, ERR_CLOSING);
	else if (++p->n_tries < TRIES_MAX)
		planning_again(p, read_command,
		    backoff_delay_ms(p->n_tries, r.retry_after_ms, dispatch_random01()));
	else
		planning_fail(
		    p, "GitHub does not say what the App is called, so its commands are not known");
}

static void ask_slug(struct planning *p)
{
	p->is_on_github = true;
	p->op.call = (struct github_call){.done = on_app};
	github_app_get(p->d->deps.github, &p->op.call);
}

void planning_comment(struct planning *p)
{
	const struct event *ev = &p->event;

	if (!ev->is_pull_comment)
		planning_ignore(p, "a comment on an issue");
	else if (strcasecmp(ev->repository, p->config->upstream_repository) != 0)
		planning_ignore(p, "another repository than upstream's");
	else if (!str_eq(ev->action, "created"))
		planning_ignore(p, "edited and deleted comments are no commands");
	else if (str_eq(ev->comment_author_type, "Bot"))
		planning_ignore(p, "bots are not heard");
	else if (!ev->comment_body || !strcasestr(ev->comment_body, "ok-to-test"))
		planning_ignore(p, "no command");
	else if (!association_is_member(ev->comment_association))
		planning_ignore(p, "ok-to-test is for members");
	else
		read_command(p);
}
