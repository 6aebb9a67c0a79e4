#include "github/github.h"
#include "publish/publish_internal.h"

enum {
	BUSY_RETRY_MS = 1000,
	APP_NAME_RETRY_MS = 15 * 1000,
};

void claimed_begin(struct claimed *c, const char *events)
{
	c->p = engine_owner(c->effect.engine);
	c->config = config_ref(c->p->config);
	c->events = events;
}

void claimed_cancel(struct effect *e)
{
	struct claimed *c = CONTAINER_OF(e, struct claimed, effect);

	if (c->on_wire)
		github_cancel(c->p->deps.github, c->on_wire);
}

void claimed_release(struct claimed *c) { config_unref(c->config); }

bool claimed_begin_call(
    struct claimed *c, struct github_call *call, void (*done)(struct github_call *call), void *owner)
{
	if (engine_is_cancelling(c->effect.engine)) {
		claimed_end(c, OUTBOX_NOT_YET, clock_wall_ms(), NULL);
		return false;
	}
	github_call_release(call);
	*call = (struct github_call){.done = done, .owner = owner};
	c->on_wire = call;
	c->was_uncertain = c->effect.is_uncertain;
	return true;
}

const char *claimed_app_name(struct claimed *c)
{
	const char *name = github_app_slug(c->p->deps.github);
	int64_t again_ms = clock_wall_ms() + APP_NAME_RETRY_MS;

	if (!name && (!c->again_ms || again_ms < c->again_ms))
		c->again_ms = again_ms;
	return name;
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

void claimed_end_busy(struct claimed *c) { claimed_end(c, OUTBOX_NOT_YET, clock_wall_ms() + BUSY_RETRY_MS, NULL); }

static void note_claim_failure(struct claimed *c, enum log_level level, const char *what, const struct error *why)
{
	struct publish_counters *counters = &c->p->counters;
	char ev[64];

	snprintf(ev, sizeof(ev), "%s_%s", c->events, what);
	snprintf(counters->last_error, sizeof(counters->last_error), "%s", why->text);
	counters->last_error_wall_ms = clock_wall_ms();
	log_event(level, ev, LOG_S("repository", c->effect.row.target), LOG_I("pr", c->effect.row.number),
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

void claimed_fail(struct claimed *c, const struct github_result *result)
{
	if (!result->was_sent || result->is_final) /* it changed nothing; one before it may have */
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
