#include "publish/publish_internal.h"

enum { BUSY_RETRY_MS = 1000, APP_NAME_FIRST_MS = 15 * 1000, APP_NAME_LONGEST_MS = 15 * 60 * 1000 };

void claimed_begin(struct claimed *c, const char *events)
{
	c->p = engine_owner(c->effect.engine);
	c->github = c->p->deps.github;
	c->store = c->p->deps.store;
	c->config = config_ref(c->p->config);
	c->github_url = publisher_github_url(c->config);
	c->repository = c->effect.row.target;
	c->number = c->effect.row.number;
	c->events = events;
}

void claimed_cancel(struct effect *e)
{
	struct claimed *c = CONTAINER_OF(e, struct claimed, effect);

	if (c->on_wire)
		github_cancel(c->github, c->on_wire);
}

void claimed_release(struct claimed *c)
{
	github_call_release(&c->call);
	claimed_drop_change(c);
	config_unref(c->config);
	free(c->github_url);
}

/* ---- the change ---- */

static void on_change_read(struct store_query *q)
{
	struct claimed *c = CONTAINER_OF(q, struct claimed, change.q);

	if (q->err == ERR_NOT_FOUND || claimed_is_stored(c, q->err, &q->why))
		c->then(c);
}

void claimed_read_change(struct claimed *c, claimed_step *then)
{
	c->then = then;
	c->change = (struct get_change){.q = {.done = on_change_read},
	    .now_ms = clock_wall_ms(),
	    .repository = c->repository,
	    .number = c->number,
	    .max_verdicts = VERDICTS_MAX};
	if (store_get_change(c->store, &c->change))
		claimed_end_busy(c);
}

void claimed_drop_change(struct claimed *c)
{
	change_view_free(c->change.view);
	c->change.view = NULL;
}

/* ---- calls to GitHub ---- */

static void on_github_answer(struct github_call *call)
{
	struct claimed *c = call->owner;

	c->on_wire = NULL;
	c->on_answer(c, call);
}

bool claimed_begin_call(struct claimed *c, struct github_call *call, claimed_answer *on_answer)
{
	if (!effect_may_go_on(&c->effect)) {
		claimed_end(c, OUTBOX_NOT_YET, clock_wall_ms(), NULL);
		return false;
	}
	github_call_release(call);
	*call = (struct github_call){
	    .done = on_github_answer, .owner = c, .may_go_out = effect_may_go_out, .going_owner = &c->effect};
	c->on_answer = on_answer;
	c->on_wire = call;
	c->was_uncertain = c->effect.is_uncertain;
	return true;
}

/* Without an answer the text has no name. All rows share the pause before the next attempt, which doubles, so that a long
 * failure does not cost a request for each comment. */
static void on_app_answer(struct claimed *c, struct github_call *call)
{
	struct publisher *p = c->p;

	(void)call;
	if (github_app_slug(c->github)) {
		p->app_pause_ms = 0;
	} else {
		p->app_pause_ms = p->app_pause_ms ? 2 * p->app_pause_ms : APP_NAME_FIRST_MS;
		if (p->app_pause_ms > APP_NAME_LONGEST_MS)
			p->app_pause_ms = APP_NAME_LONGEST_MS;
		p->app_again_ms = clock_wall_ms() + p->app_pause_ms;
	}
	c->then(c);
}

void claimed_learn_app(struct claimed *c, claimed_step *then)
{
	int64_t wait_ms = c->p->app_again_ms - clock_wall_ms();

	c->then = then;
	/* the second bound: the wall clock may have been set back */
	if (github_app_slug(c->github) || (wait_ms > 0 && wait_ms <= APP_NAME_LONGEST_MS))
		then(c);
	else if (claimed_begin_call(c, &c->call, on_app_answer))
		github_app_get(c->github, &c->call);
}

const char *claimed_app_name(struct claimed *c)
{
	const char *name = github_app_slug(c->github);
	int64_t again_ms = c->p->app_again_ms;

	if (!name && (!c->again_ms || again_ms < c->again_ms))
		c->again_ms = again_ms;
	return name;
}

struct comment_options claimed_comment_options(const struct claimed *c)
{
	return (struct comment_options){.public_url = c->config->public_url,
	    .github_url = c->github_url,
	    .bot = github_app_slug(c->github),
	    .now_wall_ms = clock_wall_ms()};
}

/* ---- how it ends ---- */

void claimed_end(struct claimed *c, enum outbox_result result, int64_t next_ms, const char *error)
{
	if (result == OUTBOX_OK && c->again_ms) {
		result = OUTBOX_AGAIN;
		next_ms = c->again_ms;
	}
	if (error)
		snprintf(c->effect.why.text, sizeof(c->effect.why.text), "%s", error);
	effect_end(&c->effect, result, next_ms);
}

void claimed_end_ok(struct claimed *c) { claimed_end(c, OUTBOX_OK, 0, NULL); }

void claimed_end_busy(struct claimed *c) { claimed_end(c, OUTBOX_NOT_YET, clock_wall_ms() + BUSY_RETRY_MS, NULL); }

static void note_claim_failure(struct claimed *c, enum log_level level, const char *what, const struct error *why)
{
	struct publish_counters *counters = &c->p->counters;
	char ev[64];

	snprintf(ev, sizeof(ev), "%s_%s", c->events, what);
	snprintf(counters->last_error, sizeof(counters->last_error), "%s", why->text);
	counters->last_error_wall_ms = clock_wall_ms();
	log_event(level, ev, LOG_S("repository", c->repository), LOG_I("pr", c->number),
	    LOG_I("attempt", c->effect.row.n_attempts + 1), LOG_S("error", why->text));
}

void claimed_retry(struct claimed *c, const struct error *why, int64_t retry_after_ms)
{
	int64_t next_ms;

	if (effect_back_off(&c->effect, retry_after_ms, &next_ms)) {
		c->p->counters.n_retries++;
		note_claim_failure(c, LOG_WARN, "retry", why);
		claimed_end(c, OUTBOX_RETRY, next_ms, why->text);
	} else {
		c->p->counters.n_dead++;
		note_claim_failure(c, LOG_ERROR, "given_up", why);
		claimed_end(c, OUTBOX_DEAD, 0, why->text);
	}
}

bool claimed_is_stored(struct claimed *c, int err, const struct error *why)
{
	if (err)
		claimed_retry(c, why, 0);
	return !err;
}

void claimed_fail(struct claimed *c, const struct github_result *result)
{
	if (!result->was_sent || result->is_final) /* it changed nothing, but an earlier attempt may have */
		c->effect.is_uncertain = c->was_uncertain;
	if (result->err == ERR_CANCELLED) {
		claimed_end(c, OUTBOX_NOT_YET, clock_wall_ms(), NULL);
	} else if (result->is_final) {
		c->p->counters.n_dead++;
		note_claim_failure(c, LOG_ERROR, "refused", &result->why);
		claimed_end(c, OUTBOX_DEAD, 0, result->why.text);
	} else if (result->err == ERR_BUSY && !result->was_sent && result->retry_after_ms > 0) {
		claimed_end(c, OUTBOX_NOT_YET, clock_wall_ms() + result->retry_after_ms, NULL);
	} else {
		claimed_retry(c, &result->why, result->retry_after_ms);
	}
}

bool claimed_is_answered(struct claimed *c, const struct github_result *result)
{
	if (result->err)
		claimed_fail(c, result);
	return !result->err;
}
