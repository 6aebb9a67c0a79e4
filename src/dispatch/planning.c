#include "dispatch/planning.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strv.h"
#include "dispatch/asked.h"
#include "dispatch/plan.h"
#include "dispatch/planner.h"

enum { STORE_AGAIN_MS = 500 };

static char *line_of(const struct event *ev)
{
	switch (ev->kind) {
	case EVENT_PULL_REQUEST:
	case EVENT_ISSUE_COMMENT:
		return xasprintf("%s#%lld", ev->repository, (long long)ev->pull.number);
	case EVENT_PUSH:
		return xasprintf("%s@%s", ev->repository, ev->ref);
	case EVENT_CHECK_RUN:
	case EVENT_CHECK_SUITE:
	case EVENT_INSTALLATION:
		break;
	}
	return NULL;
}

struct planning *planning_new(struct dispatch *d, int64_t delivery_id, char *guid, char *event_name,
    char *body, size_t body_bytes)
{
	struct planning *p = xcalloc(1, sizeof(*p));
	int rc;

	p->d = d;
	p->config = config_ref(d->config);
	p->delivery_id = delivery_id;
	p->guid = guid;
	p->event_name = event_name;
	p->body = body;
	p->body_bytes = body_bytes;
	if (!body)
		rc = error_set(&p->parse_error, ERR_INVALID, "the body is gone");
	else
		rc = d->deps.parse_event(event_name, body, body_bytes, &p->event, &p->parse_error);
	if (rc)
		error_set(&p->parse_error, rc, "%s", err_text(rc));
	else
		p->line = line_of(&p->event);
	if (delivery_id)
		FREE_AND_NULL(p->body);
	return p;
}

struct planning *planning_new_asked(struct dispatch *d, struct asked *asked)
{
	struct planning *p = xcalloc(1, sizeof(*p));

	p->d = d;
	p->config = config_ref(d->config);
	p->guid = xstrdup(asked->guid);
	p->event_name = xstrdup("retest");
	p->asked = asked;
	if (asked->number)
		p->line =
		    xasprintf("%s#%lld", p->config->upstream_repository, (long long)asked->number);
	return p;
}

void planning_free(struct planning *p)
{
	timer_close(p->timer);
	asked_free(p->asked);
	config_unref(p->config);
	event_release(&p->event);
	plan_release(&p->plan);
	strv_free(p->files);
	free(p->guid);
	free(p->event_name);
	free(p->body);
	free(p->line);
	free(p);
}

/* ---- how it ends ---- */

static void release(void *owner)
{
	struct planning *p = owner;

	planner_finished(p->d->planner, p);
}

static void tell(void *owner)
{
	struct planning *p = owner;

	p->on_done(p->owner, p->err);
	planner_finished(p->d->planner, p);
}

void planning_end(struct planning *p, int err)
{
	p->step = NULL;
	p->err = err;
	loop_reap(p->d->deps.loop, p->on_done ? tell : release, p);
}

void planning_cancel(struct planning *p)
{
	if (!p->is_begun) {
		p->is_begun = true;
		planning_end(p, ERR_CLOSING);
		return;
	}
	if (p->step) {
		timer_stop(p->timer);
		planning_end(p, ERR_CLOSING);
		return;
	}
	if (p->is_on_github) /* op.call is the first member of op.pull_files, too */
		github_cancel(p->d->deps.github, &p->op.call);
}

static void on_timer(struct timer *t)
{
	struct planning *p = timer_owner(t);
	void (*step)(struct planning * p) = p->step;

	p->step = NULL;
	step(p);
}

void planning_again(struct planning *p, void (*step)(struct planning *p), int64_t after_ms)
{
	if (p->d->is_closing) {
		planning_end(p, ERR_CLOSING);
		return;
	}
	if (!p->timer)
		p->timer = timer_new(p->d->deps.loop, on_timer, p);
	p->step = step;
	timer_start(p->timer, after_ms);
}

bool planning_submitted(struct planning *p, int rc, void (*step)(struct planning *p))
{
	if (rc == 0)
		return true;
	if (dispatch_is_passing(rc))
		planning_again(p, step, STORE_AGAIN_MS);
	else
		planning_end(p, rc);
	return false;
}

bool planning_went_well(
    struct planning *p, const struct error *why, int err, void (*step)(struct planning *p))
{
	if (!err)
		return true;
	if (dispatch_is_passing(err)) {
		planning_again(p, step, STORE_AGAIN_MS);
		return false;
	}
	if (err == ERR_CLOSING) {
		planning_end(p, err);
		return false;
	}
	log_event(LOG_ERROR, "planning_failed", LOG_S("delivery", p->guid),
	    LOG_S("event", p->event_name), LOG_S("error", why->text));
	planning_fail(p, *why->text ? why->text : err_text(err));
	return false;
}

/* ---- a note on the delivery ---- */

static void submit_mark(struct planning *p);

static void on_marked(struct store_op *op)
{
	struct planning *p = CONTAINER_OF(op, struct planning, op.mark.op);
	bool has_failed = p->op.mark.mark == DELIVERY_MARK_FAILED;

	if (op->err && dispatch_is_passing(op->err)) {
		planning_again(p, submit_mark, STORE_AGAIN_MS);
		return;
	}
	if (op->err)
		log_event(LOG_ERROR, "delivery_unmarked", LOG_S("delivery", p->guid),
		    LOG_S("error", op->why.text));
	else if (has_failed)
		p->d->counters.n_deliveries_failed++;
	else
		p->d->counters.n_deliveries_ignored++;
	planning_end(p, has_failed ? ERR_INVALID : 0);
}

static void submit_mark(struct planning *p)
{
	p->op.mark = (struct mark_delivery){
	    .op.done = on_marked,
	    .delivery_id = p->delivery_id,
	    .mark = p->err ? DELIVERY_MARK_FAILED : DELIVERY_MARK_IGNORED,
	    .error = p->plan.reason,
	};
	planning_submitted(p, store_mark_delivery(p->d->deps.store, &p->op.mark), submit_mark);
}

static void mark(struct planning *p, int err, const char *reason)
{
	char *copy = xstrdup(reason); /* it may lie in what is overwritten here */

	free(p->plan.reason);
	p->plan.reason = copy;
	p->err = err;
	log_event(err ? LOG_WARN : LOG_INFO, err ? "delivery_failed" : "delivery_ignored",
	    LOG_S("delivery", p->guid), LOG_S("event", p->event_name),
	    LOG_S("action", p->event.action), LOG_S("reason", copy));
	if (p->delivery_id)
		submit_mark(p);
	else
		planning_end(p, err);
}

void planning_ignore(struct planning *p, const char *reason)
{
	mark(p, 0, reason);
}

void planning_fail(struct planning *p, const char *reason)
{
	mark(p, ERR_INVALID, reason);
}

/* ---- the plan ---- */

static void submit_plan(struct planning *p);

static void on_applied(struct store_op *op)
{
	struct planning *p = CONTAINER_OF(op, struct planning, op.apply.op);
	static const char *const kinds[] = {
	    [PLAN_IGNORE] = "ignore",
	    [PLAN_UPDATE] = "update",
	    [PLAN_START] = "start",
	    [PLAN_CLOSE] = "close",
	};

	if (!planning_went_well(p, &op->why, op->err, submit_plan))
		return;
	p->d->counters.n_deliveries_planned += p->delivery_id != 0;
	if (p->delivery_id)
		histogram_add(
		    &p->d->counters.plan_times, (clock_wall_ms() - p->received_ms) * 1000);
	p->d->counters.n_dispatches_made += p->op.apply.n_new_dispatches;
	log_event(LOG_INFO, "delivery_planned", LOG_S("delivery", p->guid),
	    LOG_S("event", p->event_name), LOG_S("action", p->event.action),
	    LOG_S("plan", p->op.apply.is_stale ? "stale" : kinds[p->plan.kind]),
	    LOG_I("pr", p->plan.pull.number), LOG_S("head", p->plan.head_sha),
	    LOG_I("change", p->op.apply.change_id),
	    LOG_I("dispatches", p->op.apply.n_new_dispatches));
	planning_end(p, 0);
}

static void submit_plan(struct planning *p)
{
	p->op.apply = (struct apply_plan){
	    .op.done = on_applied,
	    .delivery_id = p->delivery_id,
	    .guid = p->guid,
	    .body = p->body,
	    .body_bytes = p->body ? p->body_bytes : 0,
	    .plan = &p->plan,
	    .now_ms = clock_wall_ms(),
	};
	planning_submitted(p, store_apply_plan(p->d->deps.store, &p->op.apply), submit_plan);
}

static void decide(struct planning *p)
{
	enum plan_verdict verdict =
	    plan_make(&p->event, p->config, (const char *const *)p->files, &p->plan);

	if (verdict == PLAN_NEEDS_FILES) {
		assert(!p->files);
		planning_get_files(p, decide);
	} else if (p->plan.kind == PLAN_IGNORE) {
		planning_ignore(p, p->plan.reason);
	} else {
		submit_plan(p);
	}
}

void planning_begin(struct planning *p)
{
	p->is_begun = true;
	if (p->asked) {
		planning_ask(p);
		return;
	}
	if (p->parse_error.code) {
		planning_fail(p, p->parse_error.text);
		return;
	}
	switch (p->event.kind) {
	case EVENT_PULL_REQUEST:
	case EVENT_PUSH:
		decide(p);
		return;
	case EVENT_ISSUE_COMMENT:
		planning_comment(p);
		return;
	case EVENT_CHECK_RUN:
	case EVENT_CHECK_SUITE:
		planning_rerun(p);
		return;
	case EVENT_INSTALLATION:
		planning_ignore(p, "an installation changed: nothing to plan");
		return;
	}
	planning_fail(p, "an unknown kind of event");
}
