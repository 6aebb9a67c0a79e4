#include "dispatch/planning.h"

#include "dispatch/plan.h"

enum {
	TRIES_MAX = 3,
	TRY_AGAIN_MS = 1000,
	WAIT_MAX_MS = 5000,
	KEPT_BODY_MAX_BYTES = 64 << 10, /* of each planning, for the sender */
};

struct planning *planning_new(
    struct dispatch *d, int64_t delivery_id, char *guid, char *event_name, char *body, size_t body_bytes)
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
		rc = error_set(&p->parse_error, ERR_INVALID, "the body is missing");
	else
		rc = d->deps.parse_event(event_name, body, body_bytes, &p->event, &p->parse_error);
	if (rc)
		error_set(&p->parse_error, rc, "%s", err_text(rc));
	else if (p->event.kind == EVENT_PULL_REQUEST || p->event.kind == EVENT_ISSUE_COMMENT)
		p->line = xasprintf("%s#%lld", p->event.repository, (long long)p->event.pull.number);
	else if (p->event.kind == EVENT_PUSH)
		p->line = xasprintf("%s@%s", p->event.repository, p->event.ref);
	if (delivery_id && body_bytes > KEPT_BODY_MAX_BYTES)
		FREE_AND_NULL(p->body);
	return p;
}

struct planning *planning_new_request(struct dispatch *d, struct user_request *request)
{
	struct planning *p = xcalloc(1, sizeof(*p));

	p->d = d;
	p->config = config_ref(d->config);
	p->guid = xstrdup(request->guid);
	p->event_name = xstrdup("retest");
	p->user_request = request;
	if (request->number)
		p->line = xasprintf("%s#%lld", p->config->upstream_repository, (long long)request->number);
	return p;
}

void planning_free(struct planning *p)
{
	timer_close(p->timer);
	user_request_free(p->user_request);
	config_unref(p->config);
	event_release(&p->event);
	plan_release(&p->plan);
	strv_free(p->files);
	FREE_ALL(p->guid, p->event_name, p->body, p->line, p);
}

/* ---- the end ---- */

static void finish_planning(void *owner)
{
	struct planning *p = owner;

	if (p->on_done)
		p->on_done(p->owner, p->err);
	planner_finished(p->d->planner, p);
}

void planning_end(struct planning *p, int err)
{
	p->step = NULL;
	p->err = err;
	loop_reap(p->d->deps.loop, finish_planning, p);
}

void planning_cancel(struct planning *p)
{
	if (!p->is_begun || p->step) {
		p->is_begun = true;
		if (p->step)
			timer_stop(p->timer);
		planning_end(p, ERR_CLOSING);
	} else if (p->is_on_github) { /* op.call is the first member of op.pull_files, too */
		github_cancel(p->d->deps.github, &p->op.call);
	}
}

static void on_planning_timer(struct timer *t)
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
		p->timer = timer_new(p->d->deps.loop, on_planning_timer, p);
	p->step = step;
	timer_start(p->timer, after_ms);
}

bool planning_retries_github(
    struct planning *p, const struct github_result *r, int *n_tries, void (*step)(struct planning *p))
{
	int64_t pause_ms = TRY_AGAIN_MS * ++*n_tries;

	if (!p->d->is_closing && (r->is_final || *n_tries >= TRIES_MAX || r->retry_after_ms > WAIT_MAX_MS))
		return false;
	planning_again(p, step, pause_ms > r->retry_after_ms ? pause_ms : r->retry_after_ms);
	return true;
}

void planning_submitted(struct planning *p, int rc)
{
	if (rc)
		planning_end(p, rc);
}

bool planning_went_well(struct planning *p, const struct error *why, int err)
{
	/* This daemon may not write, for now or for good; another one may. */
	bool is_passing = err == ERR_EXISTS || err == ERR_TOO_NEW || store_is_passing(err);

	if (!err)
		return true;
	if (p->user_request && p->user_request->request) {
		user_request_give_up(p, is_passing ? ERR_AWAY : err, *why->text ? why->text : err_text(err));
		return false;
	}
	/* The delivery stays accepted; ERR_CLOSING: the service stops. */
	if (err == ERR_CLOSING || is_passing) {
		planning_end(p, ERR_CLOSING);
		return false;
	}
	log_event(LOG_ERROR, "planning_failed", LOG_S("delivery", p->guid), LOG_S("event", p->event_name),
	    LOG_S("error", why->text));
	planning_mark(p, DELIVERY_MARK_FAILED, *why->text ? why->text : err_text(err));
	return false;
}

/* ---- a note on the delivery ---- */

static void on_marked(struct store_op *op)
{
	struct planning *p = CONTAINER_OF(op, struct planning, op.mark.op);
	bool has_failed = p->op.mark.mark == DELIVERY_MARK_FAILED;

	if (op->err)
		log_event(LOG_ERROR, "delivery_unmarked", LOG_S("delivery", p->guid), LOG_S("error", op->why.text));
	else if (has_failed)
		p->d->counters.n_deliveries_failed++;
	else
		p->d->counters.n_deliveries_ignored++;
	planning_end(p, has_failed ? ERR_INVALID : 0);
}

void planning_mark(struct planning *p, enum delivery_mark mark, const char *reason)
{
	bool has_failed = mark == DELIVERY_MARK_FAILED;
	char *copy = xstrdup(reason); /* it may point into memory that is overwritten here */

	free(p->plan.reason);
	p->plan.reason = copy;
	log_event(has_failed ? LOG_WARN : LOG_INFO, has_failed ? "delivery_failed" : "delivery_ignored",
	    LOG_S("delivery", p->guid), LOG_S("event", p->event_name), LOG_S("action", p->event.action),
	    LOG_S("reason", copy));
	if (!p->delivery_id) {
		planning_end(p, has_failed ? ERR_INVALID : 0);
		return;
	}
	p->op.mark = (struct mark_delivery){
	    .op = {.done = on_marked, .retry.event = "delivery_unmarked"},
	    .delivery_id = p->delivery_id,
	    .mark = mark,
	    .error = copy,
	};
	planning_submitted(p, store_mark_delivery(p->d->deps.store, &p->op.mark));
}

/* ---- the plan ---- */

/* The requests of the plan are in the outbox. The body goes to the sender instead of being read again. */
static void offer_body(struct planning *p)
{
	bool is_requested = false;

	for (size_t i = 0; i < p->plan.n_wants; i++)
		is_requested |= p->plan.wants[i].kind != RUNNER_PULL && !p->plan.wants[i].held_reason;
	if (!p->body || !is_requested || !p->op.apply.n_new_dispatches || p->d->is_closing)
		return;
	sender_offer(p->d->sender, &(struct sender_body){.guid = p->guid,
				       .event_type = p->plan.event_type,
				       .sent_action = p->plan.sent_action,
				       .body = p->body,
				       .bytes = p->body_bytes,
				       .action_at = p->event.action_at,
				       .action_bytes = p->event.action_bytes});
	p->body = NULL;
}

static void on_applied(struct store_op *op)
{
	struct planning *p = CONTAINER_OF(op, struct planning, op.apply.op);
	static const char *const kinds[] = {
	    [PLAN_IGNORE] = "ignore",
	    [PLAN_UPDATE] = "update",
	    [PLAN_START] = "start",
	    [PLAN_CLOSE] = "close",
	};

	if (op->err) {
		outbox_offer_release(&p->op.apply.offer); /* the rows were not written */
		sender_adopt(p->d->sender, &p->op.apply.offer);
	}
	if (!planning_went_well(p, &op->why, op->err))
		return;
	p->d->counters.n_deliveries_planned += p->delivery_id != 0;
	if (p->delivery_id)
		histogram_add(&p->d->counters.plan_times, (clock_wall_ms() - p->received_ms) * 1000);
	p->d->counters.n_dispatches_made += p->op.apply.n_new_dispatches;
	log_event(LOG_INFO, "delivery_planned", LOG_S("delivery", p->guid), LOG_S("event", p->event_name),
	    LOG_S("action", p->event.action), LOG_S("plan", p->op.apply.is_stale ? "stale" : kinds[p->plan.kind]),
	    LOG_I("pr", p->plan.pull.number), LOG_S("head", p->plan.head_sha), LOG_I("change", p->op.apply.change_id),
	    LOG_I("dispatches", p->op.apply.n_new_dispatches));
	offer_body(p);
	sender_adopt(p->d->sender, &p->op.apply.offer);
	planning_end(p, 0);
}

static void decide_plan(struct planning *p)
{
	enum plan_verdict verdict = plan_make(&p->event, p->config, (const char *const *)p->files, &p->plan);

	if (verdict == PLAN_NEEDS_FILES) {
		assert(!p->files);
		planning_get_files(p, decide_plan);
	} else if (p->plan.kind == PLAN_IGNORE) {
		planning_mark(p, DELIVERY_MARK_IGNORED, p->plan.reason);
	} else {
		p->op.apply = (struct apply_plan){
		    .op = {.done = on_applied, .retry = {.event = "delivery_unplanned", .now_ms = &p->op.apply.now_ms}},
		    .delivery_id = p->delivery_id,
		    .guid = p->guid,
		    .body = p->delivery_id ? NULL : p->body,
		    .body_bytes = p->delivery_id ? 0 : p->body_bytes,
		    .plan = &p->plan,
		    .now_ms = clock_wall_ms(),
		};
		if (!p->d->is_closing)
			sender_offer_places(p->d->sender, &p->plan, &p->op.apply.offer);
		int rc = store_apply_plan(p->d->deps.store, &p->op.apply);
		if (rc)
			sender_adopt(p->d->sender, &p->op.apply.offer);
		planning_submitted(p, rc);
	}
}

void planning_begin(struct planning *p)
{
	p->is_begun = true;
	if (p->user_request) {
		planning_run_request(p);
		return;
	}
	if (p->parse_error.code) {
		planning_mark(p, DELIVERY_MARK_FAILED, p->parse_error.text);
		return;
	}
	switch (p->event.kind) {
	case EVENT_PULL_REQUEST:
	case EVENT_PUSH:
		decide_plan(p);
		break;
	case EVENT_ISSUE_COMMENT:
		planning_comment(p);
		break;
	case EVENT_CHECK_RUN:
	case EVENT_CHECK_SUITE:
		planning_rerun(p);
		break;
	case EVENT_INSTALLATION:
		planning_mark(p, DELIVERY_MARK_IGNORED, "an installation changed: nothing to plan");
		break;
	}
}

/* ---- the changed files of a pull request: from the store's cache, else from GitHub. If GitHub does not answer within a
 * few seconds, the change is planned as if every path matched: one run too many is better than an untested change or one
 * that waits ---- */

static void request_files(struct planning *p);

static void on_files_cached(struct store_op *op)
{
	struct planning *p = CONTAINER_OF(op, struct planning, op.put_files.op);

	if (op->err) /* the cache is optional */
		log_event(LOG_WARN, "files_uncached", LOG_S("delivery", p->guid), LOG_S("error", op->why.text));
	p->then(p);
}

static void on_pull_files(struct github_call *call)
{
	struct planning *p = CONTAINER_OF(call, struct planning, op.pull_files.call);
	const struct github_pull_files *got = &p->op.pull_files;
	struct github_result r = call->result;

	p->is_on_github = false;
	if (r.err) {
		github_pull_files_release(&p->op.pull_files);
		if (planning_retries_github(p, &r, &p->n_tries, request_files))
			return;
		p->d->counters.n_files_unread++;
		log_event(LOG_WARN, "files_unread", LOG_S("delivery", p->guid), LOG_I("pr", p->event.pull.number),
		    LOG_S("error", r.why.text), LOG_S("consequence", "planned as if every path matched"));
		strv_add(&p->files, FILES_INCOMPLETE);
		p->then(p);
		return;
	}
	p->files = xcalloc(got->n_names + 2, sizeof(*p->files));
	for (size_t i = 0; i < got->n_names; i++)
		p->files[i] = xstrdup(got->names[i]);
	if (got->is_incomplete)
		p->files[got->n_names] = xstrdup(FILES_INCOMPLETE);
	github_pull_files_release(&p->op.pull_files);
	p->op.put_files = (struct put_files){
	    .op.done = on_files_cached,
	    .repository = p->event.repository,
	    .head_sha = p->event.pull.head_sha,
	    .number = p->event.pull.number,
	    .files = (const char *const *)p->files,
	    .now_ms = clock_wall_ms(),
	};
	if (store_put_files(p->d->deps.store, &p->op.put_files))
		p->then(p);
}

static void request_files(struct planning *p)
{
	if (p->d->is_closing) { /* planning_cancel() has run already */
		planning_end(p, ERR_CLOSING);
		return;
	}
	p->is_on_github = true;
	p->op.pull_files = (struct github_pull_files){.call.done = on_pull_files};
	github_pull_files_get(p->d->deps.github, &p->op.pull_files, p->event.repository, p->event.pull.number);
}

static void on_cached_files(struct store_query *q)
{
	struct planning *p = CONTAINER_OF(q, struct planning, op.get_files.q);

	if (q->err == 0 && p->op.get_files.files) {
		p->files = p->op.get_files.files;
		p->then(p);
	} else {
		request_files(p);
	}
}

void planning_get_files(struct planning *p, void (*then)(struct planning *p))
{
	p->then = then;
	p->op.get_files = (struct get_files){
	    .q = {.done = on_cached_files, .kind = QUERY_URGENT},
	    .repository = p->event.repository,
	    .head_sha = p->event.pull.head_sha,
	};
	if (store_get_files(p->d->deps.store, &p->op.get_files))
		request_files(p);
}
